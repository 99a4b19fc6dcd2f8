import hashlib
from itertools import product
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from calm.config import Choice, Config, StreamConfig
from calm.errors import CalmError
from calm.sweep.plan import Needs, Planned, read_sweep


def read(folder, text, **options):
    path = folder / "some.toml"
    path.write_text(text if isinstance(text, str) else tomli_w.dumps(text))
    return read_sweep(path, **options)


def configs(folder, text, **options):
    return [run.config for run in read(folder, text, **options).runs]


def axis(values):
    return st.lists(st.sampled_from(values), min_size=1, unique_by=str)


@given(
    learners=axis(["unigram", "uniform", "floor"]),
    lengths=axis([1000, 2000.5, 3000]),
    seeds=axis(range(9)),
    data=st.data(),
)
def test_a_sweep_is_the_product_of_its_axes_less_what_is_excluded(
    tmp_path_factory, learners, lengths, seeds, data
):
    left_out = (
        data.draw(st.lists(st.sampled_from(learners), max_size=2)),
        data.draw(st.lists(st.sampled_from(seeds), max_size=2)),
    )
    sweep = {
        "learners": learners,
        "seeds": seeds,
        "streams": [{"mean_length": length, "fragments": 10} for length in lengths],
    }
    if all(left_out):
        sweep["exclude"] = [{"learners": left_out[0], "seeds": left_out[1]}]
    expected = {
        Planned(
            Config(
                stream=StreamConfig(fragments=10, mean_length=float(length)),
                learner=Choice(learner),
                seed=seed,
            )
        ).name
        for learner, length, seed in product(learners, lengths, seeds)
        if not (learner in left_out[0] and seed in left_out[1])
    }
    folder = tmp_path_factory.mktemp("plan")
    if not expected:
        with pytest.raises(CalmError, match="leaves no run"):
            read(folder, sweep)
        return
    names = [run.name for run in read(folder, sweep).runs]
    assert sorted(names) == sorted(expected)


def test_a_name_ends_in_the_hash_of_the_file_that_the_run_writes(tmp_path):
    (run,) = read(tmp_path, 'learners = ["unigram"]').runs
    digest = hashlib.sha256(run.config.to_toml().encode()).hexdigest()
    assert run.name == f"synthetic-100x10000-unigram-s0-{digest[:8]}"


def test_options_of_the_learner_go_before_the_sweeps_and_those_before_the_experiments(tmp_path):
    text = """
        experiments = ["paper/multilingual-10k", "paper/multidomain-20k"]
        learners = ["lstm", "unigram", { name = "moe-5", dropout = 0.3 }]
        options = { size = "small", dropout = 0.1, precision = "bfloat16" }
    """
    by_name = {(c.corpus.name, c.learner.name): c for c in configs(tmp_path, text)}
    assert len(by_name) == 6
    news = by_name["wmt-news", "moe-5"]
    assert news.learner.options == {
        "size": "small", "iterations": 2, "gate_hidden": 100, "clear_gate": True, "warmup": 250,
        "dropout": 0.3, "precision": "bfloat16",
    }  # fmt: skip
    assert news.stream == StreamConfig(fragments=100, mean_length=10_000.0)
    domains = by_name["multidomain", "lstm"]
    assert domains.learner.options == {
        "size": "small", "dropout": 0.1, "iterations": 1, "precision": "bfloat16"
    }  # fmt: skip
    assert domains.stream.mean_length == 20_000
    assert by_name["wmt-news", "unigram"].learner == Choice("unigram")


