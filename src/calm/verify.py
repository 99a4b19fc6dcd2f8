"""A published result put to the test: one of its seeds is run again, and compared."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calm.build import build_corpora, code_hash, placed
from calm.config import Choice, Config, convert
from calm.errors import CalmError
from calm.files import sha256
from calm.folder import RunFolder
from calm.metrics import fragment_means, summarise
from calm.publish import FORMAT
from calm.report.runs import Run
from calm.run import CHECKPOINT_SECONDS, start_or_resume

# What may differ where machine or versions do: docs/publishing.md says how that was found.
FRAGMENT = 0.1  # nats, the mean loss of any fragment
SCORES = {"ppl": 0.05, "ppl_at_switch": 0.05, "recovery": 2.0}  # perplexities: their logarithms
ROUNDING = 1e-9  # anything, where the records are the same
VERSIONS = ("calm-bench", "commit", "python", "numpy", "numba", "torch", "platform", "threads")


@dataclass(frozen=True)
class Published:
    """What `calm publish` wrote, as far as it is put to the test."""

    learner: str
    oracle: bool
    config: dict[str, Any]
    text: str
    code: str | None
    seeds: dict[int, dict[str, Any]]

    def run(self, seed: int, corpus: str | None) -> Config:
        """Return the config of a seed, over text that may be in another place here."""
        config = convert(Config, {**self.config, "seed": seed}, "config")
        name = corpus or config.corpus.name
        here = placed(Choice(name, config.corpus.options))
        return Config(here, config.stream, config.learner, seed)


@dataclass(frozen=True)
class Pair:
    """A number of the run, the same as published, and how far apart they may be."""

    name: str
    here: float
    there: float
    allowed: float

    @property
    def gap(self) -> float:
        """How far apart they are; perplexities by their logarithms, nan from nan by nothing."""
        here, there = self.here, self.there
        if math.isnan(here) and math.isnan(there):
            return 0.0
        if self.name.startswith("ppl") and here > 0 and there > 0:
            here, there = math.log(here), math.log(there)
        return abs(here - there)


@dataclass(frozen=True)
class Verdict:
    """Whether a run agrees with what was published of it; why, or why not."""

    agrees: bool
    sentence: str


def read_result(path: Path) -> Published:
    """Read a result; what it says of all seeds together has to follow from each."""
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != FORMAT:
            raise CalmError(f"{path} has format {data['format']!r}; this version reads {FORMAT}")
        seeds = {int(seed): claim for seed, claim in data["seeds"].items()}
        for key, summary in data["summary"].items():
            mean = summarise([_number(claim["result"][key]) for claim in seeds.values()]).mean
            if not Pair(key, mean, _number(summary["mean"]), 0).gap <= ROUNDING:
                raise CalmError(f"{path}: the mean {key} is not that of its seeds, {mean:g}")
        if not all(claim["records"] and claim["starts"] for claim in seeds.values()) or not seeds:
            raise ValueError("nothing to compare with")
        row = (data["learner"], data["oracle"], data["config"], data["text"])
        return Published(*row, data["code"]["sha256"], seeds)
    except OSError as error:
        raise CalmError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CalmError(f"{path} is no result that `calm publish` wrote") from None


def run_again(published: Published, config: Config, out: Path) -> RunFolder:
    """Run a seed, or go on with it, on the same text and with the same code."""
    if build_corpora(config.corpus).fingerprint() != published.text:
        raise CalmError(f"the text of {config.corpus.name} here is not that of the result")
    if code_hash(config.learner.name) != published.code:
        raise CalmError(f"the code of {config.learner.name} here is not that of the result")
    folder = RunFolder(out)
    if folder.exists() and folder.config() != config:
        raise CalmError(f"{out} holds another run: choose another --out")
    return start_or_resume(config, out, CHECKPOINT_SECONDS)


def compare(published: Published, seed: int, folder: RunFolder) -> Verdict:
    """Compare a finished run with what was published of its seed."""
    run, claim = Run(folder.path, folder.config(), folder.metrics()), published.seeds[seed]
    if (run.learner, run.oracle) != (published.learner, published.oracle):
        kind = "an oracle" if run.oracle else "no oracle"
        return Verdict(False, f"its learner is {run.learner!r}, and {kind}")
    records = run.records
    means, scores = fragment_means(records), run.result.to_dict()
    exact = sha256(folder.path / "records.jsonl") == claim["records"]
    if len(means) != len(claim["fragments"]):
        return Verdict(False, f"{len(means)} fragments here, {len(claim['fragments'])} published")
    losses = [
        Pair(f"mean loss of fragment {i}", here, there, FRAGMENT)
        for i, (here, there) in enumerate(zip(means, claim["fragments"], strict=True))
    ]
    pairs = losses + [
        Pair(key, _number(scores[key]), _number(claim["result"][key]), allowed)
        for key, allowed in SCORES.items()
    ]
    faults = [pair for pair in pairs if not pair.gap <= (ROUNDING if exact else pair.allowed)]
    if faults:
        worst = max(faults, key=lambda pair: pair.gap / pair.allowed)
        return Verdict(False, f"{worst.name} is {worst.here:.4f}, not {worst.there:.4f}")
    if exact:
        return Verdict(True, f"the {len(records.loss)} records are the same, bit for bit")
    return Verdict(
        True,
        f"the records are not the same bit for bit, but the mean loss of no fragment differs by "
        f"more than {max(pair.gap for pair in losses):.2g} ({FRAGMENT} may be); "
        + _versions(claim, folder),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _versions(claim: Mapping[str, Any], folder: RunFolder) -> str:
    """Say what is not the same here as where the result comes from."""
    here, there = folder.starts()[-1], claim["starts"][-1]
    differing = [
        f"{key} {here.get(key)}, not {there.get(key)}"
        for key in VERSIONS
        if here.get(key) != there.get(key)
    ]
    return ", ".join(differing) or "versions are the same, the processor may not be"
