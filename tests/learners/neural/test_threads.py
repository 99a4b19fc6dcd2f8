import threading
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from calm.learners.experts import Experts
from calm.learners.neural.threads import crew, share


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@given(st.integers(1, 9))
def test_every_job_is_done_once_and_without_gradients(jobs):
    done = []

    def work(first, last):
        done.extend((job, torch.is_grad_enabled()) for job in range(first, last))

    with crew(jobs):
        share(work, jobs)
    assert sorted(done) == [(job, False) for job in range(jobs)]


def test_jobs_are_shared_out_and_torch_rests_meanwhile(threads):
    seen = set()
    together = threading.Barrier(threads, timeout=20)

    def work(first, last):
        together.wait()
        seen.add((threading.get_ident(), torch.get_num_threads()))

    share(work, threads)
    assert len({thread for thread, _ in seen}) == threads
    assert {own for _, own in seen} == {1}
    assert torch.get_num_threads() == threads


def test_a_lone_job_has_all_threads_of_torch(threads):
    seen = []
    share(lambda *_: seen.append(torch.get_num_threads()), 1)
    assert seen == [threads]


def test_what_fails_in_a_thread_is_raised_and_torch_has_its_threads_again(threads):
    def work(first, last):
        if last == threads:
            raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        share(work, threads)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_how_many_threads_there_are_changes_nothing(precision):
    before = torch.get_num_threads()
    losses = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        learner = Experts(
            11, seed=1, experts=5, gate="plastic", hidden=8, embedding=6, precision=precision
        )
        source = np.random.default_rng(0)
        x = source.integers(0, 11, (6, 5, 2))
        for inputs, targets in pairwise(x):
            losses.append(learner.predict(inputs))
            learner.learn(inputs, targets)
    torch.set_num_threads(before)
    np.testing.assert_array_equal(losses[:5], losses[5:])
