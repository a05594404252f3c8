"""The solver against other ways to the same numbers: by hand, closed forms, linear programming, breadth-first search."""

from __future__ import annotations

import sys
from collections import deque
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from maxmean.tabular.checks import MDPError
from maxmean.tabular.mdp import MDP
from maxmean.tabular.problems import cliff_walking, from_gymnasium, maximization_bias, noisy_grid, random_mdp
from maxmean.tabular.solve import evaluate, solve


def table(rows: list[list[dict[int, tuple[float, float]]]], *, discount: float = 1.0) -> MDP:
    """From ``rows[s][a] = {next state: (probability, reward)}``; a state without actions is terminal, 0 the start."""
    n, width = len(rows), max(map(len, rows))
    p, r = np.zeros((2, n, width, n))
    for s, actions in enumerate(rows):
        for a, outcomes in enumerate(actions):
            for to, (probability, reward) in outcomes.items():
                p[s, a, to], r[s, a, to] = probability, reward
    return MDP.of(p, r, terminal=[s for s in range(n) if not rows[s]], start=0, discount=discount)


def dense(problem: MDP) -> tuple[np.ndarray, np.ndarray]:
    """Transition matrix (pairs, S) and mean rewards, by a plain loop."""
    p, r = np.zeros((problem.n_pairs, problem.n_states)), np.zeros(problem.n_pairs)
    for k, pair in enumerate(problem.pairs):
        p[pair, problem.next_states[k]] += problem.probabilities[k]
        r[pair] += problem.probabilities[k] * problem.rewards[k]
    return p, r


