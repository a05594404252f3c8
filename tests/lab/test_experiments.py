"""Facts about the experiments themselves: they agree with independent theory, and with themselves at another scale."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.stats

from maxmean.lab.aggregate import band
from maxmean.lab.claims import judge
from maxmean.lab.errors import LabError
from maxmean.lab.experiment import Experiment
from maxmean.lab.experiments import EXPERIMENTS, find_experiments
from maxmean.lab.experiments.ads import ESTIMATORS as AD_ESTIMATORS
from maxmean.lab.experiments.ads.settings import REGION, Cell
from maxmean.lab.experiments.simulation import Curves
from maxmean.lab.experiments.which import errors_of, observed
from maxmean.lab.run import SHIPPED, load, load_best, verdicts
from maxmean.lab.store import Store
from maxmean.mev import theory
from seldom import slow

ALL = list(EXPERIMENTS.values())
USUAL = [experiment for experiment in ALL if not experiment.only_by_name]


@pytest.fixture(scope="module")
def shipped() -> Store:
    return Store(SHIPPED, create=False)


@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.name)
@pytest.mark.parametrize("scale", ["quick", "study", "paper"])
def test_shards_are_plain_distinct_and_repeatable(experiment: Experiment[Any], scale: str) -> None:
    if scale not in experiment.scales:
        return
    shards = experiment.shards(experiment.settings(scale), 0)
    keys = [shard.key for shard in shards]
    assert len(set(keys)) == len(keys)
    assert keys == [shard.key for shard in experiment.shards(experiment.settings(scale), 0)]
    assert not set(keys) & {shard.key for shard in experiment.shards(experiment.settings(scale), 1)}
    for shard in shards:
        json.dumps(shard.part, allow_nan=False)


@pytest.mark.parametrize("experiment", USUAL, ids=lambda e: e.name)
def test_shipped_results_are_complete_undamaged_and_of_the_present_settings(
    experiment: Experiment[Any], shipped: Store
) -> None:
    results = load(shipped, experiment, "paper", 0)
    assert results is not None
    assert results.missing == 0
    assert results.settings == experiment.settings("paper")
    plan = shipped.read_plan(experiment.name, "paper", 0)
    assert plan is not None
    assert plan.shards == experiment.shards(experiment.settings("paper"), results.seed)


def test_no_shipped_claim_is_undecided_for_want_of_data(shipped: Store) -> None:
    for verdict in verdicts(shipped):
        assert verdict.scale == ("study" if verdict.experiment == "minatar" else "paper")
        assert verdict.measured or "not" in verdict.note, verdict.id


@pytest.mark.parametrize(("name", "method"), [("me", "me"), ("cve", "cve"), ("te(0.1)", "te"), ("ke", "ke")])
def test_without_dependence_the_simulation_is_the_exact_theory(shipped: Store, name: str, method: str) -> None:
    """Bias at rho = 0 within 5 standard errors, plus 0.01 for variances being estimated and not known."""
    results = load(shipped, EXPERIMENTS["autocorrelation"], "paper", 0)
    assert results is not None
    found = Curves(results)(0.0, name, "bias")
    exact = theory.gaussian_pair(method, mu=(np.array(results.settings.gaps), 0.0)).bias
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - exact) < 5 * error + 0.01)


@pytest.mark.parametrize("rho", [0.5, *slow(0.25, 0.75)])
@pytest.mark.parametrize("name", ["me", "cve", "te", "ke", "te*", "ke*"])
def test_with_correlation_the_simulation_is_the_exact_theory(shipped: Store, name: str, rho: float) -> None:
    results = load(shipped, EXPERIMENTS["correlation"], "paper", 0)
    assert results is not None
    found = Curves(results)(rho, name, "bias")
    exact = theory.gaussian_pair(name, mu=(np.array(results.settings.gaps), 0.0), correlation=rho).bias
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - exact) < 5 * error + 0.012)


def test_ads_average_what_they_say(shipped: Store) -> None:
    results = load(shipped, EXPERIMENTS["ads"], "paper", 0)
    assert results is not None
    settings, table = results.settings, results.table
    six = table[table["problem"] != REGION].groupby(["problem", "estimator"]).size()
    assert set(six) == {settings.runs // settings.runs_a_block}
    assert len(six) == 7 * len(AD_ESTIMATORS)
    region = table[table["problem"] == REGION].groupby([*Cell._fields, "estimator"]).size()
    assert set(region) == {settings.region_runs // settings.region_runs_a_block}
    assert len(region) == 600 * 8
    assert (table["squared"] >= table["error"] ** 2 * (1 - 1e-6)).all()  # as far as single precision goes


@pytest.mark.slow
def test_the_maximisation_bias_curves_are_those_of_a_fresh_smaller_run(shipped: Store) -> None:
    """Share of left in the last ten episodes: 20,000 fresh runs against the shipped 100,000, 5 standard errors apart at most."""
    from maxmean import tabular

    results = load(shipped, EXPERIMENTS["maximization-bias"], "paper", 0)
    assert results is not None
    curves = results.table[results.table["what"] == "curve"]
    for name, algorithm in {"q": tabular.Q(), "dq": tabular.DoubleQ(), "ke-q": tabular.KEQ()}.items():
        found = tabular.learn(
            tabular.maximization_bias(), algorithm, episodes=500, runs=20_000, seed=99, watch_choices=[(0, 0)]
        )
        fresh = found.choices["share"].iloc[-10:].mean()
        stored = curves[(curves["algorithm"] == name) & (curves["episode"] > 490)]["left"].mean()
        # Ten episodes of one run are one observation at worst: the standard error without any averaging over them.
        assert abs(fresh - stored) < 5 * np.sqrt(stored * (1 - stored) / 20_000), name


def test_the_cliffs_optimum_is_that_of_the_exact_solution(shipped: Store) -> None:
    from maxmean import tabular

    world = tabular.cliff_walking()
    assert tabular.solve(world).v @ world.start == pytest.approx(-11)
    results = load(shipped, EXPERIMENTS["cliff"], "paper", 0)
    assert results is not None
    assert results.table["return"].max() < -11


def test_a_part_of_a_study_computed_afresh_is_the_shipped_one(shipped: Store) -> None:
    """The promise of same seed, same numbers, kept against the shipped tables (to rounding: versions may differ)."""
    experiment = EXPERIMENTS["gaussian"]
    for shard in experiment.shards(experiment.settings("paper"), 0):
        if shard.part.get("estimator") in ("cve", "ke(beta)") or shard.part["what"] == "random data sets":
            table, _ = shipped.read(shard)
            fresh = experiment.compute(experiment.settings("paper"), shard.part, shard.rng())
            for column in fresh.select_dtypes("number"):
                np.testing.assert_allclose(fresh[column], table[column], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("experiment", USUAL, ids=lambda e: e.name)
def test_figures_are_drawn_from_the_results(experiment: Experiment[Any], shipped: Store) -> None:
    results = load(shipped, experiment, "paper", 0)
    assert results is not None
    for figure in experiment.figures(results).values():
        assert figure.axes
        assert all(ax.has_data() for ax in figure.axes)
    assert len(judge(experiment, results)) == len(experiment.claims)


def test_an_unknown_experiment_is_answered_with_the_nearest() -> None:
    with pytest.raises(LabError, match="unknown experiment 'gausian'; did you mean 'gaussian'"):
        find_experiments(["gausian"])
    assert find_experiments([]) == USUAL
    assert [e.name for e in find_experiments(["minatar"])] == ["minatar"]
    assert [e.name for e in find_experiments(["ads", "ads", "gaussian"])] == ["ads", "gaussian"]


def test_the_interquartile_mean_and_its_band() -> None:
    """Against SciPy's own bootstrap of the same statistic, within Monte Carlo error."""
    scores = np.random.default_rng(1).normal(size=(20, 1))
    value, low, high = band([scores], np.random.default_rng(2), resamples=20_000)
    assert value[0] == pytest.approx(np.mean(np.sort(scores[:, 0])[5:15]))

    def middle(x: Any, axis: int) -> Any:
        return scipy.stats.trim_mean(x, 0.25, axis=axis)

    options: Any = {"method": "percentile", "n_resamples": 20_000, "rng": 3}
    found = scipy.stats.bootstrap((scores[:, 0],), middle, **options).confidence_interval
    assert low[0] == pytest.approx(found.low, abs=0.02)
    assert high[0] == pytest.approx(found.high, abs=0.02)


