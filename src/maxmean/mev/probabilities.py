"""P(an option is the best) under independent Gaussians: the weights of the weighted estimator."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np

from .arrays import Array, Rng, as_floats, constant, namespace, normal, special
from .errors import ArgumentError
from .statistic import check_options

MOST_INTEGRATED = 500
"""Options that may be integrated over again and again: the time grows with their square, and is a second here."""


def best_probabilities(means: Array, variances: Array, *, draws: int | None = None, rng: Rng = 0) -> Array:
    r"""P(option is the largest) under independent Gaussians with these means and variances (of the means).

    Exact quadrature, or the share of ``draws`` Monte Carlo draws that an option wins; nan where a mean or a variance among the
    options is not finite, or a variance negative.

    >>> best_probabilities([0.0, 1.0], [0.5, 0.5]).round(6)
    array([0.158655, 0.841345])
    """
    xp = namespace(means, variances)
    means, variances = as_floats(xp, means, variances)
    check_options(means, variances)
    means, variances = xp.broadcast_arrays(means, variances)
    sound = xp.all(xp.isfinite(means) & xp.isfinite(variances) & (variances >= 0), axis=-1, keepdims=True)
    means, variances = xp.where(sound, means, 0.0), xp.where(sound, variances, 1.0)
    return xp.where(sound, _probabilities(xp, means, variances, draws, rng), xp.nan)


def _probabilities(xp: Array, means: Array, variances: Array, draws: int | None, rng: Rng) -> Array:
    if draws is not None:
        if draws < 1:
            raise ArgumentError(f"draws must be at least 1, not {draws}")
        return _drawn_probabilities(xp, means, variances, draws, rng)
    if xp is np:
        weights = _by_rows(means, variances)
    elif xp.__name__ == "jax.numpy":
        weights = _compiled_probabilities()(means, variances)
    else:
        weights = _integrated_probabilities(xp, means, variances)
    ties = xp.astype(means == xp.max(means, axis=-1, keepdims=True), means.dtype)
    certain = xp.max(variances, axis=-1, keepdims=True) == 0
    return xp.where(certain, ties / xp.sum(ties, axis=-1, keepdims=True), weights)


@cache
def _compiled_probabilities() -> Callable[..., Array]:
    """Compiled as a whole: JAX would compile each step of the integral on its own, seconds for every new shape."""
    import jax

    return jax.jit(partial(_integrated_probabilities, jax.numpy))


def integrable(variances: np.ndarray) -> bool:
    """Whether the integral over these options takes seconds at most: many can be integrated if they are about as wide."""
    return bool(len(variances) <= MOST_INTEGRATED or variances.min() > _ALIKE**2 * variances.max())


def _drawn_probabilities(xp: Array, means: Array, variances: Array, draws: int, rng: Rng) -> Array:
    most = max(1, _DRAWN // max(math.prod(means.shape), 1))
    if xp is np and draws > most:
        generator, wins = np.random.default_rng(rng), np.zeros(means.shape)
        for done in range(0, draws, most):
            size = min(most, draws - done)
            wins += size * _drawn_probabilities(np, means, variances, size, generator)
        return np.asarray(wins / draws, dtype=means.dtype)
    values = means + xp.sqrt(variances) * normal(rng, (draws, *means.shape), means)
    won = xp.astype(values == xp.max(values, axis=-1, keepdims=True), means.dtype)
    return xp.mean(won / xp.sum(won, axis=-1, keepdims=True), axis=0)


_REACH = 8.5  # standard errors beyond which the Gaussian (1e-17) is nothing beside a probability
_BREAKS = (-_REACH, -5.0, -2.5, 0.0, 2.5, 5.0, _REACH)
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(12)
_FAR = 100.0  # widest standard errors below the best where an option may be put if it lies lower still
_NARROWEST = 1e-15  # widest standard errors: a certain option is one as narrow as this
_ALIKE = 0.2  # widest standard errors: options no narrower than this share equal panels
_BLOCK = 2_000  # means integrated at once: bounds the memory of a large batch
_DRAWN = 10_000_000  # numbers drawn at once
_HELD = 4_000_000  # values of the integrand at once


def _integrated_probabilities(xp: Array, means: Array, variances: Array) -> Array:
    gaps, errors = _standardised(xp, means, variances)
    return _weights(xp, gaps, errors, *_panels(xp, gaps, errors))


def _by_rows(means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The same for NumPy: a block of rows at a time, those whose options are about as wide with cheaper panels."""
    options = means.shape[-1]
    gaps, errors = _standardised(np, means.reshape(-1, options), variances.reshape(-1, options))
    alike = errors.min(axis=-1, initial=1.0) > _ALIKE
    weights = np.empty_like(gaps)
    for group, panels in ((alike, _uniform_panels), (~alike, partial(_panels, np))):
        rows = np.flatnonzero(group)
        step = max(1, _BLOCK // max(options, 1))
        for block in (rows[i : i + step] for i in range(0, len(rows), step)):
            weights[block] = _in_pieces(gaps[block], errors[block], *panels(gaps[block], errors[block]))
    return weights.reshape(means.shape)


def _in_pieces(gaps: np.ndarray, errors: np.ndarray, *panels: np.ndarray) -> np.ndarray:
    """:func:`_weights`, with as many panels at once as fit in memory; added up in the same order, they give the same bits."""
    step = max(1, _HELD // (len(_NODES) * gaps.size))
    if panels[0].shape[-1] <= step:
        return np.asarray(_weights(np, gaps, errors, *panels))
    if len(gaps) > 1:
        return np.concatenate(
            [_in_pieces(*(array[k : k + 1] for array in (gaps, errors, *panels))) for k in range(len(gaps))]
        )
    total = np.zeros((0, *gaps.shape))
    for k in range(0, panels[0].shape[-1], step):
        piece = _contributions(np, gaps, errors, *(array[:, k : k + step] for array in panels))
        total = np.concatenate([total, piece.reshape(-1, *gaps.shape)]).sum(axis=0, keepdims=True)
    return np.asarray(total[0] / total[0].sum(axis=-1, keepdims=True))


def _standardised(xp: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    """Means relative to the best and standard errors, both in units of the widest standard error.

    Certain options become very narrow ones. An option that ends below where another begins never wins: it is put far below,
    as wide as the widest, where it costs nothing. The inner `where`s keep derivatives finite where the outer ones discard them.
    """
    widest = xp.max(variances, axis=-1, keepdims=True)
    certain = widest == 0
    unit = xp.sqrt(xp.where(certain, 1.0, widest))
    narrow = variances <= _NARROWEST**2 * widest
    errors = xp.where(narrow, _NARROWEST, xp.sqrt(xp.where(narrow, 1.0, variances)) / unit)
    gaps = means - xp.max(means, axis=-1, keepdims=True)
    far = gaps < -_FAR * unit
    scaled = xp.where(far, 0.0, gaps) / unit
    hopeless = far | (
        scaled + _REACH * errors < xp.max(xp.where(far, -xp.inf, scaled - _REACH * errors), axis=-1, keepdims=True)
    )
    hopeless = hopeless | (certain & (gaps < 0))
    return xp.where(hopeless, -_FAR, scaled), xp.where(hopeless, 1.0, errors)


def _weights(xp: Array, gaps: Array, errors: Array, centres: Array, start: Array, half: Array) -> Array:
    weights = xp.sum(_contributions(xp, gaps, errors, centres, start, half), axis=(-3, -2))
    return weights / xp.sum(weights, axis=-1, keepdims=True)


def _contributions(xp: Array, gaps: Array, errors: Array, centres: Array, start: Array, half: Array) -> Array:
    """Gauss-Legendre on the panels, shape ``(..., panels, nodes, options)``.

    The integrand is f_i/F_i times the product of all F_j.
    """
    nodes, node_weights = (constant(values, gaps) for values in (_NODES, _NODE_WEIGHTS))
    offsets = (start[..., None] + half[..., None] * (1 + nodes))[..., None]  # (..., panels, nodes, 1)
    measure = (half[..., None] * node_weights)[..., None]
    z = ((centres[..., None] - gaps[..., None, :])[..., None, :] + offsets) / errors[..., None, None, :]
    log_cdf = special(xp).log_ndtr(z)
    log_density = -0.5 * z * z - xp.log(errors * math.sqrt(2 * math.pi))[..., None, None, :]
    return measure * xp.exp(log_density - log_cdf + xp.sum(log_cdf, axis=-1, keepdims=True))


def _uniform_panels(gaps: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Panels of equal width, in the form of :func:`_panels`. Where all densities are about as wide these are enough.

    Many options then cost a few panels and not a few for each of them.
    """
    low = (gaps - _REACH * errors).max(axis=-1, keepdims=True)
    high = (gaps + _REACH * errors).max(axis=-1, keepdims=True)
    panels = math.ceil((high - low).max() / (1.5 * errors.min()))
    half = np.broadcast_to((high - low) / (2 * panels), (*low.shape[:-1], panels))
    return np.zeros_like(half), low + 2 * half * np.arange(panels), half


def _panels(xp: Array, gaps: Array, errors: Array) -> tuple[Array, Array, Array]:
    """The panels between the break points: the mean that each is measured from, its start relative to that, its half width.

    Relative to a mean, because a panel inside a narrow density far from zero has no width in absolute floating-point numbers.
    """
    options = gaps.shape[-1]
    bottom, top = gaps - _REACH * errors, gaps + _REACH * errors
    owner = constant(np.tile(np.arange(options), len(_BREAKS)), xp.argmax(gaps, axis=-1))
    multiple = constant(np.repeat(_BREAKS, options), gaps)
    owner, multiple = (xp.broadcast_to(a, (*gaps.shape[:-1], a.shape[0])) for a in (owner, multiple))

    def of(values: Array, index: Array) -> Array:
        return xp.take_along_axis(values, index, axis=-1)

    def narrowest(among: Array) -> Array:
        return xp.argmin(xp.where(among, errors[..., None, :], xp.inf), axis=-1)

    # Inside a much narrower density, and below the lowest point that counts, a break point moves to the lower end there.
    point = (of(gaps, owner) + multiple * of(errors, owner))[..., None]
    inside = (bottom[..., None, :] < point) & (point < top[..., None, :])
    inside = inside & (errors[..., None, :] < 0.1 * of(errors, owner)[..., None])
    moved = xp.any(inside, axis=-1)
    owner, multiple = xp.where(moved, narrowest(inside), owner), xp.where(moved, -_REACH, multiple)
    lowest = xp.argmax(bottom, axis=-1)[..., None]
    moved = of(gaps, owner) + multiple * of(errors, owner) < of(bottom, lowest)
    owner, multiple = xp.where(moved, lowest, owner), xp.where(moved, -_REACH, multiple)

    # In order; points with equal means are ordered by their offsets.
    order = xp.argsort(multiple * of(errors, owner), axis=-1)
    owner, multiple = of(owner, order), of(multiple, order)
    order = xp.argsort(of(gaps, owner) + multiple * of(errors, owner), axis=-1, stable=True)
    owner, offset = of(owner, order), of(multiple * of(errors, owner), order)
    base = of(gaps, owner)
    point = (base + offset)[..., None]
    anchor = narrowest((bottom[..., None, :] <= point[..., :-1, :]) & (point[..., 1:, :] <= top[..., None, :]))
    centre = of(gaps, anchor)
    start, stop = (base[..., :-1] - centre) + offset[..., :-1], (base[..., 1:] - centre) + offset[..., 1:]
    return centre, start, (stop - start) / 2
