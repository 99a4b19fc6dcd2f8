import numpy as np
import pytest

import calm
from calm.errors import CalmError
from calm.learners.counts.learner import Counts
from calm.learners.counts.tree import ENTRIES, NODES
from calm.learners.counts.words import CONTEXTS
from learners.counts.texts import read_only, two_classes

V = 13
LENGTHS = [20, 20, 12, 12]


def learn(learner, batches):
    for inputs, targets in batches:
        learner.predict(inputs)
        learner.learn(inputs, targets)


def copied(learner):
    return {name: array.copy() for name, array in learner.state().items()}


def bytes_used(learner):
    trees = learner._tree, learner._words.tree
    return sum(array.nbytes for tree in trees for array in tree)


@pytest.mark.parametrize("level", ["char", "word"])
def test_tables_are_the_classes(level):
    batches, classes = two_classes(V, LENGTHS * 2, rows=10, window=20)
    learner, tables = Counts(V, 0, level=level, tables=8), []
    for inputs, targets in batches:
        learner.predict(inputs)
        learner.learn(inputs, targets)
        tables.append(learner.table)
    half = len(batches) // 2
    pairs, often = np.unique(np.stack([classes[half:], tables[half:]]), axis=1, return_counts=True)
    named = {c: pairs[1][pairs[0] == c][often[pairs[0] == c].argmax()] for c in (0, 1)}
    assert named[0] != named[1]
    found = [named[c] == table for c, table in zip(classes[half:], tables[half:], strict=True)]
    assert np.mean(found) >= 0.9


@pytest.mark.parametrize("level", ["char", "word"])
def test_probabilities_sum_to_1_at_every_position(level):
    learner = Counts(V, 0, level=level, tables=8)
    for inputs, targets in two_classes(V, [15, 15, 4, 4], rows=4)[0]:
        out = learner.predict(inputs)
        assert np.abs(np.exp(out.astype(float)).sum(axis=2) - 1).max() < 1e-5
        learner.learn(inputs, targets)


@pytest.mark.parametrize("level", ["char", "word"])
@pytest.mark.parametrize("after", [21, 33, 50])
def test_a_state_goes_on_alike_with_tables_open(level, after):
    batches, _ = two_classes(V, LENGTHS, rows=10, window=20)
    learner, restored = (Counts(V, 0, level=level, tables=8) for _ in range(2))
    learn(learner, batches[:after])
    learn(restored, batches[5:8])  # of which nothing must be left
    assert learner._classes.active.sum() > 2
    restored.load_state(copied(learner))
    for inputs, targets in batches[after:]:
        assert np.array_equal(learner.predict(inputs), restored.predict(inputs))
        learn(learner, [(inputs, targets)])
        learn(restored, [(inputs, targets)])
        assert learner.table == restored.table
    final = copied(restored)
    for name, array in learner.state().items():
        assert np.array_equal(array, final[name]), name


def noise(count, vocabulary=40, rows=10, window=20):
    """Batches that hardly ever repeat a context: the worst for memory."""
    text = np.random.default_rng(0).integers(0, vocabulary, (count * window + 1, rows))
    text[np.random.default_rng(1).random(text.shape) < 0.2] = 0
    at = range(0, count * window, window)
    return [(read_only(text[i : i + window]), read_only(text[i + 1 :][:window])) for i in at]


def test_a_tiny_memory_is_kept_to_and_predicts():
    learner, forgot, before = Counts(40, 0, memory=1.5), 0, 0
    for inputs, targets in noise(60):
        out = learner.predict(inputs)
        assert np.abs(np.exp(out.astype(float)).sum(axis=2) - 1).max() < 1e-5
        learner.learn(inputs, targets)
        forgot += learner._tree.used[NODES] < before
        before = int(learner._tree.used[NODES])
        assert bytes_used(learner) <= 1.5e6
    assert forgot > 1
    assert -np.take_along_axis(out, targets[..., None], axis=2).mean() < np.log(40)


