"""``learn``: what its tables hold, that they do not depend on how the work is done, and what it finds on known problems."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from maxmean import mev
from maxmean.tabular.algorithms import (
    KEQ,
    TEQ,
    Algorithm,
    DoubleQ,
    MaxMinQ,
    Q,
    SelfCorrectingQ,
    VarianceTracker,
    WeightedQ,
)
from maxmean.tabular.learn import Learned, learn
from maxmean.tabular.mdp import MDP
from maxmean.tabular.problems import LEFT, cliff_walking, from_gymnasium, maximization_bias, random_mdp
from maxmean.tabular.schedules import CLIFF_LEARNING_RATE, INVERSE_ROOT, Schedule, constant, polynomial
from maxmean.tabular.solve import solve
from seldom import slow

LEVEL = 1e-6  # error probability of every statistical test here unless it says otherwise; seeds are fixed
EVERY: list[Algorithm] = [Q(), DoubleQ(), WeightedQ(5), SelfCorrectingQ(), MaxMinQ(3), TEQ(0.1), KEQ()]
every_algorithm = pytest.mark.parametrize("algorithm", EVERY, ids=lambda a: a.name)
everything: dict[str, Any] = {
    "watch_pairs": [(0, 0), (1, 3)],
    "watch_states": [0, 1],
    "watch_choices": [(0, 0), (1, 2)],
    "bias": True,
    "every_run": True,
    "final_tables": True,
}


def same(one: Learned, other: Learned) -> None:
    for frame in ("episodes", "values", "choices"):
        pd.testing.assert_frame_equal(getattr(one, frame), getattr(other, frame), check_exact=True)
    for array in ("q", "q_variance", "every", "tables"):
        np.testing.assert_array_equal(getattr(one, array), getattr(other, array))


@every_algorithm
def test_the_same_numbers_for_any_number_of_threads(algorithm: Algorithm) -> None:
    run = partial(learn, maximization_bias(), algorithm, episodes=30, runs=100, seed=3, **everything)
    first = run(threads=1)
    for threads in (2, 5, None):
        same(run(threads=threads), first)


@every_algorithm
def test_asking_for_less_changes_nothing(algorithm: Algorithm) -> None:
    run = partial(learn, maximization_bias(), algorithm, episodes=30, runs=50, seed=3)
    full, plain = run(**everything), run()
    columns = ["episode", "return", "return_variance", "length", "length_variance"]
    assert list(plain.episodes.columns) == columns
    pd.testing.assert_frame_equal(plain.episodes, full.episodes[columns], check_exact=True)
    np.testing.assert_array_equal(plain.q, full.q)
    np.testing.assert_array_equal(plain.q_variance, full.q_variance)
    assert (plain.every.size, plain.tables.size, len(plain.values), len(plain.choices)) == (0, 0, 0, 0)
    some = run(watch_pairs=[(1, 3)])
    whole = full.values.query("state == 1 and action == 3").reset_index(drop=True)
    pd.testing.assert_frame_equal(some.values, whole, check_exact=True)


@every_algorithm
def test_runs_can_be_split(algorithm: Algorithm) -> None:
    """Runs 0 to 9 are runs 0 to 4 and 5 to 9, one by one and in the sums."""
    run = partial(learn, maximization_bias(), algorithm, episodes=30, seed=8, **everything)
    whole, low, high = run(runs=10), run(runs=5), run(runs=5, first_run=5)
    np.testing.assert_array_equal(whole.every, np.concatenate([low.every, high.every]))
    np.testing.assert_array_equal(whole.tables, np.concatenate([low.tables, high.tables]))
    np.testing.assert_allclose(whole.q[:2], (low.q[:2] + high.q[:2]) / 2, rtol=1e-13, atol=1e-15)
    for column in ("return", "length", "bias"):
        pooled = (low.episodes[column] + high.episodes[column]) / 2
        np.testing.assert_allclose(whole.episodes[column], pooled, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(whole.values["value"], (low.values["value"] + high.values["value"]) / 2, atol=1e-15)
    np.testing.assert_array_equal(whole.choices["visits"], low.choices["visits"] + high.choices["visits"])


def test_another_seed_is_another_run() -> None:
    run = partial(learn, maximization_bias(), Q(), episodes=50, runs=5, final_tables=True)
    one, other = (np.unique(run(seed=seed).tables[:, 1]) for seed in (1, 2))
    assert np.intersect1d(one, other).tolist() in ([], [0.0])  # 0 being where they began


@every_algorithm
def test_means_and_variances_are_those_over_runs(algorithm: Algorithm) -> None:
    found = learn(
        cliff_walking(5, 3),
        algorithm,
        episodes=12,
        runs=40,
        every_run=True,
        final_tables=True,
        max_steps=5000,
        threads=2,
    )
    assert found.runs == 40
    assert found.every.shape == (40, 2, 12)
    for k, column in enumerate(("return", "length")):
        np.testing.assert_allclose(found.episodes[column], found.every[:, k].mean(axis=0), rtol=1e-12)
        variance = found.every[:, k].var(axis=0, ddof=1)
        np.testing.assert_allclose(found.episodes[f"{column}_variance"], variance, rtol=1e-9)
    tables = found.tables[:, :-1]
    np.testing.assert_allclose(found.q[:-1], tables.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.q_variance[:-1], tables.var(axis=0, ddof=1), rtol=1e-8, atol=1e-12)
    assert list(found.episodes["episode"]) == list(range(1, 13))


def test_variances_survive_a_large_mean() -> None:
    """Rewards of a thousand plus noise of one: the variance over runs, from running sums, keeps eight digits.

    It loses two more with every further digit of mean over standard deviation.
    """
    transitions = np.zeros((2, 1, 2))
    transitions[0, 0, 1] = 1.0
    mdp = MDP.of(transitions, [[1e3], [0.0]], noise=[[1.0], [0.0]], terminal=[1], start=0, discount=1.0)
    found = learn(mdp, Q(), episodes=5, runs=2000, every_run=True)
    variance = found.every[:, 0].var(axis=0, ddof=1)
    np.testing.assert_allclose(found.episodes["return_variance"], variance, rtol=1e-8)


def test_one_run_has_no_variance() -> None:
    found = learn(maximization_bias(), Q(), episodes=20, **everything)
    assert (found.episodes.filter(like="variance") == 0).all(axis=None)
    assert (found.q_variance == 0).all()
    np.testing.assert_array_equal(found.episodes["return"], found.every[0, 0])


@every_algorithm
def test_watched_values_end_at_the_final_tables(algorithm: Algorithm) -> None:
    pairs = [(0, 0), (0, 1), (1, 0), (1, 7)]
    found = learn(
        maximization_bias(), algorithm, episodes=25, runs=30, watch_pairs=pairs, watch_states=[0, 1], final_tables=True
    )
    values = found.values
    assert list(values.columns) == ["episode", "value", "value_variance", "state", "action"]
    assert len(values) == 6 * 25
    last = values[values["episode"] == 25].set_index(["state", "action"])
    for s, a in pairs:
        assert last.loc[(s, a), "value"] == pytest.approx(found.tables[:, s, a].mean(), rel=1e-12)
        assert last.loc[(s, a), "value_variance"] == pytest.approx(
            found.tables[:, s, a].var(ddof=1), rel=1e-9, abs=1e-15
        )
    if algorithm.name != "dq":  # whose state values are means of two maxima
        for s in (0, 1):
            assert last.loc[(s, -1), "value"] == pytest.approx(found.tables[:, s].max(axis=1).mean(), rel=1e-12)


def test_watched_values_over_time_are_those_of_shorter_runs() -> None:
    found = learn(maximization_bias(), KEQ(), episodes=12, runs=7, watch_pairs=[(0, 0)])
    for episodes in range(1, 13):
        shorter = learn(maximization_bias(), KEQ(), episodes=episodes, runs=7)
        assert found.values["value"][episodes - 1] == shorter.q[0, 0]


def test_state_values_of_double_q_are_means_of_two_maxima() -> None:
    """One state, two actions that end with rewards 1 and 2, tau = 1, all explored: after long enough both tables know 2."""
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 1] = 1.0
    mdp = MDP.of(transitions, [[1.0, 2.0], [0.0, 0.0]], terminal=[1], start=0, discount=1.0)
    run = partial(learn, mdp, DoubleQ(), learning_rate=1.0, epsilon=1.0, watch_states=[0])
    assert run(episodes=200, runs=50).values["value"].iloc[-1] == 2
    # After one episode one of the tables holds one of the rewards, and the other zeros: the mean of the maxima is half of it.
    seen = {run(episodes=1, first_run=k).values["value"].iloc[0] for k in range(30)}
    assert seen == {0.5, 1.0}
    # After two, 1 and 2 in different tables give a mean of maxima of 1.5, while the maximum of the means is 1.
    assert 1.5 in {run(episodes=2, first_run=k).values["value"].iloc[1] for k in range(60)}


def test_shares_of_choices() -> None:
    """Explored at random, each of the two actions in A is chosen half the time, and B is visited as often as LEFT chosen."""
    choices = [(0, 0), (0, 1), (1, 4)]
    found = learn(maximization_bias(), Q(), episodes=20, runs=500, epsilon=1.0, watch_choices=choices)
    left, right, inside = (found.choices.query(f"state == {s} and action == {a}") for s, a in choices)
    assert (left["visits"] == 500).all()
    np.testing.assert_allclose(left["share"].to_numpy() + right["share"].to_numpy(), 1.0, rtol=1e-15)
    assert stats.binomtest(round((left["share"] * left["visits"]).sum()), 10_000, 0.5).pvalue > LEVEL
    np.testing.assert_allclose(inside["visits"].to_numpy(), (left["share"] * left["visits"]).to_numpy())
    chosen = round((inside["share"] * inside["visits"]).sum())
    assert stats.binomtest(chosen, int(inside["visits"].sum()), 1 / 8).pvalue > LEVEL


def test_shares_without_visits_are_missing() -> None:
    """Greedy from Q = 0 against Q(A, left) that is negative from the first visit to B on: B is soon never seen."""
    problem = maximization_bias(mean=-5.0, sd=0.0)
    found = learn(
        problem, Q(), episodes=60, runs=3, epsilon=0.0, initial=0.0, watch_choices=[(1, 0)], learning_rate=1.0
    )
    late = found.choices.iloc[30:]
    assert (late["visits"] == 0).all()
    assert late["share"].isna().all()


def test_number_of_means_averaged() -> None:
    """The target of (A, left) averages over B's eight actions: all of them at first; under Q-learning's alpha one.

    Actions that end the episode average nothing, and neither do algorithms without a kernel.
    """
    run = partial(learn, maximization_bias(), episodes=300, runs=300, watch_choices=[(0, LEFT), (1, 0)], epsilon=0.3)
    wide, narrow = run(TEQ(0.01)).choices, run(TEQ(0.5)).choices
    averaged = wide.query("state == 0")["averaged"].to_numpy()
    assert averaged[0] == 8
    assert averaged[-50:].mean() > 7.5
    assert narrow.query("state == 0")["averaged"].to_numpy()[0] == 8  # all tie
    assert (narrow.query("state == 0")["averaged"].to_numpy()[-50:] == 1).all()
    assert wide.query("state == 1")["averaged"].isna().all()
    assert run(Q()).choices["averaged"].isna().all()


def test_the_averaged_number_falls_with_alpha() -> None:
    means = []
    for alpha in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
        found = learn(maximization_bias(), TEQ(alpha), episodes=300, runs=500, watch_choices=[(0, LEFT)])
        means.append(found.choices["averaged"].to_numpy()[-50:].mean())
    assert means == sorted(means, reverse=True)
    assert means[1] > 7
    assert means[-1] == pytest.approx(1, abs=0.05)


def test_step_limits_cut_episodes() -> None:
    mdp = random_mdp(6, 2, branching=2, discount=0.9, seed=1)
    found = learn(mdp, Q(), episodes=4, runs=3, max_steps=17, every_run=True)
    assert (found.every[:, 1] == 17).all()
    walk = cliff_walking()
    lengths = learn(walk, Q(), episodes=30, runs=20, max_steps=60, epsilon=0.1, every_run=True).every[:, 1]
    assert lengths.max() == 60
    assert lengths.min() < 60
    # Cut off, not ended: the last value still looks beyond the limit. With gamma = 1 and a reward of -1 a step, Q would
    # otherwise stop at -1.
    transitions = np.zeros((2, 1, 2))
    transitions[0, 0] = [0.5, 0.5]
    stay = MDP.of(transitions, [[-1.0], [0.0]], terminal=[1], start=0, discount=1.0)
    q = learn(stay, Q(), episodes=4000, runs=20, max_steps=1, learning_rate=polynomial(1.0)).q[0, 0]
    assert q == pytest.approx(-2.0, abs=0.15)


def test_returns_are_discounted() -> None:
    """Reward 1 at each of three steps, gamma = 1/2: 1 + 1/2 + 1/4."""
    transitions = np.zeros((4, 1, 4))
    transitions[[0, 1, 2], 0, [1, 2, 3]] = 1.0
    mdp = MDP.of(transitions, np.ones((4, 1)), terminal=[3], start=0, discount=0.5)
    found = learn(mdp, Q(), episodes=2)
    assert found.episodes["return"].tolist() == [1.75, 1.75]
    assert found.episodes["length"].tolist() == [3, 3]


def test_bias_of_a_run_recomputed() -> None:
    """Mean over the visited pairs of Q, right after its update, minus Q*: on a chain all of them are known.

    Rewards 0, 0, 1 and tau = 1/2, so Q* = 1 everywhere; after episode n, Q(2) = 1 - 2^-n, and so on backwards.
    """
    transitions = np.zeros((4, 1, 4))
    transitions[[0, 1, 2], 0, [1, 2, 3]] = 1.0
    mdp = MDP.of(transitions, [[0.0], [0.0], [1.0], [0.0]], terminal=[3], start=0, discount=1.0)
    found = learn(mdp, Q(), episodes=6, bias=True, learning_rate=0.5)
    q, expected = [0.0, 0.0, 0.0], []
    for _ in range(6):
        for s in range(3):
            q[s] += 0.5 * ((q[s + 1] if s < 2 else 1.0) - q[s])
        expected.append(sum(q) / 3 - 1)
    np.testing.assert_allclose(found.episodes["bias"], expected, rtol=1e-13)


@every_algorithm
def test_bias_by_the_final_table(algorithm: Algorithm) -> None:
    """Episodes of one step: the bias of each is that of the one pair whose value changed since the episode before."""
    mdp = random_mdp(4, 3, branching=2, discount=0.8, seed=2, noise=1.0)
    best = solve(mdp).q
    run = partial(learn, mdp, algorithm, max_steps=1, learning_rate=0.3, epsilon=1.0, seed=4)
    found = run(episodes=10, bias=True)
    before = run(episodes=9).q
    changed = run(episodes=10).q != before
    if changed.sum() == 1:  # the smallest of several tables need not change
        assert found.episodes["bias"].iloc[-1] == pytest.approx((found.q - best)[changed][0], rel=1e-9)
    assert changed.sum() == 1 or algorithm.tables > 1


def test_no_exploration_and_nothing_else() -> None:
    """Greedy on a fork where both pay, tau = 1: the first choice, by lot, is better than the unknown and is repeated."""
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 1] = 1.0
    mdp = MDP.of(transitions, [[1.0, 2.0], [0.0, 0.0]], terminal=[1], start=0, discount=1.0)
    run = partial(learn, mdp, Q(), episodes=30, runs=400, every_run=True)
    greedy = run(epsilon=0.0, learning_rate=1.0).every[:, 0]
    assert (greedy == greedy[:, :1]).all()
    assert stats.binomtest(int((greedy[:, 0] == 1).sum()), 400, 0.5).pvalue > LEVEL
    chance = run(epsilon=1.0).every[:, 0]
    assert stats.binomtest(int((chance == 1).sum()), chance.size, 0.5).pvalue > LEVEL
    # Between the two: after both are known, the worse one is taken with probability epsilon / 2.
    mixed = learn(mdp, Q(), episodes=400, runs=400, epsilon=0.2, every_run=True).every[:, 0, 200:]
    assert mixed.mean() == pytest.approx(1.9, abs=0.01)


def test_optimism_tries_everything() -> None:
    """Greedy from values above every reward: all actions are tried in turn."""
    found = learn(maximization_bias(), Q(), episodes=200, runs=5, epsilon=0.0, initial=10.0, final_tables=True)
    assert (found.tables[:, 1] < 10).all()


def test_exploration_by_visits_of_the_state() -> None:
    """epsilon = 1 / sqrt(n(s)) at n = 1, 2, 100: once the worse of two actions is known, its share is half of that.

    Action 1 pays 0 and keeps its value 0; action 0 pays -1 and is below it from its first choice on.
    """
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 1] = 1.0
    mdp = MDP.of(transitions, [[-1.0, 0.0], [0.0, 0.0]], terminal=[1], start=0, discount=1.0)
    worse = learn(mdp, Q(), episodes=100, runs=40_000, epsilon=INVERSE_ROOT, every_run=True).every[:, 0] == -1
    assert stats.binomtest(int(worse[:, 0].sum()), 40_000, 0.5).pvalue > LEVEL
    second = worse[worse[:, 0], 1]
    assert stats.binomtest(int(second.sum()), second.size, math.sqrt(0.5) / 2).pvalue > LEVEL
    last = worse[worse[:, :99].any(axis=1), 99]
    assert stats.binomtest(int(last.sum()), last.size, 0.05).pvalue > LEVEL


def test_learning_rate_by_updates_of_the_pair() -> None:
    """Noiseless reward 1: Q after n updates is 1 - prod (1 - tau_k), with tau_k = 0.1 * 101 / (100 + k)."""
    transitions = np.zeros((2, 1, 2))
    transitions[0, 0, 1] = 1.0
    mdp = MDP.of(transitions, [[1.0], [0.0]], terminal=[1], start=0, discount=1.0)
    found = learn(mdp, Q(), episodes=100, learning_rate=CLIFF_LEARNING_RATE, watch_pairs=[(0, 0)])
    left = np.cumprod([1 - 0.1 * 101 / (100 + k) for k in range(1, 101)])
    np.testing.assert_allclose(found.values["value"], 1 - left, rtol=1e-13)
    # With 1/n it is the plain mean of the rewards.
    noisy = MDP.of(transitions, [[1.0], [0.0]], noise=[[1.0], [0.0]], terminal=[1], start=0, discount=1.0)
    found = learn(noisy, Q(), episodes=50, learning_rate=polynomial(1.0), watch_pairs=[(0, 0)], every_run=True)
    means = np.cumsum(found.every[0, 0]) / np.arange(1, 51)
    np.testing.assert_allclose(found.values["value"], means, rtol=1e-12)


def test_rates_may_be_numbers_or_schedules() -> None:
    run = partial(learn, maximization_bias(), Q(), episodes=30, runs=5, final_tables=True)
    same(run(learning_rate=0.2, epsilon=0.3), run(learning_rate=constant(0.2), epsilon=Schedule(0.3)))


def test_tables_mark_actions_that_do_not_exist() -> None:
    found = learn(maximization_bias(), Q(), episodes=3, runs=2, final_tables=True)
    assert found.q.shape == (3, 8)
    assert found.tables.shape == (2, 3, 8)
    exists = np.arange(8) < np.array([2, 8, 0])[:, None]
    assert (np.isfinite(found.q) == exists).all()
    assert (np.isfinite(found.tables[0]) == exists).all()


def test_functions_of_the_users_own_as_kernels() -> None:
    """exp(T) by table is the Softmax kernel, to the table's accuracy."""
    run = partial(learn, maximization_bias(), episodes=60, runs=5, final_tables=True, epsilon=1.0)
    ours, theirs = run(KEQ(lambda t: np.exp(t))), run(KEQ(mev.Softmax()))
    np.testing.assert_allclose(ours.tables[:, :2], theirs.tables[:, :2], atol=1e-6)


