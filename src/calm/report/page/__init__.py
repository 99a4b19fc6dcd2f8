"""One page that has everything in it: leaderboard, curves, gates, configs. It needs no network."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from calm.errors import CalmError
from calm.report.compare import Setting
from calm.report.page.data import page_data

HERE = Path(__file__).parent


def write_page(settings: Sequence[Setting], path: Path) -> Path:
    """Write the page of all settings."""
    parts = {
        "page.css": _own("page.css"),
        "data": embedded(page_data(settings, path.parent)),
        "page.js": _own("page.js"),
        "plotly": charting(),
        "charts.js": _own("charts.js"),
    }
    # one pass: what is put in is not looked at again, whatever names the runs have
    page = re.sub(r"<!--(.*?)-->", lambda match: parts[match[1]], _own("page.html"))
    path.write_text(page, encoding="utf-8")
    return path


def charting() -> str:
    """Return the script of the charting library."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise CalmError("to write the page: pip install 'calm-bench[report]'") from None
    return str(get_plotlyjs())


def embedded(data: object) -> str:
    """Write data as JSON that may stand in a script element: no name in it can end the element."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", r"\u003c")


def _own(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
