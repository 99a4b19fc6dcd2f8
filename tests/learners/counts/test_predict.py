import numpy as np
import pytest

from calm.learners.counts.features import ROOT_DISCOUNT
from calm.learners.counts.learner import LEVELS, Counts
from calm.learners.counts.tree import NODES
from calm.learners.counts.words import follow_words
from learners.counts.texts import read_only, two_classes

V, ROWS, K = 26, 4, 4
FIXED = {"order": K, "rate": 0.0, "fine_rate": 0.0}


def longer(p, counts, discounts):
    """From the distribution of one order to that of the next."""
    n = counts.sum()
    if n == 0:
        return p
    d = discounts[np.minimum(counts, 3)]
    return (np.maximum(counts - d, 0) + d.sum() * p) / n


def normal(logits):
    chances = np.exp(logits - logits.max())
    return chances / chances.sum()


class Interpolated:
    """All counts in dicts by context, of one row each; every order's counts where it was new."""

    def __init__(self, model):
        self.model, self.counts = model, {(): np.zeros(V, dtype=int)}
        self.past = [[] for _ in range(ROWS)]

    def contexts(self, row):
        past = tuple(self.past[row][::-1][:K])
        return [past[:k] for k in range(len(past) + 1)]

    def order_0(self):
        counts = self.counts[()]
        rest = ROOT_DISCOUNT * np.count_nonzero(counts)
        known = np.maximum(counts - ROOT_DISCOUNT, 0) + rest / V
        return known / counts.sum() if counts.any() else np.full(V, 1 / V)

    def predict(self, row):
        p = self.order_0()
        for k, context in enumerate(self.contexts(row)):
            if k and context in self.counts:
                p = longer(p, self.counts[context], self.model.discounts[k])
        return p

    def count(self, row, symbol):
        for context in self.contexts(row)[::-1]:
            counts = self.counts.setdefault(context, np.zeros(V, dtype=int))
            counts[symbol] += 1
            if counts[symbol] > 1:
                break

    def walk(self, inputs, learn_targets=None):
        """Predict along the inputs; or count the targets, and stay behind the inputs."""
        before = [list(past) for past in self.past]
        out = np.empty((*inputs.shape, V))
        for j in range(len(inputs)):
            for row in range(ROWS):
                self.past[row].append(int(inputs[j, row]))
                out[j, row] = self.predict(row)
                if learn_targets is not None:
                    self.count(row, int(learn_targets[j, row]))
        if learn_targets is None:
            self.past = before
        return out


@pytest.mark.parametrize("tables", [0, 1])
def test_without_classes_and_words_it_is_the_interpolation_of_all_orders(tables):
    learner = Counts(V, 0, tables=tables, words=False, **FIXED)
    plain = Interpolated(learner._model)
    for inputs, targets in two_classes(V, [8, 8], ROWS, 12, 0.95)[0]:
        assert np.allclose(np.exp(learner.predict(inputs)), plain.walk(inputs), atol=1e-6)
        learner.learn(inputs, targets)
        plain.walk(inputs, targets)


@pytest.mark.parametrize("tables", [0, 1])
def test_words_multiply_what_the_longest_order_below_them_says(tables):
    learner = Counts(V, 0, tables=tables, **FIXED)
    plain = Interpolated(learner._model)
    some = 0
    for inputs, targets in two_classes(V, [12, 12], ROWS, 12, 0.95)[0]:
        tree, past = learner._words.tree, learner._past(inputs, learner.table)
        rows = past.word_rows[learner.table].copy()
        nodes = follow_words(tree, inputs, past.known, past.separator, rows, False)
        expected = plain.walk(inputs)
        for j, row in np.ndindex(inputs.shape):
            p = expected[j, row].copy()
            for node in nodes[j, row]:
                if node >= 0 and tree.size[node]:
                    here = slice(tree.begin[node], tree.begin[node] + tree.size[node])
                    counts = np.zeros(V, dtype=int)
                    counts[tree.symbol[here]] = tree.counts[here, 0]
                    d = learner._model.discounts[K][np.minimum(counts, 3)]
                    more = (counts - d) / d.sum() / p
                    expected[j, row] *= np.where(counts > 0, 1 + more, 1) ** 0.1
                    some += 1
            expected[j, row] /= expected[j, row].sum()
        assert np.allclose(np.exp(learner.predict(inputs)), expected, atol=1e-6)
        learner.learn(inputs, targets)
        plain.walk(inputs, targets)
    assert some > 200