def test_q_learning_on_the_cliff_of_gymnasium() -> None:
    """A plain loop on the environment itself, 20 runs of 60 episodes, against ``learn`` on its table.

    Returns summed over the first, second and last twenty episodes of a run: Kolmogorov-Smirnov, level 1e-5 each.
    """
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("CliffWalking-v1")
    rng = np.random.default_rng(7)
    returns = np.zeros((20, 60))
    start, _ = env.reset(seed=1)
    step = env.unwrapped.step
    for run in range(20):
        q = np.zeros((48, 4))
        for episode in range(60):
            env.reset()
            s, done = int(start), False
            while not done:
                best = np.flatnonzero(q[s] == q[s].max())
                a = int(rng.integers(4) if rng.random() < 0.1 else rng.choice(best))
                after, r, done, _, _ = step(a)
                q[s, a] += 0.5 * (float(r) + (0.0 if done else q[int(after)].max()) - q[s, a])
                s, returns[run, episode] = int(after), returns[run, episode] + float(r)
    found = learn(from_gymnasium(env), Q(), episodes=60, runs=2000, learning_rate=0.5, epsilon=0.1, every_run=True)
    env.close()
    for part in (slice(0, 20), slice(20, 40), slice(40, 60)):
        ours, theirs = found.every[:, 0, part].sum(axis=1), returns[:, part].sum(axis=1)
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-5


