"""`calm generate`: texts of a run, or a table of those of several."""

from calm.cli.arguments import GenerateCommand, Options
from calm.errors import CalmError


def generate(command: GenerateCommand, options: Options) -> None:
    """`calm generate`."""
    from calm.generate import PRIMING, generate_after

    if not command.runs:
        raise CalmError("no run is named: give the folder of one, or of several")
    if command.table and command.table.suffix not in (".md", ".tex"):
        raise CalmError(f"--table is {command.table}: name a file that ends in .md or .tex")
    points = [0 if command.class_name is None else PRIMING]
    if command.after is not None:
        points = _points(command.after)
    samples = [
        generate_after(run, command.length, command.class_name, points, command.seed)
        for run in command.runs
    ]
    if len(samples) > 1 or command.table:
        _show_table(command, samples)
    elif command.after is None:
        print(samples[0][0][1])
    else:
        print("\n\n".join(f"{title}:\n{text}" for title, text in samples[0]))


def _points(after: str) -> list[int]:
    counts = after.split(",")
    if not all(count.strip().isdecimal() for count in counts):
        raise CalmError(
            f"--after is {after!r}: expected numbers of batches with commas between them, "
            "such as 0,5,10"
        )
    return [int(count) for count in counts]


def _show_table(command: GenerateCommand, samples: list[list[tuple[str, str]]]) -> None:
    """Write a table, or print it."""
    from calm.files import make_folder, replace_file
    from calm.folder import RunFolder
    from calm.report import Run, latex_samples, markdown_samples

    names = [Run(path, RunFolder(path).config(), {}).learner for path in command.runs]
    if command.table is None:
        print(markdown_samples(names, samples), end="")
        return
    write = latex_samples if command.table.suffix == ".tex" else markdown_samples
    text = write(names, samples)
    make_folder(command.table.parent)
    replace_file(command.table, lambda new: new.write_text(text, encoding="utf-8"))
    print(f"wrote {command.table}")
