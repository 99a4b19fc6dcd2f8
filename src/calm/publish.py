"""A row of a table as a file: what was run, on which text, and what came out, seed by seed."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calm.errors import CalmError
from calm.files import replace_json, sha256
from calm.folder import RunFolder
from calm.metrics import fragment_means, plain, summarise
from calm.report.runs import Run, load_runs, settings

FORMAT = 1
SUMMARISED = ("ppl", "ppl_at_switch", "recovery", "bits")


def publish(
    paths: Sequence[Path], out: Path, learner: str | None = None, where: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Write the runs of one learner in one setting to a file.

    `learner` chooses one, by what it is called in tables; `where` says where its code is. Returns
    what was written, and a sentence about each run that is not in it though it is there.
    """
    runs, passed_over = load_runs(paths)
    rows = [
        (setting, group)
        for setting, groups in settings(runs).items()
        for group in groups
        if group.runs and learner in (None, group.learner)
    ]
    if len(rows) != 1:
        named = "; ".join(f"{group.learner!r} in {setting}" for setting, group in rows)
        raise CalmError(
            f"a result is one learner in one setting, and here are several ({named}): name its "
            "runs alone, or choose it by --learner"
            if rows
            else f"no run is of {learner!r}: take one of "
            + ", ".join(map(repr, sorted({run.learner for run in runs})))
        )
    ((_, group),) = rows
    first = group.runs[0]
    config = first.config.to_dict()
    del config["seed"]
    config["corpus"]["name"] = Path(config["corpus"]["name"]).name  # where it lies is nobody's
    result = {
        "format": FORMAT,
        "learner": group.learner,
        "oracle": group.oracle,
        "setting": first.setting,
        "config": config,
        "text": first.text,
        "code": {"sha256": _code(group.runs), "where": where},
        "summary": {
            key: plain(asdict(summarise([getattr(result, key) for result in group.results])))
            for key in SUMMARISED
        },
        "seeds": {
            str(run.config.seed): _seed(run)
            for run in sorted(group.runs, key=lambda run: run.config.seed)
        },
    }
    replace_json(out, result)
    return result, passed_over


def _seed(run: Run) -> dict[str, Any]:
    """What a maintainer compares with a run of the same seed."""
    return {
        "records": sha256(run.path / "records.jsonl"),
        "result": run.result.to_dict(),
        "fragments": fragment_means(run.records),
        "seconds": run.metrics["seconds"],
        "starts": RunFolder(run.path).starts(),
    }


def _code(runs: Sequence[Run]) -> str | None:
    """Return the hash of the learner's file, the same at every start; None for one of ours."""
    starts = {run.path: RunFolder(run.path).starts() for run in runs}
    for path in (path for path, each in starts.items() if not each):
        raise CalmError(f"{path} has lost its environment.json, without which it proves nothing")
    hashes: set[str | None] = {start.get("code") for each in starts.values() for start in each}
    if len(hashes) > 1:
        paths = ", ".join(map(str, starts))
        raise CalmError(f"the code of the learner changed between or during these runs: {paths}")
    return hashes.pop()
