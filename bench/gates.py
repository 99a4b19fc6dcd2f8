"""Gates of a product beside one another: plastic with k steps, and newton with several proximities.

    python bench/gates.py [SEEDS [SIZE [EXPERTS ...]]]   # quality on synthetic text, and processor
                                                         # time a batch; 5 and 30 experts, or one of these
    python bench/gates.py words   # at V = 51,200, 30 experts of 200: adaptation beside the experts'
                                  # own step, in time and in memory

Time is that of the processor, which other programs on the machine change little.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

import calm
from calm.corpus.synthetic import SyntheticCorpora
from calm.learners.neural.combination import Product
from calm.learners.neural.gates import NewtonGate, PlasticGate
from calm.loop import prequential, to_records
from calm.metrics import measure, summarise
from calm.stream import Stream

GATES = {
    **{f"plastic, k = {k}": {"gate": "plastic", "steps": k} for k in (1, 10, 100)},
    **{f"newton, {p:g}": {"gate": "newton", "proximity": p} for p in (0.01, 0.1, 1.0, 10.0)},
}
V, EXPERTS, POSITIONS = 51_200, 30, 200


def run(experts, options, size, seed):
    """Quality over a stream, and processor milliseconds a batch: the median."""
    stream = Stream(SyntheticCorpora(), 20, 5_000, seed=seed)
    learner = calm.learner(
        f"poe-pw-{experts}", vocabulary=len(stream.vocabulary), seed=seed, size=size, **options
    )
    records, times = [], []
    since = time.process_time()
    for record in prequential(stream, learner):
        records.append(record)
        times.append(time.process_time() - since)
        since = time.process_time()
    result = measure(to_records(records, stream.fragments))
    return {
        "ppl": result.ppl,
        "ppl@sw": result.ppl_at_switch,
        "rec": result.recovery,
        "ms": float(np.median(times)) * 1e3,
    }


def quality(seeds, size, counts):
    print(f"synthetic, N = 20, λ = 5,000, {size}, seeds 0 to {seeds - 1}: mean (deviation)")
    for experts in counts:
        for name, options in GATES.items():
            found = [run(experts, options, size, seed) for seed in range(seeds)]
            columns = {key: summarise([one[key] for one in found]) for key in found[0]}
            cells = [f"{key} {s.mean:6.2f} ({s.deviation:.2f})" for key, s in columns.items()]
            print(f"  {experts:>2} experts, {name:<17} {'  '.join(cells)}", flush=True)


def peak_memory():
    """Peak of this process, in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e6


def experts_step(kind):
    """One gradient step of the experts, without the gate's."""
    learner = calm.learner(
        "poe-pw-30", vocabulary=V, size="paper-word", iterations=1, steps=0, precision=kind
    )
    draws = np.random.default_rng(0)
    times = []
    for _ in range(3):
        x, y = draws.integers(0, V, (2, 20, 10))
        begin = time.process_time()
        learner.learn(x, y)
        times.append(time.process_time() - begin)
    return {"seconds": min(times), "gigabytes": peak_memory()}


def adaptation(kind, name):
    """The gate's steps on a batch; memory beyond the logits is what the peak grows by."""
    logits = torch.randn(EXPERTS, POSITIONS, V, generator=torch.Generator().manual_seed(0))
    logits = logits.to(getattr(torch, kind))
    targets = torch.randint(V, (POSITIONS,), generator=torch.Generator().manual_seed(1))
    if name == "newton":
        gate = NewtonGate(EXPERTS, Product(), 0.1)
    else:
        gate = PlasticGate(EXPERTS, Product(), int(name), 1e-3)
    gate.initialise(torch.Generator().manual_seed(2))
    before, begin = peak_memory(), time.process_time()
    gate.adapt(logits, targets)
    return {"seconds": time.process_time() - begin, "gigabytes": peak_memory() - before}


def apart(*arguments):
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "measure", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def words():
    for kind in ("float32", "bfloat16"):
        own = apart(kind)
        print(
            f"{kind}: the experts' own step {own['seconds']:.2f} s, peak {own['gigabytes']:.1f} GB"
        )
        for name in ("1", "10", "100", "newton"):
            found = apart(kind, name)
            print(
                f"  {name if name == 'newton' else f'k = {name}':<8} {found['seconds']:6.2f} s, "
                f"{found['gigabytes']:.3f} GB beyond the logits",
                flush=True,
            )


if __name__ == "__main__":
    mode, *rest = sys.argv[1:] or ["3"]
    if mode == "measure":
        print(json.dumps(experts_step(*rest) if len(rest) == 1 else adaptation(*rest)))
    elif mode == "words":
        words()
    else:
        size, *counts = rest or ["tiny"]
        quality(int(mode), size, [int(count) for count in counts] or [5, 30])
