import numpy as np
import pytest
import torch
from torch.nn import functional as F

import calm
from calm.learners.experts import Experts

SMALL = {"hidden": 6, "embedding": 5, "dropout": 0.0}


def tokens(seed, *shape):
    return np.random.default_rng(seed).integers(0, 11, shape)


def reference_of(learner, i):
    """Expert i as PyTorch modules."""
    stack, decoder = learner.network.stack, learner.network.decoder
    hidden, size = stack.hidden, stack.embedding.shape[2]
    lstm = torch.nn.LSTM(size, hidden, num_layers=2)
    embedding, linear = torch.nn.Embedding(11, size), torch.nn.Linear(hidden, 11)

    def order(weight):
        return weight.view(4, hidden, -1)[[0, 1, 3, 2]].reshape(4 * hidden, -1)

    with torch.no_grad():
        for layer in range(2):
            getattr(lstm, f"weight_ih_l{layer}").copy_(order(stack.w_in[layer][i].T))
            getattr(lstm, f"weight_hh_l{layer}").copy_(order(stack.w_rec[layer][i].T))
            getattr(lstm, f"bias_ih_l{layer}").copy_(order(stack.bias[layer][i][:, None])[:, 0])
            getattr(lstm, f"bias_hh_l{layer}").zero_().requires_grad_(False)
        embedding.weight.copy_(stack.embedding[i])
        linear.weight.copy_(decoder.weight[i].T)
        linear.bias.copy_(decoder.bias[i])
    return torch.nn.ModuleList([embedding, lstm, linear])


@pytest.mark.parametrize(("experts", "gate"), [(1, "fixed"), (3, "fixed"), (3, "plastic")])
def test_learning_equals_a_loop_by_hand(experts, gate):
    """Predict, then twice: forward, clip per expert, Adam; then the gate's own Adam steps."""
    learner = Experts(11, seed=4, experts=experts, gate=gate, steps=3, clip=0.1, **SMALL)
    models = [reference_of(learner, i) for i in range(experts)]
    w = learner.network.gate.w.clone().requires_grad_()
    parameters = [p for model in models for p in model.parameters() if p.requires_grad]
    adam, gate_adam = torch.optim.Adam(parameters, lr=1e-3), torch.optim.Adam([w], lr=1e-3)
    hidden = [None] * experts

    def forward(x):
        outputs = [
            model[1](model[0](torch.tensor(x)), h) for model, h in zip(models, hidden, strict=True)
        ]
        logits = [model[2](y) for model, (y, _) in zip(models, outputs, strict=True)]
        return torch.stack(logits).flatten(1, 2), [after for _, after in outputs]

    for step in range(3):
        x, y = tokens(step, 7, 2), tokens(10 + step, 7, 2)
        with torch.no_grad():
            expected = F.log_softmax(torch.einsum("i,ipv->pv", w, forward(x)[0]), -1)
        assert np.allclose(learner.predict(x).reshape(14, 11), expected.numpy(), atol=1e-5)
        if gate == "plastic":
            assert np.allclose(learner.gate_weights(), w.detach().numpy(), atol=1e-6)
        learner.learn(x, y)
        target = torch.tensor(y).flatten()
        for _ in range(2):
            logits, after = forward(x)
            adam.zero_grad()
            F.cross_entropy(torch.einsum("i,ipv->pv", w.detach(), logits), target).backward()
            for model in models:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            adam.step()
            for _ in range(3 if gate == "plastic" else 0):
                gate_adam.zero_grad()
                F.cross_entropy(torch.einsum("i,ipv->pv", w, logits.detach()), target).backward()
                gate_adam.step()
        hidden = [tuple(h.detach() for h in pair) for pair in after]


