"""Artificial languages: a proto-language, and how a language changes along a branch.

A text is a Markov chain of tokens. A token is a word, spelled with a leading space, or a mark of
punctuation; the category of a token depends on the category of the one before (`bigram`), the
token on its category alone (`frequency`). No two tokens of a language are spelled alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calm.randomness import Draw

MARKS = {",": 0, ".": 1, "?": 1, "!": 1}  # spelling -> category; the words' categories follow
MARK_SHARE = {",": 1.0, ".": 0.86, "?": 0.08, "!": 0.06}
COMMA, STOP, FIRST_WORD_CATEGORY = 0, 1, 2
CATEGORY_SIZES = (0.01, 0.02, 0.02, 0.03, 0.12, 0.20, 0.25, 0.35)  # shares of the lexicon
CLOSED = 4  # the first categories are small and hold frequent words, as function words are
ZIPF_EXPONENT, ZIPF_SHIFT = 1.05, 2.7

VOWELS, CONSONANTS = "aeiou", "bcdfghjklmnprstvwz"
CLUSTERS = ("br", "dr", "fl", "gr", "kl", "pl", "pr", "sk", "sl", "st", "tr")
NEW_VOWELS, NEW_CONSONANTS = "äéöüåøìŷæ", "čšžñçłþðŋ"  # letters that a branch may invent

RULES_PER_LENGTH = 8  # regular letter changes
REPLACED_PER_LENGTH = 0.35  # rate at which words are lost and replaced
GRAMMAR_DRIFT = 0.6  # standard deviation of the log bigram after a branch of length 1


@dataclass(frozen=True)
class Rule:
    """Every `old` becomes `new`: anywhere, first or last in a word, before or after a vowel."""

    old: str
    new: str
    where: str

    def apply(self, word: str) -> str:
        """Return the word after the change."""
        if self.where == "first":
            return word[0].replace(self.old, self.new) + word[1:]
        if self.where == "last":
            return word[:-1] + word[-1].replace(self.old, self.new)
        if self.where == "anywhere":
            return word.replace(self.old, self.new)
        neighbours = " " + word[:-1] if self.where == "after a vowel" else word[1:] + " "
        return "".join(
            self.new if letter == self.old and neighbour in VOWELS + NEW_VOWELS else letter
            for letter, neighbour in zip(word, neighbours, strict=True)
        )


@dataclass(frozen=True)
class Language:
    """The spelling, category and frequency of every token, and the categories' bigram.

    `frequency[t]` is P(t | category of t); `bigram[c, d]` is P(next category d | category c).
    `rules` are the letter changes since the proto-language, which borrowed words follow too.
    """

    name: str
    spelling: tuple[str, ...]
    category: NDArray[np.int64]
    frequency: NDArray[np.float64]
    bigram: NDArray[np.float64]
    rules: tuple[Rule, ...] = ()

    def next_token(self) -> NDArray[np.float64]:
        """P(next token | category of the last), shape (categories, tokens)."""
        return self.bigram[:, self.category] * self.frequency


def proto_language(lexicon: int, draw: Draw) -> Language:
    """Return the ancestor of all: `lexicon` words, shorter ones more frequent."""
    words = _fresh_words(lexicon, set(), (), draw)
    words.sort(key=lambda word: len(word) + 1.5 * draw.normal())
    category = []
    for rank in range(lexicon):
        boost = 30.0 if rank < lexicon // 10 else 0.1
        weights = [share * (boost if c < CLOSED else 1) for c, share in enumerate(CATEGORY_SIZES)]
        category.append(FIRST_WORD_CATEGORY + draw.weighted(weights))
    for c in range(len(CATEGORY_SIZES)):  # no category is empty
        category[lexicon - 1 - c] = FIRST_WORD_CATEGORY + c
    zipf = [1 / (rank + 1 + ZIPF_SHIFT) ** ZIPF_EXPONENT for rank in range(lexicon)]
    categories = np.array(list(MARKS.values()) + category)
    frequency = np.array(list(MARK_SHARE.values()) + zipf)
    frequency /= np.bincount(categories, weights=frequency)[categories]
    spelling = (*MARKS, *(" " + word for word in words))
    return Language("proto", spelling, categories, frequency, _grammar(draw))


def descend(parent: Language, name: str, length: float, draw: Draw) -> Language:
    """Return what becomes of a language along a branch of some length."""
    rules = _new_rules(parent, max(1, round(RULES_PER_LENGTH * length)), draw) if length else ()
    words = [spelling[1:] for spelling in parent.spelling[len(MARKS) :]]
    survival = math.exp(-REPLACED_PER_LENGTH * length)
    lost = [draw.uniform() >= survival for _ in words]
    for rule in rules:
        words = [rule.apply(word) for word in words]
    taken: set[str] = set()
    for i, word in enumerate(words):  # of two words that now sound alike, the rarer one is lost
        lost[i] = lost[i] or word in taken
        if not lost[i]:
            taken.add(word)
    every_rule = (*parent.rules, *rules)
    fresh = iter(_fresh_words(sum(lost), taken, every_rule, draw))
    words = [next(fresh) if gone else word for word, gone in zip(words, lost, strict=True)]
    drift = [
        [math.exp(GRAMMAR_DRIFT * math.sqrt(length) * draw.normal()) for _ in row]
        for row in parent.bigram
    ]
    bigram = parent.bigram * np.array(drift)
    return replace(
        parent,
        name=name,
        spelling=(*MARKS, *(" " + word for word in words)),
        bigram=bigram / bigram.sum(axis=1, keepdims=True),
        rules=every_rule,
    )


def _grammar(draw: Draw) -> NDArray[np.float64]:
    """Return a bigram: a few likely successors for each category, marks only after words."""
    count = FIRST_WORD_CATEGORY + len(CATEGORY_SIZES)
    rows = np.array([[draw.exponential() ** 1.5 for _ in range(count)] for _ in range(count)])
    for category in range(FIRST_WORD_CATEGORY + CLOSED):  # nor do marks or function words repeat
        rows[category, category] = 0
    rows[:, :FIRST_WORD_CATEGORY] = 0
    rows /= rows.sum(axis=1, keepdims=True)
    rows[FIRST_WORD_CATEGORY:] *= 0.84
    rows[FIRST_WORD_CATEGORY:, COMMA] = 0.06
    rows[FIRST_WORD_CATEGORY:, STOP] = 0.10
    return rows


def _new_rules(parent: Language, count: int, draw: Draw) -> tuple[Rule, ...]:
    """Draw letter changes; the first brings in a letter that no ancestor has."""
    letters = sorted(set("".join(parent.spelling)) - {" ", *MARKS})
    rules: list[Rule] = []
    while len(rules) < count:
        vocalic = draw.uniform() < 0.4
        ours, others = (VOWELS, NEW_VOWELS) if vocalic else (CONSONANTS, NEW_CONSONANTS)
        old = draw.pick([x for x in letters if x in ours + others] or [draw.pick(ours)])
        invented = [x for x in others if x not in letters]
        invent = not rules and bool(invented)
        new = draw.pick(invented if invent else ours)
        if new != old:
            where = draw.pick(("last", "first", "before a vowel", "after a vowel"))
            rules.append(Rule(old, new, "anywhere" if invent else where))
    return tuple(rules)


def _fresh_words(count: int, taken: set[str], rules: Sequence[Rule], draw: Draw) -> list[str]:
    """Make up `count` words that are not `taken` (and now are), as the letter changes have them."""
    words: list[str] = []
    while len(words) < count:
        word = "".join(_syllable(draw) for _ in range(1 + draw.weighted((0.25, 0.45, 0.25, 0.05))))
        for rule in rules:
            word = rule.apply(word)
        if word not in taken:
            taken.add(word)
            words.append(word)
    return words


def _syllable(draw: Draw) -> str:
    kind = draw.uniform()
    onset = "" if kind < 0.1 else draw.pick(CLUSTERS) if kind < 0.25 else draw.pick(CONSONANTS)
    coda = draw.pick("lmnrst") if draw.uniform() < 0.4 else ""
    return onset + draw.pick(VOWELS) + coda
