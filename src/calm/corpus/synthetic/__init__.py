"""A family of artificial languages: no data needed, no end, and the truth is known."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from calm.corpus.base import Corpora, Tokens
from calm.corpus.synthetic import tree as trees
from calm.corpus.synthetic.generate import BLOCK, Text, tables
from calm.corpus.synthetic.language import Language, descend, proto_language
from calm.corpus.synthetic.truth import Predictor, entropy_rate, predictor
from calm.errors import CalmError
from calm.randomness import Draw

HALF = 1 << 46  # characters of dev, and of test: more than anybody can read


class SyntheticCorpora(Corpora):
    """Languages that evolved from one ancestor along a tree, each an endless text."""

    entry = BLOCK

    def __init__(
        self, tree: str = trees.FIVE_IN_THREE_BRANCHES, lexicon: int = 1800, seed: int = 0
    ) -> None:
        if not 100 <= lexicon <= 50_000:
            raise CalmError(f"a lexicon has 100 to 50,000 words, not {lexicon:,}")
        self.name = "synthetic"
        self.level = "char"
        self.tree = tree
        self._root = trees.parse(tree)
        self._options = (tree, lexicon, seed)
        proto = proto_language(lexicon, Draw("proto-language", seed))
        self.languages = tuple(_evolve(self._root, proto, str(seed)))
        self.classes = tuple(language.name for language in self.languages)
        self.vocabulary = tuple(sorted(set("".join("".join(x.spelling) for x in self.languages))))
        if len(self.vocabulary) > 256:
            raise CalmError(f"the languages have {len(self.vocabulary)} letters, 256 is the most")
        self._symbols = {letter: i for i, letter in enumerate(self.vocabulary)}
        self._texts = [
            Text(tables(x, self._symbols), Draw("text", seed, x.name).below(1 << 53))
            for x in self.languages
        ]

    def bounds(self, class_index: int) -> tuple[int, int]:
        """Return (half, end) of a class."""
        return HALF, 2 * HALF

    def tokens(self, class_index: int, start: int, stop: int) -> Tokens:
        """Characters start … stop-1 of a class, made on the spot."""
        return self._texts[class_index].read(start, stop)

    def fingerprint(self) -> str:
        """Return a hash of the options and of a sample of every text."""
        import hashlib

        digest = hashlib.sha256(repr((self._options, self.vocabulary, self.classes)).encode())
        for text in self._texts:
            digest.update(text.read(0, BLOCK).tobytes())
        return digest.hexdigest()[:16]

    def predictors(self) -> tuple[Predictor, ...]:
        """For each class, the exact distribution of the next character."""
        return tuple(predictor(language, self._symbols) for language in self.languages)

    def entropy_rates(self) -> tuple[float, ...]:
        """For each class, the entropy in nats per character: no predictor's mean loss is below."""
        return tuple(entropy_rate(language) for language in self.languages)

    def tree_distances(self) -> NDArray[np.float64]:
        """Return the length of the path between every two languages, (classes, classes)."""
        return trees.distances(self._root)


def _evolve(node: trees.Node, ancestor: Language, path: str) -> Iterator[Language]:
    """Yield the languages below a node, whose ancestor at the upper end of its branch is given."""
    language = descend(ancestor, node.name, node.length, Draw("branch", path))
    if not node.children:
        yield language
    for i, child in enumerate(node.children):
        yield from _evolve(child, language, f"{path}.{i}")
