"""The tutorial is gone through as it stands there, command by command."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parent.parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
FILES = re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^    (calm .*)$", PAGE, re.MULTILINE)


def test_the_tutorial_leads_from_an_empty_file_to_a_verified_row(tmp_path):
    for name, content in FILES:
        (tmp_path / name).write_text(content, encoding="utf-8")
    said = []
    for command in COMMANDS:
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stderr}"
        said.append(done.stdout)
    assert "committee:Committee keeps to the protocol" in said[0]
    reported = (tmp_path / "reports/tutorial/table.md").read_text(encoding="utf-8")
    assert table(PAGE) == [row[:5] + row[6:] for row in table(reported)]  # without the speed
    assert "seed 1 agrees: " in said[-1]
    for picture in ("switch.png", "loss.png"):
        assert (tmp_path / "reports/tutorial" / picture).exists()


def table(text):
    """Return the cells of a table in Markdown, without its heading."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]
