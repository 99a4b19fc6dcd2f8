"""What turns inputs into log-probabilities, and learns.

`LEARNERS` maps names to learners. A class is written as `module:Class`, so that only the chosen
one's libraries are imported; a name can also stand for some of its options.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Options = Mapping[str, Any]
Sizes = Mapping[str, Options]


@dataclass(frozen=True)
class Named:
    """A class, the options that make it the learner of this name, and bundles of more by size."""

    target: str
    options: Options = field(default_factory=dict)
    sizes: Sizes = field(default_factory=dict)


def _sizes(tiny: Options, small: Options, paper: Options, paper_word: Options) -> Sizes:
    """Tiny learns in seconds; small has some 2M parameters; paper's are 21M and 600M."""
    tiny = {"dropout": 0.0, "learning_rate": 4e-3, **tiny}
    return {"tiny": tiny, "small": small, "paper": paper, "paper-word": paper_word}


ONE = _sizes({"hidden": 96, "embedding": 48}, {"hidden": 360}, {"hidden": 1300}, {"hidden": 5200})
OF_CLASS = _sizes(
    {"hidden": 40, "embedding": 24},
    {"hidden": 150, "embedding": 100},
    {"hidden": 550, "embedding": 200},
    {"hidden": 1800, "embedding": 200},
)
FIVE = {**OF_CLASS, "paper-word": {"hidden": 1600}}
THIRTY = _sizes(
    {"hidden": 16, "embedding": 16},
    {"hidden": 50, "embedding": 50},
    {"hidden": 200},
    {"hidden": 200},
)
SOFTMAXES = _sizes(
    {"hidden": 48, "embedding": 24, "softmaxes": 4},
    {"hidden": 250, "softmaxes": 15},
    {"hidden": 500, "softmaxes": 75},
    {"hidden": 2620, "softmaxes": 50},
)
BLOCKS = _sizes(
    {"width": 48, "heads": 4, "layers": 2, "context": 80, "learning_rate": 2e-3, "warmup": 50},
    {"width": 192, "heads": 4, "layers": 4},
    {"width": 512, "heads": 8, "layers": 7},
    {"width": 2048, "heads": 16, "layers": 8},
)


def _experts(combination: str, gate: str, softmax_of_five: bool = False) -> dict[str, Named]:
    """Name a combination under a gate, with 5 and with 30 experts: `poe-pw-30`."""
    name = {"fixed": "ensemble", "lstm": f"{combination[0]}oe", "plastic": f"{combination[0]}oe-pw"}
    options: dict[str, Any] = {"combination": combination, "gate": gate}
    return {
        f"{name[gate]}-{experts}": Named(
            "calm.learners.experts:Experts",
            {"experts": experts, **options}
            | ({"softmax_gate": True} if softmax_of_five and experts == 5 else {})
            | ({"warmup": 250} if combination == "mixture" and gate != "fixed" else {}),
            FIVE if experts == 5 else THIRTY,
        )
        for experts in (5, 30)
    }


LEARNERS = {
    "uniform": Named("calm.learners.simple:Uniform"),
    "unigram": Named("calm.learners.simple:Unigram"),
    "lstm": Named("calm.learners.experts:Experts", {"experts": 1}, ONE),
    "ind-lstm": Named("calm.learners.independent:IndependentLSTMs", {}, OF_CLASS),
    **_experts("mixture", "fixed"),
    **_experts("mixture", "lstm"),
    **_experts("mixture", "plastic"),
    **_experts("product", "lstm", softmax_of_five=True),
    **_experts("product", "plastic"),
    "mos": Named("calm.learners.mos:MixtureOfSoftmaxes", {}, SOFTMAXES),
    "transformer": Named("calm.learners.transformer:Transformer", {}, BLOCKS),
    "experts": Named("calm.learners.experts:Experts"),
    "counts": Named("calm.learners.counts.learner:Counts"),
    "counts-lstm": Named("calm.learners.counts_lstm:CountsLSTM"),
    "floor": Named("calm.learners.floor:Floor"),
    "floor-known": Named("calm.learners.floor:FloorKnown"),
}
