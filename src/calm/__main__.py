"""`python -m calm`."""

from calm.cli import main

main()
