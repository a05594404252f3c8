"""Finite Markov decision processes as arrays: what the learners run on and what the solver solves.

State ``s`` and action ``a`` make the pair ``s * n_actions + a``. The outcomes of pair ``p`` (where to, how likely, which
reward) are the entries ``offsets[p]:offsets[p + 1]`` of four flat arrays, so that drawing a step is one short search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .checks import MDPError, as_array, check_number

_SUM_TOLERANCE = 1e-9
_MAKE = {"offsets": np.int64, "next_states": np.int64, "actions": np.int64, "terminal": np.bool_}


@dataclass(frozen=True, eq=False)
class MDP:
    """A finite Markov decision process with S states and at most A actions a state; ready to use once it exists.

    Probabilities may miss a sum of one by 1e-9 and are then renormalised; outcomes of probability zero are dropped. The
    arrays are read-only copies. :meth:`of` builds one from dense arrays.

    Examples
    --------
    >>> coin = MDP(offsets=[0, 2, 2], next_states=[1, 0], probabilities=[0.5, 0.5], rewards=[0.0, 1.0], noise=[0.0, 0.0],
    ...            actions=[1, 0], terminal=[False, True], start=[1.0, 0.0], discount=1.0)
    >>> coin.n_states, coin.n_actions, coin.cumulative
    (2, 1, array([0.5, 1. ]))
    """

    offsets: np.ndarray
    """int64[S * A + 1]; a pair without outcomes is an action that the state does not have, or belongs to a terminal."""
    next_states: np.ndarray
    """int64[K], K outcomes in all."""
    probabilities: np.ndarray
    """float64[K], summing to one over each pair's outcomes."""
    rewards: np.ndarray
    """float64[K], the mean reward of the outcome. Tabulated noise is several outcomes with one next state."""
    noise: np.ndarray
    """float64[K], standard deviation of the Gaussian noise on the outcome's reward; 0 for none."""
    actions: np.ndarray
    """int64[S], how many actions each state has, 0 .. actions[s] - 1; none in a terminal state."""
    terminal: np.ndarray
    """bool[S], where episodes end."""
    start: np.ndarray
    """float64[S], the distribution of the first state."""
    discount: float
    """gamma in [0, 1]."""
    state_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    name: str = "mdp"

    @classmethod
    def of(
        cls,
        transitions: Any,
        rewards: Any,
        *,
        terminal: Any = (),
        start: Any,
        discount: float,
        noise: Any = None,
        state_names: Sequence[str] = (),
        action_names: Sequence[str] = (),
        name: str = "mdp",
    ) -> MDP:
        """From dense arrays: ``transitions[s, a, s']``, and ``rewards`` and ``noise`` of shape (S, A) or (S, A, S).

        A row ``transitions[s, a]`` of zeros is an action that the state lacks; those come last. Rows of terminal states are
        ignored. ``terminal`` is a mask or a list of states, ``start`` a distribution or one state.

        >>> walk = MDP.of([[[0.5, 0.5]], [[0.0, 0.0]]], [[-1.0], [0.0]], terminal=[1], start=0, discount=1.0)
        >>> walk.next_states, walk.rewards
        (array([0, 1]), array([-1., -1.]))
        """
        table = as_array("transitions", transitions, np.float64)
        if table.ndim != 3 or table.shape[0] != table.shape[2] or not table.size:
            raise MDPError(f"transitions must have shape (S, A, S), not {table.shape}")
        states, width, _ = table.shape
        spread = {}
        for key, values in (("rewards", rewards), ("noise", 0.0 if noise is None else noise)):
            array = as_array(key, values, np.float64)
            if array.shape not in ((), (states, width), table.shape):
                raise MDPError(f"{key} must have shape ({states}, {width}) or {table.shape}, not {array.shape}")
            spread[key] = np.broadcast_to(array[..., None] if array.ndim == 2 else array, table.shape)
        ends = np.asarray(terminal)
        if ends.dtype != np.bool_:
            ends = np.zeros(states, dtype=bool)
            ends[_states("terminal", terminal, states)] = True
        if ends.shape != (states,):
            raise MDPError(f"terminal must have shape ({states},), not {ends.shape}")
        if np.ndim(start) == 0:
            first, start = start, np.zeros(states)
            start[_states("start", first, states)] = 1.0
        table[ends] = 0.0
        here = (table != 0).any(axis=2)
        s, a, s2 = np.nonzero(table)
        return cls(
            offsets=np.concatenate([[0], np.cumsum(np.count_nonzero(table, axis=2))]),
            next_states=s2,
            probabilities=table[s, a, s2],
            rewards=spread["rewards"][s, a, s2],
            noise=spread["noise"][s, a, s2],
            actions=np.where(here.any(axis=1), width - here[:, ::-1].argmax(axis=1), 0),
            terminal=ends,
            start=start,
            discount=discount,
            state_names=state_names,  # type: ignore[arg-type]  # made a tuple in the end
            action_names=action_names,  # type: ignore[arg-type]
            name=name,
        )

    def __post_init__(self) -> None:
        for key in ("offsets", "next_states", "probabilities", "rewards", "noise", "actions", "terminal", "start"):
            object.__setattr__(self, key, as_array(key, getattr(self, key), _MAKE.get(key, np.float64)))
        check_number("the discount", self.discount)
        object.__setattr__(self, "discount", float(self.discount))
        self._check_shapes()
        self._check_outcomes()
        _check_start(self)
        if not 0 <= self.discount <= 1:
            raise MDPError(f"the discount must lie in [0, 1], not {self.discount}")
        if self.discount == 1:
            _check_ends(self)
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def n_states(self) -> int:
        return int(self.actions.size)

    @property
    def n_actions(self) -> int:
        """The largest number of actions of a state, A."""
        return self.n_pairs // self.n_states

    @property
    def n_pairs(self) -> int:
        """S * A, pairs of which some may not exist."""
        return int(self.offsets.size) - 1

    @cached_property
    def pairs(self) -> np.ndarray:
        """int64[K]: the pair that each outcome belongs to."""
        return np.repeat(np.arange(self.n_pairs), np.diff(self.offsets))

    @cached_property
    def cumulative(self) -> np.ndarray:
        """float64[K]: cumulative probabilities of each pair's outcomes, the last exactly 1.0."""
        sums = _running_sums(self.probabilities, self.offsets)
        sums[self.offsets[1:][np.diff(self.offsets) > 0] - 1] = 1.0
        sums.setflags(write=False)
        return sums

    @cached_property
    def start_cumulative(self) -> np.ndarray:
        """float64[S]: cumulative start probabilities, exactly 1.0 from the last possible start on."""
        sums = np.cumsum(self.start)
        sums[np.flatnonzero(self.start)[-1] :] = 1.0
        sums.setflags(write=False)
        return sums

    def with_discount(self, gamma: float) -> MDP:
        """The same problem under another discount."""
        return replace(self, discount=gamma)

    def state(self, s: int) -> str:
        """How messages name a state."""
        return f"state {s} ({self.state_names[s]})" if self.state_names else f"state {s}"

    def pair(self, p: int) -> str:
        """How messages name a state and an action."""
        s, a = divmod(int(p), self.n_actions)
        return f"{self.state(s)}, action {a}" + (f" ({self.action_names[a]})" if self.action_names else "")

    def _check_shapes(self) -> None:
        states, outcomes = self.actions.size, self.next_states.size
        if self.actions.ndim != 1 or not states:
            raise MDPError(f"actions must have shape (S,) with at least one state, not {self.actions.shape}")
        if self.offsets.ndim != 1 or self.n_pairs < states or self.n_pairs % states:
            raise MDPError(f"offsets must have S * A + 1 entries for S = {states} states, not {self.offsets.size}")
        if self.offsets[0] or self.offsets[-1] != outcomes or (np.diff(self.offsets) < 0).any():
            raise MDPError(f"offsets must rise from 0 to the number of outcomes, {outcomes}")
        sizes = dict.fromkeys(("next_states", "probabilities", "rewards", "noise"), outcomes)
        for key, size in (sizes | {"terminal": states, "start": states}).items():
            if getattr(self, key).shape != (size,):
                raise MDPError(f"{key} must have shape ({size},), not {getattr(self, key).shape}")
        for key, size in (("state_names", states), ("action_names", self.n_actions)):
            if not isinstance(getattr(self, key), (list, tuple, np.ndarray)):
                raise MDPError(f"{key} must be a list of names, not {getattr(self, key)!r}")
            object.__setattr__(self, key, tuple(getattr(self, key)))
            if len(getattr(self, key)) not in (0, size):
                raise MDPError(f"{key} must hold {size} names or none, not {len(getattr(self, key))}")

    def _check_outcomes(self) -> None:
        n, s, a = np.diff(self.offsets), *divmod(np.arange(self.n_pairs), self.n_actions)
        for p in np.flatnonzero((n > 0) & self.terminal[s])[:1]:
            raise MDPError(f"{self.pair(p)} has outcomes, but the state is terminal")
        for x in np.flatnonzero((self.actions < 0) | (self.actions > self.n_actions))[:1]:
            raise MDPError(f"{self.state(x)} has {self.actions[x]} actions, but there are at most {self.n_actions}")
        for x in np.flatnonzero((self.actions == 0) & ~self.terminal)[:1]:
            raise MDPError(f"{self.state(x)} has no actions, but is not terminal")
        for p in np.flatnonzero((n == 0) & (a < self.actions[s]) & ~self.terminal[s])[:1]:
            raise MDPError(f"{self.pair(p)} has no outcomes; actions that a state lacks must be its last ones")
        for p in np.flatnonzero((n > 0) & (a >= self.actions[s]))[:1]:
            raise MDPError(f"{self.pair(p)} has outcomes, but the state has only {self.actions[s[p]]} actions")
        for k in np.flatnonzero((self.next_states < 0) | (self.next_states >= self.n_states))[:1]:
            raise MDPError(f"{self.pair(self.pairs[k])} leads to state {self.next_states[k]}, which does not exist")
        for key, low, text in (
            ("probabilities", 0.0, "a probability of {}, which is not in [0, 1]"),
            ("rewards", -np.inf, "a reward of {}, which is not finite"),
            ("noise", 0.0, "noise of standard deviation {}, which is not finite and at least 0"),
        ):
            values = getattr(self, key)
            for k in np.flatnonzero(~(np.isfinite(values) & (values >= low)))[:1]:
                raise MDPError(f"{self.pair(self.pairs[k])} has {text.format(values[k])}")
        exists = n > 0
        sums = np.ones(self.n_pairs)
        sums[exists] = _running_sums(self.probabilities, self.offsets)[self.offsets[1:][exists] - 1]
        for p in np.flatnonzero(np.abs(sums - 1) > _SUM_TOLERANCE)[:1]:
            raise MDPError(f"the probabilities of {self.pair(p)} sum to {sums[p]:.12g}, not to one")
        kept = self.probabilities > 0
        object.__setattr__(self, "probabilities", (self.probabilities / sums[self.pairs])[kept])
        object.__setattr__(self, "offsets", np.concatenate([[0], np.cumsum(kept)])[self.offsets])
        for key in ("next_states", "rewards", "noise"):
            object.__setattr__(self, key, getattr(self, key)[kept])
        object.__setattr__(self, "actions", np.where(self.terminal, 0, self.actions))
        self.__dict__.pop("pairs")  # cached before the outcomes of probability zero went


