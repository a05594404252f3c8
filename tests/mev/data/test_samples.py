"""Facts about samples, counts and summaries: their moments, their splits and their bootstrap copies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from maxmean.mev.data import Counts, DataError, Samples, Summaries, summarise
from maxmean.mev.data import samples as samples_module
from maxmean.mev.data.parts import part_sizes

RAGGED = [[1.0, 2.0, 6.0], [4.0, 0.0], [3.0, 3.0, 3.0, 3.0]]


def test_moments_by_hand() -> None:
    data = Samples.of(RAGGED)
    np.testing.assert_allclose(data.means, [3, 2, 3])
    np.testing.assert_allclose(data.variances, [7 / 3, 8 / 2, 0])
    assert data.n == (3, 2, 4)
    assert data.covariances is None


def test_a_constant_has_its_own_value_as_mean_and_no_variance() -> None:
    data = Samples.of([[0.1] * 7, [0.1] * 3, [1 / 3] * 11])
    assert data.means.tolist() == [0.1, 0.1, 1 / 3]
    assert data.variances.tolist() == [0, 0, 0]


def test_variances_keep_their_digits_far_from_zero() -> None:
    noise = np.random.default_rng(0).normal(size=200)
    moved = Samples.of([1e9 + noise, noise])
    np.testing.assert_allclose(moved.variances[0], moved.variances[1], rtol=1e-6)


def test_covariances_of_paired_samples_are_those_of_the_means() -> None:
    table = np.random.default_rng(1).normal(size=(50, 4)) @ np.random.default_rng(2).normal(size=(4, 4))
    data = Samples.of(table)
    np.testing.assert_allclose(data.covariances, np.cov(table.T) / 50)
    np.testing.assert_allclose(np.diag(data.covariances), data.variances)


def test_pairs_need_equal_lengths() -> None:
    with pytest.raises(DataError, match="same number of observations"):
        _ = Samples.of(RAGGED, paired=True).covariances


def test_counts_have_the_moments_of_their_zeros_and_ones() -> None:
    counts = Counts(np.array([3, 0, 5]), np.array([10, 4, 5]))
    rows = Samples.of([[1] * 3 + [0] * 7, [0] * 4, [1] * 5])
    np.testing.assert_allclose(counts.means, rows.means)
    np.testing.assert_allclose(counts.variances, rows.variances, atol=1e-17)


@given(st.integers(1, 400), st.integers(1, 12))
def test_part_sizes_add_up_and_differ_by_one_at_most(n: int, parts: int) -> None:
    sizes = part_sizes(n, parts)
    assert sum(sizes) == n
    assert len(sizes) == parts
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_parts_are_disjoint_and_use_every_observation(parts: int) -> None:
    values = np.arange(11.0) ** 2
    data = Samples.of([values, 3 * values])
    means = data.split(parts, rng=5)
    sizes = np.array(part_sizes(11, parts))
    np.testing.assert_allclose(sizes @ means, [values.sum(), 3 * values.sum()])


def test_a_split_does_not_depend_on_the_order_of_the_values_in_law() -> None:
    """Each value falls into the first half with probability 1/2 (binomial test, level 1e-6 for each of 8 values)."""
    data = Samples(tuple(np.eye(8)))  # option i is the indicator of observation i
    repeats = 1000
    hits = sum((data.split(2, rng=seed)[0] > 0).astype(int) for seed in range(repeats))
    for hit in np.asarray(hits):
        assert stats.binomtest(int(hit), repeats, 0.5).pvalue > 1e-6


def test_options_are_split_independently() -> None:
    data = Samples.of(np.arange(20.0)[:, None] * np.ones(2), paired=False)
    first = np.array([data.split(2, rng=seed)[0] for seed in range(400)])
    assert abs(np.corrcoef(first.T)[0, 1]) < 4 / np.sqrt(400)  # 4 standard errors: 6e-5


def test_pairs_stay_together_in_a_split() -> None:
    noise = np.random.default_rng(0).normal(size=(5, 30))
    halves = Samples((noise, noise + 1.0), paired=True).split(2, rng=1)
    np.testing.assert_allclose(halves[..., 1] - halves[..., 0], 1.0)


def test_count_splits_follow_the_hypergeometric_law() -> None:
    """Chi-square at level 1e-6 against scipy's hypergeometric probabilities."""
    counts = Counts(np.full((20_000, 1), 6), np.array(11))
    first, second = counts.split(2, rng=3)
    np.testing.assert_allclose(6 * first[:, 0] + 5 * second[:, 0], 6)
    observed = np.bincount(np.rint(6 * first[:, 0]).astype(int), minlength=7)
    expected = 20_000 * stats.hypergeom(11, 6, 6).pmf(np.arange(7))
    likely = expected > 5
    assert observed[~likely].sum() <= 5 + expected[~likely].sum()
    statistic = ((observed - expected)[likely] ** 2 / expected[likely]).sum()
    assert stats.chi2(likely.sum() - 1).sf(statistic) > 1e-6


def test_too_few_observations_to_split_are_named() -> None:
    with pytest.raises(DataError, match="3 parts need at least 3 observations of every option, and one has 2"):
        Samples.of(RAGGED).split(3, rng=0)
    with pytest.raises(DataError, match="one has 2"):
        Counts(np.array([1, 1]), np.array([2, 9])).split(3, rng=0)


