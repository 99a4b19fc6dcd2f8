import hashlib
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.corpus.memory import MemoryCorpora
from calm.errors import CalmError
from calm.stream import Stream


def rows_of(stream):
    """Each row's inputs and targets along the whole stream, (rows, batches · w)."""
    batches = list(stream)
    inputs = np.concatenate([batch.inputs for batch in batches])
    targets = np.concatenate([batch.targets for batch in batches])
    return inputs.T, targets.T, batches


def by_hand(corpora, stream):
    """Every row's token sequence as the definition reads, seamless: one segment after the other."""
    rows = []
    for row in range(stream.rows):
        stopped = [0] * len(corpora.classes)
        sequence = []
        for i, (c, length) in enumerate(zip(stream.plan.classes, stream.plan.lengths, strict=True)):
            first, end = corpora.extent(c, stream.split)
            origin = first + row * ((end - first) // stream.rows)
            count = length * stream.window + (i == 0)
            sequence += corpora.tokens(c, origin + stopped[c], origin + stopped[c] + count).tolist()
            stopped[c] += count
        rows.append(sequence)
    return np.array(rows)


@pytest.mark.parametrize("split", ["dev", "test", "all"])
def test_a_seamless_row_is_one_sequence_of_segments(numbered, split):
    stream = Stream(numbered, 12, 900, rows=4, window=7, seed=3, split=split)
    inputs, targets, _ = rows_of(stream)
    expected = by_hand(numbered, stream)
    assert np.array_equal(inputs, expected[:, :-1])
    assert np.array_equal(targets, expected[:, 1:])


def test_no_target_is_served_twice_and_all_are_of_the_fragments_class(numbered):
    stream = Stream(numbered, 30, 500, rows=3, window=5, seed=1)
    _, targets, batches = rows_of(stream)
    assert len(np.unique(targets)) == targets.size
    for batch in batches:
        assert (batch.targets // 100_000 == batch.class_index).all()
        assert batch.class_index == stream.plan.classes[batch.fragment]


def test_at_a_paper_boundary_a_row_jumps_into_the_new_class(numbered):
    stream = Stream(numbered, 30, 500, rows=3, window=5, seed=1, boundary="paper")
    inputs, targets, batches = rows_of(stream)
    assert len(np.unique(targets)) == targets.size
    for before, batch in pairwise(batches):
        assert (batch.inputs // 100_000 == batch.class_index).all()
        jumped = (batch.inputs[0] != before.targets[-1]).all()
        assert jumped == (batch.fragment != before.fragment)
    assert np.array_equal(inputs[:, 1:5], targets[:, :4])


def test_at_a_seamless_boundary_nothing_gives_the_switch_away(numbered):
    _, _, batches = rows_of(Stream(numbered, 30, 500, rows=3, window=5, seed=1))
    for before, batch in pairwise(batches):
        assert np.array_equal(batch.inputs[0], before.targets[-1])


@given(start=st.integers(0, 400), boundary=st.sampled_from(["seamless", "paper"]))
def test_it_can_start_at_any_batch(numbered, start, boundary):
    stream = Stream(numbered, 9, 600, rows=2, window=5, seed=2, boundary=boundary)
    whole = list(stream.batches())
    start %= len(stream) + 1
    rest = list(stream.batches(start))
    assert [b.step for b in rest] == list(range(start, len(stream)))
    for expected, batch in zip(whole[start:], rest, strict=True):
        assert np.array_equal(expected.inputs, batch.inputs)
        assert np.array_equal(expected.targets, batch.targets)
        assert (expected.fragment, expected.class_index) == (batch.fragment, batch.class_index)


def test_a_fragment_longer_than_a_chunk_has_no_seam(numbered):
    stream = Stream(numbered, 3, 12_000, rows=2, window=5, seed=0)
    assert stream.plan.lengths.max() > 600
    inputs, targets, _ = rows_of(stream)
    assert np.array_equal(inputs[:, 1:], targets[:, :-1])


def test_the_same_seed_gives_the_same_stream_whatever_was_drawn_before(synthetic):
    def digest():
        stream = Stream(synthetic, 10, 2000, seed=5)
        digest = hashlib.sha256()
        for batch in stream:
            digest.update(batch.targets.astype("<i8").tobytes())
        return digest.hexdigest()[:16]

    first = digest()
    np.random.seed(9)
    np.random.random(100)
    random.random()
    assert digest() == first == "90957eb20b594db6"


def test_rows_of_endless_text_begin_where_it_can_be_entered(synthetic):
    batch = next(iter(Stream(synthetic, 10, 2000, seed=5)))
    assert {synthetic.vocabulary[token] for token in batch.inputs[0]} == {" "}


def test_a_short_corpus_is_refused_before_anything_runs(numbered):
    with pytest.raises(CalmError) as error:
        Stream(numbered, 30, 50_000, split="dev")
    message = str(error.value)
    assert "the text of 'c" in message
    assert "its dev split has 20,000" in message
    needed = int(message.split("too short: ")[1].split()[0].replace(",", ""))
    assert needed > 20_000


def test_a_corpus_just_long_enough_will_do():
    tokens = np.zeros(10, np.int64)

    def corpora(length):
        halves = {name: (tokens[:0], np.zeros(length, np.int64)) for name in "ab"}
        return MemoryCorpora("x", "char", ["x"], halves)

    stream = Stream(corpora(10_000), 2, 100, rows=2, window=5)
    needed = int(stream.plan.used.max()) * 2
    assert len(list(Stream(corpora(needed), 2, 100, rows=2, window=5))) == len(stream)
    with pytest.raises(CalmError, match=f"{needed:,} tokens"):
        Stream(corpora(needed - 2), 2, 100, rows=2, window=5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"fragments": 10}, "10 fragments cannot be dealt evenly to 3 classes"),
        ({"mean_length": -5}, "mean length is -5"),
        ({"mean_length": 0}, "mean length is 0"),
        ({"mean_length": float("nan")}, "mean length is nan"),
        ({"rows": 0}, "rows is 0"),
        ({"window": -1}, "window is -1"),
        ({"split": "train"}, "split 'train'"),
        ({"boundary": "none"}, "boundary 'none'"),
    ],
)
def test_wrong_parameters_are_one_sentence(numbered, arguments, words):
    with pytest.raises(CalmError, match=words):
        Stream(numbered, **{"fragments": 9, "mean_length": 500, **arguments})


def test_batches_cannot_be_written_to(numbered):
    batch = next(iter(Stream(numbered, 9, 500)))
    with pytest.raises(ValueError, match="read-only"):
        batch.inputs[0, 0] = 1


def test_other_text_is_of_the_other_half(numbered):
    assert (Stream(numbered, 9, 500).other_text(1, 50) < 120_000).all()
    assert (Stream(numbered, 9, 500, split="dev").other_text(1, 50) >= 120_000).all()


def test_text_that_is_too_short_is_counted_as_it_is():
    corpora = MemoryCorpora("short", "char", "ab", {"a": (np.zeros(3, int), np.zeros(3, int))})
    with pytest.raises(CalmError, match="its test split has 3 for 10 rows"):
        Stream(corpora, 1, 10)
