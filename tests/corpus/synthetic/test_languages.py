from itertools import combinations

import numpy as np
import pytest

from calm.corpus.similarity import ngram_overlap
from calm.corpus.synthetic import SyntheticCorpora
from calm.corpus.synthetic.language import MARKS, Rule
from calm.errors import CalmError


def test_every_language_is_a_sound_markov_chain(synthetic):
    for language in synthetic.languages:
        assert np.allclose(language.bigram.sum(axis=1), 1)
        assert np.allclose(np.bincount(language.category, weights=language.frequency), 1)
        assert np.allclose(language.next_token().sum(axis=1), 1)


def test_no_two_words_of_a_language_are_spelled_alike(synthetic):
    for language in synthetic.languages:
        assert len(set(language.spelling)) == len(language.spelling) == 1800 + len(MARKS)


def test_languages_share_an_alphabet_but_for_a_few_letters(synthetic):
    alphabets = [set("".join(language.spelling)) for language in synthetic.languages]
    common = set.intersection(*alphabets)
    own = set.union(*alphabets) - common
    assert len(common) >= 20
    assert 3 <= len(own) <= 15
    assert any(letter in alphabets[0] & alphabets[1] - alphabets[4] for letter in own)


def test_similar_languages_are_near_in_the_tree(synthetic):
    overlap, distance = ngram_overlap(synthetic), synthetic.tree_distances()
    near = [overlap[i, j] for i, j in combinations(range(5), 2) if distance[i, j] == 1]
    far = [overlap[i, j] for i, j in combinations(range(5), 2) if distance[i, j] > 1]
    assert len(near) == 2
    assert min(near) > max(far)
    assert np.allclose(np.diag(overlap), 1)


def test_overlap_equals_a_count_by_hand(tmp_path):
    from calm.corpus.memory import folder_corpora

    (tmp_path / "a.txt").write_text("abab")
    (tmp_path / "b.txt").write_text("abba")
    overlap = ngram_overlap(folder_corpora(tmp_path), n=2)
    # a: ab ba ab b\n -> ab 2/4, ba 1/4, b\n 1/4; b: ab bb ba a\n, 1/4 each
    assert overlap[0, 1] == overlap[1, 0] == 0.25 + 0.25


def test_seed_tree_and_lexicon_are_parameters():
    small = SyntheticCorpora(tree="(x:0.2,y:0.2);", lexicon=150, seed=3)
    assert small.classes == ("x", "y")
    assert len(small.languages[0].spelling) == 150 + len(MARKS)
    other = SyntheticCorpora(tree="(x:0.2,y:0.2);", lexicon=150, seed=4)
    assert small.languages[0].spelling != other.languages[0].spelling
    again = SyntheticCorpora(tree="(x:0.2,y:0.2);", lexicon=150, seed=3)
    assert small.fingerprint() == again.fingerprint() != other.fingerprint()


def test_a_branch_of_length_zero_changes_nothing():
    corpora = SyntheticCorpora(tree="(x:0,y:0);", lexicon=150)
    x, y = corpora.languages
    assert x.spelling == y.spelling
    assert np.array_equal(x.bigram, y.bigram)


@pytest.mark.parametrize("lexicon", [5, 1_000_000])
def test_a_lexicon_has_its_bounds(lexicon):
    with pytest.raises(CalmError, match="lexicon"):
        SyntheticCorpora(lexicon=lexicon)


@pytest.mark.parametrize(
    ("where", "result"),
    [
        ("anywhere", "tatet"),
        ("first", "takek"),
        ("last", "kaket"),
        ("after a vowel", "katet"),
        ("before a vowel", "tatek"),
    ],
)
def test_a_letter_change_happens_where_it_should(where, result):
    assert Rule("k", "t", where).apply("kakek") == result
