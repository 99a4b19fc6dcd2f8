import pytest

from calm.config import Choice, Cleaning, Config, StreamConfig, convert, read_config
from calm.errors import CalmError


def test_a_config_survives_toml(tmp_path):
    config = Config(
        corpus=Choice("synthetic", {"lexicon": 500}),
        stream=StreamConfig(fragments=15, mean_length=300.0, boundary="paper"),
        learner=Choice("lstm", {"size": "tiny", "clip": 0.5}),
        seed=7,
    )
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml())
    assert read_config(path) == config


def test_what_is_not_mentioned_keeps_its_default(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("[stream]\nfragments = 10\n")
    assert read_config(path) == Config(stream=StreamConfig(fragments=10))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sead = 1", "unknown key 'sead'; there are: corpus, stream, learner, seed"),
        ("[stream]\nlength = 1", "stream: unknown key 'length'"),
        ("seed = 'one'", "seed is 'one': expected a whole number"),
        ("[stream]\nrows = 2.5", "rows is 2.5: expected a whole number"),
        ("[stream]\nsplit = 'train'", "take one of dev, test, all"),
        ("stream = 3", "expected a table"),
        ("[learner]\nsize = 'tiny'", "needs a name"),
        ("learner = 'unigram'", "needs a name, in a table"),
        ("seed = ", "is not TOML"),
        ("seed = true", "expected a whole number"),
    ],
)
def test_a_wrong_config_is_one_sentence(tmp_path, text, words):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(CalmError, match="config.toml") as error:
        read_config(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_whole_numbers_do_for_floats():
    assert convert(float, 3, "x") == 3.0
    assert convert(int | None, None, "x") is None


@pytest.mark.parametrize("rule", ["rare", "top"])
def test_cleaning_that_keeps_nothing_is_refused(rule):
    with pytest.raises(CalmError, match=f"{rule} is 0: take 1 or more"):
        Cleaning(**{rule: 0})


def test_a_config_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(CalmError, match=f"{tmp_path} cannot be read: Is a directory"):
        read_config(tmp_path)