def by_linear_programming(problem: MDP) -> np.ndarray:
    """The least v with v >= r + gamma P v for every pair, and 0 in terminal states."""
    p, r = dense(problem)
    pairs = np.unique(problem.pairs)
    owner = np.eye(problem.n_states)[pairs // problem.n_actions]
    bounds = [(0.0, 0.0) if end else (None, None) for end in problem.terminal]
    found = linprog(np.ones(problem.n_states), problem.discount * p[pairs] - owner, -r[pairs], bounds=bounds)
    assert found.success
    return np.asarray(found.x)


def test_by_hand() -> None:
    """Toss at -1 until heads (2 tosses), or pay 3: v = -2. With gamma = 1/2: v = -1 + v/4, so -4/3."""
    rows = [[{1: (1.0, -3.0)}, {0: (0.5, -1.0), 1: (0.5, -1.0)}], []]
    solution = solve(table(rows))
    np.testing.assert_allclose(solution.v, [-2.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(solution.q[0], [-3.0, -2.0], atol=1e-14)
    assert solution.policy.tolist() == [1, 0]
    assert solution.q[1].tolist() == [0.0, -np.inf]
    half = solve(table(rows, discount=0.5))
    np.testing.assert_allclose(half.v, [-4 / 3, 0.0], atol=1e-10)
    np.testing.assert_allclose(half.q[0], [-3.0, -4 / 3], atol=1e-10)


def test_missing_actions_are_worth_minus_infinity() -> None:
    solution = solve(maximization_bias(actions=3))
    assert solution.q.tolist() == [[-0.1, 0.0, -np.inf], [-0.1, -0.1, -0.1], [0.0, -np.inf, -np.inf]]
    assert solution.v.tolist() == [0.0, -0.1, 0.0]
    assert solution.policy[0] == 1


@pytest.mark.parametrize(("width", "height"), [(10, 5), (3, 2), (12, 4), (40, 7)])
def test_the_cliff_s_best_return_is_one_more_than_its_width(width: int, height: int) -> None:
    problem = cliff_walking(width, height)
    solution = solve(problem)
    start = int(problem.start.argmax())
    assert abs(solution.v[start] + width + 1) <= solution.error < 1e-9
    detours = [0.0, -100.0, -1.0, -1.0]  # up is best; right falls, down and left meet walls
    np.testing.assert_allclose(solution.q[start], -(width + 1) + np.array(detours), rtol=0, atol=solution.error)


@pytest.mark.parametrize("discount", [1.0, 0.95, 0.5])
def test_the_noisy_grid_s_closed_form(discount: float) -> None:
    problem = noisy_grid(discount=discount)
    solution = solve(problem)
    expected = 5 * discount**4 - sum(discount**k for k in range(4))
    better = max(expected, -1 / (1 - discount) if discount < 1 else -np.inf)  # or walk about for ever
    assert abs(solution.v[6] - better) <= solution.error < 1e-9


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("discount", [0.3, 0.9, 0.99])
def test_random_problems_agree_with_linear_programming(seed: int, discount: float) -> None:
    problem = random_mdp(25, 3, branching=4, discount=discount, seed=seed)
    np.testing.assert_allclose(solve(problem).v, by_linear_programming(problem), atol=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_random_episodic_problems_agree_with_linear_programming(seed: int) -> None:
    """Without discount: one state of a random problem becomes the end, and rewards are costs."""
    problem = ending(seed, states=25)
    solution = solve(problem)
    np.testing.assert_allclose(solution.v, by_linear_programming(problem), atol=1e-7)
    assert solution.error < 1e-10


def ending(seed: int, *, states: int = 12, discount: float = 1.0) -> MDP:
    base = random_mdp(states, 3, branching=4, discount=0.5, seed=seed)
    p, r = dense(base)
    p, r = p.reshape(states, 3, states), -np.abs(r.reshape(states, 3)) - 0.01
    p[:, :, -1] += 0.01  # every action may end the episode
    p /= p.sum(axis=2, keepdims=True)
    return MDP.of(p, r, terminal=[states - 1], start=0, discount=discount)


@given(st.integers(1, 15), st.integers(1, 4), st.sampled_from([0.0, 0.4, 0.9, 0.999]), st.integers(0, 10**6))
def test_the_optimality_equation_holds_and_no_policy_does_better(s: int, a: int, discount: float, seed: int) -> None:
    problem = random_mdp(s, a, branching=min(3, s), discount=discount, seed=seed)
    check_optimality(problem, seed)


@given(st.integers(0, 10**6), st.sampled_from([1.0, 0.9]))
def test_the_same_with_an_end(seed: int, discount: float) -> None:
    check_optimality(ending(seed, discount=discount), seed)


def check_optimality(problem: MDP, seed: int) -> None:
    solution, rng = solve(problem), np.random.default_rng(seed)
    p, r = dense(problem)
    rows = ~problem.terminal
    backup = (r + problem.discount * p @ solution.v).reshape(problem.n_states, -1)
    scale = 1 + np.abs(solution.v).max()
    np.testing.assert_allclose(
        backup[rows].max(axis=1), solution.v[rows], rtol=0, atol=2 * solution.error + 1e-13 * scale
    )
    np.testing.assert_allclose(solution.q[rows], backup[rows], rtol=0, atol=2 * solution.error + 1e-13 * scale)
    assert np.array_equal(solution.q.max(axis=1), solution.v)
    assert np.array_equal(solution.q.argmax(axis=1)[rows], solution.policy[rows]) or problem.discount == 1
    np.testing.assert_allclose(evaluate(problem, solution.policy), solution.v, rtol=1e-12, atol=1e-8)
    mixed = rng.dirichlet(np.ones(problem.n_actions), problem.n_states)
    fixed = rng.integers(problem.n_actions, size=problem.n_states)
    for policy in (mixed, fixed):
        assert (evaluate(problem, policy) <= solution.v + solution.error + 1e-12 * scale).all()


def test_without_a_future_the_best_mean_reward_is_all() -> None:
    problem = random_mdp(30, 4, branching=3, discount=0.0, seed=1)
    best = problem.rewards.reshape(30, 4, 3)[:, :, 0].max(axis=1)
    np.testing.assert_allclose(solve(problem).v, best, rtol=0, atol=1e-15)
    assert solve(problem).iterations == 1


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.999, 0.999999])
def test_the_error_bound_holds_and_the_tolerance_is_kept(discount: float) -> None:
    """A ring, the slowest to mix: reward 1 once in seven steps, so v = gamma^k / (1 - gamma^7)."""
    n = 7
    p = np.roll(np.eye(n), 1, axis=1)[:, None]
    problem = MDP.of(p, (np.arange(n) == n - 1)[:, None].astype(float), start=0, discount=discount)
    exact = discount ** np.arange(n - 1, -1, -1.0) / -np.expm1(n * np.log(discount))
    for tolerance in (1e-2, 1e-6, 1e-10):
        solution = solve(problem, tolerance=tolerance)
        assert np.abs(solution.v - exact).max() <= solution.error
        assert solution.error <= tolerance + 1e-13 / (1 - discount) ** 2


def test_large_problems_never_solve_a_linear_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["maxmean.tabular.solve"], "_SOLVABLE", 0)
    problem = noisy_grid(6, 6, discount=0.97)
    swept = solve(problem)
    monkeypatch.undo()
    assert np.abs(swept.v - solve(problem).v).max() < 1e-9


def test_frozen_lake_without_ice_by_breadth_first_search() -> None:
    """Reward 1 at the goal and nothing else: v = gamma^(steps - 1), and 1 without discount wherever a path is."""
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=False).unwrapped
    problem = from_gymnasium(env)
    steps = np.full(64, np.inf)
    steps[63], queue = 0, deque([63])
    while queue:
        to = queue.popleft()
        for s in range(64):
            if np.isinf(steps[s]) and any(env.P[s][a][0][1] == to for a in range(4)):
                steps[s] = steps[to] + 1
                queue.append(s)
    expected = np.where(problem.terminal, 0.0, 0.9 ** (steps - 1))
    solution = solve(problem.with_discount(0.9))
    np.testing.assert_allclose(solution.v, expected, rtol=0, atol=1e-10)
    patient = solve(problem)
    np.testing.assert_allclose(patient.v, ~problem.terminal * 1.0, rtol=0, atol=1e-12)
    assert patient.error < 1e-12
    np.testing.assert_allclose(evaluate(problem, patient.policy), patient.v, atol=1e-12)  # it does arrive


