"""Machine and versions, as noted beside every run."""

import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def environment() -> dict[str, Any]:
    """Machine and versions."""
    packages = ("calm-bench", "numpy", "numba", "torch")
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def _commit() -> str | None:
    """Return the last commit of this code, marked if it was modified since; None outside git."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments, "--", "."]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    try:
        commit = git("log", "-1", "--format=%H")
        return (commit + ("+modified" if git("status", "--porcelain") else "")) or None
    except OSError:  # no git on this machine
        return None
