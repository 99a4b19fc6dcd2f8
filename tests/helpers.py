"""What several tests need to run the command line, in this process or in one of its own."""

import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from calm import cli

SHORT = ("--stream.fragments", "10", "--stream.mean-length", "1500")


def calm(monkeypatch, capsys, *arguments):
    """Run the command line here; return its exit code, standard output and standard error."""
    monkeypatch.setattr(sys, "argv", ["calm", *map(str, arguments)])
    code = 0
    try:
        cli.main()
    except SystemExit as exit:
        code = exit.code
    out, err = capsys.readouterr()
    return code, out, err


def spawn(*arguments, **options):
    """Start the command line as a process of its own."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.Popen(
        [sys.executable, "-m", "calm", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    )


@contextmanager
def small_files(size):
    """Files of this process may grow to so many bytes, then writing fails as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
