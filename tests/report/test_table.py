import json
import re
from pathlib import Path

import numpy as np
import pytest

from calm.config import Choice, Config, StreamConfig
from calm.errors import CalmError
from calm.metrics import Result
from calm.report.compare import Setting, compare
from calm.report.latex import escaped, latex, paper_layout
from calm.report.published import published_beside, wanted
from calm.report.runs import Group, Run
from calm.report.significance import differences
from calm.report.table import MARKDOWN, cells, headings, markdown, notes, screen_table
from calm.report.written import differences_page, to_json


def group(config, ppls, oracle=False, seeds=None):
    seeds = range(len(ppls)) if seeds is None else seeds
    results = tuple(Result(ppl, 2 * ppl, 3 * ppl, 0.0, {}, ()) for ppl in ppls)
    run = Run("nowhere", config, {})
    run.__dict__["similarity"] = None
    return Group(run.learner, oracle, results, runs=(run,), seeds=tuple(seeds))


def setting(corpus="texts", mean_length=10_000, against=None, published=(), **ppls):
    """Learners by name, `_` for `-`, with a perplexity for every seed."""
    stream = StreamConfig(mean_length=mean_length)
    groups = []
    for name, values in ppls.items():
        learner = name.replace("_", "-")
        options = {"size": "small"} if learner == "lstm" else {}
        options = {"size": "paper"} if corpus == "wmt-news" and learner != "unigram" else options
        config = Config(Choice(corpus), stream, Choice(learner, options))
        groups.append(group(config, values, oracle=learner.startswith("ind")))
    beside = published_beside(groups, wanted(published))
    return Setting(groups[0].runs[0].setting, groups, beside, differences(groups, against))


def column(setting, heading):
    place = headings(setting, MARKDOWN).index(heading)
    return [cells(setting, group, MARKDOWN)[place] for group in setting.groups]


THREE = {"lstm": [2.0, 3.0, 4.0], "poe_5": [2.1, 2.9, 4.2], "mos": [7.0, 8.1, 9.0]}


def test_the_best_is_bold_and_who_is_not_to_be_told_from_it_is_marked():
    found = setting(**THREE, ind_lstm=[1.0, 1.0, 1.0])
    assert column(found, "ppl") == ["**3.00 ± 2.48**", "3.07 ± 2.63†", "8.03 ± 2.49", "1.00 ± 0.00"]
    said = notes(found, MARKDOWN)
    assert any(note.startswith("† not to be told from the best (bold) at 5 %") for note in said)
    assert "±: half of the 95 % interval over seeds" in said


def test_an_oracle_is_compared_but_not_marked():
    oracle = {"ind_lstm": [2.1, 3.0, 4.1]}
    found = setting(**THREE, **oracle, against="lstm small")
    assert ("ind-lstm", "lstm small") in {(d.learner, d.against) for d in found.differences}
    assert not column(found, "ppl")[-1].endswith("†")


def test_a_single_seed_is_marked_by_nothing_and_said():
    found = setting(lstm=[2.0], poe_5=[2.1])
    assert column(found, "ppl") == ["**2.00**", "2.10"]
    assert notes(found, MARKDOWN) == [
        "not compared with the best, for want of two seeds in common: poe-5"
    ]
    assert "| ppl | poe-5 | lstm small, the best | +0.10 | – | – | 1 |" in differences_page([found])


def test_the_papers_numbers_stand_beside_and_say_what_they_are():
    found = setting(**THREE, published=["multilingual-10k"])
    assert column(found, "paper‡")[:3] == ["7.78 ± 1.08", "7.68 ± 0.23", "8.13 ± 0.5"]
    assert column(found, "ppl")[0] == "**3.00 ± 1.00**"
    assert "±: standard deviation over seeds" in notes(found, MARKDOWN)
    assert any(
        "paper‡: the paper's, other data: wmt-news" in note for note in notes(found, MARKDOWN)
    )
    own = setting(corpus="wmt-news", **{"poe_5": [7.0], "unigram": [20.0]})
    assert column(own, "paper") == ["7.68 ± 0.23", ""]
    assert "paper: the paper's, multilingual-10k" in markdown([own])
    (rows,) = json.loads(to_json([found])).values()
    assert rows[0]["paper"]["ppl"] == {"mean": 7.78, "deviation": 1.08}
    assert rows[0]["paper"]["departures"].startswith("other data")


def test_every_row_of_every_format_is_as_wide_as_its_head():
    for found in (setting(**THREE), setting(**THREE, published=["multidomain-20k"])):
        (head, rule, *rows) = [x for x in markdown([found]).splitlines() if x.startswith("|")]
        assert {row.count("|") for row in (head, rule, *rows)} == {
            len(headings(found, MARKDOWN)) + 1
        }
        assert len(rows) == 3
        assert [c.header for c in screen_table(found).columns] == headings(found, MARKDOWN)
        body = latex([found])
        width = len(re.search(r"tabular}{(l+r+)}", body)[1])
        assert {row.count("&") for row in body.splitlines() if row.endswith(r"\\")} == {width - 1}


