import re

import pytest

from calm.errors import CalmError
from calm.report.samples import latex_samples, markdown_samples

ONE = [("en, where the run stands", "a\n b|c"), ("fr, after 5 batches", "50 % <x> *y*")]
OTHER = [("en, where the run stands", "d"), ("fr, after 5 batches", "e_f & g")]


def test_points_are_rows_and_learners_columns():
    head, rule, first, second = markdown_samples(["lstm", "poe"], [ONE, OTHER]).splitlines()
    assert head == "|  | lstm | poe |"
    assert rule == "| --- | --- | --- |"
    assert first == r"| en, where the run stands | a b\|c | d |"
    assert second == r"| fr, after 5 batches | 50 % \<x\> \*y\* | e\_f \& g |"


def test_the_same_in_latex():
    lines = latex_samples(["lstm", "poe"], [ONE, OTHER]).splitlines()
    assert lines[1] == r"\begin{tabular}{p{0.12\linewidth}p{0.38\linewidth}p{0.38\linewidth}}"
    assert r"fr, after 5 batches & 50 \% <x> *y* & e\_f \& g \\" in lines
    rows = [line for line in lines if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {2}


def test_texts_from_other_points_do_not_share_a_row():
    with pytest.raises(CalmError, match="do not stand at the same point .*: take runs of one seed"):
        markdown_samples(["lstm", "poe"], [ONE, [("de, where the run stands", "d"), OTHER[1]]])
