"""`python -m calm`, and the command `calm`."""

import sys


def main() -> None:
    """Import the command line and run it; importing takes a moment, in which Ctrl-C may come."""
    try:
        from calm import cli
    except KeyboardInterrupt:
        sys.exit("calm: stopped")
    cli.main()


if __name__ == "__main__":
    main()
