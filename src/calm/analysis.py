"""What gates do: are the same experts used for the same class, and like ones for like classes?

Weights are compared by Pearson's correlation over the experts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

LAST = 100  # batches of a class that are looked at, and as many before them
ALIKE = 1e-6  # weights that differ by a smaller share than this are all the same

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GateSimilarity:
    """How alike a gate's weights are, from class to class and over time; nan if not defined.

    between: (classes, classes), the mean correlation of the weights in the last batches of two
    classes; of a class with itself, that of its different batches. over_time: (classes,), that of a
    class's last batches with up to as many before them. Batches in which all experts have the same
    weight, as while a mixture warms up, have no direction and are left out.
    """

    classes: tuple[str, ...]
    between: Floats
    over_time: Floats


def gate_similarity(gates: Floats, class_name: NDArray[np.str_]) -> GateSimilarity:
    """Compare the weights (batches, n) of every two classes."""
    classes = tuple(sorted(set(class_name.tolist())))
    own = [gates[class_name == name] for name in classes]
    last = [_directions(weights[-LAST:]) for weights in own]
    earlier = [_directions(weights[-2 * LAST : -LAST]) for weights in own]
    between = np.array([[_mean_product(a, b, a is b) for b in last] for a in last])
    over_time = np.array([_mean_product(a, b, False) for a, b in zip(last, earlier, strict=True)])
    return GateSimilarity(classes, between, over_time)


def tree_agreement(similarity: Floats, distances: Floats) -> float:
    """Return the rank correlation of the classes' similarity and nearness, over their pairs."""
    pairs = np.triu_indices(len(distances), k=1)
    return rank_correlation(similarity[pairs], -distances[pairs])


def clusters(classes: Sequence[str], similarity: Floats) -> str:
    """Join the most similar classes, then the most similar groups (by average), in brackets.

    Empty if a similarity (classes, classes) is not defined.
    """
    if np.isnan(similarity).any():
        return ""
    groups = [(name, [i]) for i, name in enumerate(classes)]
    while len(groups) > 1:
        a, b = max(
            combinations(groups, 2),
            key=lambda pair: similarity[np.ix_(pair[0][1], pair[1][1])].mean(),
        )
        groups = [group for group in groups if group not in (a, b)]
        groups.append((f"({a[0]} {b[0]})", a[1] + b[1]))
    return groups[0][0]


def alike_together(weights: Floats) -> NDArray[np.int64]:
    """Order experts by their weights (batches, n) so that those used alike are neighbours.

    By the angle in the plane of the two main directions in which experts differ.
    """
    centred = weights - weights.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    directions = np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 0)
    _, vectors = np.linalg.eigh(directions.T @ directions)
    order: NDArray[np.int64] = np.argsort(np.arctan2(vectors[:, -2:][:, 0], vectors[:, -1]))
    return order


def rank_correlation(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float:
    """Spearman's: the correlation of ranks, where equal values share their mean rank.

    nan if a value is, or if all values of one side are equal.
    """
    if np.isnan(x).any() or np.isnan(y).any():
        return float("nan")
    ranks = [_ranks(np.asarray(values, dtype=np.float64)) for values in (x, y)]
    a, b = (r - (len(r) - 1) / 2 for r in ranks)
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale > 0 else float("nan")


def _ranks(values: Floats) -> Floats:
    smaller = (values[None] < values[:, None]).sum(axis=1)
    equal = (values[None] == values[:, None]).sum(axis=1)
    ranks: Floats = smaller + (equal - 1) / 2
    return ranks


def _directions(weights: Floats) -> Floats:
    """Weights (batches, n) less their mean, scaled to length 1: their products are correlations."""
    centred = weights - weights.mean(axis=1, keepdims=True)
    differ = np.abs(centred).max(axis=1) > ALIKE * np.abs(weights).max(axis=1)
    directions: Floats = centred[differ]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions


def _mean_product(a: Floats, b: Floats, same: bool) -> float:
    """Mean correlation of every row of one with every row of the other, or with every other row."""
    pairs = len(a) * (len(a) - 1) if same else len(a) * len(b)
    if not pairs:
        return float("nan")
    total = a.sum(axis=0) @ b.sum(axis=0)
    return float((total - len(a) if same else total) / pairs)
