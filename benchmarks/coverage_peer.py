"""Hybrid intervals of the winners' means by multiple-inference, for `coverage.py --peer`: problems in, intervals out, as JSON."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np

LEVEL, BETA = 0.95, 0.005


def hybrid(means: np.ndarray, covariance: np.ndarray) -> list[float]:
    from multiple_inference.rank_condition import RankCondition

    law = RankCondition(means, covariance).get_marginal_distribution(int(means.argmax()), beta=BETA)
    tail = (1 - LEVEL - BETA) / (1 - BETA) / 2
    return [float(end) for end in law.ppf([tail, 1 - tail])]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    problems = json.load(sys.stdin)
    print(json.dumps([hybrid(np.array(each["means"]), np.array(each["covariance"])) for each in problems]))
