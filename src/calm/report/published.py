"""What the paper reports of its settings, beside which a run's own numbers can be put."""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from calm.config import Experiment, read_experiment
from calm.errors import CalmError
from calm.metrics import Summary
from calm.report.runs import Group, Run

METRICS = {"ppl": "ppl", "ppl_at_switch": "ppl@sw", "recovery": "rec"}


@dataclass(frozen=True)
class Published:
    """The paper's numbers of learners in one of its settings.

    `departures` says in what they are other than the runs beside which they stand, if they are.
    """

    setting: str
    results: Mapping[str, Mapping[str, Summary]]  # of a learner, by metric
    over_time: Mapping[str, float]  # of a gated learner
    departures: str

    @property
    def note(self) -> str:
        """What a reader of the numbers has to know."""
        what = self.departures or self.setting
        return f"the paper's, {what}; mean ± standard deviation of {_data()['runs']} runs"


def settings_of_the_paper() -> list[str]:
    """Return the names of its settings."""
    return [name for name, table in _data().items() if name != "runs" and "results" in table]


def names_in_the_paper() -> dict[str, str]:
    """Return what the paper calls our learners, in the order of its table."""
    return dict(_data()["names"])


def parameters_in_the_paper() -> dict[str, tuple[float, float]]:
    """Return the millions of parameters of its models, in MultiLingual and in MultiDomain."""
    return {name: (chars, words) for name, (chars, words) in _data()["parameters"].items()}


def wanted(words: Sequence[str]) -> dict[str, str]:
    """Read `SETTING` or `CORPUS=SETTING`: which of the paper's is to stand beside which corpus.

    The setting for all other corpora is that of the corpus "".
    """
    asked = {}
    for word in words:
        corpus, _, setting = word.rpartition("=")
        if setting not in settings_of_the_paper():
            known = ", ".join(settings_of_the_paper())
            raise CalmError(f"the paper has no setting {setting!r}: take one of {known}")
        asked[corpus] = setting
    return asked


def published_beside(groups: Sequence[Group], asked: Mapping[str, str]) -> Published | None:
    """Return the paper's numbers for the learners of a setting: those of its own, or of another."""
    run = next(group for group in groups if group.runs).runs[0]
    departing = {name: _other_data(run, _preset(name)) for name in settings_of_the_paper()}
    own = next((name for name, other in departing.items() if not other), None)
    name = own or asked.get(run.corpus, asked.get(""))
    if name is None:
        return None
    table = _data()[name]
    results = table["dev" if run.config.stream.split == "dev" else "results"]
    return Published(
        name,
        {learner: _summaries(*values) for learner, values in results.items()},
        table.get("over_time", {}),
        departing[name] or _other_size(groups, _preset(name)),
    )


def _other_data(run: Run, preset: Experiment) -> str:
    """Name the data of a preset, if those of a run are other ones.

    The paper has numbers of both halves. Its rows jump at a switch; that makes no other data.
    """
    ours = run.config.stream
    split: Literal["dev", "test"] = "dev" if ours.split == "dev" else "test"
    stream = replace(preset.config.stream, split=split, boundary=ours.boundary)
    theirs = Run(Path(), replace(preset.config, stream=stream), {}).setting
    return "" if theirs == run.setting else f"other data: {theirs}"


def _other_size(groups: Sequence[Group], preset: Experiment) -> str:
    """Name the size of a preset's learners, if not all are of it."""
    theirs = preset.config.learner.options["size"]
    ours = [
        group.runs[0].config.learner.options.get("size")
        for group in groups
        if group.runs and group.name in preset.learners
    ]
    return "" if all(size == theirs for size in ours) else f"other models: size {theirs}"


def _summaries(means: Sequence[float], deviations: Sequence[float] = ()) -> dict[str, Summary]:
    spread = [*deviations, math.nan, math.nan, math.nan]
    runs = _data()["runs"]
    return {
        metric: Summary(mean, deviation, math.nan, runs)
        for metric, mean, deviation in zip(METRICS, means, spread, strict=False)
    }


def _preset(setting: str) -> Experiment:
    return read_experiment(Path("paper") / setting)


@cache
def _data() -> dict[str, Any]:
    text = Path(__file__).with_name("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
