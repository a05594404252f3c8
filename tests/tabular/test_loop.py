"""The compiled loop against a plain transcription of Algorithm 1 and its neighbours, and against updates by hand."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from numba import njit
from scipy import stats
from scipy.special import ndtr, ndtri, stdtr

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
from maxmean.tabular.learn import learn
from maxmean.tabular.mdp import MDP
from maxmean.tabular.problems import cliff_walking, maximization_bias
from maxmean.tabular.random import next_word, normal, streams, uniform
from maxmean.tabular.schedules import CLIFF_LEARNING_RATE, INVERSE_ROOT, Schedule
from maxmean.tabular.targets import Seen, update_moments, weighted_target

LEVEL = 1e-6  # error probability of every statistical test here; seeds are fixed
Pair = tuple[int, int]


@njit
def draw_uniform(state: np.ndarray) -> float:
    return uniform(state)


@njit
def draw_normal(state: np.ndarray) -> float:
    return normal(state)


@njit
def draw_word(state: np.ndarray) -> int:
    return next_word(state)


class Stream:
    """The random numbers of one run, in the order in which the loop takes them."""

    def __init__(self, seed: int, run: int) -> None:
        self.state = streams(seed, 1, run)[0]

    def uniform(self) -> float:
        return draw_uniform(self.state)

    def normal(self) -> float:
        return draw_normal(self.state)

    def coarse_normals(self) -> Iterator[float]:
        """Weighted Q's: the middles of 4096 equally likely cells, five from the bits of one word, the lowest bits first."""
        while True:
            word = draw_word(self.state)
            for k in range(5):
                yield float(ndtri(((word >> (12 * k)) % 4096 + 0.5) / 4096))

    def below(self, count: int) -> int:
        return int(self.uniform() * count)

    def one_of(self, items: list[int]) -> int:
        return items[0] if len(items) == 1 else items[self.below(len(items))]


def gaussian(t: float) -> float:
    return float(ndtr(t))


