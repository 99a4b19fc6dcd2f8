"""Every learner there is goes through the audit."""

import pytest

import calm
from calm.audit import check
from calm.learners import LEARNERS
from calm.stream import Stream

VARIANTS = [
    *((name, {}) for name in LEARNERS if name != "lstm"),
    ("unigram", {"prior": 2.0}),
    ("lstm", {"size": "tiny"}),
    ("lstm", {"hidden": 24, "embedding": 12, "dropout": 0.3, "iterations": 3}),
    ("lstm", {"hidden": 24, "embedding": 12, "dropout": 0.3, "eval_dropout": True}),
]


@pytest.mark.parametrize("boundary", ["seamless", "paper"])
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_learner_keeps_to_the_protocol(synthetic, name, options, boundary):
    stream = Stream(synthetic, 10, 1600, rows=4, window=10, seed=1, boundary=boundary)
    if options.get("eval_dropout") and boundary == "paper":
        pytest.skip("once is enough")

    def make():
        return calm.learner(
            name, vocabulary=len(stream.vocabulary), seed=3, stream=stream, **options
        )

    for outcome in check(make, stream, batches=70):
        if options.get("eval_dropout") and outcome.rule == "reading carries on":
            continue  # text is made without dropout, whatever is scored
        assert outcome.fault is None, f"{outcome.rule}: {outcome.fault}"
