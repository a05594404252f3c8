"""The picture of a plan: what fewer and more observations of every option do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .picture import canvas, check_figure, save
from .show import confidence, number, visible

if TYPE_CHECKING:
    from .plan import Plan

_BLUE, _GREY, _GREEN = "#1f6fb2", "#a3adb8", "#15803d"


def plot_plan(plan: Plan, path: str) -> None:
    """Draw a plan's curve and write it to ``path`` (.png, .pdf or .svg), whole or not at all."""
    kind = check_figure(path)
    with canvas((7, 4), [visible(name, 28) for name in (plan.best, plan.control or "")], kind) as figure:
        axes = figure.add_subplot()
        n = [each.n for each in plan.curve]
        if plan.width is None:
            what = "told apart from all others" if plan.control is None else f"seen to beat {visible(plan.control, 28)}"
            axes.plot(n, [each.told for each in plan.curve], "o-", color=_BLUE, ms=4, label=what)
            axes.plot(n, [each.picked for each in plan.curve], "o-", color=_GREY, ms=4, label="looks best")
            axes.axhline(plan.power, color=_GREEN, lw=1, ls=(0, (4, 3)), zorder=0)
            axes.set_ylim(0, 1.02)
            axes.set_ylabel(f"probability for {visible(plan.best, 28)}")
            axes.legend(loc="lower right", frameon=False)
        else:
            axes.plot(n, [each.width or 0.0 for each in plan.curve], "o-", color=_BLUE, ms=4)
            axes.axhline(plan.width, color=_GREEN, lw=1, ls=(0, (4, 3)), zorder=0)
            axes.set_ylim(bottom=0)
            axes.set_ylabel(f"mean width of the {confidence(plan.level)} interval")
        axes.axvline(plan.n, color=_GREEN, lw=1, zorder=0)
        axes.set_xscale("log")
        shown = n[:: max(len(n) // 5, 1)]
        axes.set_xticks(shown, [number(k, 0) for k in shown])
        axes.minorticks_off()
        axes.set_xlabel("observations of every option")
        axes.set_title(f"{plan.n:,} observations of every option", fontweight="bold")
        save(figure, path, kind)
