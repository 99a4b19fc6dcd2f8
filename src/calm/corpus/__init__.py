"""Text becomes encoded corpora: synthetic languages, or a folder of files."""
