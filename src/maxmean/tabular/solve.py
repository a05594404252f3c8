r"""Exact values of finite MDPs, with an error bound that is proven rather than hoped for.

With T the Bellman operator, :math:`(Tv)(s) = \max_a \sum_{s'} P(s'|s, a)\,(r + \gamma v(s'))`, and v = 0 in terminal states:

**Discount below one.** For *any* v, whatever it came from, with :math:`l \le Tv - v \le h` over all states,

.. math:: Tv + \tfrac{\gamma}{1-\gamma} l \;\le\; V^* \;\le\; Tv + \tfrac{\gamma}{1-\gamma} h

(MacQueen, 1966; the familiar bound by the largest change follows, but this one shrinks with the *spread* h - l). Value
iteration runs until half the gap is below the tolerance and answers with the middle.
Now and then it restarts from the exact value of its greedy policy, which helps where discounts near one mix slowly.

**Discount one.** Only policies that end the episode with probability one ("proper" ones) count, and V* is the largest value
among them; this is what "return of an episode" means, and it leaves no room for a policy that dodges its costs by never
ending. Policy iteration starts from a proper policy and changes an action only for a strict gain. If the new policy were
improper, it would have a loop that it never leaves; averaging the gains over the loop's stationary distribution shows that
the loop's mean reward is positive, hence V* infinite, and that is said in an error. Otherwise the values rise until Tv = v. Any v
with :math:`Tv \le v` is at least the value of every proper policy, so this v is V*.

In floating point, Tv = v up to a residual. Let A = Q - v be the advantages of the result and h the largest expected number of
steps to the end with (nearly) best actions, so that :math:`h \ge 1 + P_a h` for those. If :math:`A \le c` everywhere and
:math:`A + c\,(P_a h - h) \le 0` then u = v + c h has :math:`Tu \le u`, hence :math:`V^* \le v + c h`. From below, the policy
found is a proper one: :math:`V^* \ge v - c n` with n its expected number of steps. Loops without reward (walking about on a
frozen lake) would make h infinite, but V* is the same in all states of such a loop: they are taken as one state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from .checks import MDPError, as_array, check_number
from .masks import LegalFirst
from .mdp import MDP, check_problem, distances

_EPS = float(np.finfo(float).eps)
_MAX_SWEEPS = 100_000
_MAX_ROUNDS = 1_000  # both only for rounding that never settles; the error is proven wherever they stop
_RESTART = 200  # sweeps; a linear solve costs about as much
_SOLVABLE = 5_000  # states; the factors of a large random matrix fill the memory
_NEARLY_BEST = 1e-9  # relative to the largest value: far above rounding, far below what matters


@dataclass(frozen=True, eq=False)
class Solution:
    """What :func:`solve` finds; ``v == q.max(axis=1)`` in every state."""

    q: np.ndarray
    """float64[S, A]; -inf where the action does not exist, in terminal states 0 for action 0 and -inf for the others."""
    v: np.ndarray
    """float64[S]; 0 in terminal states. Without discount, -inf where no policy surely ends the episode (from the start, every
    state that can be reached has a finite one)."""
    policy: np.ndarray
    """int64[S], an optimal action of each state (0 in terminal ones). Without discount, following it ends the episode."""
    iterations: int
    """Sweeps over all states or, without discount, policies tried."""
    error: float
    """Proven: no finite entry of q or v is further than this from the truth, rounding included. Without discount it is infinite
    if the rewards along a loop cancel without being zero: then rounding decides whether the loop is worth taking."""


@dataclass(frozen=True)
class _Model:
    """Means over outcomes, as matrices over all S * A pairs; pairs that may not be chosen have reward -inf."""

    p: Any
    r: np.ndarray
    discount: float
    shape: tuple[int, int]

    def q(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(self.r + self.discount * (self.p @ v)).reshape(self.shape)

    @cached_property
    def live(self) -> np.ndarray:
        """States with something to choose."""
        return np.isfinite(self.r.reshape(self.shape)).any(axis=1)

    def value(self, policy: np.ndarray) -> np.ndarray:
        """The value of a deterministic policy by one sparse linear system; zero where there is nothing to choose."""
        live = np.flatnonzero(self.live)
        rows = live * self.shape[1] + policy[live]
        return _linear(self.p[rows], self.r[rows], live, self.discount)

    def endless(self, policy: np.ndarray) -> np.ndarray:
        """The states that the policy never leads out of the live ones; it is proper if there are none."""
        live = np.flatnonzero(self.live)
        edges = self.p[live * self.shape[1] + policy[live]].tocoo()
        return np.isinf(distances(edges.col, live[edges.row], ~self.live, policy.size))

    def rounding(self, v: np.ndarray) -> float:
        """A bound on the rounding error of one entry of :meth:`q`."""
        width = int(np.diff(self.p.indptr).max(initial=1))
        return 2 * (width + 4) * _EPS * max(np.abs(self.r[np.isfinite(self.r)]).max(initial=0.0), np.abs(v).max())


def solve(mdp: MDP, *, tolerance: float = 1e-10, legal: Any = None) -> Solution:
    """Q*, V* and an optimal policy of a finite MDP; see the head of the module for the argument behind ``error``.

    ``tolerance`` is where value iteration stops, unless rounding is coarser; under discount 1 rounding alone decides. What was
    reached is ``error`` in every case. ``legal``, bool[S, A], leaves out actions, whose values then are -inf.

    Examples
    --------
    >>> from maxmean.tabular.problems import cliff_walking
    >>> problem = cliff_walking()
    >>> solution = solve(problem)
    >>> float(solution.v[problem.start.argmax()]), solution.error < 1e-10
    (-11.0, True)
    """
    check_problem(mdp)
    check_number("tolerance", tolerance)
    if not tolerance > 0:
        raise MDPError(f"tolerance must be positive, not {tolerance}")
    fewer = LegalFirst.of(mdp, legal)
    found = _sweep(_model(fewer.mdp), tolerance) if mdp.discount < 1 else _iterate_policies(fewer.mdp)
    found.q[mdp.terminal, 0] = 0.0
    policy = np.take_along_axis(fewer.order, found.policy[:, None], axis=1)[:, 0]
    return replace(found, q=fewer.back(found.q), policy=policy)


def evaluate(mdp: MDP, policy: Any) -> np.ndarray:
    """The exact value float64[S] of a policy: an action for each state, or probabilities of shape (S, A).

    What the policy says about terminal states is ignored. Without discount, a state from which the episode may go on for ever
    has the value -inf: such a policy does not count, as in :func:`solve`.

    Examples
    --------
    >>> from maxmean.tabular.problems import maximization_bias
    >>> evaluate(maximization_bias(), [0, 3, 0])
    array([-0.1, -0.1,  0. ])
    """
    check_problem(mdp)
    chosen = _probabilities(mdp, np.asarray(policy))
    model = _model(mdp)
    states, width = model.shape
    s, a = np.nonzero(chosen)
    mixing = csr_array((chosen[s, a], (s, s * width + a)), shape=(states, states * width))
    p, r = csr_array(mixing @ model.p), np.asarray(mixing @ np.where(np.isfinite(model.r), model.r, 0.0))
    value = np.zeros(states)
    counted = ~mdp.terminal
    if mdp.discount == 1:
        edges = p.tocoo()
        endless = ~np.isfinite(distances(edges.col, edges.row, mdp.terminal, states))
        value[np.isfinite(distances(edges.col, edges.row, endless, states))] = -np.inf
        counted &= np.isfinite(value)
    live = np.flatnonzero(counted)
    value[live] = _linear(p[live], r[live], live, mdp.discount)[live]
    return value


def _model(mdp: MDP) -> _Model:
    pairs, states = mdp.n_pairs, mdp.n_states
    p = csr_array((mdp.probabilities, mdp.next_states, mdp.offsets), shape=(pairs, states))
    r = np.bincount(mdp.pairs, mdp.probabilities * mdp.rewards, minlength=pairs)
    r[np.diff(mdp.offsets) == 0] = -np.inf
    return _Model(p, r, mdp.discount, (states, mdp.n_actions))


def _linear(p: Any, r: np.ndarray, live: np.ndarray, discount: float) -> np.ndarray:
    """Solve v = r + discount * p v in the ``live`` states, of which p has the rows; zero elsewhere."""
    v = np.zeros(p.shape[1])
    if live.size:
        factors = splu((eye_array(live.size, format="csc") - discount * p[:, live]).tocsc())
        v[live] = factors.solve(r)
        v[live] += factors.solve(r + discount * (p @ v) - v[live])  # one refinement: the residual is then rounding only
    return v


def _sweep(model: _Model, tolerance: float) -> Solution:
    live, horizon = model.live, model.discount / (1 - model.discount)
    v = np.zeros(live.size)
    for sweep in range(1, _MAX_SWEEPS + 1):
        q = model.q(v)
        change = np.where(live, q.max(axis=1) - v, 0.0)
        low, high = change.min(), change.max()
        rounding = model.rounding(v) / (1 - model.discount)
        gap = horizon * (high - low) / 2
        if gap <= max(tolerance, rounding):
            break
        greedy = q.argmax(axis=1)
        v = model.value(greedy) if sweep % _RESTART == 0 and live.size <= _SOLVABLE else v + change
    v = np.where(live, v + change + horizon * (low + high) / 2, 0.0)
    q = model.q(v)
    error = float(gap + rounding + 2 * model.rounding(v))
    return Solution(q, np.where(live, q.max(axis=1), 0.0), q.argmax(axis=1), sweep, error)


def _iterate_policies(mdp: MDP) -> Solution:
    model, policy = _ending(mdp, _model(mdp))
    live = model.live
    found = _howard(model, policy)
    if isinstance(found, int):
        raise MDPError(f"the values are infinite: without discount, a loop from {mdp.state(found)} gains for ever")
    v, policy, iterations = found
    error = _error_below(model, v, policy)
    component, inside = _rewardless_loops(mdp, model)
    v, above = _error_above(model, v, policy, component, inside)
    q = model.q(v)
    best = np.where(live, q.max(axis=1), np.where(mdp.terminal, 0.0, -np.inf))
    return Solution(q, best, policy, iterations, float(max(error, above) + model.rounding(v)))


def _ending(mdp: MDP, model: _Model) -> tuple[_Model, np.ndarray]:
    """The model without the choices that may lose every chance to end, and a proper policy: ever closer to an end."""
    width, allowed, ending = mdp.n_actions, np.isfinite(model.r), np.ones(mdp.n_states, dtype=bool)
    while True:
        k = allowed[mdp.pairs]
        steps = distances(mdp.next_states[k], mdp.pairs[k] // width, mdp.terminal, mdp.n_states)
        if (np.isfinite(steps) == ending).all():
            break
        ending = np.isfinite(steps)
        allowed &= np.bincount(mdp.pairs, ~ending[mdp.next_states], minlength=mdp.n_pairs) == 0
    closest = np.full(mdp.n_pairs, np.inf)
    np.minimum.at(closest, mdp.pairs, steps[mdp.next_states])
    closest[~allowed] = np.inf
    policy = closest.reshape(model.shape).argmin(axis=1)
    return _Model(model.p, np.where(allowed, model.r, -np.inf), 1.0, model.shape), policy


def _howard(model: _Model, policy: np.ndarray) -> tuple[np.ndarray, np.ndarray, int] | int:
    """Policy iteration from a proper policy; value, policy and rounds, or a state that a gaining loop begins in."""
    live, states = model.live, np.arange(policy.size)
    for rounds in range(1, _MAX_ROUNDS + 1):
        v = model.value(policy)
        gain = np.where(live[:, None], model.q(v) - v[:, None], 0.0)
        best = gain.argmax(axis=1)
        # A gain must exceed rounding by far, or rounding alone would send the policy round in circles.
        better = gain[states, best] > np.maximum(gain[states, policy], 0.0) + 16 * model.rounding(v)
        if not better.any() or rounds == _MAX_ROUNDS:
            break
        policy = np.where(better, best, policy)
        if (endless := model.endless(policy)).any():
            return int(np.flatnonzero(better & endless)[0])
    return v, policy, rounds


def _rewardless_loops(mdp: MDP, model: _Model) -> tuple[np.ndarray, np.ndarray]:
    """Sets of states that lead to each other without reward and without risk, and the pairs that stay inside them."""
    width = mdp.n_actions
    paid = np.bincount(mdp.pairs, mdp.rewards != 0, minlength=mdp.n_pairs) > 0
    inside = np.isfinite(model.r) & ~paid
    while True:
        k = inside[mdp.pairs]
        tails, heads = mdp.pairs[k] // width, mdp.next_states[k]
        graph = coo_array((np.ones(tails.size), (tails, heads)), shape=(mdp.n_states,) * 2)
        component = np.asarray(connected_components(graph, connection="strong")[1])
        leaves = component[mdp.pairs // width] != component[mdp.next_states]
        stays = inside & (np.bincount(mdp.pairs, leaves, minlength=mdp.n_pairs) == 0)
        if (stays == inside).all():
            return component, inside
        inside = stays


def _error_below(model: _Model, v: np.ndarray, policy: np.ndarray) -> float:
    live = np.flatnonzero(model.live)
    if not live.size:
        return 0.0
    counting = _Model(model.p, np.where(np.isfinite(model.r), 1.0, -np.inf), 1.0, model.shape)
    steps = counting.value(policy)
    residual = np.abs(model.q(v)[live, policy[live]] - v[live]).max() + model.rounding(v)
    exact = np.abs(counting.q(steps)[live, policy[live]] - steps[live]).max() < 0.25
    return float(2 * residual * steps.max()) if exact else np.inf  # 2: the steps themselves may be off by a quarter


def _error_above(
    model: _Model, v: np.ndarray, policy: np.ndarray, component: np.ndarray, inside: np.ndarray
) -> tuple[np.ndarray, float]:
    """v, made equal over loops without reward, and c * max h of the argument above, checked pair by pair."""
    v = _largest(v, component)
    advantage = (model.q(v) - v[:, None]).ravel()
    advantage[inside] = 0.0  # exactly: all next states have the same value
    outside = np.isfinite(model.r) & ~inside
    near = outside & (advantage >= -_NEARLY_BEST * max(1.0, float(np.abs(v).max())))
    chosen = np.zeros(model.shape, dtype=bool)
    chosen[np.arange(policy.size), policy] = model.live
    near |= chosen.ravel() & outside
    found = _howard(_Model(model.p, np.where(near, 1.0, np.where(inside, 0.0, -np.inf)), 1.0, model.shape), policy)
    if isinstance(found, int):
        return v, np.inf
    h = _largest(found[0], component)
    drop = np.repeat(h, model.shape[1]) - model.p @ h
    rounding = model.rounding(v)
    c = 2 * (max(float(advantage[outside].max(initial=0.0)), 0.0) + rounding)
    proven = (advantage + rounding - c * (drop - model.rounding(h)))[outside].max(initial=0.0) <= 0
    return v, float(c * h.max()) if proven else np.inf


def _largest(values: np.ndarray, component: np.ndarray) -> np.ndarray:
    top = np.full(component.max() + 1, -np.inf)
    np.maximum.at(top, component, values)
    return top[component]


def _probabilities(mdp: MDP, policy: np.ndarray) -> np.ndarray:
    states, width = mdp.n_states, mdp.n_actions
    if policy.shape == (states,) and np.issubdtype(policy.dtype, np.integer):
        for s in np.flatnonzero(~mdp.terminal & ((policy < 0) | (policy >= mdp.actions)))[:1]:
            raise MDPError(
                f"the policy chooses action {policy[s]} in {mdp.state(s)}, which has {mdp.actions[s]} actions"
            )
        policy = policy[:, None] == np.arange(width)
    elif policy.shape != (states, width):
        raise MDPError(f"a policy is {states} whole numbers or an array ({states}, {width}), not {policy.shape}")
    chosen = np.where(mdp.terminal[:, None], 0.0, as_array("a policy", policy, np.float64))
    missing = np.arange(width) >= mdp.actions[:, None]
    for s, a in np.argwhere(~np.isfinite(chosen) | (chosen < 0) | (missing & (chosen != 0)))[:1]:
        raise MDPError(f"the policy has probability {chosen[s, a]:g} for {mdp.pair(s * width + a)}, which cannot be")
    for s in np.flatnonzero(~mdp.terminal & (np.abs(chosen.sum(axis=1) - 1) > 1e-9))[:1]:
        raise MDPError(f"the policy's probabilities in {mdp.state(s)} sum to {chosen[s].sum():.12g}, not to one")
    return np.asarray(chosen / np.where(mdp.terminal, 1.0, chosen.sum(axis=1))[:, None])
