import pytest
import torch

from calm.learners.neural.dropout import drop, generator

CPU = torch.device("cpu")


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.9])
def test_it_drops_the_share_and_keeps_the_mean(rate):
    dropped = drop(torch.ones(3, 99_999), rate, generator(CPU, 1))
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=0.005)
    assert dropped.mean().item() == pytest.approx(1, abs=0.02 + rate**8)
    assert dropped[dropped != 0].unique().item() == pytest.approx(1 / (1 - rate), rel=1e-3)


def test_every_place_is_as_likely():
    """Four decisions share a random number: none of them is another's."""
    kept = drop(torch.ones(4000, 8), 0.5, generator(CPU, 1)) > 0
    assert (kept.float().mean(dim=0) - 0.5).abs().max() < 0.05
    assert torch.corrcoef(kept.T.float()).fill_diagonal_(0).abs().max() < 0.08


def test_nothing_is_dropped_without_a_source_or_a_rate():
    ones = torch.ones(5)
    assert drop(ones, 0.5, None) is ones
    assert drop(ones, 0.0, generator(CPU, 1)) is ones


def test_equal_keys_are_equal_numbers():
    one, same, other = (
        torch.rand(9, generator=generator(CPU, *k)) for k in ((1, 2), (1, 2), (2, 1))
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
