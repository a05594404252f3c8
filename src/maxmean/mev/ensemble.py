"""The K-estimate inside an ensemble: what the next state is worth to each head of a bootstrapped network."""

from __future__ import annotations

from collections.abc import Callable

from .arrays import Array, as_floats, as_truths, namespace, together
from .errors import ArgumentError
from .estimators import unchecked_estimate
from .kernels import Gaussian, Kernel, as_kernel
from .settings import check_truth


def ensemble_target(
    q_target_heads: Array,
    kernel: Kernel | Callable[[Array], Array] = Gaussian(),  # noqa: B008  (frozen)
    *,
    covariance: bool = False,
    where: Array | None = None,
) -> Array:
    r"""What the next states are worth to each head: the K-estimate of its largest value, in the place of ``max``.

    .. math::
        V_k(s') = \sum_a \kappa(T_{k,a})\,Q_k(s', a) \Big/ \sum_a \kappa(T_{k,a}), \qquad
        T_{k,a} = \frac{Q_k(s', a) - \max_b Q_k(s', b)}{\sqrt{v_a + v_*}}, \qquad
        v_a = \frac1{K - 1} \sum_k \left(Q_k(s', a) - \bar Q(s', a)\right)^2

    The spread across the heads measures uncertainty: the variances are those across the K heads (ddof 1), not divided by
    their number, because a head is one draw; :math:`v_*` is the variance of the head's own best action. ``Indicator(alpha)``
    makes it the target of TE-BDQN, any other kernel that of KE-BDQN. The network's target is then
    ``reward + discount * ensemble_target(...)``, with a discount of zero where the episode has terminated.

    Parameters
    ----------
    q_target_heads
        Values of the next states by the target network's heads, shape ``(..., heads, actions)``, two heads at least. NumPy,
        JAX (under ``jit``, ``vmap``) or PyTorch; a kernel's parameters may have the shape ``(heads, 1)``, one for each head. They
        must be finite: a head with a nan has the value nan, and the others, whose spread it makes unknown, their largest one.
    kernel
        One of :mod:`maxmean.mev`'s kernels, or a function of T.
    covariance
        Whether T is corrected by the covariances of the actions' values across the heads.
    where
        Which actions are legal in the next states, true or false, shape ``(..., actions)``. The others count for nothing; where
        none is legal, the value is nan.

    Returns
    -------
    Array
        One value for each head, shape ``(..., heads)``, of the kind that was given. Half precision (float16, bfloat16) is
        computed in float32 and returned in half precision.

    Examples
    --------
    One next state, two heads, two actions. The second head's values tie, and the first head's do not differ significantly:

    >>> from maxmean.mev import Indicator
    >>> ensemble_target([[0.0, 4.0], [2.0, 2.0]], Indicator(0.01))
    array([2., 2.])
    >>> ensemble_target([[0.0, 4.0], [2.0, 2.0]], Indicator(0.5))
    array([4., 2.])
    >>> ensemble_target([[0.0, 4.0], [2.0, 2.0]], Indicator(0.5), where=[True, False])
    array([0., 2.])
    """
    check_truth("covariance", covariance)
    xp = namespace(q_target_heads, where)
    (heads,) = as_floats(xp, q_target_heads)
    if heads.ndim < 2 or heads.shape[-2] < 2:
        raise ArgumentError(
            f"heads must have shape (..., heads, actions), two heads at least, not {tuple(heads.shape)}"
        )
    if xp.finfo(heads.dtype).bits < 32:  # halves: their squares overflow at 256, and bfloat16 has too few digits for T
        full = ensemble_target(xp.astype(heads, xp.float32), kernel, covariance=covariance, where=where)
        return xp.astype(full, heads.dtype)
    if where is not None:
        where = as_truths(xp, where, heads)
        if not where.ndim:
            raise ArgumentError(
                f"where must say True or False of each of the {heads.shape[-1]} actions, not of all at once"
            )
        together(where=where.shape, heads=(*heads.shape[:-2], heads.shape[-1]))
        where = where[..., None, :]
        heads = xp.where(where, heads, xp.zeros_like(heads))  # what stands there need not be a number
    # Unchecked: a variance across finite heads is one, and a check would change what compilers make of a whole training.
    if not covariance:
        variances = xp.var(heads, axis=-2, correction=1, keepdims=True)
        return unchecked_estimate(heads, variances, as_kernel(kernel), None, where)
    actions = xp.matrix_transpose(heads)
    apart = actions - xp.mean(actions, axis=-1, keepdims=True)
    covariances = (xp.matmul(apart, xp.matrix_transpose(apart)) / (heads.shape[-2] - 1))[..., None, :, :]
    variances = xp.linalg.diagonal(covariances)
    return unchecked_estimate(heads, variances, as_kernel(kernel), covariances, where)
