import numpy as np
import pytest

from calm.learners.counts.learner import Counts
from calm.learners.counts.mixer import FLOOR, KEEP, Mixer, Rates, Weights, add_gradients
from learners.counts.texts import read_only

V, B, W = 7, 2, 12


def text(length, seed=0):
    """Rows of symbols that mostly follow the one before."""
    draws = np.random.default_rng(seed)
    steps = np.where(draws.random((length, B)) < 0.7, 1, draws.integers(0, V, (length, B)))
    return np.cumsum(steps, axis=0) % V


@pytest.fixture(scope="module", params=["char", "word"])
def situation(request):
    """A learner with random weights, its predictions' trace, and the batch."""
    learner = Counts(V, 0, level=request.param, order=4, tables=2)
    symbols, draws = read_only(text(20 * W + 1)), np.random.default_rng(1)
    for i in range(19):
        batch = symbols[i * W : i * W + W], symbols[i * W + 1 : i * W + W + 1]
        learner.predict(batch[0])
        learner.learn(*batch)
    inputs, targets = symbols[19 * W : -1], symbols[19 * W + 1 :]
    for part in learner._mixer.weights:
        part += draws.normal(0, 0.2, part.shape)
    learner.predict(inputs)
    _, past, trace = learner._pending
    gradient, square = gradients(learner._mixer.weights, targets, past, trace)
    return learner, inputs, targets, gradient, square


def gradients(weights, targets, past, trace):
    """The gradient by all weights, and the squares."""
    gradient, square = Weights(*map(np.zeros_like, weights)), np.zeros_like(weights.own)
    own, by_confidence, chosen = gradient
    add_gradients(targets, past.dense, trace, own, by_confidence, square)
    for rows, slope in zip(trace.circumstances, trace.slope, strict=True):
        chosen[rows] += slope
    return gradient, square


def likelihood(learner, inputs, targets):
    out = learner.predict(inputs)
    return np.take_along_axis(out, targets[..., None], axis=2).sum(dtype=np.float64)


def slope(learner, inputs, targets, part, place, h=0.04):
    """The likelihood's derivative with respect to one weight, to the fourth order."""
    weights, found = learner._mixer.weights[part], {}
    before = weights[place]
    for step in (-2, -1, 1, 2):
        weights[place] = before + step * h
        found[step] = likelihood(learner, inputs, targets)
    weights[place] = before
    return (8 * (found[1] - found[-1]) - (found[2] - found[-2])) / (12 * h)


@pytest.mark.parametrize("part", range(3), ids=Weights._fields)
def test_gradients_are_those_of_the_likelihood(situation, part):
    learner, inputs, targets, gradient, _ = situation
    places = list(np.ndindex(gradient[part].shape))
    active = [place for place in places if gradient[part][place] != 0]
    idle = [place for place in places if gradient[part][place] == 0]
    assert len(active) > 5
    for place in active[:: len(active) // 40 + 1] + idle[:: len(idle) // 5 + 1]:
        expected = slope(learner, inputs, targets, part, place)
        assert gradient[part][place] == pytest.approx(expected, rel=1e-3, abs=1e-3), place


def test_squares_add_up_by_position(situation):
    learner, _, targets, gradient, square = situation
    _, past, trace = learner._pending
    each = []
    for p in range(targets.size):
        one = trace._replace(**{
            name: getattr(trace, name)[p : p + 1].copy()
            for name in ("start", "bucket", "circumstances", "expected", "slope")
        })  # fmt: skip
        target = targets.reshape(-1, 1)[p : p + 1]
        each.append(gradients(gradient, target, past, one)[0].own)
    assert np.allclose(sum(each), gradient.own)
    assert np.allclose(sum(g * g for g in each), square)


def test_a_step_is_the_gradient_over_the_mean_square(situation):
    learner, _, targets, gradient, square = situation
    _, past, trace = learner._pending
    sparse = gradient.chosen.shape[1]
    mixer = Mixer(np.zeros(len(square)), sparse, len(gradient.chosen), Rates(0.1, 0.3))
    running = np.full(len(square), 0.1)
    for _ in range(3):
        before = Weights(*(part.copy() for part in mixer.weights))
        mixer.learn(targets, past.dense, trace)
        running = KEEP * running + (1 - KEEP) * square / targets.size
        scale = 1 / (targets.size * (running + FLOOR))
        moved = [after - part for after, part in zip(mixer.weights, before, strict=True)]
        assert np.allclose(moved[0], 0.1 * gradient.own * scale)
        assert np.allclose(moved[1], 0.3 * gradient.by_confidence * scale[:sparse, None])
        assert np.allclose(moved[2], 0.3 * gradient.chosen * scale[:sparse])


def test_a_step_makes_the_batch_more_likely(situation):
    learner, inputs, targets, *_ = situation
    kept = [part.copy() for part in learner._mixer.weights]
    before = likelihood(learner, inputs, targets)
    learner._mixer.learn(targets, learner._pending[1].dense, learner._pending[2])
    assert likelihood(learner, inputs, targets) > before
    for part, old in zip(learner._mixer.weights, kept, strict=True):
        part[:] = old
    learner.predict(inputs)


def test_a_state_goes_on_alike(situation):
    learner, _, targets, gradient, square = situation
    _, past, trace = learner._pending
    sizes = len(square), gradient.chosen.shape[1], len(gradient.chosen)
    mixers = [Mixer(np.full(sizes[0], 0.1 * i), *sizes[1:], Rates()) for i in range(2)]
    mixers[0].learn(targets, past.dense, trace)
    mixers[1].weights.chosen[:] = 1.0
    mixers[1].load_state({name: array.copy() for name, array in mixers[0].state().items()})
    for _ in range(2):
        for one, other in zip(mixers[0].weights, mixers[1].weights, strict=True):
            assert np.array_equal(one, other)
        for mixer in mixers:
            mixer.learn(targets, past.dense, trace)