@pytest.mark.parametrize("combination", ["product", "mixture"])
@pytest.mark.parametrize("softmax", [False, True])
def test_a_gating_lstm_learns_along_as_in_a_loop_by_hand(combination, softmax):
    """One loss, one Adam for all; the experts' gradients are clipped, the gate's is not."""
    learner = Experts(
        11, 4, experts=3, combination=combination, gate="lstm", softmax_gate=softmax,
        gate_hidden=4, gate_embedding=3, clip=0.1, iterations=1, **SMALL,
    )  # fmt: skip
    gate = learner.network.gate
    models = [reference_of(learner, i) for i in range(3)]
    embedding, lstm = torch.nn.Embedding(11, 3), torch.nn.LSTM(3, 4, bias=False)
    decoder = gate.decoder.detach().clone().requires_grad_()
    with torch.no_grad():
        embedding.weight.copy_(gate.embedding)
        for weight, own in ((lstm.weight_ih_l0, gate.w_in), (lstm.weight_hh_l0, gate.w_rec)):
            weight.copy_(own[0].T.view(4, 4, -1)[[0, 1, 3, 2]].reshape(16, -1))
    experts = [p for model in models for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam([*experts, *embedding.parameters(), *lstm.parameters(), decoder])
    hidden, gate_hidden = [None] * 3, None
    for step in range(3):
        x, y = tokens(step, 7, 2), tokens(10 + step, 7, 2)
        outputs = [
            model[1](model[0](torch.tensor(x)), h) for model, h in zip(models, hidden, strict=True)
        ]
        logits = torch.stack([m[2](o) for m, (o, _) in zip(models, outputs, strict=True)])
        along, gate_after = lstm(embedding(torch.tensor(x)), gate_hidden)
        weights = along @ decoder  # (w, b, 3)
        weights = weights.softmax(-1) if softmax else weights
        if combination == "product":
            combined = torch.einsum("wbi,iwbv->wbv", weights, logits).log_softmax(-1)
        else:
            shares = weights.softmax(-1)
            combined = torch.einsum("wbi,iwbv->wbv", shares, logits.softmax(-1)).log()
            weights = shares
        assert np.allclose(learner.predict(x), combined.detach().numpy(), atol=1e-5)
        mean = weights.mean(dim=(0, 1)).detach().numpy()
        assert np.allclose(learner.gate_weights(), mean, atol=1e-6)
        learner.learn(x, y)
        adam.zero_grad()
        F.nll_loss(combined.flatten(0, 1), torch.tensor(y).flatten()).backward()
        for model in models:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        adam.step()
        hidden = [tuple(h.detach() for h in after) for _, after in outputs]
        gate_hidden = tuple(h.detach() for h in gate_after)


@pytest.mark.parametrize("combination", ["product", "mixture"])
@pytest.mark.parametrize("gate", ["fixed", "plastic", "lstm", "newton"])
def test_permuting_the_experts_permutes_the_weights_and_nothing_else(combination, gate):
    if (combination, gate) == ("mixture", "newton"):
        pytest.skip("not offered")
    options = {"experts": 3, "combination": combination, "gate": gate, "gate_hidden": 4, **SMALL}
    one, other = (Experts(11, seed=4, **options) for _ in range(2))
    order = [2, 0, 1]
    with torch.no_grad():
        for name, parameter in other.network.named_parameters():
            if not name.startswith("gate."):
                parameter.copy_(parameter[order].clone())
        if gate == "lstm":
            other.network.gate.decoder.copy_(one.network.gate.decoder[:, order])
        else:
            other.network.gate.w.copy_(one.network.gate.w[order])
    for step in range(4):
        x, y = tokens(step, 7, 2), tokens(10 + step, 7, 2)
        assert np.allclose(one.predict(x), other.predict(x), atol=1e-5)
        if gate == "fixed":
            assert one.gate_weights() is None
        else:
            assert np.allclose(one.gate_weights()[order], other.gate_weights(), atol=1e-5)
        one.learn(x, y)
        other.learn(x, y)


@pytest.mark.parametrize("combination", ["product", "mixture"])
def test_one_expert_is_an_lstm(combination):
    lstm = Experts(11, seed=4, **SMALL)
    alone = Experts(11, seed=4, combination=combination, **SMALL)
    for step in range(3):
        x, y = tokens(step, 7, 2), tokens(10 + step, 7, 2)
        assert np.allclose(lstm.predict(x), alone.predict(x), atol=1e-5)
        lstm.learn(x, y)
        alone.learn(x, y)


def test_a_mixture_warms_up_with_even_weights():
    learner = Experts(
        11, 4, experts=4, combination="mixture", gate="lstm", warmup=2, gate_hidden=4, **SMALL
    )
    even = []
    for step in range(4):
        x, y = tokens(step, 7, 2), tokens(10 + step, 7, 2)
        learner.predict(x)
        even.append(bool(np.allclose(learner.gate_weights(), 0.25, atol=1e-9)))
        learner.learn(x, y)
    assert even == [True, True, False, False]


def test_a_gate_that_is_cleared_begins_every_batch_anew():
    """It does so when a batch is learned, not while text is read token by token."""
    options = {"experts": 3, "gate": "lstm", "gate_hidden": 4, "learning_rate": 1e-12, **SMALL}
    cleared, runs_on = (Experts(11, 4, clear_gate=clear, **options) for clear in (True, False))
    x = tokens(0, 7, 2)
    weights = []
    for learner in (cleared, runs_on):
        for _ in range(2):
            learner.predict(x)
            weights.append(learner.gate_weights())
            learner.learn(x, x)
    assert np.allclose(weights[0], weights[1], atol=1e-7)
    assert not np.allclose(weights[2], weights[3], atol=1e-7)


def test_the_pass_that_predicted_serves_for_learning_and_changes_nothing(monkeypatch):
    options = {**SMALL, "dropout": 0.4, "eval_dropout": True}
    reuses, repeats = Experts(11, 4, **options), Experts(11, 4, **options)
    passes = {id(reuses.network): 0, id(repeats.network): 0}
    for learner in (reuses, repeats):
        learner.network.register_forward_hook(
            lambda module, *_: passes.__setitem__(id(module), passes[id(module)] + 1)
        )
    for step in range(3):
        x, y = tokens(step, 7, 2), tokens(10 + step, 7, 2)
        assert np.array_equal(reuses.predict(x), repeats.predict(x))
        repeats.predict(tokens(99, 7, 2))  # so that nothing is left to be used again
        reuses.learn(x, y)
        repeats.learn(x, y)
    assert list(passes.values()) == [6, 12]


def test_weights_are_drawn_as_the_paper_says():
    network = Experts(50, seed=1, hidden=400, embedding=40).network
    assert 0.099 < network.decoder.weight.abs().max() <= 0.1
    assert 0.099 < network.stack.embedding.abs().max() <= 0.1
    assert (network.decoder.bias == 0).all()
    assert 0.049 < network.stack.w_rec[0].abs().max() <= 0.05


def test_dropout_trains_but_is_not_scored_unless_asked_for():
    x = tokens(0, 20, 3)
    sizes = {"hidden": 64, "embedding": 32}
    plain, none = Experts(11, 4, dropout=0.5, **sizes), Experts(11, 4, dropout=0.0, **sizes)
    scored = Experts(11, 4, dropout=0.5, eval_dropout=True, **sizes)
    assert np.array_equal(plain.predict(x), none.predict(x))
    assert not np.allclose(scored.predict(x), none.predict(x))
    assert np.array_equal(scored.predict(x), scored.predict(x))
    for learner in (plain, none):
        learner.learn(x, x)
    assert not np.allclose(plain.predict(x), none.predict(x))


@pytest.mark.parametrize(
    "options",
    [{"hidden": 0}, {"dropout": 1.0}, {"iterations": 0}, {"steps": -1}, {"learning_rate": 0.0},
     {"gate": "newton", "combination": "mixture"}, {"gate": "newton", "proximity": 0.0}],
)  # fmt: skip
def test_impossible_options_are_refused(options):
    with pytest.raises(calm.CalmError, match="learner lstm"):
        calm.learner("lstm", vocabulary=5, **options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_said():
    with pytest.raises(calm.CalmError, match="torch sees no GPU: take cpu or auto"):
        calm.learner("lstm", vocabulary=5, device="cuda")
