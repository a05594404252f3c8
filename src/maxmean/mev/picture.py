"""The picture of a comparison: the options above, and below them where each estimator puts the best."""

from __future__ import annotations

import io
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..drawing import check_matplotlibrc, own_style
from ..storage import write_whole
from .errors import ArgumentError
from .show import decimals_for, number, percent, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .compare import Comparison

FIGURES = ("png", "pdf", "svg")

_ROWS = 30  # options drawn; the leading ones
_WIDTH = 28  # columns of a name
_FONTS = ("DejaVu Sans", "Noto Sans CJK JP", "Hiragino Sans", "Microsoft YaHei", "Noto Sans", "Noto Emoji")
_BLUE, _GREY, _ORANGE, _GREEN = "#1f6fb2", "#a3adb8", "#c2410c", "#15803d"


def plot(comparison: Comparison, path: str) -> None:
    """Draw a comparison and write it to ``path`` (.png, .pdf or .svg), whole or not at all."""
    kind = check_figure(path)  # before anything is drawn
    options = min(len(comparison.problem.names), _ROWS)
    estimates = len(comparison.estimates) + 2
    lifts = 0 if comparison.lift is None else min(len(comparison.lift.options), _ROWS) + 1
    heights = [options + 1, estimates + 1, *([lifts + 1] if lifts else [])]
    with canvas((8, 1.32 + (0.48 if lifts else 0.0) + 0.24 * sum(heights))) as figure:
        grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
        above, below, *last = (figure.add_subplot(grid[row]) for row in range(len(heights)))
        above.sharex(below)
        above.tick_params(labelbottom=False)
        _draw_options(above, comparison)
        _draw_estimates(below, comparison)
        for axes in last:
            _draw_lift(axes, comparison)
        figure.suptitle("How good is the best one, really?", x=0.01, ha="left", fontweight="bold")
        save(figure, path, kind)


