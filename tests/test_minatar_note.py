"""The sentences of the note on MinAtar: their numbers are those of the shipped tables. Its tables are written by a script."""

from __future__ import annotations

import importlib
import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_ind

from maxmean.deep import Adaptation
from maxmean.deep import Settings as DeepSettings
from maxmean.lab.claims import Measured, Verdict, judge
from maxmean.lab.experiment import Results
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.experiments.minatar.ends import Ends, mean_over_games
from maxmean.lab.experiments.minatar.study import Settings
from maxmean.lab.experiments.minatar.variants import (
    ADAPTIVE,
    MIDDLE_RATE,
    PAIRED,
    PAIRED_ADA_KE,
    PAIRED_ADA_TE,
    PAIRED_KE,
    PAIRED_TE,
    SLOWLY_ADAPTIVE,
    SMALLEST_RATE,
    VARIANTS,
)
from maxmean.lab.run import SHIPPED, load
from maxmean.lab.store import Store

MINATAR = EXPERIMENTS["minatar"]
DOCS = Path(__file__).parents[1] / "docs"
NOTE = DOCS / "notes" / "minatar.md"
LARGEST_RATE = 1e-4
HEADS = [name for name in VARIANTS if "bdqn" in name]
OTHERS = [name for name in VARIANTS if name not in HEADS]
WORDS = (
    *(
        "no",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
    ),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)


@pytest.fixture(scope="module")
def study() -> Results[Settings]:
    found = load(Store(SHIPPED, create=False), MINATAR, "study", 0)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def ends(study: Results[Settings]) -> Ends:
    return Ends(study)


@pytest.fixture(scope="module")
def verdicts(study: Results[Settings]) -> dict[str, Verdict]:
    return {verdict.id: verdict for verdict in judge(MINATAR, study)}


@pytest.fixture(scope="module")
def page() -> str:
    return " ".join((DOCS / "notes" / "minatar.md").read_text().split())


def said(found: Measured, digits: int) -> str:
    return f"{found.value:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def test_the_verdicts_are_those_of_the_claims(page: str, verdicts: dict[str, Verdict]) -> None:
    for name, verdict in verdicts.items():
        if not verdict.beyond:
            word = "is undecided" if verdict.verdict == "undecided" else verdict.verdict
            assert f"**{name} {word}.**" in page


def farther(ends: Ends, game: str, one: str, other: str) -> Measured:
    """How much farther from zero one agent's mean bias is than another's."""
    first, second = (np.sign(each.mean()) * each for each in (ends("bias", game, name) for name in (one, other)))
    return Measured.difference(first, second)


def test_covariances(page: str, ends: Ends) -> None:
    told = "The biases of KE-BDQN and TE-BDQN(0.1) are below zero in all five games, those of `ke*-bdqn` and `te*-bdqn(0.1)`"
    assert f"{told} above zero in all five; the least clear is `te*-bdqn(0.1)`'s in Breakout." in page
    lowest = {}
    for game, (plain, paired) in product(ends.games, (("ke-bdqn", PAIRED_KE), ("te-bdqn(0.1)", PAIRED_TE))):
        below, above = (Measured.mean(ends("bias", game, name)) for name in (plain, paired))
        assert below.high < 0 < above.low
        lowest[game, paired] = above.low / above.value
    assert min(lowest, key=lambda each: lowest[each]) == ("breakout", PAIRED_TE)
    for name, which in (("ke-bdqn", "on MinAtar the bias"), ("te-bdqn", "on MinAtar, with alpha 0.1, the bias")):
        text = f"{which} is above zero in all five games and below it without"
        assert text in (DOCS / "algorithms" / f"{name}.md").read_text()
    gaps = {
        game: ends("bias", game, PAIRED_TE).mean() - ends("bias", game, "te-bdqn(0.1)").mean() for game in ends.games
    }
    first, last = (function(gaps, key=lambda game: gaps[game]) for function in (min, max))
    assert (first, last) == ("breakout", "space_invaders")
    told = (
        f"By {gaps[first]:.1f} (Breakout) to {gaps[last]:.1f} (Space Invaders): with the covariances the values are too"
    )
    assert told in (DOCS / "verdicts.toml").read_text()


def test_adaptation_with_covariances(page: str, study: Results[Settings], ends: Ends) -> None:
    alpha = {name: [ends("alpha", game, name).mean() for game in ends.games] for name in (PAIRED_ADA_TE, ADAPTIVE)}
    low, high = min(alpha[PAIRED_ADA_TE]), max(alpha[PAIRED_ADA_TE])
    assert [ends.games[alpha[PAIRED_ADA_TE].index(each)] for each in (low, high)] == ["asterix", "freeway"]
    usual = f"Ada-TE-BDQN's ends at {min(alpha[ADAPTIVE]):.2f} to {max(alpha[ADAPTIVE]):.2f}"
    assert f"alpha ends at {low:.2f} (Asterix) to {high:.2f} (Freeway), where {usual}." in page
    for game in ends.games:
        assert Measured.difference(ends("alpha", game, PAIRED_ADA_TE), ends("alpha", game, ADAPTIVE)).high < 0
    fixed = {game: farther(ends, game, PAIRED_TE, PAIRED_ADA_TE) for game in ends.games}
    assert [game for game, gap in fixed.items() if gap.low > 0] == ["asterix", "seaquest", "space_invaders"]
    assert [game for game, gap in fixed.items() if gap.high < 0] == ["freeway"]
    told = "In Asterix, Seaquest and Space Invaders the bias is then clearly smaller than with alpha fixed at 0.1; in Breakout"
    share = ends("bias", "freeway", PAIRED_ADA_TE).mean() / ends("value", "freeway", PAIRED_ADA_TE).mean()
    assert f"{told} five seeds cannot tell. In Freeway it is larger, {share:.0%} of the mean Q." in page
    own = study.table[(study.table["variant"] == PAIRED_ADA_TE) & (study.table["game"] == "freeway")]
    mean = own.groupby("step")[["alpha", "bias"]].mean()
    highest = mean["alpha"].idxmax()
    assert mean["alpha"].loc[highest] > 0.25 > mean["alpha"].iloc[0]
    assert mean["bias"].loc[50_000:highest].rolling(5).mean().max() < 0
    falling = mean["alpha"].loc[600_000:]
    assert f"still falling at the end: {falling.iloc[0]:.2f} after 600,000 steps, {falling.iloc[-1]:.2f} after" in page
    assert (falling.rolling(10).mean().dropna().diff().dropna() < 0).all()


