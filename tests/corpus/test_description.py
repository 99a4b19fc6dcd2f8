import numpy as np
import pytest

from calm.config import Cleaning
from calm.corpus.description import describe, sample, symbol_overlap
from calm.corpus.store import StoredCorpora
from corpus.texts import build, make_text


def test_a_description_is_what_can_be_counted(tmp_path):
    texts = {"a": "x x x y\n" * 50 + "z q\n", "b": "y w\n" * 40}
    corpora = StoredCorpora(build(tmp_path / "set", texts, "word", Cleaning(top=2)))
    a, b = describe(corpora)
    assert (a.dev, a.test) == (100, 102)
    assert (a.symbols, a.symbols_of_99_percent) == (3, 2)
    assert a.unknown == pytest.approx(2 / 202)
    assert (b.dev + b.test, b.symbols, b.unknown) == (80, 2, 0.0)
    overlap = symbol_overlap(corpora)
    assert overlap[0, 1] == overlap[1, 0] == pytest.approx(50 / 202)
    assert np.allclose(np.diag(overlap), 1)


def test_synthetic_languages_can_be_described_too(synthetic):
    rows = describe(synthetic)
    assert [row.name for row in rows] == list(synthetic.classes)
    assert all(15 < row.symbols < 40 for row in rows)
    assert sample(synthetic, 0, 50) == sample(synthetic, 0, 50)
    assert len(sample(synthetic, 0, 50)) == 50


def test_a_sample_is_of_the_test_half(tmp_path):
    texts = {"a": "dev line\n" * 30 + "TEST LINE\n" * 30, "b": make_text(1)}
    corpora = StoredCorpora(build(tmp_path / "set", texts))
    for seed in range(5):
        assert sample(corpora, 0, 40, seed).isupper()
        assert sample(corpora, 0, 40, seed).startswith("TEST LINE\n")
    assert len(sample(corpora, 0, 10_000)) == 300
