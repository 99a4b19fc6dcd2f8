"""A product of count-based experts under plastic weights."""

from math import inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calm.learners.base import GatedLearner, State, Tokens
from calm.learners.counts.belief import last_losses
from calm.learners.counts.classes import Classes
from calm.learners.counts.compact import tree_from_state, tree_state, without_rare
from calm.learners.counts.count import count_batch
from calm.learners.counts.features import order_0
from calm.learners.counts.levels import LEVELS
from calm.learners.counts.mixer import Mixer, Rates, Trace
from calm.learners.counts.predict import (
    CIRCUMSTANCES,
    Model,
    Past,
    circumstance_rows,
    predict_batch,
)
from calm.learners.counts.rows import Rows, no_rows
from calm.learners.counts.tree import (
    NODES,
    Array,
    make_tree,
    size_in_bytes,
    with_more_entries,
    with_room,
)
from calm.learners.counts.words import CONTEXTS, WordContexts

MOST_ORDERS, MOST_TABLES = 64, 64
LARGE = 4096  # a vocabulary from here on is taken for one of words
NOTHING = (1 << 31) - 1  # above any label


class Counts(GatedLearner):
    """Counts of several orders, of all text and of the class it is taken to be, and of words.

    `level`: settings for characters or words; by the size of the vocabulary if `auto`. `order`: of
    the longest context, if not the level's. `tables`: how many classes there may be at a time, if
    not the level's: 8 for characters, and 0 for words, where they did not help. `words`: contexts
    of words, at level char. `trust`: the power of the inputs' likelihood that decides, within a
    window, which class it is. `memory`: a budget in MB; where it would be passed, contexts that
    were seen once are forgotten, or more if that is not enough.
    """

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        level: Literal["auto", "char", "word"] = "auto",
        order: int | None = None,
        tables: int | None = None,
        words: bool = True,
        trust: float = 1.0,
        rate: float = 0.02,
        fine_rate: float = 0.03,
        memory: float = 4000.0,
    ) -> None:
        if order is not None and not 1 <= order <= MOST_ORDERS:
            raise ValueError(f"order is {order}: take 1 to {MOST_ORDERS}")
        if tables is not None and not 0 <= tables <= MOST_TABLES:
            raise ValueError(f"tables is {tables}: take 0 to {MOST_TABLES}")
        if not 0 < memory < inf:
            raise ValueError(f"memory is {memory}: take a number of MB above 0")
        for name, value in (("rate", rate), ("fine_rate", fine_rate), ("trust", trust)):
            if not 0 <= value <= 1:
                raise ValueError(f"{name} is {value}: take 0 to 1")
        if level == "auto":
            level = "word" if vocabulary >= LARGE else "char"
        chosen = LEVELS[level]
        order = order or chosen.order
        tables = chosen.tables if tables is None else tables
        class_order = min(chosen.class_order, order) if tables else 0
        self._model = Model(
            order, class_order, min(chosen.low, order), min(chosen.high, order), trust,
            np.tile([0.0, *chosen.discounts], (order + 1, 1)), chosen.pairs,
        )  # fmt: skip
        self._vocabulary, self._tables, self._recent = vocabulary, tables, chosen.recent
        self._budget = memory * 1e6
        share = 0.25 if words and chosen.words else 0.0
        self._words = WordContexts(vocabulary, int(share * self._budget), 1 + tables)
        self._contexts = CONTEXTS if share else 0
        self._budget -= share * self._budget
        self._tree = make_tree(1, 1 + tables, vocabulary)
        self._classes = Classes(tables, chosen.patience)
        self._mixer = self._make_mixer(Rates(rate, fine_rate))
        self._cache = np.zeros(vocabulary)
        self._belief = np.zeros(1 + tables)
        self._rows = no_rows(1 + tables, 0, order, vocabulary)
        self._features = 1 << 12
        self._pending: tuple[Tokens, Past, Trace] | None = None

    @property
    def table(self) -> int:
        """The table that the last batch went to: what class it is believed to be."""
        return self._classes.current

    def predict(self, inputs: Tokens) -> NDArray[np.float32]:
        """(w, b) -> log-probabilities (w, b, V)."""
        out, past, trace = self._predict(inputs, self._classes.current)
        self._pending = inputs.copy(), past, trace
        return out

    def _predict(self, inputs: Tokens, home: int) -> tuple[NDArray[np.float32], Past, Trace]:
        """Predict, as if the last batch had been of the table `home`."""
        w, b = inputs.shape
        out = np.empty((w, b, self._vocabulary), dtype=np.float32)
        while True:
            past, trace = self._past(inputs, home), self._trace(w, b)
            weights = self._mixer.weights
            trees = self._tree, self._words.tree
            if predict_batch(self._model, *trees, past, weights, inputs, trace, out):
                return out, past, trace
            self._features *= 2

    def learn(self, inputs: Tokens, targets: Tokens) -> None:
        """Fit the weights, find the table, then count."""
        if self._pending is None or not np.array_equal(self._pending[0], inputs):
            self.predict(inputs)
        assert self._pending is not None
        _, past, trace = self._pending
        self._pending = None
        self._mixer.learn(targets, past.dense, trace)
        table, source = self._choose_table(targets, past, trace)
        self._make_room(inputs.size)
        text, done = past.text[source], 0
        while (done := count_batch(self._tree, targets, text, table, done)) >= 0:
            self._tree = with_more_entries(self._tree)
        if self._contexts:
            self._words.learn(inputs, targets, past.known, source, table)
        if self._recent:
            self._cache *= self._recent
            self._cache += np.bincount(targets.ravel(), minlength=self._vocabulary)
        self._rows = self._rows_for(inputs).learn(text, targets, table)
        if table != past.home and self._classes.active[past.home]:
            self._foretell(past.home)

    def read(self, inputs: Tokens) -> None:
        """Move on past inputs (w, b): contexts run on, and they are evidence for a class."""
        _, past, _ = self._predict(inputs, self._classes.current)
        self._pending = None
        self._belief = past.belief
        self._words.read(inputs, past.known)
        self._rows = self._rows_for(inputs).read(past.text)

    def gate_weights(self) -> NDArray[np.float64] | None:
        """Mean weights in the last prediction: orders of all text, of the class, words, order 0."""
        return None if self._pending is None else self._pending[2].share

    def state(self) -> State:
        """Everything."""
        parts = {
            "tree": tree_state(self._tree), "classes": self._classes.state(),
            "mixer": self._mixer.state(),
        }  # fmt: skip
        if self._contexts:
            parts["words"] = self._words.state()
        named = {f"{part}.{name}": a for part, state in parts.items() for name, a in state.items()}
        return {
            **named, "belief": self._belief, "cache": self._cache, "last": self._rows.last,
            "learned": np.array(self._rows.learned), "foretold": self._rows.foretold,
        }  # fmt: skip

    def load_state(self, state: State) -> None:
        """Restore it."""

        def part(name: str) -> State:
            prefix = f"{name}."
            return {k.removeprefix(prefix): a for k, a in state.items() if k.startswith(prefix)}

        self._tree = tree_from_state(part("tree"), 1, 1 + self._tables, self._vocabulary)
        self._classes.load_state(part("classes"))
        self._mixer.load_state(part("mixer"))
        if self._contexts:
            self._words.load_state(part("words"))
        self._belief, self._cache = state["belief"].copy(), state["cache"].copy()
        self._rows = Rows(state["last"].copy(), bool(state["learned"]), state["foretold"].copy())
        self._pending = None

    def _make_mixer(self, rates: Rates) -> Mixer:
        """Let the class's experts count somewhat more than those of all text, words a little."""
        order, class_order = self._model.order, self._model.class_order
        all_text, of_class = (0.4, 0.6) if class_order else (1.0, 0.0)
        dense = [all_text] + ([of_class] if class_order else []) + ([0.1] if self._recent else [])
        start = [all_text] * order + [of_class] * class_order + [0.1] * self._contexts + dense
        rows = circumstance_rows(order, self._model.pairs, self._vocabulary)
        return Mixer(np.array(start), len(start) - len(dense), rows, rates)

    def _rows_for(self, inputs: Tokens) -> Rows:
        """What is remembered; nothing if there were not so many rows."""
        b = inputs.shape[1]
        if self._rows.last.shape[1] == b:
            return self._rows
        return no_rows(1 + self._tables, b, self._model.order, self._vocabulary)

    def _past(self, inputs: Tokens, home: int) -> Past:
        rows, zeroth = self._rows_for(inputs), order_0(self._tree.counts[: self._vocabulary].T)
        known = rows.know(inputs, home)
        belief = self._belief.copy()
        if home != self._classes.current:  # a table's own continuation
            belief[:] = -inf
            belief[home] = 0
        elif not known and rows.learned:  # a jump, to any table
            belief[:] = 0
        return Past(
            text=rows.text(inputs, known),
            known=known,
            word_rows=self._words.rows(inputs.shape[1]),
            separator=self._words.separator,
            foretold=rows.foretold,
            home=home,
            active=self._classes.active,
            belief=belief,
            zeroth=zeroth,
            dense=self._dense(zeroth, home),
        )

    def _foretell(self, table: int) -> None:
        """Note what comes next when the text returns to a table."""
        end = self._rows.last[table, :, -1:]
        if (end >= 0).all():
            inputs = np.ascontiguousarray(end.T)
            inputs.setflags(write=False)  # as streams do: it is a type of its own to numba
            out, _, _ = self._predict(inputs, table)
            self._rows.foretold[table] = np.exp(out[0])

    def _dense(self, zeroth: Array, home: int) -> Array:
        """Experts of order 0, and of what was recent: (d, V), relative to what is below them."""
        features = [np.log(zeroth[0] * self._vocabulary)]
        if self._model.class_order:
            features.append(np.log(zeroth[home] * self._vocabulary))
        if self._recent:
            recent = self._cache / max(self._cache.sum(), 1)
            features.append(np.log1p(recent / zeroth[0]))
        return np.stack(features)

    def _trace(self, w: int, b: int) -> Trace:
        positions, sparse = w * b, self._mixer.weights.chosen.shape[1]
        everything = len(self._mixer.weights.own)
        circumstances = CIRCUMSTANCES + (self._model.pairs > 0)
        return Trace(
            nodes=np.zeros((w, b, self._model.order + 1), dtype=np.int32),
            losses=np.zeros(1 + self._tables),
            start=np.zeros((positions, sparse + 1), dtype=np.int64),
            names=np.empty(self._features, dtype=np.int32),
            values=np.empty(self._features),
            bucket=np.zeros((positions, sparse), dtype=np.int64),
            circumstances=np.zeros((positions, circumstances), dtype=np.int64),
            expected=np.zeros((positions, everything)),
            slope=np.zeros((positions, sparse)),
            share=np.zeros(everything),
        )

    def _choose_table(self, targets: Tokens, past: Past, trace: Trace) -> tuple[int, int]:
        """Find the table for a batch and whose rows go on, and what to believe before the next."""
        losses = trace.losses
        last_losses(self._model, self._tree, trace.nodes[-1], targets[-1], past, losses)
        expected = float(-np.log(past.zeroth[0, targets]).mean())
        chosen = self._classes.choose(losses / targets.size, expected, self._tree.counts)
        self._belief = self._classes.belief()
        return chosen

    def _make_room(self, positions: int) -> None:
        """Make room for a batch; forget what was rare if that would pass the budget."""
        order = self._model.order
        room = positions * order, positions * (order + 1) * 8
        grown = with_room(self._tree, *room)
        least = 2
        while size_in_bytes(grown) > self._budget and self._tree.used[NODES] > 1:
            self._tree, _ = without_rare(self._tree, 1, least, NOTHING)
            grown = with_room(self._tree, *room)
            least *= 2
        self._tree = grown
