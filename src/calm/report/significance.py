"""Do learners differ? Paired t-tests over the seeds, that is the streams, that two have in common.

The tests of one metric against one reference are corrected together, by Holm's method.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from calm.metrics import Summary, student_within, summarise
from calm.report.published import METRICS
from calm.report.runs import Group

LEVEL = 0.05


@dataclass(frozen=True)
class Difference:
    """By how much a learner's metric is above the reference's, and how likely that is by chance.

    p and its correction p_holm are nan where there is no test: with fewer than two common seeds,
    or a number that is not finite.
    """

    metric: str
    learner: str
    against: str
    summary: Summary  # of the differences, over the common seeds
    p: float
    p_holm: float = math.nan

    @property
    def tied(self) -> bool:
        """Whether there was a test and it could not tell them apart."""
        return self.p_holm >= LEVEL

    @property
    def seeds(self) -> int:
        """How many seeds the two have in common."""
        return self.summary.seeds


def best(groups: Sequence[Group], metric: str) -> Group | None:
    """Return the contender with the lowest mean, where two or more have one."""
    contenders = [group for group in groups if not group.oracle]
    means = [summarise(group.values(metric)).mean for group in contenders]
    ranked = [(mean, i) for i, mean in enumerate(means) if not math.isnan(mean)]
    return contenders[min(ranked)[1]] if len(ranked) > 1 else None


def differences(groups: Sequence[Group], against: str | None = None) -> list[Difference]:
    """Compare contenders with the best of each metric, and all learners with the one named."""
    contenders = [group for group in groups if not group.oracle]
    named = next((group for group in groups if group.learner == against), None)
    found: list[Difference] = []
    for metric in METRICS:
        reference = best(groups, metric)
        if reference and reference is not named:
            found += _against(reference, contenders, metric)
        if named:
            found += _against(named, groups, metric)
    return found


def _against(reference: Group, groups: Sequence[Group], metric: str) -> Iterator[Difference]:
    """Compare every group but the reference with it."""
    tests = [_paired(group, reference, metric) for group in groups if group is not reference]
    corrected = holm([test.p for test in tests])
    return (replace(test, p_holm=p) for test, p in zip(tests, corrected, strict=True))


def _paired(group: Group, reference: Group, metric: str) -> Difference:
    ours, theirs = (dict(zip(g.seeds, g.values(metric), strict=True)) for g in (group, reference))
    found = [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
    finite = all(math.isfinite(difference) for difference in found)
    summary = summarise(found) if finite else Summary(math.nan, math.nan, math.nan, len(found))
    return Difference(metric, group.learner, reference.learner, summary, p_value(summary))


def p_value(summary: Summary) -> float:
    """Return how likely a mean at least so far from 0 is if the true one is 0; nan for one value.

    Values that are all alike leave nothing to chance, unless they are all 0.
    """
    if not math.isfinite(summary.deviation):
        return math.nan
    if summary.deviation == 0:
        return 1.0 if summary.mean == 0 else 0.0
    t = abs(summary.mean) * math.sqrt(summary.seeds) / summary.deviation
    return 1 - student_within(t, summary.seeds - 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct for several tests at a time: the smallest p times their number, and so on.

    nan stands for no test and stays.
    """
    order = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    corrected = [math.nan] * len(p_values)
    highest = 0.0
    for done, (p, i) in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - done) * p))
        corrected[i] = highest
    return corrected