def test_at_level_word_what_was_recent_counts_for_more():
    learner = Counts(V, 0, level="word", tables=0, **FIXED)
    plain, cache = Interpolated(learner._model), np.zeros(V)
    for inputs, targets in two_classes(V, [4, 4], ROWS, 12, 0.95)[0]:
        recent = cache / max(cache.sum(), 1)
        expected = plain.walk(inputs) * (1 + recent / plain.order_0()) ** 0.1
        expected /= expected.sum(axis=2, keepdims=True)
        assert np.allclose(np.exp(learner.predict(inputs)), expected, atol=1e-6)
        learner.learn(inputs, targets)
        plain.walk(inputs, targets)
        cache = LEVELS["word"].recent * cache + np.bincount(targets.ravel(), minlength=V)


def counts_by_context(tree):
    """Contexts, newest symbol first, to counts (V, columns)."""
    paths, found = [()], {}
    for node in range(int(tree.used[NODES])):
        if node:
            paths.append((*paths[tree.parent[node]], int(tree.label[node])))
        here = slice(tree.begin[node], tree.begin[node] + tree.size[node])
        found[paths[node]] = np.zeros((V, tree.counts.shape[1]), dtype=int)
        found[paths[node]][tree.symbol[here]] = tree.counts[here]
    return found


class Inferring:
    """What a learner with tables predicts, from its counts, and what it makes of the tables."""

    def __init__(self, learner, inputs):
        self.model, self.past = learner._model, learner._past(inputs, learner.table)
        self.rows, self.inputs = learner._rows_for(inputs), inputs
        self.counts = counts_by_context(learner._tree)
        self.belief, self.losses = self.past.belief.copy(), np.zeros(len(self.past.belief))

    def chain(self, p, context, columns):
        """Orders 1 … over p, each of its column."""
        for k, column in enumerate(columns, start=1):
            if k > len(context) or context[:k] not in self.counts:
                break
            p = longer(p, self.counts[context[:k]][:, column], self.model.discounts[k])
        return p

    def context(self, table, row, read):
        """What the row has read if it is a table's, after so many of the inputs; newest first."""
        new = self.inputs[1:read, row] if self.past.known else self.inputs[:read, row]
        text = [*self.rows.last[table, row], *new][::-1]
        return tuple(int(v) for v in text[:K] if v >= 0)

    def usual(self, context, table):
        model = self.model
        columns = [0] * (model.low - 1) + [table] * (model.high - model.low + 1)
        return self.chain(self.past.zeroth[0], context, columns)

    def product(self, home, table, context):
        everywhere = self.chain(self.past.zeroth[0], context, [0] * self.model.order)
        base, columns = self.past.zeroth[home], [table] * self.model.class_order
        of_class = self.chain(base, context, columns)
        return normal(0.4 * np.log(everywhere) + 0.6 * np.log(of_class))

    def predict(self, targets):
        past, inputs, home = self.past, self.inputs, self.past.home
        out, tables = np.empty((*inputs.shape, V)), []
        for j in range(len(inputs)):
            for row, y in enumerate(inputs[j]):
                for a in range(len(self.belief)) if j or not past.known else ():
                    loss = 0
                    if j:
                        loss = -np.log(self.usual(self.context(tables[-1], row, j), a)[y])
                        self.losses[a] += loss
                    if a and past.active[a] and j - past.known < self.model.high:
                        loss = -np.log(self.usual(self.context(a, row, j), a)[y])
                    self.belief[a] -= self.model.trust * loss
            table = max(np.flatnonzero(past.active)[1:], key=lambda a: self.belief[a])
            for row in range(ROWS):
                out[j, row] = self.product(home, table, self.context(table, row, j + 1))
            tables.append(int(table))
        if past.known:
            shares = np.exp(past.belief) * past.active
            shares /= shares[1:].sum()
            others = sum(shares[a] * self.rows.foretold[a] for a in range(1, 4) if a != home)
            out[0] = shares[home] * out[0] + others
        for row, y in enumerate(targets[-1]):
            for a in range(len(self.losses)):
                context = self.context(tables[-1], row, len(inputs))
                self.losses[a] -= np.log(self.usual(context, a)[y])
        return out, tables


