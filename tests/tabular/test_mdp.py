"""Facts about finite MDPs as arrays, and every sentence that a wrong one gets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmean.tabular.checks import MDPError
from maxmean.tabular.mdp import MDP, distances
from maxmean.tabular.problems import random_mdp


def lists(**changes: Any) -> MDP:
    """Two states and an end. State 0: go (to 1), or toss a coin (0 or the end). State 1: end."""
    fields: dict[str, Any] = {
        "offsets": [0, 1, 3, 4, 4, 4, 4],
        "next_states": [1, 0, 2, 2],
        "probabilities": [1.0, 0.5, 0.5, 1.0],
        "rewards": [-1.0, 0.0, 2.0, 1.0],
        "noise": [0.0, 0.0, 0.0, 3.0],
        "actions": [2, 1, 0],
        "terminal": [False, False, True],
        "start": [1.0, 0.0, 0.0],
        "discount": 1.0,
    }
    return MDP(**(fields | changes))


def dense(**changes: Any) -> MDP:
    """The same problem from dense arrays."""
    p, r, sd = np.zeros((3, 2, 3)), np.zeros((3, 2, 3)), np.zeros((3, 2))
    p[0, 0, 1] = p[1, 0, 2] = 1.0
    p[0, 1, [0, 2]] = 0.5
    r[0, 0, 1], r[0, 1, 2], r[1, 0, 2], sd[1, 0] = -1.0, 2.0, 1.0, 3.0
    fields: dict[str, Any] = {"transitions": p, "rewards": r, "noise": sd, "terminal": [2], "start": 0, "discount": 1.0}
    return MDP.of(**(fields | changes))


def same(one: MDP, other: MDP) -> bool:
    pairs = zip(vars(one).items(), vars(other).values(), strict=True)
    return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for (_, a), b in pairs)


def test_dense_arrays_and_lists_describe_the_same_problem() -> None:
    assert same(lists(), dense())
    assert same(lists(), dense(terminal=np.array([False, False, True]), start=[1.0, 0.0, 0.0]))
    assert (lists().n_states, lists().n_actions, lists().n_pairs) == (3, 2, 6)
    assert lists().actions.tolist() == [2, 1, 0]
    assert lists().pairs.tolist() == [0, 1, 1, 2]


def test_rewards_of_pairs_and_of_outcomes_agree_where_they_say_the_same() -> None:
    rewards = np.arange(6.0).reshape(3, 2)
    spread = np.repeat(rewards[:, :, None], 3, axis=2)
    assert same(dense(rewards=rewards), dense(rewards=spread))
    assert dense(rewards=rewards).rewards.tolist() == [0.0, 1.0, 1.0, 2.0]


def test_absorbing_rows_of_terminal_states_are_ignored() -> None:
    p = np.zeros((2, 1, 2))
    p[:, 0, 1] = 1.0
    problem = MDP.of(p, np.ones((2, 1)), terminal=[1], start=0, discount=1.0)
    assert problem.actions.tolist() == [1, 0]
    assert problem.offsets.tolist() == [0, 1, 1]


def test_outcomes_of_probability_zero_vanish() -> None:
    problem = lists(offsets=[0, 1, 4, 5, 5, 5, 5], next_states=[1, 0, 1, 2, 2], probabilities=[1, 0.5, 0, 0.5, 1],
                    rewards=[-1, 0, 7, 2, 1], noise=[0, 0, 7, 0, 3])  # fmt: skip
    assert same(problem, lists())


def test_nothing_can_be_changed_and_the_caller_s_arrays_stay_his() -> None:
    mine = np.array([1.0, 0.5, 0.5, 1.0])
    problem = lists(probabilities=mine)
    mine[0] = 7.0
    assert problem.probabilities[0] == 1.0
    for array in (problem.probabilities, problem.offsets, problem.cumulative, problem.start, problem.start_cumulative):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3


def test_small_errors_of_sums_are_renormalised() -> None:
    problem = lists(probabilities=[1.0, 0.5 + 4e-10, 0.5, 1.0], start=[1 - 5e-10, 0.0, 0.0])
    np.testing.assert_allclose(problem.probabilities[1:3].sum(), 1.0, rtol=0, atol=1e-16)
    assert problem.start[0] == 1.0


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 30), st.integers(0, 10**6))
def test_cumulative_probabilities_rise_to_exactly_one(states: int, actions: int, branching: int, seed: int) -> None:
    problem = random_mdp(states, actions, branching=min(branching, states), discount=0.9, seed=seed)
    for low, high in zip(problem.offsets[:-1], problem.offsets[1:], strict=True):
        sums = problem.cumulative[low:high]
        assert sums[-1] == 1.0
        np.testing.assert_allclose(sums, np.cumsum(problem.probabilities[low:high]), rtol=0, atol=1e-14)
    assert problem.start_cumulative[-1] == 1.0
    assert (np.diff(problem.start_cumulative) > 0).all()


def test_start_sums_are_one_from_the_last_possible_start_on() -> None:
    starts = np.full(10, 0.1)
    problem = MDP.of(
        np.tile(np.eye(12)[11], (12, 1, 1)), np.zeros((12, 1)), terminal=[10, 11], start=[*starts, 0, 0], discount=1
    )
    assert np.cumsum(starts)[-1] < 1
    assert problem.start_cumulative[9:].tolist() == [1.0, 1.0, 1.0]


def test_another_discount_changes_nothing_else() -> None:
    other = lists().with_discount(0.5)
    assert other.discount == 0.5
    assert same(other.with_discount(1.0), lists())


def test_distances_count_edges_from_the_nearest_seed() -> None:
    tails, heads = np.array([[0, 1], [1, 2], [0, 2], [3, 0], [2, 2]]).T
    assert distances(tails, heads, np.array([True, False, False, False]), 4).tolist() == [0, 1, 1, np.inf]
    assert distances(tails, heads, np.array([False, True, False, True]), 4).tolist() == [1, 0, 1, 0]
    assert distances(tails, heads, np.zeros(4, dtype=bool), 4).tolist() == [np.inf] * 4


NAMES = {"state_names": ("A", "B", "end"), "action_names": ("go", "toss")}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"probabilities": [1, 0.5, 0.4, 1]}, "the probabilities of state 0, action 1 sum to 0.9, not to one"),
        ({"probabilities": [1, 0.5, 0.5 + 3e-9, 1]}, "the probabilities of state 0, action 1 sum to 1.000000003, not to one"),
        ({"probabilities": [1, 1.5, -0.5, 1]}, r"state 0, action 1 has a probability of -0.5, which is not in \[0, 1\]"),
        ({"probabilities": [1, 0.5, 0.5, np.nan]}, r"state 1, action 0 has a probability of nan, which is not in \[0, 1\]"),
        ({"rewards": [np.inf, 0, 0, 0]}, "state 0, action 0 has a reward of inf, which is not finite"),
        ({"rewards": [0, 0, 0, np.nan]}, "state 1, action 0 has a reward of nan, which is not finite"),
        ({"noise": [0, 0, -1, 0]}, "state 0, action 1 has noise of standard deviation -1.0, which is not finite and at least"),
        ({"noise": [0, np.nan, 0, 0]}, "state 0, action 1 has noise of standard deviation nan"),
        ({"next_states": [3, 0, 2, 2]}, "state 0, action 0 leads to state 3, which does not exist"),
        ({"next_states": [1, 0, 2, -1]}, "state 1, action 0 leads to state -1, which does not exist"),
        ({"next_states": [1, 0, 2, 1]}, "state 1 can be reached from the start but no terminal state from it, under discount 1"),
        ({"next_states": [1, 0, 2, 1]} | NAMES, r"state 1 \(B\) can be reached from the start"),
        ({"rewards": [0, np.nan, 0, 0]} | NAMES, r"state 0 \(A\), action 1 \(toss\) has a reward of nan"),
        ({"start": [0, 0, 1]}, "state 2 is terminal, but episodes start there with probability 1"),
        ({"start": [0.5, 0.4, 0]}, "the start probabilities sum to 0.9, not to one"),
        ({"start": [1.5, -0.5, 0]}, r"state 1 has a start probability of -0.5, which is not in \[0, 1\]"),
        ({"actions": [2, 0, 0], "offsets": [0, 1, 4, 4, 4, 4, 4]}, "state 1 has no actions, but is not terminal"),
        ({"actions": [2, 2, 0]}, "state 1, action 1 has no outcomes; actions that a state lacks must be its last ones"),
        ({"actions": [1, 1, 0]}, "state 0, action 1 has outcomes, but the state has only 1 actions"),
        ({"actions": [3, 1, 0]}, "state 0 has 3 actions, but there are at most 2"),
        ({"terminal": [False, True, True]}, "state 1, action 0 has outcomes, but the state is terminal"),
        ({"discount": 1.1}, r"the discount must lie in \[0, 1\], not 1.1"),
        ({"discount": -0.1}, r"the discount must lie in \[0, 1\], not -0.1"),
        ({"discount": float("nan")}, r"the discount must lie in \[0, 1\], not nan"),
        ({"actions": []}, r"actions must have shape \(S,\) with at least one state, not \(0,\)"),
        ({"offsets": [0, 1, 3, 4, 4, 4]}, r"offsets must have S \* A \+ 1 entries for S = 3 states, not 6"),
        ({"offsets": [0, 3, 1, 4, 4, 4, 4]}, "offsets must rise from 0 to the number of outcomes, 4"),
        ({"offsets": [0, 1, 3, 5, 5, 5, 5]}, "offsets must rise from 0 to the number of outcomes, 4"),
        ({"rewards": [0, 0, 0]}, r"rewards must have shape \(4,\), not \(3,\)"),
        ({"start": [1]}, r"start must have shape \(3,\), not \(1,\)"),
        ({"state_names": ("A",)}, "state_names must hold 3 names or none, not 1"),
        ({"action_names": ("a", "b", "c")}, "action_names must hold 2 names or none, not 3"),
        ({"action_names": 5}, "action_names must be a list of names, not 5"),
        ({"discount": "x"}, "the discount must be a number, not 'x'"),
        ({"rewards": ["a", "b", "c", "d"]}, "rewards must hold numbers"),
        ({"next_states": [1, 0.5, 2, 0]}, "next_states must hold whole numbers"),
        ({"next_states": [1, float("nan"), 2, 0]}, "next_states must hold whole numbers"),
        ({"start": None}, "start must hold numbers"),
    ],
)  # fmt: skip
def test_a_wrong_problem_gets_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MDPError, match=f"^{sentence}"):
        lists(**changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"transitions": np.zeros((2, 3))}, r"transitions must have shape \(S, A, S\), not \(2, 3\)"),
        ({"transitions": np.zeros((2, 1, 3))}, r"transitions must have shape \(S, A, S\), not \(2, 1, 3\)"),
        ({"rewards": np.zeros(3)}, r"rewards must have shape \(3, 2\) or \(3, 2, 3\), not \(3,\)"),
        ({"noise": np.zeros((2, 2))}, r"noise must have shape \(3, 2\) or \(3, 2, 3\), not \(2, 2\)"),
        ({"terminal": [3]}, r"terminal names a state outside 0 .. 2: \[3\]"),
        ({"terminal": np.array([True])}, r"terminal must have shape \(3,\), not \(1,\)"),
        ({"start": -1}, "start names a state outside 0 .. 2: -1"),
        ({"transitions": np.full((3, 2, 3), np.nan)}, "state 0, action 0 has a probability of nan"),
        ({"terminal": []}, "state 2 has no actions, but is not terminal"),
        ({"transitions": np.eye(3)[None, [0, 2]].repeat(3, 0) * [[[0.0], [1.0]]]}, "state 0, action 0 has no outcomes; actions"),
    ],
)  # fmt: skip
def test_wrong_dense_arrays_get_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MDPError, match=f"^{sentence}"):
        dense(**changes)


def test_a_trap_matters_only_where_the_start_leads_to_it_and_without_discount() -> None:
    trap = np.zeros((3, 2, 3))
    trap[0, 0, 2] = trap[1, 0, 1] = 1.0
    assert dense(transitions=trap).n_states == 3
    trap[0, 1, 1] = 1.0
    with pytest.raises(MDPError, match="state 1 can be reached"):
        dense(transitions=trap)
    assert dense(transitions=trap, discount=0.999).discount == 0.999
