"""The paper's sanity check: does a gating LSTM learn to tell classes apart, given trained experts?

A product of 5 with plastic weights is trained on a stream. Its experts then go under a gating LSTM
and on to a stream of very short fragments, where nothing is forgotten for long. Beside it, the same
from scratch: there the paper suspects a vicious circle of untrained experts and arbitrary gates.

    python bench/gating.py [SEEDS]
"""

import sys

import numpy as np

import calm
from calm.analysis import LAST, gate_similarity, tree_agreement
from calm.corpus.synthetic import SyntheticCorpora
from calm.loop import prequential, to_records
from calm.metrics import measure, summarise
from calm.stream import Stream

SIZE = "tiny"
LONG = {"fragments": 50, "mean_length": 10_000, "split": "dev"}
SHORT = {"fragments": 1000, "mean_length": 400}
EXPERTS = ("network.stack.", "network.decoder.")


def run(stream, learner):
    """Perplexity, correlations of weights, and the share of their variance that is the class's."""
    records = list(prequential(stream, learner))
    gates = np.array([record.gates for record in records])
    names = np.array([record.class_name for record in records])
    found = gate_similarity(gates, names)
    last = np.stack([gates[names == name][-LAST:] for name in found.classes])
    off = found.between[~np.eye(len(found.classes), dtype=bool)]
    order = [stream.classes.index(name) for name in found.classes]
    distances = stream.corpora.tree_distances()[np.ix_(order, order)]
    return {
        "ppl": measure(to_records(records, stream.fragments)).ppl,
        "within": float(np.diag(found.between).mean()),
        "between": float(off.mean()),
        "of class": last.mean(axis=1).var(axis=0).sum() / last.var(axis=(0, 1)).sum(),
        "tree": tree_agreement(found.between, distances),
    }


def under_an_lstm(vocabulary, seed, trained):
    """A product under a gating LSTM, with the experts of another learner or its own."""
    learner = calm.learner("poe-5", vocabulary=vocabulary, seed=seed, size=SIZE)
    if trained:
        experts = {n: a for n, a in trained.state().items() if n.startswith(EXPERTS)}
        learner.load_state(learner.state() | experts)
    return learner


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    corpora = SyntheticCorpora()
    vocabulary = len(corpora.vocabulary)
    rows = {}
    for seed in range(seeds):
        trained = calm.learner("poe-pw-5", vocabulary=vocabulary, seed=seed, size=SIZE)
        rows.setdefault("plastic, long", []).append(
            run(Stream(corpora, **LONG, seed=seed), trained)
        )
        for experts, given in (("pre-trained", trained), ("from scratch", None)):
            learner = under_an_lstm(vocabulary, seed, given)
            found = run(Stream(corpora, **SHORT, seed=seed), learner)
            rows.setdefault(f"LSTM, short, {experts}", []).append(found)
    print(f"{SIZE}, seeds 0 to {seeds - 1}: mean (deviation)")
    for name, found in rows.items():
        columns = {key: summarise([one[key] for one in found]) for key in found[0]}
        cells = [f"{key} {s.mean:6.2f} ({s.deviation:.2f})" for key, s in columns.items()]
        print(f"  {name:<25} {'  '.join(cells)}")


if __name__ == "__main__":
    main()
