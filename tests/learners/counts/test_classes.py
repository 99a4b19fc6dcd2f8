import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.learners.counts.classes import AGAINST, MET, Classes, Patience
from calm.learners.counts.tree import MOST

PATIENCE = Patience(gain=0.2, jump=0.45, same=0.08)
EXPECTED, WELL, BADLY = 3.0, 1.0, 2.5  # losses: by frequencies alone, of a known class, of another
ENTRIES = 4


class Run:
    """Classes over counts where each batch counts entry 0 once more."""

    def __init__(self, tables, active=1):
        self.classes = Classes(tables, PATIENCE)
        self.classes.active[1 : active + 1] = True
        self.counts = np.zeros((ENTRIES, tables + 1), dtype=np.uint16)

    def batch(self, others=BADLY, expected=EXPECTED, **losses):
        """Losses of tables, t1=…; tables not named are at `others`. Returns the table taken."""
        every = np.full(len(self.classes.active), others)
        for name, loss in losses.items():
            every[int(name[1:])] = loss
        table, self.source = self.classes.choose(every, expected, self.counts)
        self.counts[0, table] += 1
        return table

    def open(self):
        """Get used to table 1, then meet what nobody knows: table 2 is on trial."""
        for _ in range(5):
            assert self.batch(t1=WELL) == 1
        assert self.batch() == 2


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_no_reason_to_leave_a_table(seed):
    run, draws = Run(3, active=2), np.random.default_rng(seed)
    for _ in range(300):
        hard, noise = draws.normal(0, 1), draws.normal(0, 0.05, 2)
        losses = {"t1": WELL + hard + noise[0], "t2": WELL + 0.15 + hard + noise[1]}
        assert run.batch(EXPECTED + hard, EXPECTED + hard, **losses) == 1
    assert run.classes.active.tolist() == [True, True, True, False]


def test_another_table_is_taken_at_once_if_clearly_better():
    run = Run(2, active=2)
    assert run.batch(t1=WELL + 0.19, t2=WELL) == 1
    assert run.batch(t1=WELL + 0.21, t2=WELL) == 2
    assert run.batch(t1=WELL, t2=WELL + 0.19) == 2
    assert run.batch(t1=WELL, t2=WELL + 0.21) == 1


def test_a_table_that_is_not_active_is_never_better():
    run = Run(3)
    assert run.batch(t1=BADLY, others=0.0) == 1


def test_a_jump_is_measured_against_what_frequencies_expect():
    run = Run(2)
    for _ in range(5):
        run.batch(t1=WELL)
    assert run.batch(t1=WELL + 1, expected=EXPECTED + 1) == 1  # hard for everybody
    assert run.batch(t1=WELL + 0.44) == 1
    assert run.batch(t1=WELL + 0.7) == 2


def test_whose_rows_went_on_with_a_batch():
    run = Run(3)
    run.open()
    assert run.source == 1  # a new table has no rows of its own
    for _ in range(PATIENCE.trial):
        assert (run.batch(t2=WELL), run.source) == (2, 2)
    assert (run.batch(t1=WELL), run.source) == (1, 1)
    for _ in range(5):
        run.batch(t1=WELL)
    assert (run.batch(), run.source) == (3, 1)
    for _ in range(AGAINST - 1):
        assert (run.batch(t2=WELL), run.source) == (3, 3)
    assert (run.batch(t2=WELL), run.source) == (2, 3)  # 3 was a false alarm: it went on as 2


def test_a_change_is_expected_as_often_as_there_were_any():
    run = Run(3, active=3)
    assert np.exp(run.classes.belief()[1:]) == pytest.approx([49 / 50, 0.5 / 50, 0.5 / 50])
    for _ in range(10):
        for table in (1, 2):
            for _ in range(5):
                run.batch(**{f"t{table}": WELL})
    changes = 1 + 18  # but those to tables that were new
    assert np.exp(run.classes.belief()[2]) == pytest.approx(1 - changes / (50 + 98))
    assert np.exp(run.classes.belief()[1:]).sum() == pytest.approx(1)


def test_a_young_table_may_be_surprised():
    run = Run(2)
    assert [run.batch(t1=loss) for loss in (EXPECTED, WELL, BADLY)][:2] == [1, 1]