class Learner:
    """One run on dictionaries, a line of the paper at a time. Slow, and meant to be read."""

    def __init__(self, mdp: MDP, algorithm: Algorithm, rate: Schedule, epsilon: Schedule, initial: float = 0.0) -> None:
        self.mdp, self.algorithm, self.rate, self.epsilon = mdp, algorithm, rate, epsilon
        self.q: list[dict[Pair, float]] = [defaultdict(lambda: initial) for _ in range(algorithm.tables)]
        self.before: dict[Pair, float] = defaultdict(lambda: initial)
        self.last: tuple[Pair, float] | None = None
        self.updates: dict[Pair, int] = defaultdict(int)
        self.visits: dict[int, int] = defaultdict(int)
        tracker = algorithm.tracker if isinstance(algorithm, KEQ) else VarianceTracker()
        self.v: dict[Pair, float] = defaultdict(lambda: tracker.variance)
        self.w1: dict[Pair, float] = defaultdict(lambda: tracker.omega)
        self.w2: dict[Pair, float] = defaultdict(lambda: tracker.omega_squared)
        self.targets: dict[Pair, list[float]] = defaultdict(list)
        self.om: dict[Pair, float] = defaultdict(float)

    def actions(self, s: int) -> range:
        return range(int(self.mdp.actions[s]))

    def value(self, s: int, a: int) -> float:
        """What it acts on."""
        values = [q[s, a] for q in self.q]
        return min(values) if isinstance(self.algorithm, MaxMinQ) else sum(values) / len(values)

    def best(self, s: int) -> list[int]:
        top = max(self.value(s, a) for a in self.actions(s))
        return [a for a in self.actions(s) if self.value(s, a) == top]

    def kernel(self, t: float) -> float:
        """kappa(T), each from its formula."""
        assert isinstance(self.algorithm, KEQ)
        match kernel := self.algorithm.kernel:
            case mev.Indicator():
                return float(t >= ndtri(kernel.alpha))
            case mev.Gaussian():
                return gaussian(t / kernel.scale)
            case mev.Triangle():
                return max(0.0, 1 + t)
            case mev.StudentT():
                return float(stdtr(kernel.df, t))
        return math.exp(t)

    def kernel_estimate(self, s: int) -> float:
        """KE over a of Q(s, a), with variances v / n_eff; relative to the best, so that equal values stay equal."""
        q = [self.q[0][s, a] for a in self.actions(s)]
        variance = []
        for a in self.actions(s):
            n_eff = self.w1[s, a] ** 2 / self.w2[s, a]
            variance.append(self.v[s, a] / n_eff)
        top = max(q)
        tied = [x for x, y in zip(variance, q, strict=True) if y == top]
        star = sum(tied) / len(tied)
        numerator = denominator = 0.0
        for x, y in zip(variance, q, strict=True):
            t = 0.0 if y == top else (y - top) / math.sqrt(x + star) if x + star > 0 else -math.inf
            numerator += self.kernel(t) * (y - top)
            denominator += self.kernel(t)
        return top + numerator / denominator

    def standard_error(self, pair: Pair) -> float:
        """Weighted Q's, from the whole list of targets."""
        n, y = len(self.targets[pair]), self.targets[pair]
        if n < 2:
            return 1e10
        return math.sqrt(max(n / (n - 1) * (sum(x * x for x in y) / n - (sum(y) / n) ** 2) * self.om[pair], 1e-10))

    def weighted(self, s: int, draws: int, stream: Stream) -> float:
        winners, normals = [], stream.coarse_normals()
        for _ in range(draws):
            sample = [self.q[0][s, a] + self.standard_error((s, a)) * next(normals) for a in self.actions(s)]
            winners.append(sample.index(max(sample)))
        return sum(self.q[0][s, a] for a in winners) / draws

    def corrected(self, s: int, beta: float, by_step: bool) -> float:
        scores = []
        for a in self.actions(s):
            now, before = self.q[0][s, a], self.before[s, a]
            if by_step:
                before = self.last[1] if self.last and self.last[0] == (s, a) else now
            scores.append((now - beta * (now - before), now))
        return max(scores)[1]

    def next_value(self, s: int, table: int, stream: Stream) -> float:
        """What follows the reward in the target."""
        match self.algorithm:
            case KEQ():
                return self.kernel_estimate(s)
            case DoubleQ():
                mine, winner, ties = self.q[table], 0, 1
                for a in self.actions(s)[1:]:
                    if mine[s, a] > mine[s, winner]:
                        winner, ties = a, 1
                    elif mine[s, a] == mine[s, winner]:
                        ties += 1
                        if stream.uniform() * ties < 1:  # so that each of the tied ones is equally likely
                            winner = a
                return self.q[1 - table][s, winner]
            case WeightedQ():
                return self.weighted(s, self.algorithm.draws, stream)
            case SelfCorrectingQ():
                return self.corrected(s, self.algorithm.beta, self.algorithm.previous == "step")
        return max(self.value(s, a) for a in self.actions(s))

    def step(self, s: int, stream: Stream) -> tuple[float, int]:
        mdp, width = self.mdp, self.mdp.n_actions
        self.visits[s] += 1
        explore = stream.uniform() < self.epsilon(self.visits[s])
        a = stream.below(len(self.actions(s))) if explore else stream.one_of(self.best(s))
        k, end = int(mdp.offsets[s * width + a]), int(mdp.offsets[s * width + a + 1])
        if end - k > 1:
            u = stream.uniform()
            k += sum(1 for c in mdp.cumulative[k:end] if c <= u)
        r, after = float(mdp.rewards[k]), int(mdp.next_states[k])
        if mdp.noise[k] > 0:
            r += float(mdp.noise[k]) * stream.normal()
        pair, table = (s, a), 0
        self.updates[pair] += 1
        tau = self.rate(self.updates[pair])
        # 1. the effective sample size
        self.w1[pair] = (1 - tau) * self.w1[pair] + tau
        self.w2[pair] = (1 - tau) ** 2 * self.w2[pair] + tau**2
        # 2. the target
        if isinstance(self.algorithm, DoubleQ):
            table = int(stream.uniform() < 0.5)
        elif self.algorithm.tables > 1:
            table = stream.below(self.algorithm.tables)
        y = r if mdp.terminal[after] else r + mdp.discount * self.next_value(after, table, stream)
        # 3. the process variance, with the old Q
        q = self.q[table][pair]
        self.v[pair] = (1 - tau) * (self.v[pair] + tau * (y - q) ** 2)
        self.targets[pair].append(y)
        self.om[pair] = (1 - tau) ** 2 * self.om[pair] + tau**2
        # 4. Q
        self.before[pair], self.last = q, (pair, q)
        self.q[table][pair] = q + tau * (y - q)
        return r, after

    def run(self, episodes: int, max_steps: int, stream: Stream) -> list[tuple[float, int]]:
        """Return and length of every episode."""
        found = []
        for _ in range(episodes):
            s, u = 0, stream.uniform()
            while self.mdp.start_cumulative[s] <= u:
                s += 1
            total, steps = 0.0, 0
            while not self.mdp.terminal[s] and steps < max_steps:
                r, s = self.step(s, stream)
                total += self.mdp.discount**steps * r
                steps += 1
            found.append((total, steps))
        return found

    def table(self) -> np.ndarray:
        out = np.full((self.mdp.n_states, self.mdp.n_actions), -np.inf)
        for s in range(self.mdp.n_states):
            for a in self.actions(s):
                out[s, a] = self.value(s, a)
        return out


