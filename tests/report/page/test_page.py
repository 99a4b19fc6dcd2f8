import json
import re
import sys
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calm.metrics import summarise
from calm.report.page import embedded
from calm.report.page.data import page_data
from helpers import calm


@given(st.text('</script>!-\\"\u2028ä') | st.text())
def test_what_is_embedded_reads_the_same_and_ends_no_element(name):
    text = embedded({name: name})
    assert json.loads(text) == {name: name}
    assert "<" not in text


def in_page(path):
    page = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_has_the_numbers_of_the_report(made):
    data = in_page(made.page)
    groups = made.settings[0].groups
    assert data["settings"][0]["name"] == made.settings[0].name
    rows = [row for row in data["learners"] if row["setting"] == 0]
    assert [row["learner"] for row in rows] == [group.learner for group in groups]
    assert [row["oracle"] for row in rows] == [group.oracle for group in groups]
    for row, group in zip(rows, groups, strict=True):
        ppl = summarise([result.ppl for result in group.results])
        assert row["scores"]["ppl"][0] == pytest.approx(ppl.mean, rel=1e-5)
        assert row["seeds"] == len(group.results)
    assert rows[0]["scores"]["ppl"][1] == pytest.approx(
        summarise([result.ppl for result in groups[0].results]).interval, rel=1e-5
    )
    assert [run["gates"] is not None for run in data["runs"]][:3] == [True, True, False]


def test_links_lead_to_the_files_of_every_run(made):
    for run in in_page(made.page)["runs"]:
        for link in run["links"].values():
            assert ":" not in link
            assert (made.page.parent / unquote(link)).is_file()


def test_everything_is_in_one_file(made):
    page = made.page.read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|img)[^>]*\s(src|href)=", page)
    assert "default-src 'none'" in page


def test_the_same_runs_give_the_same_page(made, tmp_path):
    out = made.page.parent
    assert page_data(made.settings, out) == page_data(made.settings, out)


def test_the_command_writes_it(made, tmp_path, monkeypatch, capsys):
    code, out, _ = calm(
        monkeypatch, capsys, "report", made.runs / "bad-0", "--out", tmp_path, "--html"
    )
    assert code == 0
    assert "page.html" in out
    assert in_page(tmp_path / "page.html")["runs"][0]["seed"] == 0


def test_without_the_library_it_is_named_before_anything_is_written(
    made, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    out = tmp_path / "out"
    code, _, err = calm(monkeypatch, capsys, "report", made.runs, "--out", out, "--html")
    assert (code, err) == (2, "calm: to write the page: pip install 'calm-bench[report]'\n")
    assert not out.exists()