def test_json_has_the_differences_of_a_learner():
    found = setting(**THREE, against="mos")
    (rows,) = json.loads(to_json([found])).values()
    lstm, poe, mos = rows
    assert [(d["metric"], d["against"]) for d in lstm["differences"]] == [
        (metric, "mos") for metric in ("ppl", "ppl_at_switch", "recovery")
    ]
    (from_best,) = (
        d for d in poe["differences"] if (d["metric"], d["against"]) == ("ppl", "lstm small")
    )
    assert from_best["mean"] == pytest.approx(np.mean([0.1, -0.1, 0.2]))
    assert from_best["seeds"] == 3
    assert from_best["p_holm"] >= from_best["p"] > 0.05
    assert {d["against"] for d in mos["differences"]} == {"lstm small"}


def rows_of(text):
    return [
        [cell.strip() for cell in line[:-2].split("&")] for line in text.splitlines() if "&" in line
    ]


def test_the_papers_layout():
    settings = [
        setting(corpus="ml", mean_length=100_000, poe_5=[4.0, 4.5], lstm=[5.0, 5.1]),
        setting(corpus="md", ind_lstm=[9.0], unigram=[3.0]),
        setting(corpus="ml", lstm=[8.0, 8.2], poe_5=[9.0, 9.1], ind_lstm=[7.0, 7.0]),
    ]
    means, deviations = paper_layout(settings).split(r"\end{tabular}")[:2]
    assert r" & \multicolumn{3}{c}{md} & \multicolumn{6}{c}{ml} \\" in means
    assert r"\cmidrule(lr){2-4} \cmidrule(lr){5-10}" in means
    _, lengths, metrics, *rows = rows_of(means)
    assert [re.findall(r"{c}{(.*)}", cell)[0] for cell in lengths[1:]] == [
        r"$\lambda$ = 10k", r"$\lambda$ = 10k", r"$\lambda$ = 100k"
    ]  # fmt: skip
    assert metrics == ["", *["ppl", "ppl@sw", "rec"] * 3]
    assert [row[0] for row in rows] == ["Ind. LSTM*", "Large LSTM", "PoE 5", "unigram"]
    assert rows[0][1:] == ["9.00", "18.00", "27.00", "7.00", "14.00", "21.00", "", "", ""]
    assert rows[1][4:] == [
        r"\textbf{8.10}", r"\textbf{16.20}", r"\textbf{24.30}",
        r"5.05$^\dagger$", r"10.10$^\dagger$", r"15.15$^\dagger$",
    ]  # fmt: skip
    ind, lstm, *_ = rows_of(deviations)[3:]
    assert ind[1:] == ["--", "--", "--", "0.00", "0.00", "0.00", "", "", ""]
    assert lstm[4] == f"{np.std([8.0, 8.2], ddof=1):.2f}"


def test_under_a_learner_stand_the_papers_means():
    text = paper_layout([setting(**THREE, published=["multilingual-10k"])])
    lstm, below = rows_of(text)[3:5]
    assert lstm[0] == "Large LSTM"
    assert below == [r"\quad in the paper", r"\textit{7.78}", r"\textit{10.4}", r"\textit{6.82}"]


def test_learners_of_one_name_in_a_setting_keep_their_options():
    both = setting(lstm=[2.0])
    tiny = Config(Choice("texts"), StreamConfig(), Choice("lstm", {"size": "tiny"}))
    groups = [*both.groups, group(tiny, [3.0])]
    text = paper_layout([Setting(both.name, groups, None, [])])
    assert [row[0] for row in rows_of(text)[3:5]] == ["lstm small", "lstm tiny"]


def test_settings_that_only_differ_in_something_else_say_it():
    text = paper_layout([setting(lstm=[2.0]), setting(lstm=[3.0])])
    assert text.count(r"N = 100, $\lambda$ = 10,000, test half") == 4


def test_what_latex_would_read_as_its_own_is_escaped():
    assert escaped(r"a_b 5% {x} \y ~ ^ # & $") == (
        r"a\_b 5\% \{x\} \textbackslash{}y \textasciitilde{} \textasciicircum{} \# \& \$"
    )


def finished_run(learner, seed=0, **options):
    """A run as if read from its folder, of which only the ppl was ever measured."""
    run = Run(
        Path("nowhere"),
        Config(learner=Choice(learner, options), seed=seed),
        {"oracle": False, "tokens_per_second": 1},
    )
    run.__dict__["result"] = Result(2.0 + seed, 3.0, 4.0, 1.0, {}, ())
    return run


def test_a_learner_to_compare_with_is_found_with_or_without_its_options():
    runs = [finished_run("unigram", prior=1.0), finished_run("unigram"), finished_run("lstm", a=1)]
    (setting,) = compare(runs, against="unigram")
    assert {found.against for found in setting.differences} >= {"unigram"}
    (setting,) = compare(runs, against="lstm")
    assert {found.against for found in setting.differences} >= {"lstm a=1"}
    with pytest.raises(CalmError, match="several learners are called 'unigram': take one of"):
        compare([runs[0], finished_run("unigram", prior=2.0)], against="unigram")
    with pytest.raises(CalmError, match="'mos': take one of unigram prior=1.0, unigram, lstm a=1$"):
        compare(runs, against="mos")
