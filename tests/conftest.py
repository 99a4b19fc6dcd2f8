import os

os.environ["OMP_NUM_THREADS"] = "1"  # threads that wait for each other crawl on a busy machine

import numpy as np
import pytest
from hypothesis import settings

from calm.corpus.memory import MemoryCorpora
from calm.corpus.synthetic import SyntheticCorpora

settings.register_profile("calm", deadline=None, max_examples=60)
settings.load_profile("calm")


@pytest.fixture(scope="session")
def synthetic() -> SyntheticCorpora:
    return SyntheticCorpora()


@pytest.fixture(scope="session")
def numbered() -> MemoryCorpora:
    """Three classes whose every token says where it stands: class · 100,000 + position."""
    halves = {
        f"c{c}": (c * 100_000 + np.arange(20_000), c * 100_000 + np.arange(20_000, 60_000))
        for c in range(3)
    }
    return MemoryCorpora("numbered", "word", [str(i) for i in range(300_000)], halves)