def test_adaptation_with_and_without_covariances(page: str, ends: Ends) -> None:
    gaps = {game: farther(ends, game, PAIRED_ADA_TE, ADAPTIVE) for game in ends.games}
    assert [game for game, gap in gaps.items() if gap.low > 0] == ["freeway"]
    assert not [game for game, gap in gaps.items() if gap.high < 0]
    assert "ends clearly nearer to zero with it in no game, and farther in Freeway." in (DOCS / "bias.md").read_text()
    told = "There `ada-te*-bdqn` ends clearly farther from zero than Ada-TE-BDQN. In the other four games the size of their"
    assert f"{told} biases cannot be told apart at the end." in page
    told = "At the end the bias is clearly farther from zero in Freeway, and in the other games the two cannot be told apart"
    assert told in (DOCS / "algorithms" / "ada-te-bdqn.md").read_text()


def test_the_scale_of_adapted_kernels(page: str, study: Results[Settings], ends: Ends) -> None:
    own = study.table[study.table["variant"] == PAIRED_ADA_KE]
    scale = own[own["step"] > 900_000].groupby("game")["scale"].mean()
    freeway = scale.pop("freeway")
    told = f"ends at {freeway:.2f} in Freeway and {scale.min():.2f} to {scale.max():.2f} in the other games."
    mean = own[own["game"] == "freeway"].groupby("step")["scale"].mean()
    assert (
        f"{told} In Freeway it first fell to {mean.min():.2f}, as alpha rose, and was still rising at the end" in page
    )
    assert (mean.loc[900_000:].diff().dropna() > 0).all()
    nearer = {game: farther(ends, game, PAIRED_KE, PAIRED_ADA_KE) for game in ends.games}
    assert [game for game, gap in nearer.items() if not gap.low > 0] == ["freeway"]
    assert nearer["freeway"].high > 0
    told = "Adapting the scale brings it clearly nearer to zero in four of them"
    assert told in (DOCS / "algorithms" / "ada-ke-bdqn.md").read_text()


def test_returns_with_covariances(page: str, ends: Ends) -> None:
    pairs = ((PAIRED_TE, "te-bdqn(0.1)"), (PAIRED_ADA_TE, ADAPTIVE), (PAIRED_ADA_KE, PAIRED_KE))
    clear = {}
    for game, (one, other) in product(ends.games, pairs):
        gap = Measured.difference(ends("test_return", game, one), ends("test_return", game, other))
        if not gap.low < 0 < gap.high:
            clear[game, one] = gap.value > 0
            assert gap.among(15).low < 0 < gap.among(15).high
    assert clear == {("asterix", PAIRED_TE): True, ("freeway", PAIRED_TE): False}
    told = "Two of these fifteen differences in return have an interval without zero, and neither has one at the level that"
    assert f"{told} fifteen need: `te*-bdqn(0.1)` is above TE-BDQN(0.1) in Asterix and below it in Freeway." in page


def test_the_best_agents_that_the_recommended_one_is_compared_with(study: Results[Settings]) -> None:
    """For pictures, with 10^-4.5: the best of all agents of the study, and the shares of it on both pages."""
    late = study.table[(study.table["step"] > 900_000) & (study.table["learning_rate"] == MIDDLE_RATE)]
    means = late.groupby(["game", "variant"])["test_return"].mean()
    row = re.compile(
        r"^\| ([A-Z][\w ]*) \| 10\^-4\.5 \| ([\d.]+) \|.*\| ([\d.]+) \(`(.+)`\) \| ([\d.]+) \|$", flags=re.M
    )
    found = row.findall((DOCS / "notes" / "agents.md").read_text())
    for game, own, best, agent, share in found:
        of = means[game.lower().replace(" ", "_")]
        assert agent == of.idxmax()
        assert best == f"{of.max():.{0 if of.max() >= 100 else 1}f}"
        assert share == f"{float(own) / of.max():.2f}"
    assert len(found) == 5
    assert f"| 10^-4.5 | {' | '.join(share for *_, share in found)} |" in (DOCS / "agents.md").read_text()


def test_seconds_of_the_agents_with_a_star_are_those_of_the_manifests() -> None:
    row = re.compile(
        r"^\| three with a star, (\w+(?: Invaders)?)[^|]* \| 15 \| ([\d,]+) \| ([\d,]+) \| \|$", flags=re.M
    )
    found = {game.lower().replace(" ", "_"): told for game, *told in row.findall(NOTE.read_text())}
    took = {}
    for path in (SHIPPED / "minatar").glob("*.json"):
        each = json.loads(path.read_text())
        if each.get("part", {}).get("agents") == [*PAIRED[1:]]:
            took[each["part"]["game"]] = [f"{each['seconds']:,.0f}", f"{round(15e6 / each['seconds'], -2):,.0f}"]
    assert found == took
    assert len(found) == 5


