"""The state of a learner in a file: named arrays, as safetensors, with a checksum."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from calm.errors import CalmError
from calm.learners.base import State


def as_arrays(state: Any) -> State:
    """Check what a learner's `state()` returned."""
    if not isinstance(state, Mapping):
        raise TypeError(f"state() must return a dict of arrays, not {type(state).__name__}")
    return {_name(name): _numeric(name, array) for name, array in state.items()}


def write_arrays(path: Path, step: int, arrays: State) -> None:
    """Write the state of a learner that has learned `step` batches."""
    try:
        save_file(arrays, path, metadata={"step": str(step), "sha256": _digest(arrays)})
    except SafetensorError as error:
        raise OSError(f"{path} could not be written: {error}") from None


def read_arrays(path: Path) -> tuple[int, State]:
    """Return how many batches had been learned, and the state."""
    try:
        with path.open("rb"):  # safetensors takes one that may not be read for missing
            pass
    except OSError as error:
        raise CalmError(f"{path} cannot be read: {error.strerror}") from None
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata()
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            step = int(metadata["step"])
        if metadata["sha256"] != _digest(state):
            raise ValueError("its checksum is wrong")
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise CalmError(
            f"{path} is damaged ({error}): delete it to let the run begin again"
        ) from None
    return step, state


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"state() must name its arrays by texts, and {name!r} is none")
    return name


def _numeric(name: str, value: Any) -> NDArray[Any]:
    array = None if isinstance(value, Mapping) else np.asarray(value, order="C")
    if array is None or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        kind = type(value).__name__
        raise TypeError(f"state() must return arrays of numbers, and {name!r} is a {kind}")
    return array


def _digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape} ".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()
