"""Devices, as far as they can be tested without a GPU."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import calm
from calm.config import read_config
from calm.learners import LEARNERS
from calm.learners.experts import Experts
from calm.learners.neural import recurrence
from calm.learners.neural.online import Neural, find_device
from helpers import SHORT
from helpers import calm as command

NEURAL = [name for name, named in LEARNERS.items() if named.sizes and name != "ind-lstm"]
SMALL = {"hidden": 8, "embedding": 6, "gate_hidden": 4, "dropout": 0.2}


@pytest.mark.parametrize("name", [*NEURAL, "newton"])
def test_everything_is_computed_on_one_device(monkeypatch, name):
    """A tensor made on the CPU on the way would not go together with those of another device."""
    monkeypatch.setattr(torch, "autocast", lambda *_: nullcontext())  # it knows no device "meta"
    options = {"gate": "newton", "experts": 3, **SMALL} if name == "newton" else {"size": "tiny"}
    name = "experts" if name == "newton" else name
    learner = calm.learner(name, vocabulary=11, **options)
    assert isinstance(learner, Neural)
    network = learner.network.to("meta")
    x = torch.zeros(5, 2, dtype=torch.int64, device="meta")
    carried = []
    for step in (0, 1000):  # during a warm-up, and after it
        output, carried = network(x, carried, None, step)
        loss = network.loss(output, x.flatten())
        loss.backward()
        made = [network.log_probabilities(output), loss, *carried]
        made += [p.grad for p in network.parameters() if p.grad is not None]
        assert {tensor.device.type for tensor in made} == {"meta"}
        assert made[0].shape == (10, 11)


class Operations(TorchDispatchMode):
    """Counts what is asked of the device."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("gate", ["fixed", "plastic", "lstm", "newton"])
def test_more_experts_are_not_more_operations(monkeypatch, gate):
    """On a GPU every operation is a kernel: a loop over the experts would starve it."""
    monkeypatch.setattr(recurrence, "OneByOne", recurrence.AtOnce)  # as on a GPU
    counts = []
    for experts in (2, 7):
        learner = Experts(11, seed=1, experts=experts, gate=gate, clip=1e9, steps=2, **SMALL)
        learner.network.adapt = lambda *_: None  # how many Newton steps there are may differ
        x = np.random.default_rng(0).integers(0, 11, (5, 2))
        with Operations() as operations:
            learner.predict(x)
            learner.learn(x, x)
        counts.append(operations.count)
    assert counts[0] == counts[1] > 50


def test_parameters_stay_in_full_precision():
    learner = Experts(11, seed=1, experts=2, gate="plastic", precision="bfloat16", **SMALL)
    x = np.random.default_rng(0).integers(0, 11, (5, 2))
    for _ in range(2):
        assert learner.predict(x).dtype == np.float32
        learner.learn(x, x)
    assert {a.dtype for a in learner.state().values() if a.ndim} == {np.dtype(np.float32)}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_auto_is_the_cpu():
    assert find_device("auto") == find_device("cpu") == torch.device("cpu")


def test_the_command_passes_device_and_precision_on(tmp_path, monkeypatch, capsys):
    choice = ("--learner", "lstm", "--size", "tiny", "--device", "auto", "--precision", "bfloat16")
    code, _, _ = command(monkeypatch, capsys, "run", *choice, *SHORT, "--out", tmp_path / "run")
    assert code == 0
    options = read_config(tmp_path / "run" / "config.toml").learner.options
    assert options == {"size": "tiny", "device": "auto", "precision": "bfloat16"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--device", "tpu"), "device is 'tpu': take one of cpu, cuda, auto"),
        (("--precision", "float16"), "precision is 'float16': take one of float32, bfloat16"),
        (("--learner", "unigram", "--device", "cpu"), "unknown key 'device'"),
    ],
)
def test_a_device_or_precision_that_is_none_is_one_sentence(
    tmp_path, monkeypatch, capsys, arguments, words
):
    code, _, err = command(monkeypatch, capsys, "run", *arguments, "--out", tmp_path / "run")
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
