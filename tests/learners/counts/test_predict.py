import numpy as np
import pytest

from calm.learners.counts.learner import LEVELS, ROOT_DISCOUNT, SWITCH, Counts
from calm.learners.counts.tree import NODES
from learners.counts.texts import two_classes

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
        tree, nodes = learner._words.tree, learner._words.follow(inputs)
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
        self.model, self.past = learner._model, learner._past(inputs)
        self.counts = counts_by_context(learner._tree)
        self.belief, self.losses = self.past.belief.copy(), np.zeros(len(self.past.belief))

    def chain(self, p, context, columns):
        """Orders 1 … over p, each of its column."""
        for k, column in enumerate(columns, start=1):
            if k > len(context) or context[:k] not in self.counts:
                break
            p = longer(p, self.counts[context[:k]][:, column], self.model.discounts[k])
        return p

    def usual(self, context, table):
        model = self.model
        columns = [0] * (model.low - 1) + [table] * (model.high - model.low + 1)
        return self.chain(self.past.zeroth[0], context, columns)

    def predict(self, inputs, targets):
        model, past, home = self.model, self.past, self.past.home
        histories = [[int(v) for v in row if v >= 0] for row in past.rows]
        contexts = [tuple(history[::-1][:K]) for history in histories]
        out, tables = np.empty((*inputs.shape, V)), []
        for j in range(len(inputs)):
            for row, y in enumerate(inputs[j]):
                for a in range(len(self.belief)) if j or past.read else ():
                    loss = surprise = -np.log(self.usual(contexts[row], a)[y])
                    if not past.read and j <= model.high + 1 and a != home:
                        own = [a] * min(model.high, j - 1)
                        surprise = -np.log(self.chain(past.zeroth[a], contexts[row], own)[y])
                    self.losses[a] += loss
                    self.belief[a] -= surprise
                histories[row].append(int(y))
            table = max(np.flatnonzero(past.active)[1:], key=lambda a: self.belief[a])
            known = j if table != home and not past.read else K
            contexts = [tuple(history[::-1][:known]) for history in histories]
            for row, context in enumerate(contexts):
                everywhere = self.chain(past.zeroth[0], context, [0] * model.order)
                of_class = self.chain(past.zeroth[home], context, [table] * model.class_order)
                out[j, row] = normal(0.4 * np.log(everywhere) + 0.6 * np.log(of_class))
            tables.append(int(table))
        for row, y in enumerate(targets[-1]):
            for a in range(len(self.losses)):
                self.losses[a] -= np.log(self.usual(contexts[row], a)[y])
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
        expected, tables = plain.predict(inputs, targets)
        assert np.allclose(np.exp(learner.predict(inputs)), expected, atol=1e-6)
        learner.learn(inputs, targets)
        assert np.allclose(losses[-1], plain.losses / targets.size, rtol=1e-6)
        others = max(plain.past.active.sum() - 2, 1)
        if step and not (learner._classes.active != plain.past.active).any():
            assert learner._belief[learner.table] == np.log(1 - SWITCH)
            assert (np.delete(learner._belief, learner.table) == np.log(SWITCH / others)).all()
        if step > 24 and classes[step] != classes[step - 1]:
            assert tables[0] != tables[-1] == learner.table
            switches += 1
    assert switches == 3


def test_what_is_read_is_news_from_its_first_symbol():
    learner = Counts(V, 0, tables=3, words=False, **FIXED)
    batches, _ = two_classes(V, [12, 12, 2], ROWS, 12, 0.95)
    for inputs, targets in batches[:-2]:
        learner.learn(inputs, targets)
    first = batches[-2][0]
    before = learner.table
    learner.read(first[:10])
    assert learner._read
    expected, tables = Inferring(learner, first[10:]).predict(first[10:], first[10:])
    assert np.allclose(np.exp(learner.predict(first[10:])), expected, atol=1e-6)
    assert tables[0] != before == learner.table


def test_trust_of_0_stays_with_the_last_batchs_table():
    batches, _ = two_classes(V, [12, 12, 1], ROWS, 12, 0.95)
    learner = Counts(V, 0, tables=3, words=False, trust=0.0, **FIXED)
    for inputs, targets in batches[:-1]:
        learner.learn(inputs, targets)
    plain = Inferring(learner, batches[-1][0])
    plain.past = plain.past._replace(active=np.arange(4) == learner.table)  # no other is believed
    plain.past.active[0] = True
    expected, _ = plain.predict(*batches[-1])
    assert np.allclose(np.exp(learner.predict(batches[-1][0])), expected, atol=1e-6)


def test_room_for_features_grows_as_needed():
    few, many = Counts(V, 0), Counts(V, 0)
    few._features = 1
    for inputs, targets in two_classes(V, [3], ROWS, 12, 0.95)[0]:
        assert np.array_equal(few.predict(inputs), many.predict(inputs))
        few.learn(inputs, targets)
        many.learn(inputs, targets)
    assert 1 < few._features < many._features
