"""What the words of an answer mean, for readers who were sent it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .methods import described
from .show import confidence

if TYPE_CHECKING:
    from .compare import Comparison

_WORDS = {
    "as observed (naive)": "The {largest} sample mean. It was picked for being {large}, so it is too {large} on average: "
    "in a new experiment the same option tends to come out {smaller}.",
    "{largest} true mean": "The true mean of whichever option is the best, which need not be the one that looks best. "
    "Its interval holds it in {level} of such experiments, or more.",
    "to plan with": "What to expect of the option that looks best. The value is drawn towards the other options, and the "
    "interval allows for the option having been picked for its result.",
    "best? maybe": "The data do not rule the option out as the best. The best one is among those marked so with {level} "
    "probability.",
    "std. error": "How far a mean of that many observations typically lies from the true one.",
    "shrunk": "The mean drawn towards those of the others, the more so the less is known about it: closer to the truth on "
    "average.",
    "P(best)": "The probability that the option is the best, with the means drawn towards each other.",
    "rank": "Where the option's true mean may stand, 1 being the best. All ranges hold at once with {level} "
    "probability, which is more than is said of those marked maybe: an option may have rank 1 in its range and not be marked.",
    "bias": "How far a method lies above the truth on average (+) or below it (-), from the smallest to the largest at "
    "some sets of true means that the data allow.",
}
_ALONE = "In the picture of the options, each one's own at {level}. Everywhere else, allowance is made for there being several."
_ALWAYS = (
    "They hold at every look at the growing data, however often somebody looks and whenever the experiment is stopped."
)
_LIFT = {
    "lift": "An option's mean less the control's; relative, as a share of the control's. All intervals hold at once with {level} "
    "probability.",
    "beats it": "The option is {better} than the control. With {level} probability, this is said of no option wrongly. "
    "The test looks in one direction, the interval in both: an option can beat the control although its interval just includes "
    "zero.",
}


def glossary(comparison: Comparison) -> list[tuple[str, str]]:
    """The words that this answer uses, with what they mean."""
    lower = comparison.problem.lower_is_better
    filled = {
        "level": confidence(comparison.level),
        "largest": "smallest" if lower else "largest",
        "large": "small" if lower else "large",
        "smaller": "larger" if lower else "smaller",
        "better": "lower" if lower else "higher",
    }
    words = _WORDS | {"intervals": _ALONE if comparison.problem.planned is None else _ALWAYS}
    if comparison.lift is not None:
        words |= _LIFT
    methods = "; ".join(f"{method}: {described(method, lower)}" for method in comparison.estimates)
    found = [(term.format(**filled), meaning.format(**filled)) for term, meaning in words.items()]
    return [*found, ("methods", f"{methods}.")]
