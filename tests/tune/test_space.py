import itertools

import pytest

from calm.build import check_learner, with_size
from calm.config import PRESETS, read_toml
from calm.errors import CalmError
from calm.tune.space import Range, grid, read_space

OPTIONS = """
[space.lstm]
dropout = [0.1, 0.2]
shape = [{ hidden = 8, embedding = 4 }, { hidden = 16 }]
iterations = [1, 2, 5]
"""


def read(tmp_path, text, learner="lstm", given=()):
    path = tmp_path / "space.toml"
    path.write_text(text)
    return read_space(path, learner, dict.fromkeys(given))


def test_a_grid_is_every_combination(tmp_path):
    _, space = read(tmp_path, OPTIONS)
    shapes = ({"hidden": 8, "embedding": 4}, {"hidden": 16})
    assert grid(space) == [
        {"dropout": dropout, **shape, "iterations": iterations}
        for dropout, shape, iterations in itertools.product((0.1, 0.2), shapes, (1, 2, 5))
    ]


def test_what_is_given_is_not_tried(tmp_path):
    _, space = read(tmp_path, OPTIONS, given=("embedding", "iterations"))
    assert grid(space) == [{"dropout": 0.1}, {"dropout": 0.2}]
    with pytest.raises(CalmError, match="leaves nothing to try"):
        read(tmp_path, OPTIONS, given=("dropout", "hidden", "iterations"))


def test_a_range_is_whole_if_both_ends_are(tmp_path):
    _, space = read(
        tmp_path,
        "[space.lstm]\nhidden = { low = 8, high = 64, log = true }\n"
        "dropout = { low = 0, high = 0.5 }",
    )
    assert [axis.values for axis in space] == [Range(8, 64, True), Range(0, 0.5)]
    assert [axis.values.whole for axis in space] == [True, False]
    with pytest.raises(CalmError, match="hidden is a range, of which a grid cannot try all"):
        grid(space)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[space.unigram]\nprior = [1]", r"no table \[space.lstm\].*there are spaces for: unigram"),
        ("seed = 1", "there are spaces for: none"),
        ("space = 3", r"space: expected tables such as \[space.lstm\]"),
        ("[space.lstm]\ndropuot = [0.1]", "space.lstm: dropuot: lstm has no option 'dropuot'"),
        ("[space.lstm]\nseed = [1, 2]", "lstm has no option 'seed'"),
        ("[space.lstm]\nsplit = ['test']", "lstm has no option 'split'"),
        ("[space.lstm]\nx = [{ hidden = 8, heads = 2 }]", "x: lstm has no option 'heads'"),
        ("[space.lstm]\nhidden = []", "hidden is \\[\\]: expected a list, or a table"),
        ("[space.lstm]\nhidden = 8", "hidden is 8: expected a list, or a table"),
        ("[space.lstm]\nhidden = [8, { hidden = 9 }]", "hidden: expected either tables"),
        ("[space.lstm]\nhidden = { low = 8 }", "hidden needs low and high"),
        ("[space.lstm]\nhidden = { low = 8, hihg = 9 }", "hidden: unknown key 'hihg'"),
        ("[space.lstm]\nhidden = { low = 8, high = 8 }", "take low below high"),
        ("[space.lstm]\nhidden = { low = true, high = 8 }", "low is True: expected a number"),
        ("[space.lstm]\nhidden = { low = 0, high = 8, log = true }", "low above 0 and below high"),
        ("[stream]\nsplit = 'test'\n" + OPTIONS, "split is 'test': options are chosen on the dev"),
        ("[stream]\nsplit = 'all'\n" + OPTIONS, "split is 'all'"),
    ],
)
def test_what_is_no_space_is_said(tmp_path, text, words):
    with pytest.raises(CalmError, match=words):
        read(tmp_path, text)


PRESET_SPACES = [
    (path.relative_to(PRESETS).with_suffix(""), learner)
    for path in sorted(PRESETS.rglob("*.toml"))
    for learner in read_toml(path).get("space", {})
]
SETTINGS = ("multilingual-10k", "multilingual-100k", "multidomain-10k", "multidomain-20k")
PAPER = {"lstm": (18, 18, 9, 27), "moe-30": (12, 18, 18, 18), "poe-pw-5": (6, 9, 9, 9)}


@pytest.mark.parametrize(("preset", "learner"), PRESET_SPACES, ids=str)
def test_every_point_of_a_preset_can_be_built(preset, learner):
    experiment, space = read_space(preset, learner, {})
    points = grid(space)
    for point in points:
        check_learner(with_size(experiment.choice(learner, point)))
    if learner in PAPER and preset.name in SETTINGS:
        assert len(points) == PAPER[learner][SETTINGS.index(preset.name)]