def test_longer_runs(page: str, study: Results[Settings]) -> None:
    """Means over the half million steps before one and before five million, as in the table beside the sentences."""
    (table,) = study.apart.values()
    keys = ["game", "variant", "learning_rate"]
    early, late = (
        table[(table["step"] > end - 500_000) & (table["step"] <= end)].groupby(keys)[["test_return", "bias"]].mean()
        for end in (1_000_000, 5_000_000)
    )
    growth = late["test_return"] / early["test_return"]
    freeway, others = (growth[(growth.index.get_level_values("game") == "freeway") == there] for there in (True, False))
    assert f"By five million it is {others.min():.1f} to {others.max():.1f} times as large, except in Freeway" in page
    assert f"where it can grow little: {freeway.item():.2f}." in page
    invaders = late.loc["space_invaders"].droplevel("learning_rate")
    times = invaders["test_return"]["ke-bdqn"] / invaders["test_return"]["dqn"]
    assert f"KE-BDQN has {times:.1f} times DQN's return on Space Invaders" in page
    assert invaders["bias"]["ke-bdqn"] < 0 < invaders["bias"]["dqn"]
    te = table[(table["variant"] == "te-bdqn(0.1)") & (table["game"] == "space_invaders")]
    first, last = (
        te[(te["step"] > end - 500_000) & (te["step"] <= end)].groupby("seed")["value"].mean().round()
        for end in (1_000_000, 5_000_000)
    )
    assert "in four of its five seeds the mean Q falls from about 6 to about 3" in page
    assert ((first >= 6) & (last == 3)).tolist().count(True) == 4
    biases = [each.loc["breakout", "dqn"]["bias"] for each in (early, late)]
    usual, slow = ([each[rate] for each in biases] for rate in (MIDDLE_RATE, SMALLEST_RATE))
    assert (
        f"from {usual[0]:.1f} to {usual[1]:.1f} with 10^-4.5 and from {slow[0]:.1f} to {slow[1]:.1f} with 10^-5" in page
    )


def test_dqn_and_te_bdqn(page: str, ends: Ends, verdicts: dict[str, Verdict]) -> None:
    shares = [
        (ends("bias", game, name) / ends("value", game, name)).mean() for game in ends.games for name in ("dqn", "ddqn")
    ]
    assert "by a fifth to a half of their mean Q" in page
    assert (round(min(shares), 1), round(max(shares), 1)) == (0.2, 0.5)
    first = verdicts["D2"].measured["margin: breakout: alpha 0.2 above alpha 0.1"]
    second = verdicts["D2"].measured["margin: asterix: alpha 0.4 above alpha 0.3"]
    assert f"With twenty they are {said(first, 2)} and {said(second, 1)}." in page
    margins = {name: each.value for name, each in verdicts["D1"].measured.items() if name.startswith("margin")}
    weakest = {name: each.low for name, each in verdicts["D1"].measured.items() if name.startswith("margin")}
    assert len(margins) == 15
    assert min(weakest, key=lambda name: weakest[name]).startswith("margin: breakout")


def test_alpha(page: str, study: Results[Settings], ends: Ends, verdicts: dict[str, Verdict]) -> None:
    parts = verdicts["D3"].parts
    counts = [WORDS[len(some)] for some in (parts.hold, parts.open)]
    assert (
        f"**D3 is undecided.** {counts[0].capitalize()} of its twenty parts hold and {counts[1]} are open; none fails."
        in page
    )
    assert (parts.total, [*parts.fail]) == (20, [])
    assert all(name.endswith("5,000,000 steps") for name in (*parts.hold, *parts.open))
    assert "All are judged after 5,000,000 steps." in page
    assert [name.partition(":")[0] for name in parts.open if "|bias|" in name] == ["asterix", "breakout"]
    assert all("|bias|" in name for name in parts.open)
    summary = (DOCS / "reproduction.md").read_text()
    assert "D3 is undecided because of the bias in two games: in Breakout" in summary
    near = [name.partition(":")[0] for name in parts.hold if "|bias|" in name]
    assert near == ["freeway", "seaquest", "space_invaders"]
    for text in (page, summary):
        assert "clearly within a tenth of the mean Q in Freeway, Seaquest and Space Invaders" in text
    beyond = [name.partition(":")[0] for name, each in parts.open.items() if each.value < 0]
    assert beyond == ["asterix"]
    slowly = study.table[(study.table["variant"] == SLOWLY_ADAPTIVE) & (study.table["game"] == "space_invaders")]
    alpha = slowly.groupby("step")["alpha"].mean()
    assert f"alpha stays between {alpha.min():.2f} and {alpha.max():.2f} in Space Invaders" in page
    rates = [ends("alpha", "breakout", ADAPTIVE, rate).mean() for rate in (SMALLEST_RATE, MIDDLE_RATE, LARGEST_RATE)]
    assert f"it ends at {rates[0]:.2f}, {rates[1]:.2f} and {rates[2]:.2f} with the three." in page
    (longer,) = ends.longer
    last = longer("alpha", "breakout", ADAPTIVE).mean()
    assert f"It grows with training too: {last:.2f} after 5,000,000 with 10^-4.5." in page


