"""What gates do: are the same experts used for the same class, and like ones for like classes?

Weights are compared by Pearson's correlation over the experts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LAST = 100  # batches of a class that are looked at, and as many before them

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GateSimilarity:
    """How alike a gate's weights are, from class to class and over time; nan if not defined.

    between: (classes, classes), the mean correlation of the weights in the last batches of two
    classes; of a class with itself, that of its different batches. over_time: (classes,), that of a
    class's last batches with as many before them.
    """

    classes: tuple[str, ...]
    between: Floats
    over_time: Floats


def gate_similarity(gates: Floats, class_name: NDArray[np.str_]) -> GateSimilarity:
    """Compare the weights (batches, n) of every two classes."""
    classes = tuple(sorted(set(class_name.tolist())))
    units = [_directions(gates[np.flatnonzero(class_name == name)]) for name in classes]
    last = [unit[-LAST:] for unit in units]
    earlier = [unit[-2 * LAST : -LAST] for unit in units]
    between = np.array([[_mean_product(a, b, a is b) for b in last] for a in last])
    over_time = np.array([_mean_product(a, b, False) for a, b in zip(last, earlier, strict=True)])
    return GateSimilarity(classes, between, over_time)


def tree_agreement(similarity: Floats, distances: Floats) -> float:
    """Return the rank correlation of the classes' similarity and nearness, over their pairs."""
    pairs = np.triu_indices(len(distances), k=1)
    return rank_correlation(similarity[pairs], -distances[pairs])


def rank_correlation(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float:
    """Spearman's: the correlation of ranks, where equal values share their mean rank."""
    ranks = [_ranks(np.asarray(values, dtype=np.float64)) for values in (x, y)]
    a, b = (r - r.mean() for r in ranks)
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
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        directions: Floats = centred / length
    return directions


def _mean_product(a: Floats, b: Floats, same: bool) -> float:
    """Mean correlation of every row of one with every row of the other, or with every other row."""
    pairs = len(a) * (len(a) - 1) if same else len(a) * len(b)
    if not pairs:
        return float("nan")
    total = a.sum(axis=0) @ b.sum(axis=0)
    return float((total - len(a) if same else total) / pairs)
