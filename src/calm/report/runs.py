"""Finished runs, read from their folders and grouped for comparison."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calm.analysis import GateSimilarity, gate_similarity
from calm.config import Config
from calm.errors import CalmError
from calm.folder import RunFolder
from calm.metrics import Records, Result, Scores, measure


@dataclass(frozen=True)
class Run:
    """One finished run: what was run, what it recorded, and what was measured beside it."""

    path: Path
    config: Config
    metrics: dict[str, Any]

    @property
    def records(self) -> Records:
        """Every batch; read anew each time, for those of many runs are too much to keep."""
        return RunFolder(self.path).records()

    @property
    def gates(self) -> NDArray[np.float64] | None:
        """The gate's weights in every batch, (batches, n), if there is a gate; read anew too."""
        return RunFolder(self.path).gates()

    @cached_property
    def similarity(self) -> GateSimilarity | None:
        """How alike the gate's weights are, if there is a gate."""
        gates = self.gates
        return None if gates is None else gate_similarity(gates, self.records.class_name)

    @property
    def distances(self) -> NDArray[np.float64] | None:
        """True distances of the classes, in the order of their names, where they are known."""
        known = self.metrics.get("distances")
        if known is None:
            return None
        order = sorted(known["classes"])
        places = [known["classes"].index(name) for name in order]
        return np.array(known["matrix"])[np.ix_(places, places)]

    @cached_property
    def result(self) -> Result:
        """The metrics, computed from the records."""
        return measure(self.records)

    @property
    def oracle(self) -> bool:
        """Whether the learner knows what no contender may."""
        return bool(self.metrics["oracle"])

    @property
    def learner(self) -> str:
        """Name the learner with its options: `lstm tiny`, `unigram prior=1.0`."""
        choice = self.config.learner
        options = [str(v) if k == "size" else f"{k}={v}" for k, v in choice.options.items()]
        return " ".join([choice.name, *options])

    @property
    def corpus(self) -> str:
        """Name the corpus, without the folder it lies in."""
        return Path(self.config.corpus.name).name

    @property
    def setting(self) -> str:
        """Everything that makes runs comparable: corpus and stream, but not the seed."""
        stream = self.config.to_dict()["stream"]
        corpus = self.config.corpus.options
        shown = [f"{key} {value}" for key, value in corpus.items()]
        shown += [f"N = {stream['fragments']}", f"λ = {stream['mean_length']:,g}"]
        shown += [f"{stream['split']} half" if stream["split"] != "all" else "all of the text"]
        if (stream["rows"], stream["window"]) != (10, 20):
            shown.append(f"b = {stream['rows']}, w = {stream['window']}")
        if stream["boundary"] != "seamless":
            shown.append(f"{stream['boundary']} boundary")
        return f"{self.corpus}: {', '.join(shown)}"

    @property
    def text(self) -> str:
        """Return the hash of the text."""
        return RunFolder(self.path).corpora()

    def floors(self) -> dict[str, Result]:
        """Return the oracles' results on this run's stream, by name."""
        return {name: _result(data) for name, data in self.metrics.get("floors", {}).items()}


@dataclass(frozen=True)
class Group:
    """The runs of one learner in one setting, one for each seed."""

    learner: str
    oracle: bool
    results: tuple[Result, ...]
    speeds: tuple[float, ...] = ()
    runs: tuple[Run, ...] = ()
    seeds: tuple[int, ...] = ()  # of the results

    @property
    def name(self) -> str:
        """The learner without its options."""
        return self.runs[0].config.learner.name if self.runs else self.learner

    def values(self, metric: str) -> list[float]:
        """One of the metrics, of every seed."""
        return [getattr(result, metric) for result in self.results]

    @property
    def mean_ppl(self) -> float:
        """The mean of the perplexity over seeds."""
        return sum(result.ppl for result in self.results) / len(self.results)


def load_runs(paths: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Read finished runs; a folder that is none may hold some.

    Of those, unfinished ones and repetitions are passed over: returns the runs, and a sentence
    about each that is not among them.
    """
    runs: dict[Path, Run] = {}
    passed_over: list[str] = []
    if not paths:
        raise CalmError("no run is named: give folders of runs, or a folder that holds such")
    for path in paths:
        if RunFolder(path).exists():
            found = [path]
        else:
            below = sorted(config.parent for config in path.glob("*/config.toml"))
            found = [run for run in below if RunFolder(run).finished]
            passed_over += [f"{run} is not finished" for run in below if run not in found]
            if not found:
                raise CalmError(f"{path} holds no {'finished ' if below else ''}run")
        for one in found:
            folder = RunFolder.open(one)
            runs[one.resolve()] = Run(one, folder.config(), folder.metrics())
    first: dict[str, Run] = {}
    for key, run in list(runs.items()):
        twin = first.setdefault(f"{run.config} {run.text}", run)
        if twin is not run and twin.metrics["sha256"] == run.metrics["sha256"]:
            passed_over.append(f"{run.path} repeats {twin.path}")
            del runs[key]
    return list(runs.values()), passed_over


def settings(runs: Iterable[Run]) -> dict[str, list[Group]]:
    """Group runs by setting, and there by learner: contenders first, best first, then oracles."""
    by_setting: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        by_setting.setdefault((run.setting, run.text), []).append(run)
    names = [name for name, _ in by_setting]
    return {
        name if names.count(name) == 1 else f"{name} [{text}]": _groups(members)
        for (name, text), members in by_setting.items()
    }


def _groups(runs: Sequence[Run]) -> list[Group]:
    by_learner: dict[str, dict[int, Run]] = {}
    floors: dict[str, dict[int, Result]] = {}
    for run in runs:
        seeds = by_learner.setdefault(run.learner, {})
        if run.config.seed in seeds:
            raise CalmError(
                f"{run.path} and {seeds[run.config.seed].path} are the same run with different "
                "records: give one of them"
            )
        seeds[run.config.seed] = run
        for name, result in run.floors().items():
            floors.setdefault(name, {})[run.config.seed] = result
    groups = [
        Group(
            learner,
            members[0].oracle,
            tuple(run.result for run in members),
            tuple(run.metrics["tokens_per_second"] for run in members),
            tuple(members),
            tuple(run.config.seed for run in members),
        )
        for learner, members in ((name, list(seeds.values())) for name, seeds in by_learner.items())
    ]
    groups += [
        Group(name, True, tuple(results.values()), seeds=tuple(results))
        for name, results in floors.items()
        if name not in by_learner
    ]
    return sorted(groups, key=lambda group: (group.oracle, group.mean_ppl))


def _result(data: dict[str, Any]) -> Result:
    nan = float("nan")

    def scores(part: dict[str, Any]) -> dict[str, float]:
        keys = ("ppl", "ppl_at_switch", "recovery")
        return {key: nan if part[key] is None else part[key] for key in keys}

    return Result(
        **scores(data),
        bits=data["bits"],
        per_class={name: Scores(**scores(part)) for name, part in data["per_class"].items()},
        curve=tuple(nan if loss is None else loss for loss in data["curve"]),
    )