def loops() -> MDP:
    """Four states, two to four actions, half of whose outcomes stay where they are, with noise; it ends now and then."""
    rng = np.random.default_rng(4)
    transitions = rng.exponential(size=(5, 4, 5))
    transitions[:, :, 4] *= 0.1
    for s in range(4):
        transitions[s, :, s] += transitions[s].sum(axis=1)
    transitions /= transitions.sum(axis=2, keepdims=True)
    transitions[0, 2:] = transitions[1, 3:] = 0.0
    return MDP.of(
        transitions,
        rng.normal(size=(5, 4, 5)),
        noise=np.where(np.arange(5) % 2, 0.5, 0.0)[:, None] * np.ones((5, 4)),
        terminal=[4],
        start=[0.25, 0.25, 0.25, 0.25, 0.0],
        discount=0.9,
    )


ALGORITHMS: dict[str, Algorithm] = {
    "q": Q(),
    "dq": DoubleQ(),
    "wq": WeightedQ(draws=7),
    "scq-update": SelfCorrectingQ(2.0),
    "scq-step": SelfCorrectingQ(3.0, "step"),
    "mmq": MaxMinQ(3),
    "te-q": TEQ(0.1),
    "te-q-wide": TEQ(0.4, tracker=VarianceTracker(10.0, omega=0.3, omega_squared=0.2)),
    "ke-q": KEQ(),
    "ke-q-triangle": KEQ(mev.Triangle(), tracker=VarianceTracker(0.1)),
    "ke-q-softmax": KEQ(mev.Softmax()),
    "ke-q-student": KEQ(mev.StudentT(3.0), tracker=VarianceTracker(2.0, omega=0.5)),
}
GAUSSIAN_TABLE = 1e-6  # the loop reads the Gaussian cdf from a table
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=list(ALGORITHMS))


def compare(
    mdp: MDP, algorithm: Algorithm, rate: Schedule, epsilon: Schedule, *, episodes: int, max_steps: int, run: int
) -> None:
    plain = Learner(mdp, algorithm, rate, epsilon)
    found = plain.run(episodes, max_steps, Stream(11, run))
    ours = learn(
        mdp,
        algorithm,
        episodes=episodes,
        seed=11,
        first_run=run,
        learning_rate=rate,
        epsilon=epsilon,
        max_steps=max_steps,
        every_run=True,
        final_tables=True,
        threads=1,
    )
    assert ours.every[0, 1].tolist() == [steps for _, steps in found]
    np.testing.assert_allclose(ours.every[0, 0], [total for total, _ in found], rtol=1e-12, atol=1e-12)
    rough = isinstance(algorithm, KEQ) and isinstance(algorithm.kernel, mev.Gaussian)
    tolerance = GAUSSIAN_TABLE if rough else 1e-9
    np.testing.assert_allclose(ours.tables[0], plain.table(), rtol=tolerance, atol=tolerance)


@every_algorithm
def test_step_for_step(algorithm: Algorithm) -> None:
    """The first episodes of a problem with self-loops, cut off after 1, 2, ... steps: the tables agree after each step.

    A next state that equals the state shows the order n_eff, y, v, Q: the target reads what step 1 has just written.
    """
    for steps in (*range(1, 31), 60, 200):
        compare(loops(), algorithm, Schedule(0.3), Schedule(0.5), episodes=2, max_steps=steps, run=steps % 3)


@every_algorithm
def test_on_self_loops_with_falling_rates(algorithm: Algorithm) -> None:
    for run in range(3):
        rate, epsilon = Schedule(1.0, 2.0, 0.75), Schedule(1.0, 10.0, 1.0)
        compare(loops(), algorithm, rate, epsilon, episodes=25, max_steps=100, run=run)


