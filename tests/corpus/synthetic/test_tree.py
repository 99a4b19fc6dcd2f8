import numpy as np
import pytest

from calm.corpus.synthetic.tree import FIVE_IN_THREE_BRANCHES, distances, parse
from calm.errors import CalmError


def test_distances_are_path_lengths():
    root = parse("((a:1,b:2):4,c:8);")
    assert [leaf.name for leaf in root.leaves()] == ["a", "b", "c"]
    assert np.array_equal(distances(root), [[0, 3, 13], [3, 0, 14], [13, 14, 0]])


def test_lengths_default_to_one_and_the_semicolon_is_optional():
    assert np.array_equal(distances(parse("(x, y)")), [[0, 2], [2, 0]])


def test_the_default_has_five_languages_in_three_branches():
    root = parse(FIVE_IN_THREE_BRANCHES)
    assert [len(list(branch.leaves())) for branch in root.children] == [2, 2, 1]


@pytest.mark.parametrize(
    "newick", ["", "(", "(a,b", "(a,b));", "(a,a);", "(a:x,b);", "(a:-1,b);", "(a,);", "(a:1"]
)
def test_what_is_no_tree_is_refused(newick):
    with pytest.raises(CalmError, match="Newick"):
        parse(newick)
