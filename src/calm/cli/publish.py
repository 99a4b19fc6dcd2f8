"""`calm publish` and `calm verify`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from calm.errors import CalmError, RunFailedError


@dataclass(frozen=True)
class PublishCommand:
    """Write a learner's runs in one setting to a file that others can verify.

    Examples:
      calm publish runs/mine-s0 runs/mine-s1 runs/mine-s2 --out mine.json
      calm publish sweeps/first --learner "mine:Mine rate=0.1" --code https://example.org/mine.py
    """

    runs: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN [RUN ...]")]
    """Folders of runs, one for each seed, or folders that hold such."""
    learner: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    """Which learner, as `calm report` calls it, where there are several."""
    code: Annotated[str | None, arg(metavar="URL", help_behavior_hint="")] = None
    """Where a learner of your own can be had."""
    out: Path = Path("result.json")
    """The file."""


@dataclass(frozen=True)
class VerifyCommand:
    """Run one seed of a published result again, and say whether it agrees (exit 0) or not (1).

    A learner that is not ours is looked for where this is run, as by `calm run`.

    Examples:
      calm verify mine.json
      calm verify mine.json --seed 2 --corpus texts/
    """

    result: Annotated[Positional[Path], arg(metavar="RESULT.json")]
    """A file that `calm publish` wrote."""
    seed: Annotated[int | None, arg(metavar="S", help_behavior_hint="(default: its first)")] = None
    """Which of its seeds."""
    corpus: Annotated[str | None, arg(metavar="NAME|DIR", help_behavior_hint="")] = None
    """The same text, where it has another name or place here."""
    out: Annotated[
        Path | None, arg(metavar="DIR", help_behavior_hint="(default: a folder in verified/)")
    ] = None
    """Folder of the run; one that was stopped goes on."""


def publish(command: PublishCommand, options: dict[str, dict[str, Any]]) -> None:
    """`calm publish`."""
    from calm.files import room_in
    from calm.publish import publish

    with room_in(command.out.parent):
        result, passed_over = publish(command.runs, command.out, command.learner, command.code)
    for sentence in passed_over:
        print(f"passed over: {sentence}")
    seeds = ", ".join(result["seeds"])
    print(f"{result['learner']} in {result['setting']}: seeds {seeds}")
    if result["code"]["sha256"] and not command.code:
        print("others need its code to verify this: say where it is by --code URL")
    print(f"written to {command.out}; whoever has the text: calm verify {command.out}")


def verify(command: VerifyCommand, options: dict[str, dict[str, Any]]) -> None:
    """`calm verify`."""
    from calm.sweep.plan import Planned
    from calm.verify import compare, read_result, run_again

    published = read_result(command.result)
    seed = next(iter(published.seeds)) if command.seed is None else command.seed
    if seed not in published.seeds:
        seeds = ", ".join(map(str, published.seeds))
        raise CalmError(f"{command.result} has no seed {seed}: take one of {seeds}")
    config = published.run(seed, command.corpus)
    out = command.out or Path("verified") / Planned(config).name
    folder = run_again(published, config, out)
    verdict = compare(published, seed, folder)
    print(f"run folder: {folder.path}")
    if not verdict.agrees:
        raise RunFailedError(f"seed {seed} does not agree: {verdict.sentence}")
    print(f"seed {seed} agrees: {verdict.sentence}")
