import numpy as np
import pytest
import torch
from torch.nn import functional as F

import calm
from calm.learners.lstm import LSTM


def tokens(seed, *shape):
    return np.random.default_rng(seed).integers(0, 11, shape)


@pytest.mark.parametrize(
    ("hidden", "millions"), [(1300, 21.66), (360, 1.967)], ids=["paper", "small"]
)
def test_sizes_have_the_published_number_of_parameters(hidden, millions):
    size = next(name for name, options in LSTM.sizes.items() if options["hidden"] == hidden)
    learner = calm.learner("lstm", vocabulary=211, size=size)
    count = sum(p.numel() for p in learner.model.parameters())
    assert count / 1e6 == pytest.approx(millions, rel=0.01)


def test_two_steps_equal_a_loop_by_hand():
    learner = LSTM(11, seed=4, hidden=6, embedding=5, dropout=0.0, iterations=2)
    model = learner.model
    reference = torch.nn.LSTM(5, 6, num_layers=2)
    embedding, decoder = torch.nn.Embedding(11, 5), torch.nn.Linear(6, 11)
    with torch.no_grad():
        for i, layer in enumerate(model.layers):
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(reference, f"{kind}_l{i}").copy_(getattr(layer, f"{kind}_l0"))
        embedding.load_state_dict(model.embedding.state_dict())
        decoder.load_state_dict(model.decoder.state_dict())
    parameters = [*embedding.parameters(), *reference.parameters(), *decoder.parameters()]
    adam = torch.optim.Adam(parameters, lr=1e-3)
    hidden = None
    for step in range(3):
        x, y = tokens(step, 7, 2), tokens(10 + step, 7, 2)
        with torch.no_grad():
            expected = F.log_softmax(decoder(reference(embedding(torch.tensor(x)), hidden)[0]), -1)
        assert np.allclose(learner.predict(x), expected.numpy(), atol=1e-5)
        learner.learn(x, y)
        for _ in range(2):
            output, after = reference(embedding(torch.tensor(x)), hidden)
            loss = F.cross_entropy(decoder(output).flatten(0, 1), torch.tensor(y).flatten())
            adam.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            adam.step()
        hidden = tuple(h.detach() for h in after)


def test_weights_are_drawn_as_the_paper_says():
    model = LSTM(50, seed=1, hidden=400, embedding=40).model
    assert 0.099 < model.decoder.weight.abs().max() <= 0.1
    assert 0.099 < model.embedding.weight.abs().max() <= 0.1
    assert (model.decoder.bias == 0).all()
    assert 0.049 < model.layers[0].weight_hh_l0.abs().max() <= 0.05


def test_dropout_trains_but_is_not_scored_unless_asked_for():
    x = tokens(0, 20, 3)
    plain = LSTM(11, seed=4, hidden=64, embedding=32, dropout=0.5)
    none = LSTM(11, seed=4, hidden=64, embedding=32, dropout=0.0)
    scored = LSTM(11, seed=4, hidden=64, embedding=32, dropout=0.5, eval_dropout=True)
    assert np.array_equal(plain.predict(x), none.predict(x))
    assert not np.allclose(scored.predict(x), none.predict(x))
    assert np.array_equal(scored.predict(x), scored.predict(x))
    for learner in (plain, none):
        learner.learn(x, x)
    assert not np.allclose(plain.predict(x), none.predict(x))


def test_dropout_keeps_the_mean():
    model = LSTM(11, seed=4, dropout=0.25).model
    ones = torch.ones(100_000)
    dropped = model._drop(ones, torch.Generator().manual_seed(0))
    assert dropped.mean().item() == pytest.approx(1, abs=0.01)
    assert dropped.unique().tolist() == [0.0, pytest.approx(1 / 0.75)]


@pytest.mark.parametrize("options", [{"hidden": 0}, {"dropout": 1.0}, {"iterations": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(calm.CalmError, match="learner lstm"):
        calm.learner("lstm", vocabulary=5, **options)
