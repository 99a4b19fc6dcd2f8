import numpy as np
import pytest
import torch

from calm.audit import walk
from calm.build import learner as calm_learner
from calm.config import Choice, Config, StreamConfig
from calm.errors import CalmError
from calm.generate import generate, generate_after, sample, texts
from calm.learners import LEARNERS
from calm.learners.experts import Experts
from calm.learners.simple import Unigram
from calm.report import latex_samples, markdown_samples
from calm.run import start
from calm.stream import Stream
from helpers import calm


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    stream = StreamConfig(fragments=10, mean_length=3000)
    return {
        name: start(
            Config(stream=stream, learner=Choice(name, options)),
            tmp_path_factory.mktemp("runs") / name,
        ).path
        for name, options in (
            ("lstm", {"size": "tiny", "iterations": 5}),
            ("floor-known", {}),
            ("floor", {}),
        )
    }


def test_text_has_its_length_and_follows_the_seed(runs):
    text = generate(runs["lstm"], 120, seed=1)
    assert len(text) == 120
    assert generate(runs["lstm"], 120, seed=1) == text
    assert generate(runs["lstm"], 120, seed=2) != text


@pytest.mark.parametrize("name", ["floor-known", "floor"])
def test_who_knows_a_language_writes_its_words(runs, synthetic, name):
    for index, class_name in enumerate(synthetic.classes):
        text = generate(runs[name], 400, class_name)
        for mark in ",.?!":
            text = text.replace(mark, " ")
        words = text.split()[1:-1]
        lexicon = {word.strip() for word in synthetic.languages[index].spelling}
        assert len(words) > 30
        assert sum(word in lexicon for word in words) >= len(words) - 1


def test_a_class_primes_the_learner(runs, synthetic):
    shares = {}
    for name in ("alma", "coro"):
        text = generate(runs["lstm"], 1500, name)
        shares[name] = text.count("č") / len(text)  # only coro has this letter
    assert shares["coro"] > 2 * shares["alma"]


def test_samples_follow_the_predicted_distribution():
    learner = Unigram(4, seed=0, prior=0.5)
    learner.learn(np.zeros((1, 1), np.int64), np.array([[0] * 10 + [1] * 30 + [3] * 60]))
    tokens = [
        row for _, row in zip(range(3000), sample(learner, np.zeros(2, np.int64), 0), strict=False)
    ]
    frequency = np.bincount(np.concatenate(tokens), minlength=4) / 6000
    expected = np.array([10.5, 30.5, 0.5, 60.5]) / 102
    assert np.abs(frequency - expected).max() < 0.025


class Tensor(Unigram):
    """Predicts with a tensor that gradients flow to."""

    def predict(self, inputs):
        return torch.tensor(super().predict(inputs), requires_grad=True)


def test_predictions_may_be_tensors_that_gradients_flow_to():
    expected = sample(Unigram(4, seed=0), np.zeros(2, np.int64), 0)
    found = sample(Tensor(4, seed=0), np.zeros(2, np.int64), 0)
    for _, x, y in zip(range(20), expected, found, strict=False):
        assert np.array_equal(x, y)


def test_generating_a_token_at_a_time_is_reading_it():
    learner = Experts(9, seed=2, hidden=12, embedding=6)
    tokens = np.array(
        [row for _, row in zip(range(12), sample(learner, np.array([3, 5]), 4), strict=False)]
    )
    fresh = Experts(9, seed=2, hidden=12, embedding=6)
    inputs = np.concatenate([[[3, 5]], tokens[:-1]])
    along = np.exp(fresh.predict(inputs).astype(np.float64)).cumsum(axis=2)
    from calm.randomness import Draw

    draw = Draw("generate", 4)
    for j in range(12):
        for row in range(2):
            point = draw.uniform() * along[j, row, -1]
            assert (
                abs(along[j, row] - point).min() < 1e-4
                or tokens[j, row] == (along[j, row] <= point).sum()
            )


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "experts"])
def test_sampling_on_the_way_changes_nothing_of_what_comes_later(synthetic, name):
    stream = Stream(synthetic, 5, 1000, rows=3, window=8, seed=1)
    size = {"size": "tiny"} if LEARNERS[name].sizes else {}

    def learner():
        made = calm_learner(name, vocabulary=len(stream.vocabulary), stream=stream, **size)
        for _ in walk(made, stream, 0, 4):
            pass
        return made

    def written(*after):
        return list(texts(stream, learner(), 4, 30, "coro", after, seed=3))

    together = written(0, 2, 3)
    assert together == [written(count)[0] for count in (0, 2, 3)]
    first = stream.classes[next(stream.batches(3)).class_index]
    titles = [title for title, _ in together]
    assert titles == [
        f"{first}, where the run stands", "coro, after 2 batches", "coro, after 3 batches"
    ]  # fmt: skip
    assert all(len(text) == 30 for _, text in together)


