"""What is known about a language because we made it: the next character, and the entropy."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from calm.corpus.synthetic.language import FIRST_WORD_CATEGORY, STOP, Language

States = NDArray[np.int64]


@dataclass(frozen=True)
class Predictor:
    """The exact distribution of a language's next character.

    The state of a text is the category of its last whole token and the spelling so far of the
    current one: a node of the trie of all spellings. It is packed into one number,
    category · nodes + node. A node that spells a whole token may end there, and then the next
    character starts a new token; as tokens start with other characters (space and punctuation)
    than they go on with, the state follows from the text without doubt.

    child: (nodes, V), -1 where there is none. mass, ending: (categories, nodes), the probability
    that the token after a category begins as the node spells, and that it is spelled so in whole.
    category: (nodes,), of the token spelled, -1 if none is.
    """

    child: NDArray[np.int32]
    mass: NDArray[np.float64]
    ending: NDArray[np.float64]
    category: NDArray[np.int64]
    sentence_start: int

    def start(self, rows: int) -> States:
        """Return the state where a sentence begins, shape (rows,)."""
        return np.full(rows, self.sentence_start, dtype=np.int64)

    def trace(
        self, states: States, tokens: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], States]:
        """Follow a text from the states (rows,) along its next tokens (length, rows).

        Returns the distribution of the next character before every token and after the last,
        (length + 1, rows, V), and the states at the end. Characters that the language cannot
        continue with have probability 0, and after one the text is taken to start a sentence.
        """
        end = states.copy()
        shape = (len(tokens) + 1, len(states), self.child.shape[1])
        probabilities = np.zeros(shape)
        follow(
            probabilities, end, tokens,
            self.child, self.mass, self.ending, self.category, self.sentence_start,
        )  # fmt: skip
        return probabilities, end


def predictor(language: Language, symbols: dict[str, int]) -> Predictor:
    """Build the trie of a language's spellings and the probabilities along it."""
    children: list[list[int]] = [[-1] * len(symbols)]
    whole = [-1]
    paths: list[list[int]] = []
    for token, spelling in enumerate(language.spelling):
        node, path = 0, [0]
        for letter in spelling:
            index = symbols[letter]
            if children[node][index] < 0:
                children[node][index] = len(children)
                children.append([-1] * len(symbols))
                whole.append(-1)
            node = children[node][index]
            path.append(node)
        whole[node] = token
        paths.append(path)
    next_token = language.next_token()
    mass = np.zeros((len(next_token), len(children)))
    for token, path in enumerate(paths):
        mass[:, path] += next_token[:, token, None]
    spelled = np.array(whole)
    category = np.where(spelled >= 0, language.category[spelled], -1)
    full_stop = int(np.flatnonzero(category == STOP)[0])
    return Predictor(
        child=np.array(children, dtype=np.int32),
        mass=mass,
        ending=np.where(spelled >= 0, next_token[:, spelled], 0.0),
        category=category,
        sentence_start=FIRST_WORD_CATEGORY * len(children) + full_stop,
    )


def entropy_rate(language: Language) -> float:
    """Nats per character: the entropy of a token given the last category, over its mean length."""
    next_token = language.next_token()
    stationary = np.full(len(next_token), 1 / len(next_token))
    for _ in range(500):
        stationary = stationary @ language.bigram
    lengths = np.array([len(spelling) for spelling in language.spelling])
    positive = np.where(next_token > 0, next_token, 1.0)
    entropy = -(next_token * np.log(positive)).sum(axis=1)
    return float(stationary @ entropy / (stationary @ next_token @ lengths))


@njit(cache=True)
def follow(out, states, tokens, child, mass, ending, category, sentence_start):  # type: ignore[no-untyped-def]
    """Write the distributions along `tokens` into `out`, and the last states into `states`."""
    nodes, size = child.shape
    for row in range(states.shape[0]):
        last, node = states[row] // nodes, states[row] % nodes
        for t in range(out.shape[0]):
            here = mass[last, node]
            done = ending[last, node] / here if category[node] >= 0 else 0.0
            for v in range(size):
                if child[node, v] >= 0:
                    out[t, row, v] = mass[last, child[node, v]] / here
                if done > 0 and child[0, v] >= 0:
                    out[t, row, v] += done * mass[category[node], child[0, v]]
            if t < tokens.shape[0]:
                v = tokens[t, row]
                if child[node, v] >= 0 and mass[last, child[node, v]] > 0:
                    node = child[node, v]
                elif done > 0 and mass[category[node], child[0, v]] > 0 and child[0, v] >= 0:
                    last, node = category[node], child[0, v]
                else:
                    last, node = sentence_start // nodes, sentence_start % nodes
        states[row] = last * nodes + node
