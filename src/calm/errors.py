"""The errors people see: one sentence that says what is wrong and what to do."""


class CalmError(Exception):
    """A user's mistake. The command line prints it as one line and exits with `exit_code`."""

    exit_code = 2


class RunFailedError(CalmError):
    """Something went wrong while the work was under way, through no fault of the call."""

    exit_code = 1
