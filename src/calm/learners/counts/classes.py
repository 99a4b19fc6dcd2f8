"""Which class is it? Nobody says. A table of counts for each class that the learner believes in.

A batch goes to the table that it went on with, unless another explains it clearly better. If the
batch surprises the current table far more than batches usually do, a new one is opened, on trial:
it is confirmed by lasting, and folded into an old one that explains the next batches better. So a
false alarm costs little, and tables do not come to mix classes. Tables that explain each other's
batches are merged; where all are taken, the one used least makes room.
"""

from dataclasses import dataclass

import numpy as np

from calm.learners.base import State
from calm.learners.counts.tree import MOST, Array

PLAIN = 0  # the column of counts that all tables share
LEAST_AGE = 2  # batches before a table's own mean means anything
USUAL = 50  # batches from switch to switch, before any was seen
AGAINST = 2  # batches in a row that another table has to explain better to end a trial
MET = 8  # batches of each of two tables, before they can be found to agree
RATE, SLOW_RATE = 0.1, 0.05  # of running means, once there are enough batches


@dataclass(frozen=True)
class Patience:
    """In nats a token: what is clearly better, far more surprising, and the same."""

    gain: float
    jump: float
    same: float
    trial: int = 6  # batches


class Classes:
    """Columns 1 … of the counts are tables, and every batch goes to one of them."""

    def __init__(self, tables: int, patience: Patience) -> None:
        self._patience = patience
        columns = tables + 1
        self.active = np.zeros(columns, dtype=np.bool_)
        self.active[: min(columns, 2)] = True
        self.current = min(tables, 1)
        self._age = np.zeros(columns, dtype=np.int64)
        self._excess = np.zeros(columns)
        self._gap = np.zeros((columns, columns))
        self._met = np.zeros((columns, columns), dtype=np.int64)
        self._trial = np.zeros(2, dtype=np.int64)  # whether there is one, and batches against it
        self._changes = np.array([1, USUAL])  # of the table, and batches: as if seen before

    def belief(self) -> Array:
        """Return the log probability of each table to take the next batch, (columns,)."""
        change = self._changes[0] / self._changes[1]
        others = max(len(self._tables()) - 1, 1)
        belief = np.full(len(self.active), np.log(change / others))
        belief[self.current] = np.log(1 - change)
        return belief

    def choose(self, losses: Array, expected: float, counts: Array) -> tuple[int, int]:
        """Return the table that takes a batch, and whose rows it went on with.

        The first is the current one from there on. It is not its own rows that went on if it is
        new, or the last batch's table was merged into it.

        losses (columns,): of the batch under each table; expected: by the symbols' frequencies
        alone, which tells how hard the batch is. Tables are emptied and merged in counts.
        """
        source = self.current
        if len(self.active) > 1:
            self.current = self._decide(losses, losses[self.current] - expected, counts)
            age = self._age[self.current]
            if age and self.active[source]:
                self._changes += self.current != source, 1
                source = self.current
            if age:
                excess = losses[self.current] - expected - self._excess[self.current]
                self._excess[self.current] += max(1 / age, RATE) * excess
            self._age[self.current] += 1
            if not self._trial[0]:
                self._compare(losses, counts)
        return self.current, source

    def state(self) -> State:
        """Everything."""
        return {
            "active": self.active, "current": np.array(self.current), "age": self._age,
            "excess": self._excess, "gap": self._gap, "met": self._met, "trial": self._trial,
            "changes": self._changes,
        }  # fmt: skip

    def load_state(self, state: State) -> None:
        """Restore it."""
        self.active, self.current = state["active"].copy(), int(state["current"])
        self._age, self._excess = state["age"].copy(), state["excess"].copy()
        self._gap, self._met = state["gap"].copy(), state["met"].copy()
        self._trial, self._changes = state["trial"].copy(), state["changes"].copy()

    def _decide(self, losses: Array, excess: float, counts: Array) -> int:
        current, on_trial = self.current, bool(self._trial[0])
        old = [table for table in self._tables() if not (on_trial and table == current)]
        best = min(old, key=lambda table: losses[table])
        if on_trial:
            self._trial[1] = self._trial[1] + 1 if losses[best] < losses[current] else 0
            if self._trial[1] >= AGAINST:
                self._merge(best, current, counts)
                current = best
            if self._trial[1] >= AGAINST or self._age[current] >= self._patience.trial:
                self._trial[:] = 0
        elif losses[best] < losses[current] - self._patience.gain:
            current = best
        elif (
            self._age[current] >= LEAST_AGE and excess > self._excess[current] + self._patience.jump
        ):
            current = self._open(counts)
        return current

    def _tables(self) -> list[int]:
        return [int(table) for table in np.flatnonzero(self.active) if table != PLAIN]

    def _open(self, counts: Array) -> int:
        """Put a new table on trial; there may be no room for another one at all."""
        others = [table for table in range(1, len(self.active)) if table != self.current]
        if not others:
            return self.current
        new = min(others, key=lambda table: (bool(self.active[table]), self._age[table], table))
        self._clear(new, counts)
        self.active[new] = True
        self._trial[:] = 1, 0
        return new

    def _clear(self, table: int, counts: Array) -> None:
        counts[:, table] = 0
        self.active[table] = False
        self._age[table] = self._excess[table] = 0
        self._met[table] = self._met[:, table] = 0

    def _merge(self, into: int, other: int, counts: Array) -> None:
        counts[:, into] += np.minimum(counts[:, other], MOST - counts[:, into])
        self._age[into] += self._age[other]
        self._clear(other, counts)

    def _compare(self, losses: Array, counts: Array) -> None:
        """Note how the others explain this batch of the current table; merge two that agree."""
        here = self.current
        for table in self._tables():
            if table == here:
                continue
            self._met[here, table] += 1
            rate = max(1 / self._met[here, table], SLOW_RATE)
            self._gap[here, table] += rate * (losses[table] - losses[here] - self._gap[here, table])
            met = min(self._met[here, table], self._met[table, here])
            gap = max(self._gap[here, table], self._gap[table, here])
            if met >= MET and gap < self._patience.same:
                older, other = sorted((here, table), key=lambda one: -self._age[one])
                self._merge(older, other, counts)
                self.current = older
                return
