"""The terminal, or what stands in for one."""

import sys

from rich.console import Console


def console() -> Console:
    """Make a console: as wide as the terminal, or wide enough for a table when there is none."""
    return Console(width=None if sys.stdout.isatty() else 120)