@pytest.mark.parametrize("level", ["char", "word"])
def test_tables_are_believed_by_the_inputs_alone_position_by_position(level, monkeypatch):
    learner = Counts(V, 0, level=level, tables=3, words=False, **FIXED)
    learner._mixer.weights.own[len(learner._mixer.weights.own) - 1] *= level == "char"  # no cache
    batches, classes = two_classes(V, [12, 12, 5, 5, 3, 3], ROWS, 12, 0.95)
    losses, choose = [], learner._classes.choose
    monkeypatch.setattr(
        learner._classes, "choose", lambda *given: losses.append(given[0]) or choose(*given)
    )
    switches = 0
    for step, (inputs, targets) in enumerate(batches):
        plain = Inferring(learner, inputs)
        expected, tables = plain.predict(targets)
        assert np.allclose(np.exp(learner.predict(inputs)), expected, atol=1e-6)
        learner.learn(inputs, targets)
        assert np.allclose(losses[-1], plain.losses / targets.size, rtol=1e-6)
        assert np.array_equal(learner._belief, learner._classes.belief())
        if step > 24 and classes[step] != classes[step - 1]:
            assert tables[0] != tables[1] == learner.table  # at once
            switches += 1
    assert switches == 3


def test_where_a_table_is_left_is_noted_and_what_comes_next():
    learner = Counts(V, 0, tables=3, words=False, **FIXED)
    batches, classes = two_classes(V, [12, 12, 5, 5, 3, 3], ROWS, 12, 0.95)
    left = {}
    for step, (inputs, targets) in enumerate(batches):
        before = learner.table
        learner.predict(inputs)
        learner.learn(inputs, targets)
        left[classes[step]] = targets[-K - 1 :].T
        if step > 24:
            assert np.array_equal(learner._rows.last[learner.table], left[classes[step]])
            if learner.table != before:
                other = left[1 - classes[step]]
                assert np.array_equal(learner._rows.last[before], other)
                plain = Inferring(learner, targets[-1:])
                for row in range(ROWS):
                    expected = plain.product(before, before, tuple(other[row, :0:-1].tolist()))
                    assert np.allclose(learner._rows.foretold[before, row], expected, atol=1e-6)


def test_a_jump_is_news_from_its_first_symbol():
    learner = Counts(V, 0, tables=3, words=False, **FIXED)
    batches, _ = two_classes(V, [12, 12, 2], ROWS, 12, 0.95)
    for inputs, targets in batches[:-2]:
        learner.learn(inputs, targets)
    inputs, targets = (read_only(part[1:]) for part in batches[-2])  # the first is the other's
    before, plain = learner.table, Inferring(learner, inputs)
    assert not plain.past.known
    assert (plain.past.belief == 0).all()
    expected, tables = plain.predict(targets)
    assert np.allclose(np.exp(learner.predict(inputs)), expected, atol=1e-6)
    learner.learn(inputs, targets)
    assert tables[0] == learner.table != before


def test_what_is_read_is_news_from_its_first_symbol():
    learner = Counts(V, 0, tables=3, words=False, **FIXED)
    batches, _ = two_classes(V, [12, 12, 2], ROWS, 12, 0.95)
    for inputs, targets in batches[:-2]:
        learner.learn(inputs, targets)
    first = batches[-2][0]
    before = learner.table
    learner.read(first[:10])
    assert not learner._rows.learned
    expected, tables = Inferring(learner, first[10:]).predict(first[10:])
    assert np.allclose(np.exp(learner.predict(first[10:])), expected, atol=1e-6)
    assert tables[0] != before == learner.table


def test_trust_of_0_stays_with_the_last_batchs_table():
    batches, _ = two_classes(V, [12, 12, 1], ROWS, 12, 0.95)
    learner = Counts(V, 0, tables=3, words=False, trust=0.0, **FIXED)
    for inputs, targets in batches[:-1]:
        learner.learn(inputs, targets)
    plain = Inferring(learner, batches[-1][0])
    expected, tables = plain.predict(batches[-1][1])
    assert set(tables) == {learner.table}
    assert np.allclose(np.exp(learner.predict(batches[-1][0])), expected, atol=1e-6)


def test_room_for_features_grows_as_needed():
    few, many = Counts(V, 0), Counts(V, 0)
    few._features = 1
    for inputs, targets in two_classes(V, [3], ROWS, 12, 0.95)[0]:
        assert np.array_equal(few.predict(inputs), many.predict(inputs))
        few.learn(inputs, targets)
        many.learn(inputs, targets)
    assert 1 < few._features < many._features