@pytest.mark.parametrize("algorithm", [TEQ(0.1), KEQ(), *slow(TEQ(0.3), KEQ(mev.Epanechnikov()))])
def test_values_approach_the_best_ones(algorithm: Algorithm) -> None:
    """Theorem 1 in small: a random problem, rates n^-0.8, all explored. Thirty times the steps, a third of the error."""
    mdp = random_mdp(5, 3, branching=3, discount=0.6, seed=3, noise=0.5)
    best = solve(mdp).q

    def error(steps: int) -> float:
        found = learn(
            mdp,
            algorithm,
            episodes=1,
            runs=20,
            max_steps=steps,
            learning_rate=polynomial(0.8),
            epsilon=1.0,
            final_tables=True,
        )
        return float(np.abs(found.tables - best).max(axis=(1, 2)).mean())

    short, long = error(10_000), error(300_000)
    assert long < short / 3
    assert long < 0.05


@pytest.fixture(scope="module")
def lure() -> dict[str, float]:
    """Share of LEFT in episode 500 of the maximisation-bias example, tau = epsilon = 0.1, 20,000 runs."""
    algorithms = {
        "q": Q(),
        "dq": DoubleQ(),
        "te-q 0.1": TEQ(0.1),
        "ke-q": KEQ(),
        **{f"te-q 0.4 variance {v:g}": TEQ(0.4, tracker=VarianceTracker(v)) for v in (10.0, 1.0, 0.1)},
    }
    found = {}
    for name, algorithm in algorithms.items():
        table = learn(
            maximization_bias(), algorithm, episodes=500, runs=20_000, seed=1, watch_choices=[(0, LEFT)]
        ).choices
        found[name] = float(table["share"].iloc[-1])
    return found


