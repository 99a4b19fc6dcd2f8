"""Corpora become a stream of batches."""

from calm.stream.plan import Boundary
from calm.stream.stream import Batch, Stream

__all__ = ["Batch", "Boundary", "Stream"]