def test_a_new_table_is_confirmed_by_lasting():
    run = Run(3)
    run.open()
    for _ in range(PATIENCE.trial):
        assert run.batch(t2=WELL) == 2
    assert run.classes.active.tolist() == [True, True, True, False]
    assert run.batch(t1=WELL, t2=BADLY) == 1  # and now the old one is taken at once
    assert run.batch(t2=WELL) == 2
    assert run.counts[0].tolist() == [0, 6, 8, 0]


def test_a_false_alarm_is_folded_back():
    run = Run(3)
    run.open()
    assert run.batch(t1=WELL) == 2  # once is not enough
    assert run.batch(t2=WELL) == 2  # and has to be in a row
    for _ in range(AGAINST - 1):
        assert run.batch(t1=WELL) == 2
    run.counts[3, 2] = 7
    assert run.batch(t1=WELL) == 1
    assert run.classes.active.tolist() == [True, True, False, False]
    assert run.counts[:, 1].tolist() == [9 + AGAINST - 1, 0, 0, 7]
    assert (run.counts[:, 2] == 0).all()


def test_tables_that_agree_are_merged_into_the_older():
    run = Run(3, active=2)
    for _ in range(MET + 2):
        assert run.batch(t1=WELL, t2=WELL + 0.05) == 1
    assert run.batch(t1=WELL + 0.3, t2=WELL) == 2
    run.counts[1:3] = [[0, MOST - 2, 5, 0], [0, 1, 2, 0]]
    for _ in range(MET - 2):
        assert run.batch(t1=WELL, t2=WELL) == 2
    assert run.batch(t1=WELL, t2=WELL) == 1
    assert run.classes.active.tolist() == [True, True, False, False]
    assert run.counts[:, 1].tolist() == [2 * MET + 2, MOST, 3, 0]
    assert (run.counts[:, 2] == 0).all()


def test_tables_that_differ_one_way_are_not_merged():
    run = Run(2, active=2)
    for _ in range(3 * MET):
        assert run.batch(t1=WELL, t2=WELL + 0.1) == 1
    assert run.batch(t1=WELL + 0.3, t2=WELL) == 2
    for _ in range(3 * MET):
        assert run.batch(t1=WELL, t2=WELL) == 2
    assert run.classes.active.all()


def test_where_all_are_taken_the_one_used_least_makes_room():
    run = Run(3, active=3)
    for table, batches in ((3, 4), (2, 2), (1, 5)):
        for _ in range(batches):
            assert run.batch(**{f"t{table}": WELL}) == table
    run.counts[:, 0] = 9
    assert run.batch() == 2
    assert run.counts.tolist() == [[9, 5, 1, 4], *([[9, 0, 0, 0]] * 3)]


def test_without_tables_everything_goes_to_the_common_column():
    run = Run(0)
    assert [run.batch(t0=loss) for loss in (WELL, WELL, WELL, BADLY, BADLY)] == [0] * 5


def test_one_table_takes_whatever_comes():
    run = Run(1)
    assert [run.batch(t1=loss) for loss in (WELL, WELL, WELL, BADLY, 9.0, WELL)] == [1] * 6
    assert run.counts[0].tolist() == [0, 6]


loss_sequences = st.lists(
    st.lists(st.sampled_from([WELL, WELL + 0.05, 1.5, BADLY]), min_size=4, max_size=4),
    max_size=120,
)


@given(loss_sequences)
def test_a_state_goes_on_alike_from_any_batch(sequence):
    run = Run(3)
    for losses in sequence:
        restored = Run(3)
        restored.classes.load_state({k: a.copy() for k, a in run.classes.state().items()})
        restored.counts = run.counts.copy()
        named = {f"t{table}": loss for table, loss in enumerate(losses)}
        assert restored.batch(**named) == run.batch(**named)
        assert np.array_equal(restored.counts, run.counts)
        for name, array in run.classes.state().items():
            assert np.array_equal(restored.classes.state()[name], array), name
            assert name == "current" or restored.classes.state()[name] is not array


@given(loss_sequences)
def test_no_count_is_lost_or_left_behind(sequence):
    run = Run(3)
    for batch, losses in enumerate(sequence):
        full, before = run.classes.active.all(), run.counts.copy()
        table = run.batch(**{f"t{table}": loss for table, loss in enumerate(losses)})
        assert table > 0
        assert run.classes.active[table]
        assert (run.counts[:, ~run.classes.active] == 0).all()
        assert (run.counts[:, 0] == 0).all()
        if not full:
            assert run.counts.sum() == before.sum() + 1, batch