@every_algorithm
def test_on_the_maximization_bias_example(algorithm: Algorithm) -> None:
    for run in range(5):
        compare(maximization_bias(), algorithm, Schedule(0.1), Schedule(0.1), episodes=150, max_steps=10, run=run)


@every_algorithm
def test_on_cliff_walking_with_the_rates_of_the_paper(algorithm: Algorithm) -> None:
    for epsilon in (INVERSE_ROOT, Schedule(0.1)):
        compare(cliff_walking(), algorithm, CLIFF_LEARNING_RATE, epsilon, episodes=8, max_steps=1500, run=0)


def test_order_inside_a_step_by_hand() -> None:
    """One state that stays where it is with reward 1 and has a second action like it; TE with alpha = 0.2.

    The first update of a pair (s, a), tau = 1/2, gamma = 1/2, v = w1 = w2 = 1, all values 0: y = 1, whatever the variances.
    v <- (1 + 1/2) / 2 = 3/4 and Q <- 1/2. In the second step with the same action, w1 = 1, w2 = 1/2, then 3/8: T of the other
    action against it is -1/2 / sqrt(1 + v w2), where v w2 = 3/4 * 3/8 with the order of Algorithm 1. So T = -0.442, and both
    count: y = 1 + 1/2 * 1/4 and Q = 13/16.
    """
    mdp = MDP.of(np.ones((1, 2, 1)), [[1.0, 1.0]], start=0, discount=0.5)
    learned = learn(
        mdp,
        TEQ(0.2),
        episodes=1,
        runs=40,
        learning_rate=0.5,
        epsilon=0.0,
        max_steps=2,
        final_tables=True,
    )
    # Greedy: the action of the first step, drawn by lot, is that of the second.
    assert {tuple(sorted(table.ravel())) for table in learned.tables} == {(0.0, 0.8125)}
    # From the alpha on whose threshold is T = -0.442 the other action no longer counts: y = 1 + 1/2 * 1/2, Q = 7/8. With the
    # effective sample size of the step before, T would be -1/2 / sqrt(1 + 3/8) = -0.426, and the other action count.
    threshold = float(ndtr(-0.5 / math.sqrt(1 + 9 / 32)))
    for alpha, value in ((threshold * 0.9999, 0.8125), (threshold * 1.0001, 0.875)):
        learned = learn(mdp, TEQ(alpha), episodes=1, learning_rate=0.5, epsilon=0.0, max_steps=2, final_tables=True)
        assert learned.tables.max() == value


def chain(*rewards: float, discount: float = 1.0) -> MDP:
    """0 -> 1 -> ... -> end, one action a state."""
    n = len(rewards)
    transitions = np.zeros((n + 1, 1, n + 1))
    transitions[np.arange(n), 0, np.arange(1, n + 1)] = 1.0
    return MDP.of(transitions, np.array([*rewards, 0.0])[:, None], terminal=[n], start=0, discount=discount)


def fork(first: float, second: float) -> MDP:
    """0 -> 1, one action; from 1, either of two actions ends the episode with its own reward."""
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[1, :, 2] = 1.0
    return MDP.of(transitions, [[0.0, 0.0], [first, second], [0.0, 0.0]], terminal=[2], start=0, discount=1.0)


def final_tables(mdp: MDP, algorithm: Algorithm, episodes: int, runs: int, tau: float) -> np.ndarray:
    return learn(
        mdp, algorithm, episodes=episodes, runs=runs, learning_rate=tau, epsilon=1.0, seed=2, final_tables=True
    ).tables


def shares_agree(cases: np.ndarray, expected: dict[float, float]) -> None:
    """The values are exactly the expected ones, as often as expected: binomial, level 1e-6."""
    values, counts = np.unique(cases, return_counts=True)
    assert values.tolist() == sorted(expected)
    for value, count in zip(values, counts, strict=True):
        assert stats.binomtest(int(count), len(cases), expected[float(value)]).pvalue > LEVEL


def test_q_learning_by_hand() -> None:
    """Rewards 2 and 1, gamma = 1/2, tau = 1/2: Q(1) is 1/2, then 3/4; Q(0) is 1, then 1 + (2 + 1/4 - 1) / 2."""
    mdp = chain(2.0, 1.0, discount=0.5)
    np.testing.assert_array_equal(final_tables(mdp, Q(), 1, 1, 0.5)[0, :2, 0], [1.0, 0.5])
    np.testing.assert_array_equal(final_tables(mdp, Q(), 2, 1, 0.5)[0, :2, 0], [1.625, 0.75])