def test_without_learners_an_experiment_has_its_own(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('seed = 4\n[learner]\nname = "unigram"\nprior = 2.0\n')
    (config,) = configs(tmp_path, {"experiments": [str(own)]})
    assert (config.learner, config.seed) == (Choice("unigram", {"prior": 2.0}), 4)
    names = [c.learner.name for c in configs(tmp_path, 'experiments = ["paper/multilingual-10k"]')]
    assert names[:3] == ["lstm", "ind-lstm", "mos"]
    assert len(names) == 14


def test_streams_change_what_they_name_and_corpora_take_the_place_of_the_experiments(tmp_path):
    text = """
        experiments = ["paper/multilingual-100k"]
        corpora = ["newstest", { name = "synthetic", lexicon = 300 }]
        learners = ["unigram"]
        [[streams]]
        rows = 5
        [[streams]]
        fragments = 50
    """
    found = [(c.corpus, c.stream) for c in configs(tmp_path, text)]
    assert found == [
        (corpus, stream)
        for corpus in (Choice("newstest"), Choice("synthetic", {"lexicon": 300}))
        for stream in (StreamConfig(100, 1e5, rows=5), StreamConfig(50, 1e5))
    ]
    overridden = configs(tmp_path, text, corpora=["synthetic", "wmt-news"])
    assert [c.corpus for c in overridden[::2]] == [Choice("synthetic"), Choice("wmt-news")]


def test_includes_take_over_the_axes_that_they_do_not_name(tmp_path):
    text = """
        learners = ["unigram", "uniform"]
        seeds = [3]
        needs = { memory = 2 }
        exclude = [{ learners = ["uniform"] }]
        [[include]]
        seeds = 2
        [[include]]
        learners = ["unigram"]
        needs = { memory = 9, cpus = 4 }
    """
    runs = read(tmp_path, text).runs
    found = [(run.config.learner.name, run.config.seed, run.needs) for run in runs]
    assert found == [
        ("unigram", 3, Needs(cpus=4, memory=9)),
        ("unigram", 0, Needs(memory=2)),
        ("unigram", 1, Needs(memory=2)),
        ("uniform", 0, Needs(memory=2)),
        ("uniform", 1, Needs(memory=2)),
    ]


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        ('{ learners = ["unigram"] }', 4),
        ('{ learners = [{ name = "unigram", prior = 2.0 }] }', 8),
        ('{ learners = ["unigram"], seeds = [1] }', 8),
        ('{ corpora = ["synthetic"], seeds = 1 }', 6),
        ("{ streams = [{ fragments = 20 }] }", 6),
        ("{ streams = [{ fragments = 20, mean_length = 1000 }], seeds = [0] }", 9),
    ],
)
def test_an_exclude_leaves_out_what_is_all_that_it_says(tmp_path, exclude, left):
    text = f"""
        learners = [
            "uniform", {{ name = "unigram", prior = 2.0 }}, {{ name = "unigram", prior = 3.0 }}
        ]
        streams = [{{ fragments = 20, mean_length = 1000 }}, {{ fragments = 10 }}]
        seeds = 2
        exclude = [{exclude}]
    """
    assert len(read(tmp_path, text).runs) == left


def test_a_relative_folder_is_that_of_where_calm_is_run(tmp_path, monkeypatch):
    (tmp_path / "texts").mkdir()
    monkeypatch.chdir(tmp_path)
    (config,) = configs(tmp_path, 'corpora = ["texts"]')
    assert config.corpus.name == str(tmp_path / "texts")


def test_the_example_of_the_page_is_a_sweep(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()
    example = page.partition("```toml\n")[2].partition("```")[0]
    runs = read(tmp_path, example).runs
    assert len(runs) == 2 * 2 * 3 * 5 - 2 * 5 + 2 * 2 * 10


def test_the_presets_are_the_papers_table():
    table = read_sweep(Path("paper/table1")).runs
    assert len(table) == 13 * 4 * 10
    settings = {(r.config.corpus.name, r.config.stream.mean_length) for r in table}
    assert settings == {
        ("wmt-news", 1e4), ("wmt-news", 1e5), ("multidomain", 1e4), ("multidomain", 2e4)
    }  # fmt: skip
    assert {r.config.learner.options["size"] for r in table} == {"paper", "paper-word"}
    small = read_sweep(Path("paper/table1-small"), ["synthetic", "newstest"]).runs
    assert len(small) == 13 * 2 * 5
    assert {r.config.learner.name for r in small} == {r.config.learner.name for r in table}
    assert {r.config.learner.options["precision"] for r in small} == {"bfloat16"}
    assert {r.config.stream for r in small} == {StreamConfig(fragments=50)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('learner = ["lstm"]', "unknown key 'learner'; there are: out, experiments, corpora, "),
        ('learners = "lstm"', "learners is 'lstm': expected a list"),
        ("learners = []", "learners is empty"),
        ("learners = [3]", "learners 1 needs a name"),
        ('learners = ["lstn"]', "unknown learner 'lstn': take uniform, "),
        ("seeds = 0", "seeds is 0: expected how many, or a list of seeds"),
        ("seeds = [0.5]", "seeds 1 is 0.5: expected a whole number"),
        ("streams = [{ length = 4 }]", "streams 1: unknown key 'length'; there are: fragments"),
        ("streams = 5", "streams is 5: expected a list"),
        ('options = { sise = "small" }', "options: no learner here has 'sise'"),
        ('needs = { memory = "1" }', "needs: memory is '1': expected a number"),
        ("needs = { cpus = -1 }", "cpus is -1: take 0 or more"),
        ("needs = { cores = 1 }", "unknown key 'cores'; there are: cpus, gpus, memory"),
        ("exclude = [{}]", "exclude 1 is empty"),
        ("exclude = [{ seeds = [7] }]", "exclude 1 leaves out nothing"),
        ("exclude = [{ out = 'x' }]", "exclude 1: unknown key 'out'; there are: experiments"),
        ("exclude = [{ seeds = [0] }]", "leaves no run: exclude less"),
        ('include = ["lstm"]', "include 1 is 'lstm': expected a table"),
        ('include = [{ learner = "x" }]', "include 1: unknown key 'learner'"),
        ('experiments = ["nowhere.toml"]', "there is no file nowhere.toml, nor such a preset"),
        ("include = [{ options = { x = 1 } }]", "include 1: options: no learner here has 'x'"),
        ("out = 3", "out is 3: expected a text in quotes"),
        ("a = ", "is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_sentence(tmp_path, text, words):
    with pytest.raises(CalmError) as error:
        read(tmp_path, text)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
