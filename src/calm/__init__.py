"""CALM: class-agnostic continual language modelling, a benchmark of online continual learning.

Everything here is imported when it is first used, so that `import calm` and `calm --help` are
quick.
"""

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calm.audit import check
    from calm.build import learner, load
    from calm.errors import CalmError
    from calm.learners.base import GatedLearner, InformedLearner, Learner
    from calm.loop import Record, Scorer, evaluate, prequential
    from calm.metrics import Result
    from calm.observer import Observer
    from calm.stream import Batch, Stream

__version__ = version("calm-bench")
__all__ = [
    "Batch", "CalmError", "GatedLearner", "InformedLearner", "Learner", "Observer", "Record",
    "Result", "Scorer", "Stream", "check", "evaluate", "learner", "load", "prequential",
]  # fmt: skip

_HOMES = {
    "calm.audit": ("check",),
    "calm.build": ("learner", "load"),
    "calm.errors": ("CalmError",),
    "calm.learners.base": ("GatedLearner", "InformedLearner", "Learner"),
    "calm.loop": ("Record", "Scorer", "evaluate", "prequential"),
    "calm.metrics": ("Result",),
    "calm.observer": ("Observer",),
    "calm.stream": ("Batch", "Stream"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'calm' has no attribute {name!r}")