def test_double_q_by_hand() -> None:
    """Two episodes of a chain with rewards 0 and 1, tau = 1/2. The first sets one table's Q(1) to 1/2. In the second,

    Q(0) moves only if it is the other table's turn, to 1/4, which reads 1/8 in the mean; Q(1) becomes (3/4, 0) or (1/2, 1/2).
    """
    tables = final_tables(chain(0.0, 1.0), DoubleQ(), 2, 4000, 0.5)
    shares_agree(tables[:, 0, 0], {0.0: 0.5, 0.125: 0.5})
    shares_agree(tables[:, 1, 0], {0.375: 0.5, 0.5: 0.5})
    both = np.mean((tables[:, 0, 0] == 0.125) & (tables[:, 1, 0] == 0.5))
    assert stats.binomtest(round(both * 4000), 4000, 0.25).pvalue > LEVEL


def test_double_q_selects_with_one_table_and_values_with_the_other() -> None:
    """A fork with rewards 1 and -1, tau = 1, two episodes. In the second, Q(0) of table X becomes Q_Y(1, argmax Q_X).

    After a first choice of 1 (reward 1) in table B: X = A has a tie, hence Q_B = 1 or 0 by lot; X = B picks 1 and reads
    Q_A = 0. After reward -1: X = A has a tie, hence Q_B = 0 or -1; X = B avoids it and reads 0. The mean halves it.
    """
    tables = final_tables(fork(1.0, -1.0), DoubleQ(), 2, 4000, 1.0)
    shares_agree(tables[:, 0, 0], {-0.5: 1 / 8, 0.0: 3 / 4, 0.5: 1 / 8})


def test_maxmin_by_hand() -> None:
    """Two tables on a chain with rewards 0 and 1, tau = 1: the smaller Q(1) is 1 once both have had their turn.

    Q(0) follows once both have had their turn after that: after four episodes, in a quarter of the runs.
    """
    mdp = chain(0.0, 1.0)
    for episodes, share in ((2, 1 / 2), (3, 3 / 4), (4, 7 / 8)):
        shares_agree(final_tables(mdp, MaxMinQ(2), episodes, 4000, 1.0)[:, 1, 0], {0.0: 1 - share, 1.0: share})
    shares_agree(final_tables(mdp, MaxMinQ(2), 4, 4000, 1.0)[:, 0, 0], {0.0: 3 / 4, 1.0: 1 / 4})


@pytest.mark.parametrize(
    ("previous", "expected"),
    [("update", {(0, 0): 0.375, (0, 1): 0.15, (1, 0): 0.15, (1, 1): 0.225}),
     ("step", {(0, 0): 0.375, (0, 1): 0.25, (1, 0): 0.15, (1, 1): 0.225})],
)  # fmt: skip
def test_self_correcting_q_by_hand(previous: str, expected: dict[tuple[int, int], float]) -> None:
    """A fork with rewards 1 and 0.6, tau = 1/2, beta = 2: Q(0) after three episodes, by the choices in the first two.

    Choices 0, 1 tell the readings apart: Q(1) = (0.5, 0.3), both up from 0 by their own last update, so Q_b = (-0.5, -0.3)
    and y = 0.3. A step ago only the second was different, so Q_b = (0.5, -0.3) and y = 0.5. Other choices agree: 0, 0 gives
    Q_b = (0.75 - 2 * 0.25, 0), y = 0.75; 1, 0 gives (-0.5, -0.3) or (-0.5, 0.3), y = 0.3; 1, 1 gives (0, 0.15), y = 0.45.
    """
    run = partial(final_tables, fork(1.0, 0.6), SelfCorrectingQ(2.0, previous), runs=200, tau=0.5)
    one, two, three = (run(episodes=k) for k in (1, 2, 3))
    assert (two[:, 0, 0] == 0).all()
    seen = set()
    for first, second, last in zip(one, two, three, strict=True):
        choices = int(first[1, 1] > 0), int(second[1, 1] != first[1, 1])
        assert last[0, 0] == pytest.approx(expected[choices], rel=1e-15)
        seen.add(choices)
    assert seen == set(expected)


