import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.learners.counts.tree import NODES, size_in_bytes
from calm.learners.counts.words import REFERENCE, ROOTS, ROW, WordContexts, follow_words

V, END = 4, 0  # until something was learned, symbol 0 is taken for the separator
PLENTY = 10**9


def ended_often(text):
    """A text whose most frequent symbol is the separator, whichever way it is cut."""
    return [symbol for letter in text for symbol in ([END, letter] if letter else [END])]


rows_of_text = st.lists(st.lists(st.integers(0, V - 1), max_size=40).map(ended_often), min_size=2,
                        max_size=2)  # fmt: skip


def side_by_side(texts):
    length = max(min(map(len, texts)), 2)
    return np.array([(text + [END] * length)[:length] for text in texts], dtype=np.int64).T.copy()


def transcribe(inputs, row):
    """The contexts after every symbol of a row, as tuples; None before the first separator."""
    found, word, last, before = [], None, None, None
    for symbol in inputs:
        if symbol == END:
            if word != "":
                before, last = last, word
            word = ""
        elif word is not None:
            word += chr(ord("a") + symbol)
        pair = None if last is None or word is None else (last, word)
        triple = None if pair is None or before is None else (before, last, word)
        skip = None if word is None or before is None else (before, word)
        own = None if word is None else (row, word)
        found.append((word, pair, triple, skip, own))
    return found


def spell(tree, node):
    """What a node of the tree stands for, as in the transcription."""
    letters, reference = "", []
    while node >= ROOTS:
        label = int(tree.label[node])
        if REFERENCE > label >= ROW:
            reference.append(label - ROW)
        elif label >= REFERENCE:
            reference.append(spell(tree, label - REFERENCE))
        else:
            letters = chr(ord("a") + label) + letters
        node = int(tree.parent[node])
    return letters if node == 1 else (*reference, letters)


def spelled(tree, nodes):
    """Which words those are: (..., 4) nodes to a list per context."""
    return [None if node < 0 else spell(tree, int(node)) for node in nodes]


def follow(contexts, inputs, known=False):
    """The contexts at every position, (w, b, 5), of rows that are left where they are."""
    rows = contexts.rows(inputs.shape[1])[0].copy()
    return follow_words(contexts.tree, inputs, known, contexts.separator, rows, False)


@given(rows_of_text)
def test_contexts_equal_a_transcription_row_by_row(texts):
    text = side_by_side(texts)
    contexts = WordContexts(V, PLENTY)
    contexts.learn(text[:-1], text[1:], False)
    fresh = WordContexts(V, PLENTY)
    fresh.tree, fresh._frequency = contexts.tree, contexts._frequency
    assert fresh.separator == END
    nodes = follow(fresh, text)
    for r in range(2):
        for found, expected in zip(nodes[:-1, r], transcribe(text[:-1, r], r), strict=True):
            assert spelled(contexts.tree, found) == list(expected)


@given(rows_of_text)
def test_what_followed_each_context_is_counted(texts):
    text = side_by_side(texts)
    contexts = WordContexts(V, PLENTY)
    contexts.learn(text[:-1], text[1:], False)
    expected = {}
    for r in range(2):
        for along, symbol in zip(transcribe(text[:-1, r], r), text[1:, r].tolist(), strict=True):
            for which, context in enumerate(along):
                if context is not None:
                    counts = expected.setdefault((which == 3, context), {})
                    counts[symbol] = counts.get(symbol, 0) + 1
    tree, found = contexts.tree, {}
    for node in range(1, int(tree.used[NODES])):
        places = range(tree.begin[node], tree.begin[node] + tree.size[node])
        if places:
            skips = node
            while skips >= ROOTS:
                skips = tree.parent[skips]
            entries = {int(tree.symbol[e]): int(tree.counts[e, 0]) for e in places}
            found[skips == 3, spell(tree, node)] = entries
    # a word at the root of pairs is told from one at the root of skips by what comes before it
    assert found == expected


@given(rows_of_text, st.data())
def test_windows_of_any_size_give_the_same_contexts(texts, data):
    text = side_by_side(texts)
    whole, cut = WordContexts(V, PLENTY), WordContexts(V, PLENTY)
    whole.learn(text[:-1], text[1:], False)
    at = 0
    while at < len(text) - 1:
        stop = data.draw(st.integers(at + 1, len(text) - 1))
        cut.learn(text[at:stop], text[at + 1 : stop + 1], at > 0)
        at = stop
    for name, array in whole.state().items():
        if name != "length":  # what room there is may differ
            assert np.array_equal(cut.state()[name], array), name
    whole._rows = cut._rows = np.full((2, 0, 7), -1, dtype=np.int32)
    expected, half = follow(whole, text), data.draw(st.integers(1, len(text) - 1))
    first = follow(cut, text[:half])
    cut.read(text[:half], False)
    assert np.array_equal(np.concatenate([first, follow(cut, text[half:])]), expected)
    known = follow(cut, text[half - 1 :], True)  # the first of which is read already
    assert np.array_equal(known, expected[half - 1 :])
    assert (cut._rows[0] == cut._rows[1]).all()  # which table reads is not known