@pytest.mark.parametrize(("name", "share"), [("q", 0.097), ("dq", 0.060), ("te-q 0.1", 0.051), ("ke-q", 0.052)])
def test_reference_points_of_the_maximization_bias_example(lure: dict[str, float], name: str, share: float) -> None:
    """Known to 0.1%, measured with a standard error of at most 0.21%: within 0.1% and five standard errors (level 6e-7)."""
    error = math.sqrt(share * (1 - share) / 20_000)
    assert abs(lure[name] - share) < 0.001 + 5 * error


def test_order_of_the_algorithms_on_the_maximization_bias_example(lure: dict[str, float]) -> None:
    """Differences of 1% and more between independent shares with a standard error of 0.3%."""
    assert lure["q"] - lure["dq"] > 0.02
    assert lure["q"] - lure["ke-q"] > 0.03
    assert lure["dq"] > lure["te-q 0.1"] > 0.045


def test_the_initial_variance_matters(lure: dict[str, float]) -> None:
    """TE-Q(0.4) is lured more often the smaller the variance that it starts from."""
    shares = [lure[f"te-q 0.4 variance {v:g}"] for v in (10.0, 1.0, 0.1)]
    assert shares[1] - shares[0] > 0.02
    assert shares[2] - shares[1] > 0.003