def check_problem(mdp: object) -> None:
    """Refuse what is no MDP where one is asked for."""
    if not isinstance(mdp, MDP):
        raise MDPError(f"the problem must be an MDP, such as cliff_walking() makes, not {mdp!r:.200}")


def _states(key: str, states: Any, n: int) -> np.ndarray:
    found = as_array(key, states, np.int64)
    if found.size and not 0 <= found.min() <= found.max() < n:
        raise MDPError(f"{key} names a state outside 0 .. {n - 1}: {states}")
    return found


def _running_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Cumulative sums that begin anew in every segment; a difference of two long sums would lose digits."""
    sums, sizes = values.copy(), np.diff(offsets)
    for j in range(1, int(sizes.max(initial=0))):
        at = offsets[:-1][sizes > j] + j
        sums[at] += sums[at - 1]
    return sums


def distances(sources: np.ndarray, targets: np.ndarray, seeds: np.ndarray, n: int) -> np.ndarray:
    """float64[n]: the fewest edges ``sources[k] -> targets[k]`` from any of the ``seeds`` (a mask); inf if none lead there.

    >>> distances(np.array([0, 1]), np.array([1, 2]), np.array([False, True, False]), 3)
    array([inf,  0.,  1.])
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    roots = np.flatnonzero(seeds)
    tails, heads = np.concatenate([sources, np.full(roots.size, n)]), np.concatenate([targets, roots])
    graph: Any = coo_array((np.ones(tails.size), (tails, heads)), shape=(n + 1, n + 1)).tocsr()
    return np.asarray(dijkstra(graph, unweighted=True, indices=[n])[0, :n]) - 1


