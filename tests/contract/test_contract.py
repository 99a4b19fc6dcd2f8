"""Every learner there is goes through the audit."""

import pytest

import calm
from calm.audit import check
from calm.learners import LEARNERS
from calm.stream import Stream

SMALL = {"experts": 3, "hidden": 12, "embedding": 8, "gate_hidden": 6, "gate_embedding": 6}
VARIANTS = [
    *(
        (name, {"size": "tiny"} if named.sizes else {})
        for name, named in LEARNERS.items()
        if name != "experts"
    ),
    ("unigram", {"prior": 2.0}),
    ("lstm", {"hidden": 24, "embedding": 12, "dropout": 0.3, "iterations": 3}),
    ("lstm", {"hidden": 24, "embedding": 12, "dropout": 0.3, "eval_dropout": True}),
    ("experts", {**SMALL, "gate": "newton"}),
    ("experts", {**SMALL, "gate": "plastic", "precision": "bfloat16"}),
    ("experts", {**SMALL, "gate": "lstm", "combination": "mixture", "warmup": 20}),
    ("experts", {**SMALL, "gate": "lstm", "clear_gate": True}),
    ("moe-pw-5", {"size": "tiny", "eval_dropout": True, "dropout": 0.3}),
    ("transformer", {"size": "tiny", "dropout": 0.2, "iterations": 2, "schedule": "decay"}),
    ("counts", {"tables": 0, "words": False}),
    ("counts", {"level": "word", "tables": 3}),
    ("counts", {"memory": 1.0}),
]


@pytest.mark.parametrize("boundary", ["seamless", "paper"])
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_learner_keeps_to_the_protocol(synthetic, name, options, boundary):
    stream = Stream(synthetic, 10, 1600, rows=4, window=10, seed=1, boundary=boundary)
    if boundary == "paper" and not name.startswith(("floor", "unigram", "lstm")):
        pytest.skip("once is enough for a learner that is told nothing of boundaries")

    def make():
        return calm.learner(
            name, vocabulary=len(stream.vocabulary), seed=3, stream=stream, **options
        )

    for outcome in check(make, stream, batches=40):
        if options.get("eval_dropout") and outcome.rule == "reading carries on":
            continue  # half a window has other masks than the whole
        assert outcome.fault is None, f"{outcome.rule}: {outcome.fault}"