def test_shifted_noise_is_the_noise_of_shifted_samples() -> None:
    noise = Samples(tuple(np.random.default_rng(0).normal(size=(2, 6, 10))))
    moved = Samples(tuple(values + shift for values, shift in zip(noise.values, (3.0, -1.0), strict=True)))
    shifted, direct = summarise(noise, rng=4).shifted(np.array([3.0, -1.0])), summarise(moved, rng=4)
    for name in ("means", "variances"):
        np.testing.assert_allclose(getattr(shifted, name), getattr(direct, name), rtol=1e-12)
    np.testing.assert_allclose(shifted.split(2, rng=0), direct.split(2, rng=0), rtol=1e-12)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("limit", [5_000, 10], ids=["row by row", "central limit"])
def test_resampled_means_and_variances_have_the_bootstrap_moments(
    monkeypatch: pytest.MonkeyPatch, paired: bool, limit: int
) -> None:
    """The bootstrap's law is known: E mean* = mean, Var mean* = s²(n-1)/n², E var* = var (n-1)/n (5 std. errors)."""
    monkeypatch.setattr(samples_module, "EXACT_RESAMPLING", limit)
    n, size = 400, 4000
    table = np.random.default_rng(0).gamma(2.0, size=(n, 3))
    table[:, 1] += table[:, 0]
    data = Samples.of(table, paired=paired)
    copies = data.resample(size, np.random.default_rng(1), parts=(2, 3))
    shrink = (n - 1) / n
    np.testing.assert_allclose(copies.means.mean(0), data.means, atol=5 * np.sqrt(data.variances.max() / size))
    np.testing.assert_allclose(copies.means.var(0), data.variances * shrink, rtol=5 * np.sqrt(2 / size))
    np.testing.assert_allclose(copies.variances.mean(0), data.variances * shrink, rtol=0.02)
    correlation = np.corrcoef(copies.means.T)[0, 1]
    assert (correlation > 0.5) == paired
    halves = copies.split(2, rng=0)
    np.testing.assert_allclose(halves.var(1), np.array([data.variances] * 2) * 2 * shrink, rtol=0.15)
    assert abs(np.corrcoef(halves[0, :, 0], halves[1, :, 0])[0, 1]) < 5 / np.sqrt(size)
    assert copies.split(3, rng=0).shape == (3, size, 3)


def test_asking_for_parts_does_not_change_the_resampled_means(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in (5_000, 10):
        monkeypatch.setattr(samples_module, "EXACT_RESAMPLING", limit)
        for paired in (False, True):
            data = Samples.of(np.random.default_rng(0).normal(size=(40, 3)), paired=paired)
            plain, split = (data.resample(5, np.random.default_rng(1), parts=parts) for parts in ((), (2, 4)))
            np.testing.assert_array_equal(plain.means, split.means)


def test_counts_resample_as_binomials() -> None:
    counts = Counts(np.array([30, 0, 50]), np.array([100, 20, 50]))
    copies = counts.resample(20_000, np.random.default_rng(0))
    np.testing.assert_allclose(copies.means.mean(0), counts.means, atol=5 * 0.05 / np.sqrt(20_000))
    assert np.all(copies.means[:, 1] == 0)
    assert np.all(copies.means[:, 2] == 1)


def test_summaries_with_known_n_resample_with_chi_square_variances() -> None:
    plain = Summaries(np.zeros(2), np.array([1.0, 4.0]))
    known = Summaries(np.zeros(2), np.array([1.0, 4.0]), n=(6, 11))
    fixed, varying = (s.resample(40_000, np.random.default_rng(0)).variances for s in (plain, known))
    assert np.all(fixed == [1, 4])
    np.testing.assert_allclose(varying.mean(0), [1, 4], rtol=0.02)
    np.testing.assert_allclose(varying.var(0), [2 / 5, 16 * 2 / 10], rtol=0.06)


def test_scaling_is_exact_for_powers_of_two() -> None:
    data = Samples.of(RAGGED)
    scaled = data.scaled(0.25)
    np.testing.assert_array_equal(scaled.means * 4, data.means)
    np.testing.assert_array_equal(scaled.variances * 16, data.variances)


def one_by_one(samples: Samples, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Bootstrap means and variances, an option after the other."""
    drawn = [values[rng.integers(0, len(values), (size, len(values)))] for values in samples.values]
    return np.stack([d.mean(axis=-1) for d in drawn], -1), np.stack(
        [d.var(axis=-1, ddof=1) / d.shape[-1] for d in drawn], -1
    )


@pytest.mark.parametrize("held", [1, 50, 1_000_000])
def test_options_are_resampled_alike_alone_and_in_groups(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples_module, "_HELD", held)
    rng = np.random.default_rng(0)
    samples = Samples.of([rng.normal(size=n) for n in (4, 4, 4, 7, 4, 9, 9)])
    means, variances = one_by_one(samples, 5, np.random.default_rng(3))
    copies = samples.resample(5, np.random.default_rng(3))
    np.testing.assert_array_equal(copies.means, means)
    np.testing.assert_allclose(copies.variances, variances, rtol=1e-12)


@pytest.mark.parametrize("rows", [12, samples_module.EXACT_RESAMPLING + 1])
def test_copies_of_pairs_are_the_same_with_and_without_covariances(rows: int) -> None:
    samples = Samples.of(np.random.default_rng(0).normal(size=(rows, 3)))
    full, lean = (samples.resample(4, np.random.default_rng(1), (2,), pairs=pairs) for pairs in (True, False))
    assert full.covariances is not None
    assert full.covariances.shape == (4, 3, 3)
    assert lean.covariances is None
    np.testing.assert_array_equal(full.means, lean.means)
    np.testing.assert_array_equal(full.variances, lean.variances)
    np.testing.assert_array_equal(full.parts[2], lean.parts[2])
    diagonal = np.diagonal(full.covariances, axis1=1, axis2=2)
    np.testing.assert_allclose(diagonal, full.variances, rtol=1e-9)
