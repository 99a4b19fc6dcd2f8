"""The paper's character-level models at full size, beside a straightforward implementation.

That one is what a user would write: a Python loop over nn.LSTM experts, default Adam, gradients
clipped expert by expert, float32. Both score the pass they train with. Every learner runs in a
process of its own, over the same synthetic text under a vocabulary of 211.

    python bench/models.py            # speed of all, and of the parts
    python bench/models.py quality    # perplexity over 1,000 batches, ours beside the plain one
"""

import json
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import calm
from calm.corpus.synthetic import SyntheticCorpora
from calm.loop import prequential
from calm.stream import Stream

V = 211
MODELS = {"lstm": (1, 1300, 0), "poe-pw-30": (30, 200, 10)}  # experts, hidden, gate steps
VARIANTS = {
    "plain": {},
    "float32": {},
    "bfloat16": {"precision": "bfloat16"},
    "float32, scored without dropout": {"eval_dropout": False},
    "bfloat16, scored without dropout": {"precision": "bfloat16", "eval_dropout": False},
}
TIMED, WARM = 12, 3


class PlainExpert(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding, self.drop = nn.Embedding(V, 200), nn.Dropout(0.2)
        self.lstm = nn.LSTM(200, hidden, num_layers=2, dropout=0.2)
        self.decoder = nn.Linear(hidden, V)
        for weight in (self.embedding.weight, self.decoder.weight):
            nn.init.uniform_(weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, x, state):
        y, state = self.lstm(self.drop(self.embedding(x)), state)
        return self.decoder(self.drop(y)), state


class Plain(calm.Learner):
    """Two learning iterations a batch; the first one's pass is the prediction."""

    def __init__(self, experts, hidden, steps, seed):
        torch.manual_seed(seed)
        self.models = nn.ModuleList(PlainExpert(hidden) for _ in range(experts))
        self.adam = torch.optim.Adam(self.models.parameters())
        self.w = (torch.rand(experts) * 0.2 - 0.1 if steps else torch.ones(1)).requires_grad_()
        self.gate_adam = torch.optim.Adam([self.w])
        self.steps = steps
        self.state_of = [None] * experts

    def forward(self, x):
        outputs = [m(x, s) for m, s in zip(self.models, self.state_of, strict=True)]
        logits = torch.stack([logits for logits, _ in outputs])
        combined = torch.einsum("i,iwbv->wbv", self.w.detach(), logits)
        return combined, logits, [state for _, state in outputs]

    def predict(self, inputs):
        self.pending = self.forward(torch.tensor(inputs))
        return F.log_softmax(self.pending[0].detach(), dim=-1).numpy()

    def learn(self, inputs, targets):
        x, y = torch.tensor(inputs), torch.tensor(targets).flatten()
        for iteration in range(2):
            combined, logits, states = self.forward(x) if iteration else self.pending
            self.adam.zero_grad()
            F.cross_entropy(combined.flatten(0, 1), y).backward()
            for model in self.models:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            self.adam.step()
            for _ in range(self.steps):
                self.gate_adam.zero_grad()
                mixed = torch.einsum("i,iwbv->wbv", self.w, logits.detach())
                F.cross_entropy(mixed.flatten(0, 1), y).backward()
                self.gate_adam.step()
        self.state_of = [tuple(part.detach() for part in state) for state in states]

    def read(self, inputs):
        raise NotImplementedError

    def state(self):
        raise NotImplementedError

    def load_state(self, state):
        raise NotImplementedError


def make(model, variant, seed):
    experts, hidden, steps = MODELS[model]
    if variant == "plain":
        return Plain(experts, hidden, steps, seed)
    options = {"size": "paper", "eval_dropout": True, **VARIANTS[variant]}
    if steps:
        options["steps"] = steps
    return calm.learner(model, vocabulary=V, seed=seed, **options)


class Wide(SyntheticCorpora):
    """Synthetic languages under a vocabulary of 211 symbols, most of which never occur."""

    def __init__(self):
        super().__init__()
        self.vocabulary += tuple(chr(0x4E00 + i) for i in range(V - len(self.vocabulary)))


def measure(model, variant, batches, seed):
    """In this process: seconds a batch, and the mean loss of the second half."""
    stream = Stream(Wide(), 20, max(batches, 20) * 200 / 20 * 1.2, seed=seed)
    losses, times = [], []
    since = time.perf_counter()
    for record in prequential(stream, make(model, variant, seed)):
        losses.append(record.loss)
        times.append(time.perf_counter() - since)
        since = time.perf_counter()
        if len(losses) == batches:
            break
    half = losses[len(losses) // 2 :]
    return {"seconds": float(np.median(times[WARM:])), "ppl": float(np.exp(np.mean(half)))}


def apart(*arguments):
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "measure", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def peak(kind):
    """Measured matrix-product peak, in GFLOP/s."""
    a, b = torch.randn(2048, 2048).to(kind), torch.randn(2048, 2048).to(kind)
    times = []
    for _ in range(8):
        begin = time.perf_counter()
        a @ b
        times.append(time.perf_counter() - begin)
    return 2 * 2048**3 / min(times) / 1e9


def flops(model):
    """Floating-point operations of the products of a batch: two iterations, forward and back."""
    experts, hidden, _ = MODELS[model]
    each = 4 * hidden * (200 + hidden) + 4 * hidden * 2 * hidden + hidden * V
    return experts * each * 200 * 2 * 3 * 2


def speed():
    peaks = {name: peak(getattr(torch, name)) for name in ("float32", "bfloat16")}
    print(f"{torch.get_num_threads()} threads; peak GFLOP/s: {peaks}")
    for model in MODELS:
        plain = None
        for variant in VARIANTS:
            seconds = apart(model, variant, TIMED + WARM, 0)["seconds"]
            plain = plain or seconds
            kind = "bfloat16" if "bfloat16" in variant else "float32"
            share = flops(model) / seconds / 1e9 / peaks[kind]
            if "without" in variant:
                share *= 7 / 6  # one more pass forward
            print(
                f"  {model:<10} {variant:<34} {seconds * 1e3:7.1f} ms a batch, "
                f"{plain / seconds:4.2f} times plain, {share:4.0%} of the {kind} peak",
                flush=True,
            )


def quality(batches=1000):
    for model in MODELS:
        for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
            found = {v: apart(model, v, batches, seed)["ppl"] for v in list(VARIANTS)[:3]}
            ratios = {v: f"{ppl / found['plain'] - 1:+.2%}" for v, ppl in found.items()}
            print(f"  {model:<10} seed {seed}: ppl {found}, against plain {ratios}", flush=True)


if __name__ == "__main__":
    mode = sys.argv[1] if len(sys.argv) > 1 else "speed"
    if mode == "measure":
        model, variant, batches, seed = sys.argv[2:]
        print(json.dumps(measure(model, variant, int(batches), int(seed))))
    else:
        {"speed": speed, "quality": quality}[mode]()