def test_adaptation_in_longer_runs(page: str, study: Results[Settings], ends: Ends) -> None:
    (longer,), (table,) = ends.longer, study.apart.values()
    games = ends.games
    last = {game: Measured.mean(longer("alpha", game, ADAPTIVE)) for game in games}
    assert all(0.25 < each.low < each.high < 0.4 for each in last.values())
    order = sorted(games, key=lambda game: last[game].value)
    assert (order[0], order[-1]) == ("space_invaders", "breakout")
    told = [f"{last[game].value:.2f}" for game in (order[0], order[-1])]
    assert f"between {told[0]} in Space Invaders and {told[1]} in Breakout" in page
    assert f"alpha ends at {told[0]} to {told[1]} in all five games" in (DOCS / "reproduction.md").read_text()
    own = table[(table["variant"] == ADAPTIVE) & (table["learning_rate"] == MIDDLE_RATE)]
    mean = own.groupby(["game", "step"])["alpha"].mean().unstack("game")
    first = mean[mean.index <= 1_000_000]
    least, most = ({game: f"{each:.2f}" for game, each in found.items()} for found in (first.min(), first.max()))
    three = (
        f"down to {least['asterix']} in Asterix, {least['breakout']} in Breakout and {least['seaquest']} in Seaquest"
    )
    fourth = f"up to {most['space_invaders']} and down to {least['space_invaders']} in Space Invaders"
    assert f"leaves [0.2, 0.4] in all but Freeway: {three}, {fourth}." in page
    outside = [game for game in games if first[game].min() < 0.2 or first[game].max() > 0.4]
    assert outside == [game for game in games if game != "freeway"]
    after = mean[mean.index > 1_000_000].to_numpy()
    assert f"From then on it is between {after.min():.2f} and {after.max():.2f} in each" in page


