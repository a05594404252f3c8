"""Finite MDPs with illegal actions: the solution among legal ones, and what is learned of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from maxmean.tabular import (
    KEQ,
    MDP,
    TEQ,
    Algorithm,
    DoubleQ,
    MaxMinQ,
    MDPError,
    Q,
    SelfCorrectingQ,
    WeightedQ,
    cliff_walking,
    from_gymnasium,
    learn,
    polynomial,
    random_mdp,
    solve,
)

STATES, ACTIONS, DISCOUNT = 5, 4, 0.6
LEGAL = np.array([[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0], [0, 1, 1, 1]])
PLAIN = random_mdp(STATES, ACTIONS, branching=3, discount=DISCOUNT, seed=3, noise=0.5)
BAIT = MDP(
    PLAIN.offsets,
    PLAIN.next_states,
    PLAIN.probabilities,
    np.where(LEGAL.ravel()[PLAIN.pairs] == 1, PLAIN.rewards, 1e6),
    PLAIN.noise,
    PLAIN.actions,
    PLAIN.terminal,
    PLAIN.start,
    DISCOUNT,
)
"""A problem whose illegal actions pay a million: one of them, taken or looked at once, and nothing would be left of the rest."""
EVERY: list[Algorithm] = [Q(), DoubleQ(), WeightedQ(5), SelfCorrectingQ(), MaxMinQ(3), TEQ(0.1), KEQ()]


def by_iteration(mdp: MDP, legal: Any) -> np.ndarray:
    """Q among legal actions by plain value iteration: 0.6^100 is 1e-22."""
    q = np.where(legal, 0.0, -np.inf)
    for _ in range(100):
        value = q.max(axis=1)
        for s, a in np.argwhere(legal):
            pair = s * mdp.n_actions + a
            part = slice(mdp.offsets[pair], mdp.offsets[pair + 1])
            outcomes = mdp.rewards[part] + mdp.discount * value[mdp.next_states[part]]
            q[s, a] = mdp.probabilities[part] @ outcomes
    return q


def test_the_solution_among_legal_actions_is_that_of_value_iteration() -> None:
    solution = solve(BAIT, legal=LEGAL)
    expected = by_iteration(BAIT, LEGAL)
    np.testing.assert_allclose(solution.q, expected, atol=1e-9)
    np.testing.assert_array_equal(solution.policy, expected.argmax(axis=1))
    np.testing.assert_allclose(solution.v, expected.max(axis=1), atol=1e-9)
    assert solve(BAIT).v.min() > 1e5


@pytest.mark.parametrize("algorithm", [TEQ(0.1), KEQ()], ids=lambda each: each.name)
def test_the_same_values_are_learned(algorithm: Algorithm) -> None:
    """All explored, rates n^-0.8: as without masks, where the error is below 0.05 after 300,000 steps."""
    exact = solve(BAIT, legal=LEGAL).q
    found = learn(
        BAIT,
        algorithm,
        legal=LEGAL,
        episodes=1,
        runs=10,
        max_steps=300_000,
        learning_rate=polynomial(0.8),
        epsilon=1.0,
        final_tables=True,
    )
    there = LEGAL == 1
    assert np.abs(found.tables[:, there] - exact[there]).max(axis=1).mean() < 0.05
    assert (found.q[~there] == -np.inf).all()


@pytest.mark.parametrize("algorithm", EVERY, ids=lambda each: each.name)
def test_no_algorithm_takes_or_looks_at_an_illegal_action(algorithm: Algorithm) -> None:
    settings: dict[str, Any] = {"episodes": 5, "runs": 4, "max_steps": 200, "epsilon": 0.5}
    found = learn(BAIT, algorithm, legal=LEGAL, bias=True, **settings)
    assert np.abs(found.q[LEGAL == 1]).max() < 100
    assert np.abs(found.episodes["return"]).max() < 100
    assert np.abs(found.episodes["bias"]).max() < 100


@pytest.mark.parametrize("mdp", [PLAIN, cliff_walking()], ids=["random", "cliff"])
def test_masks_of_all_ones_change_no_bit(mdp: MDP) -> None:
    ones = np.ones((mdp.n_states, mdp.n_actions), bool)
    settings: dict[str, Any] = {
        "episodes": 5,
        "runs": 3,
        "max_steps": 100,
        "final_tables": True,
        "watch_pairs": [(0, 3)],
    }
    plain, masked = (learn(mdp, KEQ(), legal=each, **settings) for each in (None, ones))
    np.testing.assert_array_equal(masked.tables, plain.tables)
    pd.testing.assert_frame_equal(masked.values, plain.values, check_exact=True)
    np.testing.assert_array_equal(solve(mdp, legal=ones).q, solve(mdp).q)


def test_what_is_watched_keeps_its_number() -> None:
    settings: dict[str, Any] = {"episodes": 3, "runs": 2, "max_steps": 50}
    found = learn(BAIT, Q(), legal=LEGAL, watch_pairs=[(0, 3), (4, 2)], watch_choices=[(0, 3), (0, 1)], **settings)
    last = found.values[found.values["episode"] == 3]
    assert last[["state", "action"]].to_numpy().tolist() == [[0, 3], [4, 2]]
    np.testing.assert_allclose(last["value"], [found.q[0, 3], found.q[4, 2]])
    assert found.choices[["state", "action"]].drop_duplicates().to_numpy().tolist() == [[0, 3], [0, 1]]
    np.testing.assert_allclose(found.choices.groupby("episode")["share"].sum(), 1.0)  # there are no others
    with pytest.raises(MDPError, match="there is no action 0 in state 0"):
        learn(BAIT, Q(), legal=LEGAL, watch_pairs=[(0, 0)], **settings)


def test_taxis_mask_leaves_out_what_leads_nowhere() -> None:
    """Bumping into walls, and picking up or dropping where that is wrong: the values are those without masks."""
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("Taxi-v4").unwrapped
    mdp = from_gymnasium(env)
    legal = np.array([env.action_mask(s) for s in range(env.observation_space.n)])
    legal = np.vstack([legal, np.ones((mdp.n_states - len(legal), mdp.n_actions), legal.dtype)])
    reached = mdp.start > 0
    masked, plain = solve(mdp, legal=legal), solve(mdp)
    np.testing.assert_allclose(masked.v[reached], plain.v[reached], atol=1e-9)
    assert np.isinf(masked.q).sum() > np.isinf(plain.q).sum()


@pytest.mark.parametrize(
    ("legal", "said"),
    [
        (np.ones((2, 2)), r"legal must hold a truth value for each state and action, shape \(5, 4\), not"),
        (np.full((5, 4), 0.5), "legal must hold a truth value"),
        (np.full((5, 4), "yes"), "legal must hold a truth value"),
        (np.arange(20).reshape(5, 4) >= 4, "state 0 has no legal action, but is not terminal"),
    ],
)
def test_what_is_no_mask_is_said(legal: Any, said: str) -> None:
    for use in (solve, lambda mdp, legal: learn(mdp, Q(), legal=legal, episodes=1)):
        with pytest.raises(MDPError, match=said):
            use(PLAIN, legal=legal)