@pytest.mark.parametrize("n", [5, 20])
def test_halves_of_observations_have_the_laws_of_observations(n: int) -> None:
    """40,000 means, variances and halves against those of drawn observations: Kolmogorov and Smirnov, at level 1e-6 each."""
    rng = np.random.default_rng(0)
    found = observed(np.full((40_000, 1), 3.0), n, rng)
    rows = 3.0 + np.sqrt(n) * rng.standard_normal((40_000, n))
    first = rows[:, : (n + 1) // 2].mean(axis=1)
    for ours, drawn in (
        (found.means, rows.mean(axis=1)),
        (found.variances, rows.var(axis=1, ddof=1) / n),
        (found.parts[2][0], first),
        (found.parts[2][0] - found.means, first - rows.mean(axis=1)),
    ):
        assert scipy.stats.ks_2samp(ours[..., 0], drawn).pvalue > 1e-6
    assert abs(np.corrcoef(found.means[:, 0], found.variances[:, 0])[0, 1]) < 5 / 200  # false alarm: 6e-7


def test_the_map_agrees_with_the_exact_errors_of_two(shipped: Store) -> None:
    """Equal means and 100 observations: the exact root mean squared errors of two Gaussians, to one in twenty."""
    results = load_best(shipped, EXPERIMENTS["which"])
    assert results is not None
    row = errors_of(results).loc[(100, 2, 0.0)]
    for method in ("me", "ae", "cve", "te", "ke"):
        exact = theory.gaussian_pair(method, mu=(0.0, 0.0), sigma=10.0, n=100)
        assert row[method] == pytest.approx(float(np.sqrt(exact.mse)), rel=0.05), method
