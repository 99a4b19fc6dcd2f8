"""What is said of a setting: its learners, the paper's numbers, which learners differ."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calm.errors import CalmError
from calm.report.gates import gate_facts, gate_sentence
from calm.report.published import METRICS, Published, published_beside, wanted
from calm.report.runs import Group, Run, settings
from calm.report.significance import Difference, best, differences


@dataclass(frozen=True)
class Setting:
    """Learners on the same streams, best first, oracles last, and what is to be said of them."""

    name: str
    groups: list[Group]
    published: Published | None
    differences: list[Difference]

    @property
    def run(self) -> Run:
        """One of the runs: all have its corpus and stream."""
        return next(group for group in self.groups if group.runs).runs[0]

    def gate_sentences(self) -> list[str]:
        """Say of every gated learner what its gate does."""
        published = self.published.over_time if self.published else {}
        return [
            gate_sentence(fact, published.get(fact["name"])) for fact in gate_facts(self.groups)
        ]

    def best(self, metric: str) -> str | None:
        """Name the best contender, if there are several."""
        group = best(self.groups, metric)
        return group.learner if group else None

    def tied(self, learner: str, metric: str) -> bool:
        """Whether a test could not tell a contender from the best."""
        return any(found.learner == learner and found.tied for found in self._from_best(metric))

    @property
    def untested(self) -> list[str]:
        """Name the contenders that have too few seeds to be compared with the best."""
        few = (found.learner for m in METRICS for found in self._from_best(m) if found.seeds < 2)
        return list(dict.fromkeys(few))

    def _from_best(self, metric: str) -> list[Difference]:
        """Return the comparisons of contenders with the best."""
        against = (metric, self.best(metric))
        oracles = [group.learner for group in self.groups if group.oracle]
        return [
            found
            for found in self.differences
            if (found.metric, found.against) == against and found.learner not in oracles
        ]


def compare(
    runs: Iterable[Run], published: Sequence[str] = (), against: str | None = None
) -> list[Setting]:
    """Group runs by setting, and there by learner.

    The paper's numbers stand beside its own settings, and those that are asked for beside others,
    as `SETTING` or `CORPUS=SETTING`. Learners are compared with the best, and with one by name.
    """
    asked = wanted(published)
    grouped = settings(runs)
    chosen = {name: against and _find(groups, against) for name, groups in grouped.items()}
    if against and not any(chosen.values()):
        there = dict.fromkeys(group.learner for groups in grouped.values() for group in groups)
        raise CalmError(f"no learner is called {against!r}: take one of {', '.join(there)}")
    found = [
        Setting(name, groups, published_beside(groups, asked), differences(groups, chosen[name]))
        for name, groups in grouped.items()
    ]
    corpora = {setting.run.corpus for setting in found}
    for corpus in filter(None, asked):
        if corpus not in corpora:
            raise CalmError(
                f"no run is of corpus {corpus!r}: there is {', '.join(sorted(corpora))}"
            )
    return found


def line_up(settings: Sequence[Setting]) -> dict[str, list[Group | None]]:
    """Return every learner's group in each of several settings, by what it goes by in all.

    That is its name, if no setting has two of that name: so a learner is one even if settings have
    it with other options. Oracles come last.
    """
    groups = [group for setting in settings for group in setting.groups]
    there = [[group.name for group in setting.groups] for setting in settings]
    twice = {name for names in there for name in names if names.count(name) > 1}

    def key(group: Group) -> str:
        return group.learner if group.name in twice else group.name

    return {
        name: [next((g for g in s.groups if key(g) == name), None) for s in settings]
        for name in dict.fromkeys(key(g) for g in sorted(groups, key=lambda g: g.oracle))
    }


def _find(groups: Sequence[Group], name: str) -> str | None:
    """Return the learner that is called so, with or without its options, if it is one."""
    called = [group.learner for group in groups if group.learner == name] or [
        group.learner for group in groups if group.name == name
    ]
    if len(called) > 1:
        raise CalmError(f"several learners are called {name!r}: take one of {', '.join(called)}")
    return called[0] if called else None