def test_bias_of_adaptation_in_longer_runs(page: str, study: Results[Settings], ends: Ends) -> None:
    (longer,), (table,) = ends.longer, study.apart.values()
    bias, value = (
        {game: Measured.mean(longer(column, game, ADAPTIVE)) for game in ("asterix", "breakout", "space_invaders")}
        for column in ("bias", "value")
    )
    own = bias["breakout"]
    assert (
        f"({own.value:.2f} ± {own.high - own.value:.2f}, where a tenth is {value['breakout'].value / 10:.2f})" in page
    )
    asterix = table[(table["variant"] == ADAPTIVE) & (table["game"] == "asterix")]
    halves = asterix.groupby((asterix["step"] - 1) // 500_000)[["bias", "alpha"]].mean()
    early = [f"{each:.2f}" for each in (halves["bias"][1:7].max(), halves["bias"][1:7].min())]
    told = f"stays between {early[0]} and {early[1]} from 500,000 to 3,500,000 steps, by half millions, and ends at"
    assert f"{told} {bias['asterix'].value:.2f}: on the limit of a tenth of the mean Q" in page
    assert halves["bias"][9] == pytest.approx(bias["asterix"].value)
    assert f"with alpha between {halves['alpha'][3:].min():.2f} and {halves['alpha'][3:].max():.2f}" in page
    look, discount = Adaptation(1e-4).horizon, DeepSettings().discount
    shown = 1 - np.mean(discount ** np.arange(1, look + 1))  # the rest is in the value at the end too
    told = f"roll-outs of {look} steps end with the agent's own value, so that an error which all states share shows by"
    assert f"{told} {shown:.0%} of its size." in page
    assert 0.1 < -bias["asterix"].value / value["asterix"].value < 0.102
    every = {game: Measured.mean(longer("bias", game, ADAPTIVE)) for game in ends.games}
    assert [game for game, each in every.items() if each.low <= 0 <= each.high] == ["freeway", "seaquest"]
    assert "In Freeway and Seaquest the interval includes zero." in page
    shares = {game: each.value / longer("value", game, ADAPTIVE).mean() for game, each in every.items()}
    near = [f"{shares[game]:.0%}" for game in ("freeway", "seaquest", "space_invaders")]
    assert f"in Freeway, Seaquest and Space Invaders: {near[0]}, {near[1]} and {near[2]} of it." in page
    low, high = (function(shares.values()) for function in (min, max))
    told = f"the bias of Ada-TE-BDQN is {low:.0%} to +{high:.0%} of the mean Q in all five games"
    assert told in (DOCS / "bias.md").read_text()


def test_agents_of_longer_runs_on_space_invaders(page: str, ends: Ends) -> None:
    (longer,) = ends.longer
    names = ("ke-bdqn", ADAPTIVE, "te-bdqn(0.1)", "maxmin-dqn(2)")
    returns = {name: longer("test_return", "space_invaders", name) for name in names}
    level = [Measured.difference(returns[ADAPTIVE], returns[name]) for name in names[2:]]
    assert all(each.low < 0 < each.high for each in level)
    assert Measured.difference(returns["ke-bdqn"], returns[ADAPTIVE]).low > 0
    shares = [
        longer("bias", "space_invaders", name).mean() / longer("value", "space_invaders", name).mean()
        for name in (ADAPTIVE, "ke-bdqn")
    ]
    told = "Ada-TE-BDQN's return does not differ clearly from TE-BDQN(0.1)'s and MaxMin DQN(2)'s, with a bias of"
    told += f" {shares[0]:.0%} of its mean Q; KE-BDQN, whose bias is {shares[1]:.0%}, returns more."
    assert f"**D5 on Space Invaders**: {told}" in page
    run = longer.variants("space_invaders", MIDDLE_RATE)
    assert len(run) == 5
    assert max(run, key=lambda name: longer("test_return", "space_invaders", name).mean()) == "ke-bdqn"
    kept = returns[ADAPTIVE].mean() / returns["ke-bdqn"].mean()
    told = f"On Space Invaders Ada-TE-BDQN keeps {kept:.2f} of KE-BDQN's, the best of five"
    assert f"{told}, and less than 70% cannot be ruled out either." in page
    assert "MaxMin(2) is level with alpha 0.1 and Ada-TE-BDQN with 1e-4" in page
    between = Measured.difference(returns["maxmin-dqn(2)"], returns["te-bdqn(0.1)"])
    assert between.low < 0 < between.high


def test_what_the_smallest_rate_keeps_in_longer_runs(page: str, study: Results[Settings]) -> None:
    """Of the return with 10^-4.5. Shares are compared as logarithms, by t with the degrees of freedom of one rate's seeds."""
    (table,) = study.apart.values()
    own = table[table["game"] == "breakout"]
    returns = {
        end: own[(own["step"] > end - 500_000) & (own["step"] <= end)]
        .groupby(["variant", "learning_rate", "seed"])["test_return"]
        .mean()
        for end in (1_000_000, 5_000_000)
    }

    def clear(*signed: pd.Series) -> bool:
        """Whether the sum of the means of independent runs differs from zero, at 95%."""
        error = sum(each.var() / len(each) for each in signed) ** 0.5
        return bool(abs(sum(each.mean() for each in signed)) > student.ppf(0.975, 4) * error)

    share, growth = {}, {}
    for name in ("dqn", "ke-bdqn"):
        slow, usual = (
            {end: each[name, rate] for end, each in returns.items()} for rate in (SMALLEST_RATE, MIDDLE_RATE)
        )
        share[name] = [slow[end].mean() / usual[end].mean() for end in returns]
        growth[name] = [np.log(runs[5_000_000] / runs[1_000_000]) for runs in (slow, usual)]
    told = f"DQN ends at {share['dqn'][1]:.2f} of its return with 10^-4.5, and KE-BDQN at {share['ke-bdqn'][1]:.2f}"
    assert f"with 10^-5 {told}, which is clearly less." in page
    late = np.log(returns[5_000_000])
    assert clear(
        *(late["dqn", rate] * sign for rate, sign in ((SMALLEST_RATE, 1), (MIDDLE_RATE, -1))),
        *(late["ke-bdqn", rate] * sign for rate, sign in ((SMALLEST_RATE, -1), (MIDDLE_RATE, 1))),
    )
    early = f"it was {share['dqn'][0]:.2f} and {share['ke-bdqn'][0]:.2f}"
    assert f"{early}; five seeds cannot tell whether these shares change." in page
    assert not any(clear(slow, -usual) for slow, usual in growth.values())
    first, last = (
        f"{returns[end]['ke-bdqn', rate].mean():.1f}"
        for end, rate in ((1_000_000, MIDDLE_RATE), (5_000_000, SMALLEST_RATE))
    )
    assert first == last
    assert f"with 10^-5 equals that after one million with 10^-4.5: {last}." in page


def test_ke_bdqn_on_breakout_in_longer_runs(page: str, ends: Ends, verdicts: dict[str, Verdict]) -> None:
    """It ends below DQN with both learning rates, and with the smaller one clearly keeps less than 70% at 95% only."""
    (longer,) = ends.longer
    told = {}
    for rate in (MIDDLE_RATE, SMALLEST_RATE):
        own, other = (longer("test_return", "breakout", name, rate) for name in ("ke-bdqn", "dqn"))
        assert Measured.difference(own, other).high < 0
        each = [Measured.mean(returns) for returns in (own, other)]
        told[rate] = " against ".join(f"{found.value:.0f} ± {found.high - found.value:.0f}" for found in each)
    both = f"{told[MIDDLE_RATE]} with 10^-4.5, {told[SMALLEST_RATE]} with 10^-5."
    assert f"KE-BDQN ends clearly below DQN: {both}" in page
    mean = {
        (name, rate): longer("test_return", "breakout", name, rate).mean()
        for name in ("ke-bdqn", "dqn", ADAPTIVE)
        for rate in (MIDDLE_RATE, SMALLEST_RATE)
        if name in longer.variants("breakout", rate)
    }
    kept = mean["ke-bdqn", MIDDLE_RATE] / mean[ADAPTIVE, MIDDLE_RATE]
    slow = mean["ke-bdqn", SMALLEST_RATE] / mean["dqn", SMALLEST_RATE]
    assert f"KE-BDQN keeps {kept:.2f} of Ada-TE-BDQN's there, and with 10^-5 only {slow:.2f} of DQN's." in page
    usual = mean["ke-bdqn", MIDDLE_RATE] / mean["dqn", MIDDLE_RATE]
    assert f"and KE-BDQN's is {usual:.2f} of it" in (DOCS / "bias.md").read_text()
    biases = [Measured.mean(longer("bias", "breakout", "ke-bdqn", rate)) for rate in (MIDDLE_RATE, SMALLEST_RATE)]
    told_biases = f"it has {biases[0].value:.1f} with 10^-4.5, and with the smallest it is clearly below zero too, at"
    assert f"{told_biases} {biases[1].value:.1f}." in (DOCS / "notes" / "bias.md").read_text()
    assert biases[1].high < 0
    open_ = verdicts["D5"].parts.open
    (name,) = (name for name, each in open_.items() if each.high < 0)
    assert name.startswith("breakout with 10^-5: ke-bdqn keeps 70%")
    assert name.endswith("5,000,000 steps")
    assert f"({open_[name].value:.1f}, {open_[name].low:.1f} to {open_[name].high:.1f})" in page
    assert f"a part among {verdicts['D5'].parts.total} needs to fail" in page


def test_longer_runs_are_not_the_studys_continued(page: str, study: Results[Settings]) -> None:
    """Welch's t of the two sets of seeds, by group and fifth of the first million steps; the page has the largest."""
    (table,) = study.apart.values()
    keys, columns = ["game", "variant", "learning_rate"], ["test_return", "bias"]
    found: dict[str, dict[str, list[float]]] = {column: {} for column in columns}
    for begin in range(0, 1_000_000, 200_000):
        fifths = [
            each[each["step"].between(begin + 1, begin + 200_000) & (each["seed"] < 5)]
            .groupby([*keys, "seed"])[columns]
            .mean()
            for each in (table, study.table)
        ]
        for column in columns:
            for name in fifths[0].groupby(keys).groups:
                apart = ttest_ind(*(each.loc[name][column] for each in fifths), equal_var=False)[0]
                found[column].setdefault(str(name), []).append(abs(float(apart)))
    (groups,) = {len(each) for each in found.values()}
    combinations = (
        f"In {WORDS[groups]} combinations of game, agent and learning rate and five fifths of the first million"
    )
    assert f"{combinations}, Welch's t" in page
    returns, biases = found.values()
    largest = max(returns, key=lambda name: max(returns[name]))
    assert "te-bdqn(0.1)" in largest
    told = f"is at most {max(returns[largest]):.1f} for the return (TE-BDQN(0.1)) and {max(map(max, biases.values())):.1f} for"
    assert told in page
    (maxmin,) = (values for name, values in biases.items() if "maxmin" in name)
    assert f"MaxMin DQN(2)'s bias has {maxmin[3]:.1f} and {maxmin[4]:.1f} in the last two fifths" in page


def test_the_same_runs_on_a_cpu_and_on_a_gpu(
    page: str, study: Results[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Welch's test for two measures in five fifths, with Holm's correction, of which the least p decides."""
    monkeypatch.syspath_prepend(DOCS)
    sets = importlib.import_module("minatar_note").maxmin_by_device(study)
    (of_0_1, *_), again = sets, [("CPU", "of 19 November"), ("H200", "of 19 November"), ("CPU", "before fewer kernels")]
    for name in again:
        steps = sets[name].groupby("seed")["step"].agg(list).to_dict()
        assert steps == {seed: [*range(10_000, 1_000_001, 10_000)] for seed in range(5, 15)}

    def means(name: tuple[str, str]) -> pd.DataFrame:
        fifths = ((sets[name]["step"] - 1) // 200_000).rename("fifth")
        return sets[name].groupby([fifths, "seed"])[["test_return", "bias"]].mean()

    def least(first: pd.DataFrame, other: pd.DataFrame) -> tuple[float, tuple[str, int]]:
        """The least p, and where."""
        keys = [(column, fifth) for column in first for fifth in range(5)]
        found = {
            (column, fifth): ttest_ind(*(each[column][fifth] for each in (first, other)), equal_var=False)[1]
            for column, fifth in keys
        }
        where = min(found, key=lambda key: found[key])
        return float(found[where]), where

    cpu, gpu, before = map(means, again)
    p, where = least(cpu, gpu)
    assert f"The least p is {p:.3f}, for the bias in the last fifth, and {10 * p:.2f} corrected." in page
    assert (where, 10 * p > 0.05) == (("bias", 4), True)
    p, _ = least(cpu, before)
    assert f"**Neither do the two versions of the code.** The least p is {p:.2f}." in page
    others = pd.concat([means(name) for name in sets if name != of_0_1])
    p, where = least(means(of_0_1), others)
    assert (
        f"from the {len(others.loc[0])} others**: p is {p:.3f} for the bias in the last fifth, and {10 * p:.2f} corrected."
        in page
    )
    assert (where, of_0_1[0]) == (("bias", 4), "H200")
    last = study.table[(study.table["game"] == "space_invaders") & (study.table["step"] > 800_000)]
    heads = last[last["variant"].isin(HEADS)].groupby("variant")["test_return"].mean()
    assert heads.min() > max(each["test_return"].groupby("fifth").mean()[4] for each in (means(of_0_1), others))


def test_adaptation_beside_dqn_in_longer_runs(page: str, study: Results[Settings]) -> None:
    (table,) = study.apart.values()
    own = table[(table["game"] == "breakout") & (table["learning_rate"] == MIDDLE_RATE)]
    columns = ["test_return", "bias", "value"]
    early, late = (
        own[(own["step"] > end - 500_000) & (own["step"] <= end)].groupby(["variant", "seed"])[columns].mean()
        for end in (1_000_000, 5_000_000)
    )
    returns = [f"{each['test_return'][name].mean():.0f}" for each in (early, late) for name in (ADAPTIVE, "dqn")]
    assert (
        f"({returns[0]} and {returns[1]} after one million steps) and is level with it at the end ({returns[2]} and"
        in page
    )
    intervals = [Measured.mean(late["test_return"][name].to_numpy()) for name in (ADAPTIVE, "dqn")]
    told = [f"{each.value:.0f} ± {each.high - each.value:.0f}" for each in intervals]
    assert f"its seeds have drifted apart: {told[0]}." in page
    assert Measured.difference(*(late["test_return"][name].to_numpy() for name in (ADAPTIVE, "dqn"))).low < 0
    assert f"Ada-TE-BDQN's mean is above DQN's ({told[0]} and {told[1]})" in page
    shares = [f"{late['bias'][name].mean() / late['value'][name].mean():.0%}" for name in (ADAPTIVE, "dqn")]
    assert f"its bias is {shares[0]} of its mean Q, and DQN's is {shares[1]}" in page


def test_agents_without_adaptation(page: str, verdicts: dict[str, Verdict]) -> None:
    found = verdicts["D4"].measured
    clear = [
        found[f"margin: {name} is outside 10% of its mean Q in some game ({game})"]
        for name, game in (("scdqn(3)", "space_invaders"), ("te-bdqn(0.2)", "seaquest"))
    ]
    assert (
        f"SCDQN(3) in Space Invaders, {clear[0].value:.1f} beyond the tenth ({clear[0].low:.1f} to {clear[0].high:.1f})"
        in page
    )
    assert (
        f"TE-BDQN(0.2), {clear[1].value:.2f} beyond it in Seaquest ({clear[1].low:.2f} to {clear[1].high:.2f}; Freeway"
        in page
    )


def test_returns_of_agents_with_heads(page: str, ends: Ends, verdicts: dict[str, Verdict]) -> None:
    means = {game: {name: ends("test_return", game, name).mean() for name in VARIANTS} for game in ends.games}
    invaders, freeway, breakout = (means[game] for game in ("space_invaders", "freeway", "breakout"))
    assert min(invaders[name] for name in HEADS) >= 1.25 * max(invaders[name] for name in OTHERS)
    best = max(freeway[name] for name in OTHERS)
    assert best == freeway["maxmin-dqn(3)"]
    least, most = (function(freeway[name] / best - 1 for name in HEADS) for function in (min, max))
    assert (round(least, 2), round(most, 2)) == (0.01, 0.05)
    first, second = sorted(breakout, key=lambda name: -breakout[name])[:2]
    assert (first, second) == ("dqn", "te-bdqn(0.3)")
    assert f"DQN has the highest mean ({breakout[first]:.1f}; alpha 0.3 has {breakout[second]:.1f})" in page
    shares = [breakout[name] / breakout["dqn"] for name in ("ke-bdqn", ADAPTIVE)]
    assert f"barely do with 10^-4.5 ({shares[0]:.2f} and {shares[1]:.2f} of DQN's)" in page
    kept = {
        name: each
        for name, each in verdicts["D5"].measured.items()
        if "keeps 70%" in name and name.startswith("margin")
    }
    open_ = [name for name, each in kept.items() if each.low <= 0 <= each.high]
    assert f"{WORDS[len(open_)].capitalize()} of the {WORDS[len(kept)]} intervals include zero" in page
    longer = WORDS[
        sum(name.endswith("5,000,000 steps") for name in verdicts["D5"].measured if name.startswith("margin"))
    ]
    assert f"{longer.capitalize()} parts rest on 5,000,000 steps: " in page
    assert f"All but {longer} parts rest on 1,000,000 steps." in (DOCS / "reproduction.md").read_text()
    fast = {
        name: ends("test_return", "breakout", name, LARGEST_RATE).mean()
        for name in ends.variants("breakout", LARGEST_RATE)
    }
    assert min(fast, key=lambda name: fast[name]) == "dqn"
    assert len(fast) == 4


def test_space_invaders(page: str, ends: Ends, verdicts: dict[str, Verdict]) -> None:
    (longer,) = ends.longer

    def told(own: Ends, name: str) -> str:
        each = Measured.mean(own("test_return", "space_invaders", name))
        return f"{each.value:.0f} ± {each.high - each.value:.0f}"

    biases = [longer("bias", "space_invaders", name).mean() for name in ("ke-bdqn", "te-bdqn(0.1)")]
    assert f"KE-BDQN's bias is below zero ({biases[0]:.1f}) and TE-BDQN(0.1)'s lower still ({biases[1]:.1f})" in page
    names = ("ke-bdqn", "te-bdqn(0.1)", "maxmin-dqn(2)", ADAPTIVE, "dqn")
    ke, te, maxmin, ada, dqn = (told(longer, name) for name in names)
    others = f"TE-BDQN(0.1)'s ({te}), MaxMin DQN(2)'s ({maxmin}), Ada-TE-BDQN's ({ada}) and DQN's ({dqn})"
    assert f"KE-BDQN's return ({ke}) is above {others}" in page
    bias = longer("bias", "space_invaders", "maxmin-dqn(2)").mean()
    assert f"MaxMin DQN(2) ends level with it ({maxmin}), with a bias of {bias:.1f} that is nearer to zero" in page
    assert biases[0] < bias < 0
    short = " and ".join(told(ends, name) for name in ("ke-bdqn", "te-bdqn(0.1)"))
    assert f"the first two could not be told apart ({short})" in page
    parts = verdicts["D6"].parts
    assert [*parts.hold] == [name for name in parts.hold if name.endswith("5,000,000 steps")]
    assert (len(parts.hold), [*parts.fail]) == (4, [])
    ((name, margin),) = parts.open.items()
    short_runs = len(VARIANTS) - len(names)
    assert name == f"KE-BDQN's return above the best of {short_runs} others (te-bdqn(0.2))"
    assert f"the best of the {WORDS[short_runs]} agents that have been run for 1,000,000 steps only" in page
    summary = (DOCS / "reproduction.md").read_text()
    assert "a higher return than MaxMin DQN(2), DQN, Ada-TE-BDQN with 1e-4 and TE-BDQN(0.1), whose bias is" in summary
    assert f"Of the {WORDS[short_runs]} agents that were run for 1,000,000 steps only" in summary
    assert f"which is TE-BDQN(0.2): {margin.value:.0f} ({margin.low:.0f} to {margin.high:.0f})" in page


def test_learning_rates(page: str, ends: Ends, verdicts: dict[str, Verdict]) -> None:
    def mean(name: str, rate: float, column: str = "test_return") -> float:
        return float(ends(column, "breakout", name, rate).mean())

    names = ends.variants("breakout", SMALLEST_RATE)
    kept = {name: mean(name, SMALLEST_RATE) / mean(name, MIDDLE_RATE) for name in names}
    low, high = (function(kept, key=lambda name: kept[name]) for function in (min, max))
    assert (low, high, WORDS[len(names)]) == ("ke-bdqn", "ddqn", "eight")
    assert f"they keep {kept[low]:.2f} (KE-BDQN) to {kept[high]:.2f} (DDQN) of it" in page
    (longer,) = ends.longer
    run = [(longer, "dqn"), (longer, "ke-bdqn"), *((ends, name) for name in names)]
    for own, name in run:  # all are clearly slower
        usual, slow = (own("test_return", "breakout", name, rate) for rate in (MIDDLE_RATE, SMALLEST_RATE))
        assert Measured.difference(usual, slow).low > 0
    dqn, ke = (
        longer("test_return", "breakout", name, SMALLEST_RATE).mean() / longer("test_return", "breakout", name).mean()
        for name in ("dqn", "ke-bdqn")
    )
    assert f"DQN and KE-BDQN are judged after 5,000,000 steps, where they keep {dqn:.2f} and {ke:.2f}." in page
    summary = (DOCS / "reproduction.md").read_text()
    assert (
        f"but for the other seven a half is open; after 5,000,000 DQN keeps {dqn:.2f} and KE-BDQN {ke:.2f}." in summary
    )
    assert len(verdicts["D7"].parts.open) == 7
    assert [*verdicts["D7"].parts.fail] == ["bdqn: less than half of the return at 10^-4.5"]
    clear = [name.partition(":")[0] for name, each in verdicts["D7"].parts.open.items() if each.high < 0]
    assert clear == ["dqn", "ddqn", "scdqn(2)"]
    fast = [mean(name, SMALLEST_RATE) / mean(name, LARGEST_RATE) for name in ends.variants("breakout", LARGEST_RATE)]
    assert f"Against 10^-4 the same returns are {min(fast):.2f} to {max(fast):.2f}" in page
    biases = [f"{mean('dqn', rate, 'bias'):.1f}" for rate in (SMALLEST_RATE, MIDDLE_RATE, LARGEST_RATE)]
    bdqn = Measured.mean(ends("bias", "breakout", "bdqn", SMALLEST_RATE))
    assert (
        f"(bias of DQN {biases[0]}, {biases[1]} and {biases[2]} with the three rates; BDQN keeps {bdqn.value:.1f},"
        in page
    )
    assert bdqn.low > 0
    late = [f"{longer('bias', 'breakout', name, SMALLEST_RATE).mean():.1f}" for name in ("dqn", "ke-bdqn")]
    assert f"after 5,000,000 DQN's bias is {late[0]} with 10^-5, and KE-BDQN's {late[1]}." in page


def test_seconds_of_longer_runs_are_those_of_the_manifests() -> None:
    """The rows of what it cost. Two groups of DQN trained in one program, whose manifests split its time."""
    long = r"(\w+)[^|]*?, (\w+(?: Invaders)?)(?:, two rates)?, 5,000,000 steps|(the same), (\w+(?: Invaders)?)"
    row = re.compile(rf"^\| (?:{long})[^|]* \| (\d+) \| ([\d,]+) \| ([\d,]+) \| \|$", flags=re.M)
    names = {"DQN": "dqn", "TE": "te-bdqn:0.1", "MaxMin": "maxmin-dqn:2", "KE": "ke-bdqn"}
    names |= dict.fromkeys(("Ada", "the same"), "ada-te-bdqn:1e-4")
    took: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for path in (SHIPPED / "minatar").glob("*.json"):
        each = json.loads(path.read_text())
        if "part" in each and each["settings"]["steps"] == 5_000_000:
            (agent,), rates = each["part"]["agents"], np.atleast_1d(each["part"]["learning_rate"])
            runs = len(rates) * len(each["part"]["seeds"])
            took.setdefault((each["part"]["game"], agent), []).append((each["seconds"], runs))
    found = []
    for *told, runs, seconds, speed in row.findall(NOTE.read_text()):
        name, game = filter(None, told)
        found.append((game.lower().replace(" ", "_"), names[name]))
        took_each, runs_each = zip(*took[found[-1]], strict=True)
        assert int(runs) == sum(runs_each)
        assert seconds == f"{sum(took_each):,.0f}"
        assert speed == f"{round(5_000_000 * sum(runs_each) / sum(took_each), -2):,.0f}"
    assert sorted([*found, ("space_invaders", "ke-bdqn")]) == sorted(took)  # which the table does not have


def test_agents_with_heads_beside_the_others(ends: Ends) -> None:
    """What is clear in each game, and over all of them."""

    def above(game: str, first: str) -> set[str]:
        own = ends("test_return", game, first)
        return {name for name in VARIANTS if Measured.difference(own, ends("test_return", game, name)).low > 0}

    plain, scdqn = {"dqn", "ddqn"}, {name for name in OTHERS if name.startswith("scdqn")}
    maxmin = {name for name in OTHERS if name.startswith("maxmin")}
    adaptive = (ADAPTIVE, SLOWLY_ADAPTIVE)
    for name in ("ke-bdqn", *adaptive, "te-bdqn(0.1)", "te-bdqn(0.2)"):
        assert plain | scdqn <= above("asterix", name)
        assert "maxmin-dqn(2)" not in above("asterix", name)
    assert not {"bdqn", "te-bdqn(0.3)"} & above("asterix", "dqn")
    assert not any("dqn" in above("asterix", name) for name in ("bdqn", "te-bdqn(0.3)"))
    assert "te-bdqn(0.4)" in above("asterix", "dqn")
    assert {*HEADS} & above("breakout", "dqn") == {"bdqn", "ke-bdqn", ADAPTIVE, "te-bdqn(0.1)", "te-bdqn(0.4)"}
    assert plain | scdqn <= above("seaquest", "te-bdqn(0.1)")
    assert all(plain <= above("seaquest", name) for name in ("ke-bdqn", *adaptive))
    assert "dqn" in above("seaquest", "te-bdqn(0.3)")
    assert "ddqn" not in above("seaquest", "te-bdqn(0.3)")
    assert not {*OTHERS} & above("seaquest", "te-bdqn(0.2)")
    assert not any("te-bdqn(0.2)" in above("seaquest", name) for name in OTHERS)
    assert {"bdqn", "te-bdqn(0.4)"} <= above("seaquest", "dqn")
    for name in ("te-bdqn(0.1)", "ke-bdqn", *adaptive, "te-bdqn(0.3)"):
        assert not maxmin & above("seaquest", name)
        assert not any(name in above("seaquest", other) for other in maxmin)
    heads = ends.shares("test_return", *HEADS)
    margins = {name: mean_over_games(heads, ends.shares("test_return", name)) for name in OTHERS}
    assert [name for name, each in margins.items() if not each.low > 0] == ["maxmin-dqn(2)"]
    assert margins["maxmin-dqn(2)"].high > 0
    assert mean_over_games(heads, ends.shares("test_return", *sorted(maxmin))).low > 0