def test_a_state_goes_on_alike_where_memory_is_short():
    batches = noise(60)
    learner, restored = Counts(40, 0, memory=1.5), Counts(40, 0, memory=1.5)
    learn(learner, batches[:31])
    restored.load_state(copied(learner))
    for inputs, targets in batches[31:]:
        assert np.array_equal(learner.predict(inputs), restored.predict(inputs))
        learn(learner, [(inputs, targets)])
        learn(restored, [(inputs, targets)])
        assert bytes_used(learner) == bytes_used(restored)


def test_no_memory_at_all_still_predicts():
    learner = Counts(40, 0, memory=0.001)
    learn(learner, noise(4))
    assert np.allclose(np.exp(learner.predict(noise(1)[0][0])).sum(axis=2), 1, atol=1e-5)


def test_a_context_that_many_symbols_follow_finds_a_block_for_them():
    follower = np.arange(1, 1100)
    text = np.stack([np.zeros_like(follower), follower], axis=1).reshape(-1, 1)
    learner = Counts(1100, 0, level="char", order=1, tables=0)
    for i in range(0, len(text) - 6, 6):
        learner.learn(read_only(text[i : i + 6]), read_only(text[i + 1 : i + 7]))
        for tree in (learner._tree, learner._words.tree):
            assert tree.used[ENTRIES] <= len(tree.symbol)
    tree = learner._tree
    assert tree.size[1] == i // 2 + 3  # whatever followed symbol 0
    assert tree.symbol[tree.begin[1] :][: tree.size[1]].tolist() == follower[: i // 2 + 3].tolist()


def test_learning_needs_no_prediction_before_it():
    batches, _ = two_classes(V, [6, 6])
    one, other = Counts(V, 0), Counts(V, 0)
    learn(one, batches)
    for i, (inputs, targets) in enumerate(batches):
        if i % 2:
            other.predict(read_only(inputs[::-1]))  # of something else
        other.learn(inputs, targets)
    for name, array in one.state().items():
        assert np.array_equal(array, other.state()[name]), name


def test_another_number_of_rows_begins_without_a_past():
    batches, _ = two_classes(V, [20])
    learner = Counts(V, 0)
    learn(learner, batches)
    inputs = read_only(batches[0][0][:, :1])
    out = learner.predict(inputs)
    learner.read(inputs[:4])
    assert np.allclose(learner.predict(inputs[4:]), out[4:], atol=1e-5)
    assert np.allclose(np.exp(out).sum(axis=2), 1, atol=1e-5)


def test_gate_weights_are_of_the_last_prediction():
    learner, (inputs, targets) = Counts(V, 0, tables=2, order=4), two_classes(V, [1])[0][0]
    assert learner.gate_weights() is None
    learner.predict(inputs)
    first = learner.gate_weights()
    assert first.tolist() == [0.0] * (4 + 4 + CONTEXTS) + [0.4, 0.6]  # no context is known as yet
    learner.learn(inputs, targets)
    learner.predict(inputs)
    assert (learner.gate_weights()[:3] > 0).all()


@pytest.mark.parametrize(("vocabulary", "level", "word"), [
    (4095, "auto", False), (4096, "auto", True), (20, "word", True), (5000, "char", False),
])  # fmt: skip
def test_the_level_is_told_by_the_vocabulary(vocabulary, level, word):
    learner = calm.learner("counts", vocabulary=vocabulary, level=level)
    assert learner._model.order == (3 if word else 8)
    assert bool(learner._contexts) == (not word)


@pytest.mark.parametrize("options", [
    {"order": 0}, {"tables": -1}, {"memory": 0.0}, {"rate": -0.1}, {"fine_rate": -1.0},
    {"trust": -0.5}, {"level": "letter"}, {"tables": 1.5}, {"nonsense": 1},
    {"trust": float("nan")}, {"rate": 1e30}, {"memory": float("inf")}, {"memory": float("nan")},
    {"order": 100_000}, {"tables": 100_000},
])  # fmt: skip
def test_options_that_make_no_sense_are_the_users_mistake(options):
    with pytest.raises(CalmError):
        calm.learner("counts", vocabulary=20, **options)
