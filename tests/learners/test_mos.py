import numpy as np
import torch

from calm.learners.mos import MixtureOfSoftmaxes


def test_it_is_its_formula():
    learner = MixtureOfSoftmaxes(9, seed=2, softmaxes=3, hidden=6, embedding=5)
    network = learner.network
    x = np.random.default_rng(0).integers(0, 9, (4, 2))
    with torch.no_grad():
        h = network.stack(torch.tensor(x), [], None, torch.float32)[0][0].double().numpy()
    parts = {name: p.detach().double().numpy() for name, p in network.named_parameters()}
    expected = np.zeros((8, 9))
    for p in range(8):
        prior = np.exp(h[p] @ parts["prior"])
        prior /= prior.sum()
        latents = np.tanh(h[p] @ parts["latent"] + parts["latent_bias"]).reshape(3, 6)
        for share, latent in zip(prior, latents, strict=True):
            logits = latent @ parts["decoder.weight"][0] + parts["decoder.bias"][0]
            expected[p] += share * np.exp(logits) / np.exp(logits).sum()
    assert np.allclose(np.exp(learner.predict(x)).reshape(8, 9), expected, atol=1e-6)


def test_it_learns():
    learner = MixtureOfSoftmaxes(9, seed=2, softmaxes=3, hidden=16, embedding=8, learning_rate=1e-2)
    x = np.tile(np.arange(8), 5).reshape(20, 2)
    y = (x + 1) % 9

    def loss():
        return -np.take_along_axis(learner.predict(x), y[..., None], 2).mean()

    before = loss()
    for _ in range(60):
        learner.predict(x)
        learner.learn(x, y)
    assert loss() < before / 2
