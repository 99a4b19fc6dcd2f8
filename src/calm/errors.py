"""The errors people see: one sentence that says what is wrong and what to do."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CalmError(Exception):
    """A user's mistake. The command line prints it as one line and exits with `exit_code`."""

    exit_code = 2


class RunFailedError(CalmError):
    """Something went wrong while the work was under way, through no fault of the call."""

    exit_code = 1


class StoppedError(RunFailedError):
    """Somebody stopped the work, which can go on."""


class BusyError(CalmError):
    """Another process is at it."""


def reason(error: OSError) -> str:
    """Say what the operating system refused, and of which file."""
    where = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{where}"


@contextmanager
def blame(culprit: str, trace: Path | None = None) -> Iterator[None]:
    """Say in one sentence what goes wrong in somebody else's code, and where in it.

    The whole traceback goes to the file `trace`, if there is to be one.
    """
    try:
        yield
    except CalmError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [frame for frame in frames if "site-packages" not in frame.filename] or frames
        place = f"{theirs[-1].filename}:{theirs[-1].lineno}"
        if isinstance(error, SyntaxError):
            place = f"{error.filename}:{error.lineno}"
        if trace is not None:
            trace.write_text(traceback.format_exc(), encoding="utf-8")
            place += f"; all of it in {trace}"
        message = " ".join(str(error).split())
        raise RunFailedError(
            f"{culprit} failed with {type(error).__name__}: {message} ({place})"
        ) from error