def test_each_table_goes_on_where_it_stopped():
    windows = babble(6)
    both, one = WordContexts(26, PLENTY, 3), WordContexts(26, PLENTY)
    for i, (inputs, targets) in enumerate(windows):
        both.learn(inputs, targets, i > 0, 1, 1)
        one.learn(inputs, targets, i > 0)
    rows = both._rows.copy()
    assert np.array_equal(rows[1], one._rows[0])
    assert (rows[[0, 2]] == -1).all()
    other = np.roll(windows[0][0], 7, axis=0)
    both.learn(other[:-1], other[1:], False, 2, 2)
    assert np.array_equal(both._rows[1], rows[1])
    both.learn(windows[5][1], windows[4][0], True, 1, 0)  # a new table, with the rows of another
    one.learn(windows[5][1], windows[4][0], True)
    words = both._rows[0, :, :1], one._rows[0, :, :1]
    for r in range(2):
        assert spelled(both.tree, words[0][r]) == spelled(one.tree, words[1][r])
    assert np.array_equal(both._rows[1], rows[1])


def test_the_most_frequent_symbol_is_the_separator():
    contexts = WordContexts(V, PLENTY)
    contexts.learn(np.array([[3, 1, 3, 2, 3]]).T, np.array([[1, 3, 2, 3, 1]]).T, False)
    contexts.learn(np.array([[3, 1]]).T, np.array([[1, 3]]).T, False)
    nodes = follow(contexts, np.array([[3, 1]]).T)[:, 0, 0]
    assert nodes[0] == 1
    assert spell(contexts.tree, int(nodes[1])) == "b"


def test_following_makes_nothing():
    contexts = WordContexts(V, PLENTY)
    before = {name: array.copy() for name, array in contexts.state().items()}
    nodes = follow(contexts, np.array([[END, 1, 2]]).T)[:, 0]
    assert nodes[:, 0].tolist() == [1, -1, -1]
    assert (nodes[:, 1:] == -1).all()
    assert all(np.array_equal(before[name], array) for name, array in contexts.state().items())


def babble(windows, seed=0):
    """Two rows of words, most of them rare, window by window."""
    draws = np.random.default_rng(seed)
    text = draws.integers(1, 25, (20 * windows + 1, 2))
    text[draws.random(text.shape) < 0.2] = END
    return [(text[20 * i : 20 * i + 20], text[20 * i + 1 : 20 * i + 21]) for i in range(windows)]


def check_soundness(contexts):
    """Every node has its ancestors and the words that it names, and is found."""
    tree, nodes = contexts.tree, int(contexts.tree.used[NODES])
    parent, label = tree.parent[ROOTS:nodes], tree.label[ROOTS:nodes]
    numbers = np.arange(ROOTS, nodes)
    assert (parent < numbers).all()
    assert (parent > 0).all()
    named = label >= REFERENCE
    assert (label[named] - REFERENCE < numbers[named]).all()
    for word in label[named] - REFERENCE:
        assert isinstance(spell(tree, int(word)), str)  # a word, and not a pair of them
    assert len(set(zip(parent.tolist(), label.tolist(), strict=True))) == len(numbers)
    assert (contexts._rows < nodes).all()


def test_a_tiny_budget_forgets_and_stays_sound():
    contexts, plenty = WordContexts(26, 400_000), WordContexts(26, PLENTY)
    pruned, before = 0, 0
    for inputs, targets in babble(250):
        contexts.learn(inputs, targets, True)
        plenty.learn(inputs, targets, True)
        pruned += contexts.tree.used[NODES] < before
        before = int(contexts.tree.used[NODES])
        assert size_in_bytes(contexts.tree) <= 400_000
        for found, expected in zip(contexts._rows[0], plenty._rows[0], strict=True):
            for node, whole in zip(found[[0, 5, 6]], expected[[0, 5, 6]], strict=True):
                assert node < 0 or spell(contexts.tree, node) == spell(plenty.tree, whole)
    assert pruned > 1
    check_soundness(contexts)


def test_no_budget_at_all_forgets_everything_and_goes_on():
    contexts = WordContexts(26, 1)
    for inputs, targets in babble(5):
        contexts.learn(inputs, targets, True)
        check_soundness(contexts)
    assert follow(contexts, inputs).shape == (20, 2, 5)


def test_a_state_goes_on_alike_where_memory_is_short():
    windows = babble(250)
    contexts, restored = WordContexts(26, 400_000), WordContexts(26, 400_000)
    for inputs, targets in windows[:180]:
        contexts.learn(inputs, targets, True)
    restored.load_state({name: array.copy() for name, array in contexts.state().items()})
    for inputs, targets in windows[180:]:
        assert np.array_equal(follow(restored, inputs), follow(contexts, inputs))
        for one in (contexts, restored):
            one.learn(inputs, targets, True)
    for name, array in contexts.state().items():
        assert np.array_equal(restored.state()[name], array), name


@pytest.mark.parametrize("rows", [1, 3])
def test_another_number_of_rows_begins_anew(rows):
    contexts = WordContexts(26, PLENTY)
    contexts.learn(*babble(1)[0], False)
    nodes = follow(contexts, np.full((2, rows), 1))
    assert nodes.shape == (2, rows, 5)
    assert (nodes == -1).all()
