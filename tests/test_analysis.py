import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calm.analysis import (
    LAST,
    alike_together,
    clusters,
    gate_similarity,
    rank_correlation,
    tree_agreement,
)


def weights_of(classes, batches, experts=6, seed=0):
    """Weights (batches, experts) around one vector for each class, and the classes' names."""
    draws = np.random.default_rng(seed)
    names = np.array(sorted(classes))[draws.integers(0, len(classes), batches)]
    centre = {name: draws.normal(size=experts) for name in sorted(classes)}
    gates = np.array([centre[str(name)] for name in names])
    return gates + 0.3 * draws.normal(size=gates.shape), names


def by_hand(gates, names):
    """Pairs of batches, one by one, with numpy's correlation."""

    def mean(first, second):
        pairs = [(i, j) for i in first for j in second if i != j]
        return np.mean([np.corrcoef(gates[i], gates[j])[0, 1] for i, j in pairs])

    where = {name: np.flatnonzero(names == name) for name in sorted(set(names))}
    between = [[mean(a[-LAST:], b[-LAST:]) for b in where.values()] for a in where.values()]
    return between, [mean(a[-LAST:], a[-2 * LAST : -LAST]) for a in where.values()]


def test_similarity_is_that_of_all_pairs_of_batches():
    gates, names = weights_of("ab", 410)
    found = gate_similarity(gates, names)
    between, over_time = by_hand(gates, names)
    assert found.classes == ("a", "b")
    assert np.allclose(found.between, between)
    assert np.allclose(found.over_time, over_time)
    assert (np.diag(found.between) > found.between[0, 1] + 0.3).all()


def test_only_the_last_batches_of_each_class_count():
    gates, names = weights_of("abc", 1200)
    changed = gates.copy()
    for name in "abc":
        changed[np.flatnonzero(names == name)[: -2 * LAST]] = 7.0
    for part in ("between", "over_time"):
        one, other = (getattr(gate_similarity(g, names), part) for g in (gates, changed))
        assert np.array_equal(one, other)


def test_scale_and_offset_of_the_weights_do_not_matter():
    gates, names = weights_of("abc", 900)
    draws = np.random.default_rng(1)
    moved = gates * draws.uniform(0.5, 3, (900, 1)) + draws.normal(size=(900, 1))
    assert np.allclose(gate_similarity(gates, names).between, gate_similarity(moved, names).between)


def test_a_short_stream_has_no_earlier_batches():
    gates, names = weights_of("ab", 60)
    found = gate_similarity(gates, names)
    assert np.isfinite(found.between).all()
    assert np.isnan(found.over_time).all()


def test_one_class_and_one_batch():
    found = gate_similarity(np.array([[1.0, 2.0, 4.0]]), np.array(["a"]))
    assert np.isnan(found.between).all()
    assert found.between.shape == (1, 1)


@pytest.mark.parametrize("weight", [0.2, 1 / 3, 0.0, -1.0])
@pytest.mark.parametrize("experts", [1, 5, 30])
def test_weights_that_are_all_the_same_have_no_correlation(weight, experts):
    gates, names = np.full((400, experts), weight), np.array(["a", "b"] * 200)
    found = gate_similarity(gates, names)
    assert np.isnan(found.between).all()
    assert np.isnan(found.over_time).all()


def test_batches_of_a_warm_up_are_left_out():
    gates, names = weights_of("ab", 120)
    before = np.full((40, gates.shape[1]), 1 / gates.shape[1])
    longer = gate_similarity(np.concatenate([before, gates]), np.concatenate([names[:40], names]))
    assert np.allclose(longer.between, gate_similarity(gates, names).between)


def spearman(x, y):
    """From the definition: ranks, equal values sharing the mean of theirs; their correlation."""

    def ranks(values):
        places = sorted(values)
        return [np.mean([i for i, v in enumerate(places) if v == value]) for value in values]

    return np.corrcoef(ranks(x), ranks(y))[0, 1]


@given(arrays(np.float64, st.tuples(st.just(2), st.integers(2, 12)), elements=st.integers(-4, 4)))
def test_rank_correlation_is_spearmans(values):
    x, y = values
    found = rank_correlation(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(spearman(x, y), abs=1e-12)
        assert rank_correlation(np.exp(x), 3 * y - 1) == pytest.approx(found, abs=1e-12)


def test_agreement_with_a_tree():
    distances = np.array([[0, 1, 4], [1, 0, 5], [4, 5, 0]], dtype=float)
    assert tree_agreement(-distances, distances) == pytest.approx(1)
    assert tree_agreement(distances, distances) == pytest.approx(-1)
    unknown = np.full((3, 3), np.nan)
    assert np.isnan(tree_agreement(unknown, distances))
    assert np.isnan(tree_agreement(np.ones((1, 1)), np.zeros((1, 1))))


def test_clusters_join_the_most_similar_first():
    alike = {"es fr": 0.9, "de en": 0.8, "en es": 0.5, "en fr": 0.5, "de es": 0.4, "de fr": 0.4}
    names = ("cs", "de", "en", "es", "fr")
    similarity = np.full((5, 5), 0.1)
    for pair, value in alike.items():
        i, j = (names.index(name) for name in pair.split())
        similarity[i, j] = similarity[j, i] = value
    assert clusters(names, similarity) == "(cs ((es fr) (de en)))"
    assert clusters(names[:1], similarity[:1, :1]) == "cs"
    similarity[0, 1] = np.nan
    assert clusters(names, similarity) == ""


@pytest.mark.parametrize("seed", range(5))
def test_experts_used_alike_become_neighbours(seed):
    draws = np.random.default_rng(seed)
    kinds = np.array([0, 1, 2] * 3)
    uses = draws.normal(size=(100, 3))
    weights = uses[:, kinds] + 0.01 * draws.normal(size=(100, 9))
    order = alike_together(weights)
    assert sorted(order) == list(range(9))
    along = kinds[order]
    assert sum(a != b for a, b in zip(along, np.roll(along, 1), strict=True)) == 3


def test_experts_that_never_change_are_placed_too():
    assert sorted(alike_together(np.ones((5, 4)))) == [0, 1, 2, 3]
    assert alike_together(np.ones((5, 1))).tolist() == [0]