def test_frozen_lake_with_ice_is_crossed_14_times_in_17() -> None:
    pytest.importorskip("gymnasium")
    solution = solve(from_gymnasium("FrozenLake-v1"))
    assert abs(solution.v[0] - 14 / 17) <= solution.error < 1e-11


def test_taxi_by_breadth_first_search() -> None:
    """Fetch and deliver on the shortest way: 20 for the drop, -1 for every step before it."""
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("Taxi-v4").unwrapped
    solution = solve(from_gymnasium(env))
    starts = np.flatnonzero(env.initial_state_distrib)
    for start in starts[:: len(starts) // 20].tolist():
        seen, queue = {start}, deque([(start, 0)])
        best = None
        while best is None:
            state, steps = queue.popleft()
            for a in range(6):
                _, to, reward, done = env.P[state][a][0]
                if done:
                    best = steps * -1 + 20
                if reward == -1 and to not in seen:
                    seen.add(to)
                    queue.append((to, steps + 1))
        assert abs(solution.v[start] - best) <= solution.error < 1e-11


def test_a_policy_that_never_ends_is_no_way_out() -> None:
    """Waiting costs nothing, ending costs one: an episode ends, so the value is -1 and the policy ends it."""
    problem = table([[{0: (1.0, 0.0)}, {1: (1.0, -1.0)}], []])
    solution = solve(problem)
    assert solution.v.tolist() == [-1.0, 0.0]
    assert solution.policy[0] == 1
    assert solution.error < 1e-14
    assert evaluate(problem, [0, 0]).tolist() == [-np.inf, 0.0]
    assert evaluate(problem, [[0.9, 0.1], [0.0, 0.0]])[0] == pytest.approx(-1.0, abs=1e-14)


@pytest.mark.parametrize("seed", range(40))
def test_small_episodic_problems_by_trying_every_policy(seed: int) -> None:
    """Without discount, with loops of every kind: the best proper policy, or the news that waiting longer gains more."""
    rng = np.random.default_rng(seed)
    p, r = np.zeros((5, 2, 5)), rng.choice([0.0, 0.0, -1.0, -0.25, 0.5], size=(5, 2))
    for s, a in product(range(4), range(2)):
        p[s, a, rng.choice(5, rng.integers(1, 3), replace=False)] = 1.0
    p[0, 0, 4] = 1.0
    p[:4] /= p[:4].sum(axis=2, keepdims=True)
    try:
        problem = MDP.of(p, r, terminal=[4], start=0, discount=1.0)
    except MDPError:
        return  # a trap within reach of the start
    best = np.max([evaluate(problem, [*choice, 0]) for choice in product(range(2), repeat=4)], axis=0)
    try:
        solution = solve(problem)
    except MDPError:
        assert solve(problem.with_discount(1 - 1e-7)).v.max() > 1e4
        return
    np.testing.assert_allclose(solution.v, best, rtol=0, atol=min(solution.error, 1e-12))
    np.testing.assert_allclose(evaluate(problem, solution.policy), best, rtol=0, atol=1e-12)


def test_loops_without_reward_cost_no_precision() -> None:
    """Two rooms with free, slippery doors between them; one has an exit worth 2, the other one worth 1."""
    free = {0: (0.5, 0.0), 1: (0.5, 0.0)}
    solution = solve(table([[free, {2: (1.0, 1.0)}], [free, {2: (1.0, 2.0)}], []]))
    np.testing.assert_allclose(solution.v, [2.0, 2.0, 0.0], atol=1e-14)
    assert solution.error < 1e-13


def test_a_loop_that_gains_has_no_value() -> None:
    rows: list[list[dict[int, tuple[float, float]]]] = [[{1: (1.0, -5.0)}], [{2: (1.0, 0.0)}, {0: (1.0, 6.0)}], []]
    with pytest.raises(
        MDPError, match=r"^the values are infinite: without discount, a loop from state 1 gains for ever"
    ):
        solve(table(rows))
    assert solve(table(rows, discount=0.5)).v[0] == pytest.approx((-5 + 0.5 * 6) / 0.75)


def test_a_loop_that_cancels_leaves_the_value_right_and_the_error_unknown() -> None:
    solution = solve(table([[{1: (1.0, -5.0)}], [{2: (1.0, 0.0)}, {0: (1.0, 5.0)}], []]))
    np.testing.assert_allclose(solution.v, [-5.0, 0.0, 0.0], atol=1e-14)
    assert solution.error == np.inf


def test_states_that_the_start_does_not_lead_to_may_never_end() -> None:
    """State 1 is a trap, state 2 can choose between the trap and the end, state 3 only toss for it."""
    rows: list[list[dict[int, tuple[float, float]]]] = [
        [{4: (1.0, 1.0)}],
        [{1: (1.0, 7.0)}],
        [{1: (1.0, 7.0)}, {4: (1.0, -3.0)}],
        [{1: (0.5, 0.0), 4: (0.5, 0.0)}],
        [],
    ]
    solution = solve(table(rows))
    assert solution.v.tolist() == [1.0, -np.inf, -3.0, -np.inf, 0.0]
    assert evaluate(table(rows), [0, 0, 1, 0, 0]).tolist() == [1.0, -np.inf, -3.0, -np.inf, 0.0]
    assert solution.policy[2] == 1


def test_a_stochastic_policy_mixes_and_is_linear() -> None:
    """Tossing with probability q, else paying 3: v = q (-1 + v/2) - 3 (1 - q)."""
    problem = table([[{1: (1.0, -3.0)}, {0: (0.5, -1.0), 1: (0.5, -1.0)}], []])
    for q in (0.0, 0.25, 1.0):
        value = evaluate(problem, [[1 - q, q], [0.5, 0.5]])
        np.testing.assert_allclose(value, [(-q - 3 * (1 - q)) / (1 - q / 2), 0.0], atol=1e-14)


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ([0, 8, 0], r"the policy chooses action 8 in state 1 \(B\), which has 8 actions"),
        ([2, 0, 0], r"the policy chooses action 2 in state 0 \(A\), which has 2 actions"),
        ([0, -1, 0], r"the policy chooses action -1 in state 1 \(B\)"),
        ([0, 1], r"a policy is 3 whole numbers or an array \(3, 8\), not \(2,\)"),
        (np.full((3, 8), 0.125), r"the policy has probability 0.125 for state 0 \(A\), action 2, which cannot be"),
        (np.eye(8)[[0, 1, 0]] * [[1.0], [0.5], [1.0]], r"the policy's probabilities in state 1 \(B\) sum to 0.5, not to one"),
        (np.eye(8)[[0, 1, 0]] * -1, r"the policy has probability -1 for state 0 \(A\), action 0, which cannot be"),
        (np.full((3, 8), np.nan), r"the policy has probability nan for state 0 \(A\), action 0, which cannot be"),
    ],
)  # fmt: skip
def test_a_wrong_policy_gets_one_sentence(policy: Any, sentence: str) -> None:
    with pytest.raises(MDPError, match=f"^{sentence}"):
        evaluate(maximization_bias(), policy)


def test_a_tolerance_is_positive() -> None:
    with pytest.raises(ValueError, match="tolerance must be positive, not 0"):
        solve(maximization_bias(), tolerance=0.0)


def test_what_is_no_problem_no_tolerance_and_no_policy() -> None:
    problem: Any = "cliff"
    for ask in (solve, lambda mdp: evaluate(mdp, [0])):
        with pytest.raises(MDPError, match="must be an MDP"):
            ask(problem)
    tolerance: Any = "x"
    with pytest.raises(MDPError, match="tolerance must be a number, not 'x'"):
        solve(cliff_walking(), tolerance=tolerance)
    for policy in ("abc", None, 0.5):
        with pytest.raises(MDPError, match="a policy is"):
            evaluate(cliff_walking(), policy)
    with pytest.raises(MDPError, match="a policy must hold numbers"):
        evaluate(cliff_walking(), np.full((42, 4), "x"))
