"""Experts shared out over threads of our own, on a CPU.

Torch's threads spin for a while after every loop they share, on the cores that ours need. So while
experts are shared out, every operation of torch stays on the thread that asks for it.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


class _Crew(threading.local):
    """How many threads `share` has while torch's own rest; 0 while they do not."""

    size = 0


_crew = _Crew()


@contextmanager
def crew(jobs: int) -> Iterator[None]:
    """Let `share` have torch's threads until the end, unless there is but one job to share."""
    threads = torch.get_num_threads()
    if _crew.size or min(jobs, threads) == 1:
        yield
        return
    _crew.size = threads
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        _crew.size = 0


def share(work: Callable[[int, int], None], jobs: int) -> None:
    """Call work(first, last) so that every job from 0 on is done, without gradients."""
    with crew(jobs), torch.no_grad():
        threads = min(_crew.size or 1, jobs)
        bounds = [jobs * i // threads for i in range(threads + 1)]
        others = [
            _pool(threads).submit(torch.no_grad()(work), *bounds[i : i + 2])
            for i in range(1, threads)
        ]
        work(*bounds[:2])
        for other in others:
            other.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads - 1)


def as_array(tensor: Tensor) -> NDArray[Any]:
    """Numbers in place; those in bfloat16 as the upper halves of float32."""
    tensor = tensor.detach()
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()