@contextmanager
def canvas(size: tuple[float, float]) -> Iterator[Figure]:
    """An empty figure in the style of answers: names are text, in fonts that have their characters."""
    from matplotlib.figure import Figure
    from matplotlib.font_manager import fontManager

    style = {
        "font.size": 9,
        "font.family": [name for name in _FONTS if name in fontManager.get_font_names()],
        "svg.fonttype": "none",  # text stays text: a viewer has more scripts than this machine
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
    }
    with own_style(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # an empty box says it in the picture
        yield Figure(figsize=size, layout="constrained")


def save(figure: Figure, path: str, kind: str) -> None:
    """Write a figure, whole or not at all; inside its :func:`canvas`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150)
    try:
        write_whole(Path(path), buffer.getvalue())
    except OSError as error:
        raise ArgumentError(f"cannot write {path!r}: {error.strerror}") from None


def check_figure(path: str | os.PathLike[str]) -> str:
    """The kind of picture that ``path`` asks for, if its folder exists and pictures can be drawn."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"a picture needs a path, not {path!r}")
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    if kind not in FIGURES:
        raise ArgumentError(f"a picture's name must end in .{', .'.join(FIGURES)}, not {target.name!r}")
    if "\0" in str(target):
        raise ArgumentError(f"cannot write {str(target)!r}: a path cannot contain a null character")
    if not target.parent.is_dir():
        raise ArgumentError(f"there is no folder {str(target.parent)!r} to write {target.name!r} to")
    check_matplotlibrc()
    return kind


def _draw_options(axes: Any, comparison: Comparison) -> None:
    from scipy.special import ndtri

    problem = comparison.problem
    order = sorted(range(len(problem.names)), key=lambda k: -problem.direction * problem.means[k])[:_ROWS]
    reach = float(ndtri((1 + comparison.level) / 2))
    ends = [
        (mean - reach * se, mean + reach * se) for mean, se in zip(problem.means, problem.standard_errors, strict=True)
    ]
    if problem.planned is not None:
        ends = [problem.interval(*pair) for pair in problem.sequences(comparison.level).all_bounds.tolist()]
    best = set(comparison.best_set)
    for row, k in enumerate(order):
        _interval(axes, row, problem.means[k], ends[k], _BLUE if problem.names[k] in best else _GREY)
    _rows(axes, [visible(problem.names[k], _WIDTH) for k in order])
    hidden = len(problem.names) - len(order)
    more = f"; {hidden:,} further options are not shown" if hidden else ""
    axes.set_title(f"The options, {comparison.level:.0%} intervals (grey: not the best){more}", fontsize=9)
    _guides(axes, comparison)
    axes.legend(loc="best", frameon=False, fontsize=8.5)


def _draw_estimates(axes: Any, comparison: Comparison) -> None:
    places = decimals_for(comparison.problem.standard_errors)
    low, high = (number(end, places) for end in comparison.maximum)
    _interval(axes, 0, comparison.answer.value, comparison.maximum, _GREEN)
    labels = [f"the best mean  {low} to {high}"]
    for row, (method, est) in enumerate(comparison.estimates.items(), start=1):
        colour = _ORANGE if method == "me" else _GREEN if method == comparison.answer.method else "black"
        axes.plot(est.value, row, "o", color=colour, ms=5)
        labels.append(f"{method}  {number(est.value, places)}")
    if not comparison.winner.tied:
        own = comparison.winner.recommended
        _interval(axes, len(labels), own.value, own.interval, "black", marker="D")
        labels.append(f"{visible(comparison.winner.option, _WIDTH)}'s own mean  {number(own.value, places)}")
    _rows(axes, labels)
    axes.set_title(f"The best mean, {comparison.level:.0%} interval, and where each method puts it", fontsize=9)
    if comparison.problem.lower_is_better:
        axes.set_xlabel("lower is better")
    _guides(axes, comparison)


def _draw_lift(axes: Any, comparison: Comparison) -> None:
    """Differences to the control, with a second scale in percent of it."""
    lift = comparison.lift
    assert lift is not None
    problem = comparison.problem
    order = sorted(lift.options, key=lambda each: -problem.direction * each.difference)[:_ROWS]
    for row, each in enumerate(order):
        _interval(axes, row, each.difference, each.interval, _BLUE if each.beats else _GREY)
    labels = [f"{visible(each.option, _WIDTH)}  {percent(each.relative)}" for each in order]
    own = lift.best.recommended
    _interval(axes, len(labels), own.value, own.interval, "black", marker="D")
    labels.append(f"{visible(lift.best.option, _WIDTH)}, corrected  {percent(lift.best.relative.value)}")
    _rows(axes, labels)
    control = visible(lift.control, _WIDTH)
    axes.axvline(0.0, color=_ORANGE, lw=1, ls=(0, (4, 3)), zorder=0)
    axes.set_title(f"Lift over {control}, {lift.level:.0%} intervals that hold at once (blue: beats it)", fontsize=9)
    axes.set_xlabel(f"difference to {control}" + ("; lower is better" if problem.lower_is_better else ""))


def _interval(axes: Any, row: int, value: float, ends: tuple[float, float], colour: str, marker: str = "o") -> None:
    """A point with its interval; what is infinite is left open."""
    if all(math.isfinite(end) for end in ends):
        axes.plot(ends, [row, row], color=colour, lw=1.8, solid_capstyle="butt")
    if math.isfinite(value):
        axes.plot(value, row, marker, color=colour, ms=5)


def _rows(axes: Any, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)


def _guides(axes: Any, comparison: Comparison) -> None:
    """Vertical lines through both panels: the naive answer and the corrected one."""
    answer = comparison.answer
    axes.axvline(answer.naive, color=_ORANGE, lw=1, ls=(0, (4, 3)), zorder=0, label="as observed (naive)")
    axes.axvline(answer.value, color=_GREEN, lw=1, zorder=0, label=f"corrected ({answer.method})")
