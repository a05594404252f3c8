"""Problems to learn on: the paper's two, random and noisy ones, and any Gymnasium environment that carries its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import missing
from .checks import MDPError, as_array, check_number, check_whole
from .mdp import MDP

LEFT, RIGHT = 0, 1
"""The two actions in state A of :func:`maximization_bias`."""

MOVES = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
"""Actions of the grid worlds, in order, as changes of (row, column); row 0 is the top."""

MOST_CELLS = 1_000_000
"""Cells of a grid, or actions of a state, each of which is made in Python; a random problem has ten times as many outcomes."""

Outcomes = list[list[list[tuple[float, int, float]]]]


def maximization_bias(actions: int = 8, mean: float = -0.1, sd: float = 1.0) -> MDP:
    """Two states, and a lure: figure 6.5 of Sutton and Barto (2018), section 7.2 of the paper.

    From A (0), ``RIGHT`` ends the episode and ``LEFT`` leads to B (1), both with reward 0. In B each of the ``actions``
    ends the episode with a reward from N(mean, sd²). So Q*(A, left) = mean, but the largest of B's noisy estimates says more.

    >>> problem = maximization_bias()
    >>> problem.actions, problem.state_names, problem.discount
    (array([2, 8, 0]), ('A', 'B', 'end'), 1.0)
    """
    check_whole("actions", actions, most=MOST_CELLS)
    check_number("mean", mean)
    check_number("sd", sd)
    if actions < 1:
        raise MDPError(f"state B needs at least one action, not {actions}")
    outcomes: Outcomes = [[[(1.0, 1, 0.0)], [(1.0, 2, 0.0)]], [[(1.0, 2, mean)]] * actions, []]
    return _from_lists(
        outcomes,
        noise=lambda s: sd if s == 1 else 0.0,
        start=0,
        discount=1.0,
        state_names=("A", "B", "end"),
        name="maximization-bias",
    )


def cliff_walking(width: int = 10, height: int = 5, fall: float = -100.0) -> MDP:
    """Walk along a cliff from S to G: example 6.6 of Sutton and Barto (2018), at the size of the paper's section 7.3.

    S is the lower left cell, G the lower right one, the cliff all cells between. A step costs 1, also against a wall, which
    moves nothing. A step into the cliff gives ``fall`` and leads to S, and the episode goes on. The best return is
    -(width + 1). States are the cells above the cliff's row, row by row from the top left, then S, then G.

    >>> problem = cliff_walking()
    >>> problem.n_states, problem.state_names[-2:], problem.action_names
    (42, ('S', 'G'), ('up', 'right', 'down', 'left'))
    """
    _check_size(width, height)
    check_number("fall", fall)
    if width < 3 or height < 2:
        raise MDPError(f"a cliff needs a grid of at least 3 x 2 cells, not {width} x {height}")
    first = (height - 1) * width
    index = {divmod(s, width): s for s in range(first)} | {(height - 1, 0): first, (height - 1, width - 1): first + 1}
    outcomes: Outcomes = []
    for row, column in list(index)[:-1]:
        cells = [_moved(row, column, move, height, width) for move in MOVES.values()]
        outcomes.append([[(1.0, index[c], -1.0) if c in index else (1.0, first, fall)] for c in cells])
    return _from_lists(
        [*outcomes, []],
        start=first,
        discount=1.0,
        state_names=(*(f"row {r} column {c}" for r, c in list(index)[:-2]), "S", "G"),
        action_names=tuple(MOVES),
        name=f"cliff-walking-{width}x{height}",
    )


def noisy_grid(
    width: int = 3,
    height: int = 3,
    *,
    rewards: Sequence[float] = (-12.0, 10.0),
    goal: float = 5.0,
    discount: float = 0.95,
) -> MDP:
    r"""A grid whose every step gives one of ``rewards`` at random, in the style of van Hasselt (2010).

    From the lower left cell to the upper right one. There, every action gives ``goal`` and ends the episode; elsewhere the
    four moves give one of ``rewards`` with equal probability, also against a wall. If their mean m is negative and small
    beside the goal, with d = width + height - 2 steps to the goal,

    .. math:: V^*(S) = \gamma^d\,goal + m\,(1 + \gamma + \dots + \gamma^{d-1}).

    States are the cells row by row from the top left, then the end.

    >>> problem = noisy_grid()
    >>> problem.n_states, int(problem.start.argmax()), problem.rewards[:2]
    (10, 6, array([-12.,  10.]))
    """
    _check_size(width, height)
    check_number("goal", goal)
    rewards = as_array("rewards", rewards, np.float64).ravel().tolist()
    if width < 1 or height < 1 or width * height < 2:
        raise MDPError(f"a grid needs at least two cells, not {width} x {height}")
    if not len(rewards):
        raise MDPError("a step needs at least one reward")
    outcomes: Outcomes = []
    for s in range(width * height):
        cells = [_moved(*divmod(s, width), move, height, width) for move in MOVES.values()]
        outcomes.append([[(1 / len(rewards), r * width + c, float(x)) for x in rewards] for r, c in cells])
    outcomes[width - 1] = [[(1.0, width * height, float(goal))]] * 4
    return _from_lists(
        [*outcomes, []],
        start=(height - 1) * width,
        discount=discount,
        state_names=(*(f"row {s // width} column {s % width}" for s in range(width * height)), "end"),
        action_names=tuple(MOVES),
        name=f"noisy-grid-{width}x{height}",
    )


def random_mdp(
    states: int,
    actions: int,
    *,
    branching: int,
    discount: float,
    seed: int,
    reward_sd: float = 1.0,
    noise: float = 0.0,
) -> MDP:
    """A random continuing problem: every pair leads to ``branching`` random states, and its mean reward is N(0, reward_sd²).

    The probabilities are uniform on the simplex. ``noise`` is the standard deviation of Gaussian noise on every reward. An
    episode starts anywhere and never ends, so the discount must be below one.

    >>> problem = random_mdp(5, 2, branching=3, discount=0.9, seed=0)
    >>> problem.n_states, problem.next_states.size, bool(problem.terminal.any())
    (5, 30, False)
    """
    for what, value in (("states", states), ("actions", actions), ("branching", branching)):
        check_whole(what, value)
    for what, number in (("the discount", discount), ("reward_sd", reward_sd), ("noise", noise)):
        check_number(what, number)
    check_whole("seed", seed, 0)
    if not (1 <= branching <= states and actions >= 1):
        raise MDPError(f"branching must lie in 1 .. {states} and actions be at least 1, not {branching} and {actions}")
    if states * actions * branching > 10 * MOST_CELLS:
        raise MDPError(
            f"a random problem has up to {10 * MOST_CELLS:,} outcomes, not {states} x {actions} x {branching}"
        )
    if not 0 <= discount < 1:
        raise MDPError(f"a problem without end needs a discount in [0, 1), not {discount}")
    rng = np.random.default_rng(seed)
    pairs = states * actions
    targets = np.sort(
        np.stack([rng.choice(states, branching, replace=False, shuffle=False) for _ in range(pairs)]), axis=1
    )
    weights = rng.exponential(size=(pairs, branching))
    return MDP(
        offsets=np.arange(pairs + 1) * branching,
        next_states=targets.ravel(),
        probabilities=(weights / weights.sum(axis=1, keepdims=True)).ravel(),
        rewards=np.repeat(rng.normal(0.0, reward_sd, pairs), branching),
        noise=np.full(pairs * branching, float(noise)),
        actions=np.full(states, actions),
        terminal=np.zeros(states, dtype=bool),
        start=np.full(states, 1 / states),
        discount=discount,
        name=f"random-{states}x{actions}-{seed}",
    )


def from_gymnasium(env: Any, *, discount: float = 1.0, start: Any = None) -> MDP:
    """The table inside a Gymnasium environment (``env.unwrapped.P``), or inside the one of that id.

    Works for ``FrozenLake``, ``Taxi``, ``CliffWalking`` and whatever else carries a table; time limits are not in it. A step
    that ends the episode must lead to a terminal state. A state that is only ever entered by such steps, and never a start,
    is terminal itself (a hole, a goal). A state that other steps enter too goes on from there, so the step that ends goes to
    an added last state instead: Taxi's table has 500 states, the problem 501. ``start`` replaces the environment's own
    start distribution: a distribution or a state.

    >>> class Coin:
    ...     P = {0: {0: [(0.5, 0, -1.0, False), (0.5, 1, 0.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
    ...     initial_state_distrib = [1.0, 0.0]
    >>> from_gymnasium(Coin()).terminal
    array([False,  True])
    """
    if isinstance(env, str):
        made = _make(env)
        try:
            return from_gymnasium(made, discount=discount, start=start)
        finally:
            made.close()
    inner = getattr(env, "unwrapped", env)
    name = getattr(getattr(env, "spec", None), "id", type(inner).__name__)
    table = getattr(inner, "P", None)
    if table is None:
        raise MDPError(f"{name} carries no transition table (an attribute P), so it cannot become an MDP")
    if getattr(inner, "fickle_passenger", False):
        raise MDPError(f"{name} has a fickle passenger, whose changes of mind are not in its transition table")
    if start is None:
        start = getattr(inner, "initial_state_distrib", getattr(inner, "isd", None))
    if start is None:
        raise MDPError(f"{name} carries no start distribution; pass start=")

    outcomes = [[list(table[s][a]) for a in range(len(table[s]))] for s in range(len(table))]
    steps = [(s, *o[1:]) for s, pairs in enumerate(outcomes) for pair in pairs for o in pair if o[0] > 0]
    ends = {int(to) for _, to, _, done in steps if done}
    ends -= {int(start)} if np.ndim(start) == 0 else set(np.flatnonzero(start).tolist())
    # A terminal state is never left, so what leads from one to another does not count, and striking one off may strike others.
    while alive := {int(to) for s, to, _, done in steps if not done and int(to) in ends and s not in ends}:
        ends -= alive
    extra = len(table)
    added = any(done and int(to) not in ends for _, to, _, done in steps)
    kept = [
        []
        if s in ends
        else [[(p, extra if done and int(to) not in ends else int(to), r) for p, to, r, done in pair] for pair in pairs]
        for s, pairs in enumerate(outcomes)
    ]
    if added:
        kept.append([])
        start = start if np.ndim(start) == 0 else np.append(start, 0.0)
    return _from_lists(kept, start=start, discount=discount, name=name)


def _check_size(width: int, height: int) -> None:
    check_whole("width", width)
    check_whole("height", height)
    if width * height > MOST_CELLS:
        raise MDPError(f"a grid has up to {MOST_CELLS:,} cells, not {width} x {height}")


def _make(env_id: str) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise MDPError(missing(f"making {env_id}", "gymnasium")) from None
    try:
        return gymnasium.make(env_id)
    except gymnasium.error.Error as error:
        raise MDPError(f"gymnasium cannot make {env_id}: {error}") from None


def _moved(row: int, column: int, move: tuple[int, int], height: int, width: int) -> tuple[int, int]:
    return min(max(row + move[0], 0), height - 1), min(max(column + move[1], 0), width - 1)


def _from_lists(outcomes: Outcomes, *, start: Any, discount: float, noise: Any = lambda s: 0.0, **names: Any) -> MDP:
    """From ``outcomes[s][a]``, lists of (probability, next state, reward); a state without actions is terminal."""
    states, width = len(outcomes), max(len(pairs) for pairs in outcomes)
    padded = [[*pairs, *[[]] * (width - len(pairs))] for pairs in outcomes]
    flat = [(*o, noise(s)) for s, pairs in enumerate(padded) for pair in pairs for o in pair]
    p, to, r, sd = zip(*flat, strict=True)
    if np.ndim(start) == 0:
        start = np.arange(states) == start
    return MDP(
        offsets=np.cumsum([0, *(len(pair) for pairs in padded for pair in pairs)]),
        next_states=np.array(to),
        probabilities=np.array(p),
        rewards=np.array(r),
        noise=np.array(sd),
        actions=np.array([len(pairs) for pairs in outcomes]),
        terminal=np.array([not pairs for pairs in outcomes]),
        start=start,
        discount=discount,
        **names,
    )