def _check_start(mdp: MDP) -> None:
    for s in np.flatnonzero(~(np.isfinite(mdp.start) & (mdp.start >= 0)))[:1]:
        raise MDPError(f"{mdp.state(s)} has a start probability of {mdp.start[s]}, which is not in [0, 1]")
    for s in np.flatnonzero(mdp.terminal & (mdp.start > 0))[:1]:
        raise MDPError(f"{mdp.state(s)} is terminal, but episodes start there with probability {mdp.start[s]:g}")
    if abs(mdp.start.sum() - 1) > _SUM_TOLERANCE:
        raise MDPError(f"the start probabilities sum to {mdp.start.sum():.12g}, not to one")
    object.__setattr__(mdp, "start", mdp.start / mdp.start.sum())


def _check_ends(mdp: MDP) -> None:
    """Without discount, every state that can be reached from the start must be able to reach a terminal state."""
    sources = mdp.pairs // mdp.n_actions
    reached = np.isfinite(distances(sources, mdp.next_states, mdp.start > 0, mdp.n_states))
    ending = np.isfinite(distances(mdp.next_states, sources, mdp.terminal, mdp.n_states))
    for s in np.flatnonzero(reached & ~ending)[:1]:
        raise MDPError(f"{mdp.state(s)} can be reached from the start but no terminal state from it, under discount 1")
