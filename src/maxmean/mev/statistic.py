"""The two-sample statistic T: how far below the best an option's mean lies, in standard errors of the difference."""

from __future__ import annotations

from .arrays import Array, as_floats, namespace, quiet
from .errors import ArgumentError


def t_statistic(means: Array, variances: Array, *, covariances: Array | None = None) -> Array:
    r"""Two-sample statistic of every option against the best one; zero for the best and negative for the rest.

    .. math:: T_i = \frac{\hat\mu_i - \hat\mu_*}{\sqrt{v_i + v_* - 2 c_{i*}}}, \qquad \hat\mu_* = \max_j \hat\mu_j

    Parameters
    ----------
    means
        Sample means, shape ``(..., M)``: the last axis runs over the options.
    variances
        Variances *of the means* (:math:`s^2/n`, not :math:`s^2`), broadcastable to ``means``.
    covariances
        Covariance matrix *of the means* (sample covariance / n), shape ``(..., M, M)``, for paired samples: the paper's
        corrected statistic T*. Left out, the options are taken for independent.

    Notes
    -----
    An option whose mean equals the maximum has T = 0, whatever its variance. A smaller mean without any variance has
    T = -inf: there is no doubt that it is smaller, nor where T or its slope would leave the floating-point range.
    Where several options tie for the best, :math:`v_*` and :math:`c_{i*}` are averaged over them, so that the result does
    not depend on their order. A variance of the difference that rounding has made negative counts as zero.

    T is nan for all options where one of their means, variances or covariances is nan, or a variance negative.

    Examples
    --------
    >>> t_statistic([1.0, 4.0], [9.0, 16.0])
    array([-0.6,  0. ])
    >>> t_statistic([1.0, 4.0], [9.0, 16.0], covariances=[[9.0, 8.0], [8.0, 16.0]])
    array([-1.,  0.])
    """
    xp = namespace(means, variances, covariances)
    sound = has_meaning(means, variances, covariances)[..., None]
    return xp.where(sound, raw_statistic(means, variances, covariances), xp.nan)


def has_meaning(means: Array, variances: Array, covariances: Array | None = None) -> Array:
    """Whether these are numbers that T can be computed from, for each row of options: none is nan, no variance negative."""
    xp = namespace(means, variances, covariances)
    means, variances = as_floats(xp, means, variances)
    check_options(means, variances)
    means, variances = xp.broadcast_arrays(means, variances)
    sound = xp.all((variances >= 0) & ~xp.isnan(means), axis=-1)
    if covariances is not None:
        (covariances,) = as_floats(xp, covariances)
        check_covariances(means, covariances)
        sound = sound & ~xp.any(xp.isnan(covariances), axis=(-2, -1))
    return sound


def raw_statistic(means: Array, variances: Array, covariances: Array | None = None) -> Array:
    """T where :func:`has_meaning` holds, and anything elsewhere.

    Undefined cases are masked outside of it, so that what compilers make of the inside does not change.
    """
    xp = namespace(means, variances, covariances)
    means, variances = as_floats(xp, means, variances)
    check_options(means, variances)
    _, variances = xp.broadcast_arrays(means, variances)
    with quiet(xp):
        gap = means - xp.max(means, axis=-1, keepdims=True)
        best = gap == 0
        ties = xp.astype(best, gap.dtype)
        count = xp.sum(ties, axis=-1, keepdims=True)
        spread = variances + xp.sum(xp.where(best, variances, xp.zeros_like(variances)), axis=-1, keepdims=True) / count
    if covariances is not None:
        (covariances,) = as_floats(xp, covariances)
        check_covariances(means, covariances)
        with quiet(xp):
            spread = spread - 2 * xp.vecdot(ties[..., None, :], xp.astype(covariances, gap.dtype)) / count
    floats = xp.finfo(gap.dtype)
    # The inner `where`s keep the derivatives of root and quotient finite where the outer one discards their values.
    root = xp.sqrt(xp.where(spread > 0, spread, 1.0))
    with quiet(xp):
        doubtful = (spread > 0) & (-gap <= 0.25 * float(floats.max) * root * xp.clip(root, None, 1.0))
        quotient = gap / xp.where(doubtful, root, 1.0)
    # A smaller mean stays smaller, T < 0, even where the quotient underflows.
    smaller = xp.where(doubtful, xp.clip(quotient, None, -float(floats.smallest_normal)), -xp.inf)
    return xp.where(best, quotient, smaller)


def check_options(means: Array, variances: Array) -> None:
    if means.ndim == 0 or means.shape[-1] == 0:
        raise ArgumentError("means must have at least one axis and one option; the last axis runs over the options")
    if variances.ndim > 0 and variances.shape[-1] not in (1, means.shape[-1]):
        raise ArgumentError(f"means have {means.shape[-1]} options on the last axis, variances {variances.shape[-1]}")


def check_covariances(means: Array, covariances: Array) -> None:
    options = means.shape[-1]
    if covariances.ndim < 2 or tuple(covariances.shape[-2:]) != (options, options):
        raise ArgumentError(f"covariances must have shape (..., {options}, {options}), not {tuple(covariances.shape)}")
