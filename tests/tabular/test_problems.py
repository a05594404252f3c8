"""Facts about the problems, read off their definitions, and Gymnasium's own environments as oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maxmean.tabular.checks import MDPError
from maxmean.tabular.mdp import MDP
from maxmean.tabular.problems import (
    LEFT,
    RIGHT,
    cliff_walking,
    from_gymnasium,
    maximization_bias,
    noisy_grid,
    random_mdp,
)


def outcomes(problem: MDP, state: int, action: int) -> list[tuple[float, int, float]]:
    p = state * problem.n_actions + action
    here = slice(problem.offsets[p], problem.offsets[p + 1])
    arrays = (problem.probabilities[here], problem.next_states[here], problem.rewards[here])
    return list(zip(*(a.tolist() for a in arrays), strict=True))


def test_the_lure_of_b() -> None:
    problem = maximization_bias(actions=3, mean=-0.2, sd=2.0)
    assert outcomes(problem, 0, LEFT) == [(1.0, 1, 0.0)]
    assert outcomes(problem, 0, RIGHT) == [(1.0, 2, 0.0)]
    assert [outcomes(problem, 1, a) for a in range(3)] == [[(1.0, 2, -0.2)]] * 3
    assert problem.noise.tolist() == [0.0, 0.0, 2.0, 2.0, 2.0]
    assert problem.start.tolist() == [1.0, 0.0, 0.0]
    assert maximization_bias(actions=1).actions.tolist() == [2, 1, 0]


def test_the_cliff_cell_by_cell() -> None:
    """A 4 x 3 map by hand: cells 0 .. 7 above, S = 8 and G = 9 below, the cliff between them."""
    problem = cliff_walking(4, 3)
    up, right, down, left = range(4)
    assert problem.n_states == 10
    assert outcomes(problem, 8, right) == [(1.0, 8, -100.0)]
    assert outcomes(problem, 8, up) == [(1.0, 4, -1.0)]
    assert outcomes(problem, 8, left) == outcomes(problem, 8, down) == [(1.0, 8, -1.0)]
    assert outcomes(problem, 4, down) == [(1.0, 8, -1.0)]
    assert outcomes(problem, 5, down) == outcomes(problem, 6, down) == [(1.0, 8, -100.0)]
    assert outcomes(problem, 7, down) == [(1.0, 9, -1.0)]
    assert outcomes(problem, 7, right) == [(1.0, 7, -1.0)]
    assert outcomes(problem, 0, up) == outcomes(problem, 0, left) == [(1.0, 0, -1.0)]
    assert outcomes(problem, 1, down) == [(1.0, 5, -1.0)]
    assert np.flatnonzero(problem.terminal).tolist() == [9]
    assert int(problem.start.argmax()) == 8


def test_our_cliff_is_gymnasium_s_at_its_size() -> None:
    pytest.importorskip("gymnasium")
    ours, theirs = cliff_walking(12, 4), from_gymnasium("CliffWalking-v1")
    numbers = {s: s for s in range(37)} | {47: 37}  # Gymnasium counts the cliff's cells too
    for s in range(37):
        for a in range(4):
            assert outcomes(ours, s, a) == [(p, numbers[to], r) for p, to, r in outcomes(theirs, s, a)]
    assert np.flatnonzero(theirs.terminal).tolist() == [47]


def test_the_noisy_grid_has_its_noise_in_the_table() -> None:
    problem = noisy_grid()
    assert outcomes(problem, 6, 0) == [(0.5, 3, -12.0), (0.5, 3, 10.0)]
    assert outcomes(problem, 6, 3) == [(0.5, 6, -12.0), (0.5, 6, 10.0)]
    assert [outcomes(problem, 2, a) for a in range(4)] == [[(1.0, 9, 5.0)]] * 4
    assert not problem.noise.any()
    thirds = noisy_grid(2, 1, rewards=(-1.0, 0.0, 1.0), goal=2.0)
    np.testing.assert_allclose([p for p, _, _ in outcomes(thirds, 0, 1)], 1 / 3)


def test_random_problems_branch_as_asked_and_repeat_with_their_seed() -> None:
    problem = random_mdp(20, 3, branching=4, discount=0.9, seed=5, reward_sd=10.0, noise=0.5)
    targets = problem.next_states.reshape(-1, 4)
    assert (np.diff(targets, axis=1) > 0).all()
    assert (problem.probabilities > 0).all()
    assert (problem.noise == 0.5).all()
    assert 5 < problem.rewards.reshape(-1, 4)[:, 0].std() < 15  # sd 10 from 60 draws
    again, other = (random_mdp(20, 3, branching=4, discount=0.9, seed=s, reward_sd=10.0) for s in (5, 6))
    assert np.array_equal(again.rewards, problem.rewards)
    assert not np.array_equal(other.rewards, problem.rewards)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: maximization_bias(0), "state B needs at least one action, not 0"),
        (lambda: maximization_bias(2, np.nan), r"state 1 \(B\), action 0 has a reward of nan, which is not finite"),
        (lambda: maximization_bias(2, sd=-1.0), r"state 1 \(B\), action 0 has noise of standard deviation -1.0"),
        (lambda: cliff_walking(2, 5), "a cliff needs a grid of at least 3 x 2 cells, not 2 x 5"),
        (lambda: cliff_walking(5, 1), "a cliff needs a grid of at least 3 x 2 cells, not 5 x 1"),
        (lambda: cliff_walking(fall=np.inf), r"state 31 \(row 3 column 1\), action 2 \(down\) has a reward of inf"),
        (lambda: noisy_grid(1, 1), "a grid needs at least two cells, not 1 x 1"),
        (lambda: noisy_grid(rewards=()), "a step needs at least one reward"),
        (lambda: random_mdp(3, 1, branching=4, discount=0.9, seed=0), "branching must lie in 1 .. 3 and actions be at least"),
        (lambda: random_mdp(3, 1, branching=1, discount=1.0, seed=0), r"a problem without end needs a discount in \[0, 1\), not"),
        (lambda: random_mdp(3, 1, branching="x", discount=0.9, seed=0), "branching must be a whole number, not 'x'"),  # type: ignore[arg-type]
        (lambda: random_mdp(3, 1, branching=1, discount="x", seed=0), "the discount must be a number, not 'x'"),  # type: ignore[arg-type]
        (lambda: random_mdp(3, 1, branching=1, discount=0.9, seed=-1), "seed must be at least 0, not -1"),
        (lambda: random_mdp(10**9, 1, branching=1, discount=0.9, seed=0), "a random problem has up to 10,000,000 outcomes"),
        (lambda: cliff_walking("10"), "width must be a whole number, not '10'"),  # type: ignore[arg-type]
        (lambda: cliff_walking(10**9, 10**9), "a grid has up to 1,000,000 cells, not 1000000000 x 1000000000"),
        (lambda: maximization_bias(2.5), "actions must be a whole number, not 2.5"),  # type: ignore[arg-type]
        (lambda: maximization_bias(10**9), "actions must be at most 1,000,000, not 1000000000"),
        (lambda: noisy_grid(rewards="abc"), "rewards must hold numbers"),  # type: ignore[arg-type]
        (lambda: noisy_grid(discount="x"), "the discount must be a number, not 'x'"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_wrong_settings_get_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(MDPError, match=f"^{sentence}"):
        make()


@pytest.mark.parametrize(
    "name", ["FrozenLake-v1", "FrozenLake8x8-v1", "Taxi-v4", "CliffWalking-v1", "CliffWalkingSlippery-v1"]
)
def test_tables_are_gymnasium_s_step_by_step(name: str) -> None:
    """Random play in the environment: every step is an outcome of the table, and ends exactly in its terminal states."""
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make(name).unwrapped
    problem = from_gymnasium(name)
    rng = np.random.default_rng(0)
    state, _ = env.reset(seed=0)
    ended = False
    for _ in range(3_000):
        if ended:
            state, _ = env.reset()
        assert problem.start[state] > 0 or not ended
        action = int(rng.integers(problem.actions[state]))
        following, reward, ended, _, _ = env.step(action)
        possible = {(to, r) for _, to, r in outcomes(problem, int(state), action)}
        added = problem.n_states - 1
        assert (int(following), reward) in possible or (
            ended and (added, reward) in possible and problem.terminal[added]
        )
        assert {bool(problem.terminal[to]) for to, r in possible if r == reward and to in (following, added)} == {ended}
        state = following
    env.close()


def test_which_states_of_gymnasium_s_tables_are_terminal() -> None:
    pytest.importorskip("gymnasium")
    assert np.flatnonzero(from_gymnasium("FrozenLake-v1").terminal).tolist() == [5, 7, 11, 12, 15]
    taxi = from_gymnasium("Taxi-v4")
    assert (taxi.n_states, np.flatnonzero(taxi.terminal).tolist()) == (501, [500])
    assert np.count_nonzero(taxi.start) == 300
    assert (taxi.next_states == 500).sum() == 4  # one successful drop at each of four destinations
    assert taxi.name == "Taxi-v4"


class Table:
    """An environment that is nothing but its table."""

    def __init__(self, rows: Any, start: Any = None) -> None:
        self.P = rows
        if start is not None:
            self.isd = start


def test_an_end_that_other_steps_enter_goes_to_an_added_state() -> None:
    """State 1 is entered by an ending step from 0 and by an ordinary one from 2, which goes on with it."""
    rows = [[[(1.0, 1, 5.0, True)], [(1.0, 2, 0.0, False)]], [[(1.0, 0, 1.0, False)]], [[(1.0, 1, 0.0, False)]]]
    problem = from_gymnasium(Table(rows, [1.0, 0.0, 0.0]))
    assert problem.terminal.tolist() == [False, False, False, True]
    assert outcomes(problem, 0, 0) == [(1.0, 3, 5.0)]
    assert outcomes(problem, 2, 0) == [(1.0, 1, 0.0)]
    assert problem.actions.tolist() == [2, 1, 1, 0]


def test_terminal_states_that_lead_to_each_other_on_paper_are_terminal_still() -> None:
    rows = [[[(0.5, 1, 1.0, True), (0.5, 2, 2.0, True)]], [[(1.0, 2, 9.0, False)]], [[(1.0, 1, 9.0, False)]]]
    problem = from_gymnasium(Table(rows), start=0)
    assert problem.terminal.tolist() == [False, True, True]


def test_a_start_is_never_terminal() -> None:
    rows = [[[(1.0, 0, 1.0, True)]]]
    problem = from_gymnasium(Table(rows, [1.0]))
    assert problem.terminal.tolist() == [False, True]


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ("Blackjack-v1", "Blackjack-v1 carries no transition table"),
        ("NoSuchLake-v0", "gymnasium cannot make NoSuchLake-v0: "),
        (object(), "object carries no transition table"),
        (Table([[[(1.0, 0, 1.0, True)]]]), "Table carries no start distribution; pass start="),
        (
            Table([[[(1.0, 0, 1.0, False)]]], [1.0]),
            "state 0 can be reached from the start but no terminal state from it",
        ),
    ],
)
def test_environments_without_a_table_get_one_sentence(env: Any, sentence: str) -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(MDPError, match=f"^{sentence}"):
        from_gymnasium(env)


def test_a_fickle_passenger_is_refused() -> None:
    """The passenger's changes of mind happen outside the table."""
    gymnasium = pytest.importorskip("gymnasium")
    with pytest.raises(MDPError, match=r"^Taxi-v4 has a fickle passenger"):
        from_gymnasium(gymnasium.make("Taxi-v4", fickle_passenger=True))