def test_points_after_a_switch_are_those_of_generating_them_alone(runs):
    several = generate_after(runs["lstm"], 40, "coro", [10, 0])
    assert several[0][1] == generate(runs["lstm"], 40)
    assert several[1] == ("coro, after 10 batches", generate(runs["lstm"], 40, "coro"))


def test_a_learner_comes_to_write_the_class_that_it_learns(runs):
    shares = [
        text.count("č") / len(text)  # only coro has this letter
        for _, text in generate_after(runs["lstm"], 1500, "coro", [0, 30])
    ]
    assert shares[1] > 2 * shares[0]


def test_a_text_that_is_too_short_to_learn_from_is_said(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"{name} word after word \n" * 1000)
    stream = StreamConfig(fragments=2, mean_length=1000)
    run = start(Config(Choice(str(tmp_path)), stream, Choice("unigram")), tmp_path / "run")
    with pytest.raises(CalmError, match="the text of 'b' is too short: .*; ask for less of it"):
        generate_after(run.path, 10, "b", [0, 50_000])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"class_name": "klingon"}, "no class 'klingon': take one of alba"),
        ({"length": 0}, "length is 0"),
    ],
)
def test_wrong_wishes_are_one_sentence(runs, options, words):
    with pytest.raises(CalmError, match=words):
        generate(runs["lstm"], **{"length": 5, **options})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--class", "coro", "--after", "5,many"), "--after is '5,many': expected numbers of"),
        (("--class", "coro", "--after", "-1"), "--after"),
        (("--class", "coro", "--after", ""), "--after is '': expected numbers of"),
        (("--class", "coro", "--after", "1000000"), "take 0 to 100,000 batches"),
        (("--class", "klingon", "--after", "0,5"), "no class 'klingon'"),
        (("--after", "0,5"), "name one, as --class NAME"),
    ],
)
def test_wrong_points_are_one_sentence(runs, monkeypatch, capsys, arguments, words):
    code, _, err = calm(monkeypatch, capsys, "generate", runs["lstm"], *arguments)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


def test_the_command_prints_the_text(runs, monkeypatch, capsys):
    arguments = ("generate", runs["lstm"], "--length", "50", "--class", "coro")
    code, out, _ = calm(monkeypatch, capsys, *arguments)
    assert code == 0
    assert out == generate(runs["lstm"], 50, "coro") + "\n"


def test_the_command_prints_the_texts_on_the_way(runs, monkeypatch, capsys):
    arguments = ("generate", runs["lstm"], "--length", "50", "--class", "coro", "--after", "0, 10")
    code, out, _ = calm(monkeypatch, capsys, *arguments)
    assert code == 0
    first, second = out.split("\n\n")
    assert first.split("\n", 1)[1] == generate(runs["lstm"], 50)
    assert second == f"coro, after 10 batches:\n{generate(runs['lstm'], 50, 'coro')}\n"


@pytest.mark.parametrize("suffix", ["md", "tex"])
def test_texts_of_several_runs_become_a_table(runs, tmp_path, monkeypatch, capsys, suffix):
    both = (runs["lstm"], runs["floor-known"])
    table = tmp_path / "new" / f"texts.{suffix}"
    arguments = ("generate", *both, "--length", "4", "--class", "coro", "--after", "0,1")
    assert calm(monkeypatch, capsys, *arguments, "--table", table)[:2] == (0, f"wrote {table}\n")
    write = {"md": markdown_samples, "tex": latex_samples}[suffix]
    samples = [generate_after(run, 4, "coro", [0, 1]) for run in both]
    assert table.read_text() == write(["lstm tiny iterations=5", "floor-known"], samples)


def test_several_runs_are_printed_as_a_table_and_wrong_files_refused(runs, monkeypatch, capsys):
    both = ("generate", runs["lstm"], runs["floor-known"], "--length", "5")
    code, out, _ = calm(monkeypatch, capsys, *both)
    assert code == 0
    assert out.startswith("|  | lstm tiny iterations=5 | floor-known |\n")
    for arguments, words in (
        ((*both, "--table", "texts.pdf"), "name a file that ends in .md or .tex"),
        (("generate",), "no run is named"),
    ):
        code, _, err = calm(monkeypatch, capsys, *arguments)
        assert (code, err.count("\n")) == (2, 1)
        assert words in err