def test_first_impressions_of_the_lure() -> None:
    """Q-learning takes Q*(A, left) = -0.1 for 0.1 at first; Double Q for hardly more than the 0 that it begins with.

    Where actions do not follow values, its tables are independent, and then it is never above 0 in the mean (five standard
    errors, level 3e-7 an episode). Choosing what one table likes makes the other see more of it: that is the little more.
    """
    run = partial(learn, maximization_bias(), episodes=100, runs=20_000, watch_pairs=[(0, LEFT)])
    q, dq, free = run(Q()).values, run(DoubleQ()).values, run(DoubleQ(), epsilon=1.0).values
    assert q["value"].max() > 0.09
    assert dq["value"].max() < 0.005
    assert (free["value"] <= 5 * np.sqrt(free["value_variance"] / 20_000)).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"episodes": 0}, "episodes must be at least 1, not 0"),
        ({"runs": 0}, "runs must be at least 1, not 0"),
        ({"max_steps": 0}, "max_steps must be at least 1, not 0"),
        ({"threads": 0}, "threads must be at least 1, not 0"),
        ({"seed": -1}, "seed must not be negative, not -1"),
        ({"first_run": -3}, "first_run must not be negative, not -3"),
        ({"initial": math.nan}, "the initial value must be finite, not nan"),
        ({"initial": -math.inf}, "the initial value must be finite, not -inf"),
        ({"learning_rate": 0.0}, "the learning rate must lie in (0, 1], not 0"),
        ({"learning_rate": 1.5}, "a rate must lie in [0, 1], not 1.5"),
        ({"epsilon": -0.1}, "a rate must lie in [0, 1], not -0.1"),
        ({"epsilon": 2}, "a rate must lie in [0, 1], not 2.0"),
        ({"watch_pairs": [(0, 2)]}, "there is no action 2 in state 0"),
        ({"watch_pairs": [(9, 0)]}, "there is no action 0 in state 9"),
        ({"watch_choices": [(2, 0)]}, "there is no action 0 in state 2"),
        ({"watch_choices": [(0, -1)]}, "there is no action -1 in state 0"),
        ({"watch_states": [2]}, "state 2 cannot be watched: it is terminal or does not exist"),
        ({"watch_states": [-1]}, "state -1 cannot be watched: it is terminal or does not exist"),
        ({"runs": "3"}, "runs must be a whole number, not '3'"),
        ({"runs": True}, "runs must be a whole number, not True"),
        ({"runs": 10**30}, "runs must be at most 1,000,000,000,000,000, not about 10^30"),
        (
            {"runs": 10**12},
            "1,000,000,000,000 runs of 5 episodes keep 29,802 GB: ask for fewer, or for less of each run",
        ),
        ({"episodes": 1.5}, "episodes must be a whole number, not 1.5"),
        ({"seed": "x"}, "seed must be a whole number, not 'x'"),
        ({"seed": None}, "seed must be a whole number, not None"),
        ({"threads": "all"}, "threads must be a whole number, not 'all'"),
        ({"initial": "0"}, "the initial value must be a number, not '0'"),
        ({"learning_rate": "x"}, "a rate must be a number, not 'x'"),
        ({"learning_rate": math.nan}, "a rate must lie in [0, 1], not nan"),
        ({"learning_rate": math.inf}, "a rate must lie in [0, 1], not inf"),
        ({"epsilon": [0.1]}, "a rate must be a number, not a list of 1"),
        ({"bias": "no"}, "bias must be True or False, not 'no'"),
        ({"every_run": 1}, "every_run must be True or False, not 1"),
        ({"final_tables": None}, "final_tables must be True or False, not None"),
        ({"watch_pairs": 5}, "watch_pairs must be a list, not 5"),
        ({"watch_pairs": [1]}, "a pair to watch is (state, action), not 1"),
        ({"watch_pairs": [("a", 0)]}, "a state must be a whole number, not 'a'"),
        ({"watch_states": [0.5]}, "a state must be a whole number, not 0.5"),
    ],
)
def test_bad_input(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        learn(maximization_bias(), Q(), **{"episodes": 5, **arguments})


@pytest.mark.parametrize(
    ("mdp", "algorithm", "sentence"),
    [
        (maximization_bias(), KEQ, "the algorithm must be made from its class: KEQ(), not KEQ"),
        (maximization_bias(), "ke-q", "the algorithm must be one of this module's, such as KEQ(), not 'ke-q'"),
        (Q(), maximization_bias(), "the problem must be an MDP, such as cliff_walking() makes, not Q()"),
        ("cliff", Q(), "the problem must be an MDP, such as cliff_walking() makes, not 'cliff'"),
        (
            maximization_bias(),
            KEQ(mev.Gaussian(np.array([1.0, 2.0]))),
            "a kernel in a compiled loop has one number for scale, not (2,)",
        ),
    ],
)
def test_what_is_no_problem_and_no_algorithm(mdp: Any, algorithm: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        learn(mdp, algorithm, episodes=5)