def test_moments_of_weighted_q_by_hand() -> None:
    """Targets 1 and 3 with tau = 1/2: the means are 2 and 5, omega is 1/4, then 5/16, so s² = 2 (5 - 4) 5/16."""
    moments = np.zeros((5, 3))
    moments[4] = 1e10
    update_moments(moments, 1, 1.0, 0.5)
    np.testing.assert_array_equal(moments[:, 1], [1.0, 1.0, 1.0, 0.25, 1e10])
    update_moments(moments, 1, 3.0, 0.5)
    np.testing.assert_allclose(moments[:, 1], [2.0, 2.0, 5.0, 0.3125, math.sqrt(0.625)], rtol=1e-15)
    np.testing.assert_array_equal(moments[:, 0], [0.0, 0.0, 0.0, 0.0, 1e10])


def test_equal_targets_leave_weighted_q_a_little_doubt() -> None:
    moments = np.zeros((5, 1))
    for _ in range(3):
        update_moments(moments, 0, 2.0, 0.1)
    assert moments[4, 0] == math.sqrt(1e-10)


@pytest.mark.parametrize(
    ("q", "errors", "weights"),
    [
        ([1.0, 0.0], [1.0, 1.0], [stats.norm.cdf(1 / math.sqrt(2)), stats.norm.sf(1 / math.sqrt(2))]),
        ([1.0, 0.0], [0.5, 2.0], [stats.norm.cdf(1 / math.sqrt(4.25)), stats.norm.sf(1 / math.sqrt(4.25))]),
        ([3.0, 2.0, 10.0, 0.0], [1e10] * 4, [0.25] * 4),
        ([3.0, 2.0], [1e-5, 1e-5], [1.0, 0.0]),
        ([1.0, 0.0], [1e-5, 0.3], [stats.norm.cdf(1 / 0.3), stats.norm.sf(1 / 0.3)]),
    ],
)
def test_weights_by_draws_are_the_probabilities_of_being_best(
    q: list[float], errors: list[float], weights: list[float]
) -> None:
    """With ten million draws the mean lies within five standard errors (level 6e-7) of the weighted mean.

    2e-4 is allowed on top: the draws come from 4096 cells, and two options in one cell are no longer told apart.
    """
    draws = 10_000_000
    seen = Seen(0, len(q), max(q), 1, int(np.argmax(q)))
    ours = weighted_target(np.array(q), np.array(errors), seen, draws, streams(1, 1)[0])
    mean = float(np.dot(weights, q))
    spread = math.sqrt(max(float(np.dot(weights, np.square(q))) - mean**2, 0.0) / draws)
    assert abs(ours - mean) <= 5 * spread + 2e-4 * np.ptp(q)


def test_a_pair_with_one_target_could_be_anything_for_weighted_q() -> None:
    """A fork with rewards 1 and 0, one draw, tau = 1. After one episode no pair has two targets, so that the draw is a lot:

    Q(0) = 1 if the first choice was the good one and the lot falls on it, a quarter of the runs.
    """
    shares_agree(final_tables(fork(1.0, 0.0), WeightedQ(1), 2, 4000, 1.0)[:, 0, 0], {0.0: 3 / 4, 1.0: 1 / 4})


@pytest.mark.parametrize("mdp", [maximization_bias(), loops(), cliff_walking(6, 3)], ids=lambda m: m.name)
@pytest.mark.parametrize(
    "twin",
    [MaxMinQ(1), TEQ(alpha=0.5), TEQ(alpha=0.5, tracker=VarianceTracker(100.0)), SelfCorrectingQ(0.0),
     SelfCorrectingQ(0.0, "step"), KEQ(mev.Gaussian(1e-200))],
)  # fmt: skip
def test_q_learning_in_disguise(mdp: MDP, twin: Algorithm) -> None:
    """Run for run, bit for bit."""
    run = partial(learn, mdp, episodes=40, runs=20, seed=5, epsilon=INVERSE_ROOT, learning_rate=CLIFF_LEARNING_RATE)
    ours, plain = (run(a, every_run=True, final_tables=True, max_steps=2000) for a in (twin, Q()))
    np.testing.assert_array_equal(ours.every, plain.every)
    np.testing.assert_array_equal(ours.tables, plain.tables)


def test_with_a_learning_rate_of_one_te_q_is_q_learning_after_a_visit_everywhere() -> None:
    """The process variance is then exactly 0 after one update, so that only the best counts: correct, not a bug."""
    mdp = loops()
    learned = learn(mdp, TEQ(0.1), episodes=300, learning_rate=1.0, epsilon=1.0, max_steps=1000, watch_choices=[(3, 0)])
    late = learned.choices["averaged"].iloc[50:].dropna()
    assert len(late) > 10
    assert (late == 1).all()
