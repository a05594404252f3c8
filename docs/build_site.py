"""Hooks of the documentation's build: curves from the shipped tables, the agents' classes, formulas as MathML, docstrings' roles.

All of it is made when the site is built: no picture is kept in the repository, and no page asks another server for anything.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from maxmean.deep.registry import REGISTRY
from maxmean.lab.aggregate import band
from maxmean.lab.experiment import Results
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.experiments.ads.figures import region_map
from maxmean.lab.experiments.minatar.ends import other_seeds
from maxmean.lab.experiments.minatar.figures import long_figure, paired_figure
from maxmean.lab.experiments.minatar.variants import MIDDLE_RATE
from maxmean.lab.experiments.which import estimator_map
from maxmean.lab.figures import canvas, caption, inline_svg, line
from maxmean.lab.run import SHIPPED, load_best
from maxmean.lab.store import Store

CLASSES = "<!-- classes -->"
MAP = re.compile(r"<!-- map: ([a-z-]+) -->")
MAPS: dict[str, Callable[[Results[Any]], Figure]] = {"which": estimator_map, "ads": region_map}
CURVE = re.compile(r"<!-- curve: ([a-z-]+) -->")
LONG = re.compile(r"<!-- five million steps: ([a-z_]+) -->")
PAIRED = re.compile(r"<!-- paired agents -->")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)
ROLE = re.compile(r":(?:func|class|mod|meth|data|attr):`~?([^`]+)`")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the agents' classes in their place: they are made of the registry, so that nothing finds them in the source."""
    return markdown.replace(CLASSES, class_table())


def class_table() -> str:
    """The class of every agent, what the command line calls it, and what may follow that name."""
    rows = [
        f"| [`maxmean.{each.function}`](../algorithms/{each.unpaired}.md){', paired' if each.paired else ''} "
        f"| `--agent {each.name}{f':{each.takes}' if each.takes else ''}` |\n"
        for each in REGISTRY
    ]
    return "".join(["| class | command line |\n", "|---|---|\n", *rows])


def on_page_content(content: str, **_: Any) -> str:
    """Put curves and formulas in their places."""
    content = CURVE.sub(lambda found: curve(found[1]), content)
    content = PAIRED.sub(lambda _: paired_curves(), content)
    content = LONG.sub(lambda found: long_curves(found[1]), content)
    content = MAP.sub(lambda found: drawn_map(found[1]), content)
    return FORMULA.sub(lambda found: formula(html.unescape(found[2]), block=found[1] == "div"), content)


@cache
def shipped(experiment: str) -> Results[Any]:
    """The results of an experiment that come with the package."""
    results = load_best(Store(SHIPPED, create=False), EXPERIMENTS[experiment])
    if results is None:
        raise RuntimeError(f"the results of {experiment} do not ship with this package")
    return results


@cache
def drawn_map(experiment: str) -> str:
    """Which estimator has the least error, as a picture."""
    return f'<figure class="curve">{inline_svg(MAPS[experiment](shipped(experiment)), experiment)}</figure>'


def formula(latex: str, *, block: bool) -> str:
    """LaTeX as MathML, which browsers show by themselves."""
    from latex2mathml.converter import convert

    # The converter knows max, but not arg.
    made = convert(latex.strip().replace(r"\arg\max", r"\mathrm{arg}\max"), display="block" if block else "inline")
    if unknown := re.search(r">\\\w+", made):
        raise ValueError(f"the formula {latex!r} has something that cannot be shown: {unknown[0][1:]}")
    return made


@cache
def long_curves(game: str) -> str:
    """Return, bias and alpha over the longer runs of a game."""
    return f'<figure class="curve">{inline_svg(long_figure(shipped("minatar"), game), game)}</figure>'


@cache
def paired_curves() -> str:
    """Return, bias and what is adapted over time, of the agents with the paired statistic and of those without."""
    return f'<figure class="curve">{inline_svg(paired_figure(shipped("minatar")), "paired")}</figure>'


@cache
def curve(agent: str) -> str:
    """Test return and bias of an agent's variants over time in each game, paired or not, and their means over the last tenth."""
    table = shipped("minatar").table
    unpaired = table["agent"].str.replace("*", "")
    own = table[(unpaired == agent) & (table["learning_rate"] == MIDDLE_RATE)]
    if own.empty:
        raise ValueError(f"there is no curve of {agent!r} in the shipped study")
    games = list(dict.fromkeys(own["game"]))
    figure, axes = canvas(len(games), 2, width=9, height=2.8)
    rng = np.random.default_rng(0)
    body = ""
    for row, game in zip(axes, games, strict=True):
        for variant, runs in own[own["game"] == game].groupby("variant", sort=False):
            cells = [game, str(variant)]
            for ax, column in zip(row, ("test_return", "bias"), strict=True):
                wide = runs.pivot(index="seed", columns="step", values=column)
                value, low, high = band([wide.to_numpy()], rng)
                line(ax, wide.columns.to_numpy() / 1e6, value, str(variant), low=low, high=high)
                cells.append(f"{runs.loc[runs['step'] > 0.9 * runs['step'].max(), column].mean():.2f}")
            body += "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        caption(row[0], f"{game}: test return", "million steps")
        caption(row[1], f"{game}: bias of Q", "million steps")
        row[1].axhline(0, color="#8a8f98", lw=0.8)
        row[0].legend(frameon=False, fontsize=8)
    seeds = int(own.groupby(["game", "variant"])["seed"].nunique().min())
    several = f"{seeds} seeds" + (f" ({others})" if (others := other_seeds(own, seeds)) else "")
    return (
        f'<figure class="curve">{inline_svg(figure, agent)}<figcaption>MinAtar, {several}, '
        "learning rate 10<sup>-4.5</sup>; bands are 95% intervals over seeds.</figcaption></figure>"
        "<table><thead><tr><th>game</th><th>over the last tenth</th><th>test return</th><th>bias of Q</th></tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def markdown_of(text: str) -> str:
    """A docstring's roles and formulas as Markdown.

    >>> markdown_of("as in :func:`mev.t_statistic`, with :math:`x^2`")
    'as in `mev.t_statistic`, with $x^2$'
    """
    text = re.sub(r":math:`([^`]+)`", r"$\1$", text)
    text = ROLE.sub(r"`\1`", text)
    text = re.sub(r"((?:^[ ]*>>> .*\n?)(?:^[ ]*\S.*\n?)*)", _fenced, text, flags=re.M)
    return re.sub(r"^([ ]*)\.\. math::(.*(?:\n+\1 {4}.*)*)", _displayed, text, flags=re.M)


def _fenced(found: re.Match[str]) -> str:
    """An example as a block of code."""
    lines = found[0].rstrip("\n").split("\n")
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return "\n".join([f"{indent}```pycon", *lines, f"{indent}```", ""])


def _displayed(found: re.Match[str]) -> str:
    """A formula as a block."""
    lines = [line.strip() for line in found[2].split("\n") if line.strip()]
    return "\n".join(["", *(found[1] + line for line in ("$$", *lines, "$$")), ""])
