"""Options chosen by trying: a space that an experiment declares, searched on the dev half."""
