"""The picture of a bias: where in the range of its predictions an agent is wrong."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING

from ...drawing import own_style
from ...mev.errors import ArgumentError
from ...mev.picture import check_figure
from ...storage import write_whole
from .errors import HostError

if TYPE_CHECKING:
    from .rollouts import Bias

_INK, _BLUE = "#111827", "#1f6fb2"


def draw_bias(bias: Bias, path: str | Path) -> None:
    """Draw it and write it to ``path``, whole or not at all."""
    try:
        kind = check_figure(str(path))
    except ArgumentError as error:
        raise HostError(str(error)) from None
    if not math.isfinite(bias.value):
        raise HostError("there is nothing to draw: the agent's values, or the returns, are not finite numbers")
    known = math.isfinite(bias.error)  # of one episode it is not
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
    with own_style(style):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 3.4), layout="constrained")
        panel = figure.subplots()
        panel.axhline(0.0, color=_INK, linewidth=0.8)
        if known:
            low, high = bias.interval
            panel.axhspan(low, high, color=_BLUE, alpha=0.15, linewidth=0, label="all pairs, 95% interval")
        panel.axhline(bias.value, color=_BLUE, linewidth=1.0, label=None if known else "all pairs")
        panel.plot(bias.values, bias.fifths, "o-", color=_BLUE, label="by fifths of the predicted value")
        give_or_take = f" ± {bias.error:.2g} (standard error)" if known else " (one episode: no standard error)"
        panel.set_title(f"Bias {bias.value:+.3g}{give_or_take}, {bias.pairs:,} pairs", fontweight="bold")
        panel.set_xlabel("predicted value Q")
        panel.set_ylabel("Q minus the return that followed")
        panel.legend(frameon=False)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=150)
    try:
        write_whole(Path(path), buffer.getvalue())
    except OSError as error:
        raise HostError(f"cannot write {str(path)!r}: {error.strerror}") from None
