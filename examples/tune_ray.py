"""Search alpha and the learning rate of TE-BDQN with Ray Tune, on all cores or on a cluster, with the objective of `tuning.py`.

    pip install '.[deep,gymnasium]' 'ray[tune]' && python examples/tune_ray.py --trials 20 --steps 20000

The test return is maximised; a trial whose running bias is worse than the others' median is stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ray import tune
from ray.tune.schedulers import MedianStoppingRule
from tuning import ALPHA, LEARNING_RATE, Progress, objective


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The settings, from the command line."""
    parser = argparse.ArgumentParser(
        description="Search alpha and learning rate with Ray Tune, stopped by the running bias.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--trials", type=int, default=20, help="trainings")
    parser.add_argument("--steps", type=int, default=20_000, help="steps of a training")
    parser.add_argument("--heads", type=int, default=10, help="heads of an agent")
    parser.add_argument("--warmup", type=int, default=1_000, help="steps before learning begins")
    parser.add_argument("--seed", type=int, default=0, help="of every training")
    parser.add_argument("--concurrent", type=int, default=0, help="trainings at a time; 0 is one a core")
    parser.add_argument("--out", type=Path, default=Path("out/ray"), help="folder for Ray's results")
    return parser.parse_args(argv)


def search(args: argparse.Namespace) -> tune.ResultGrid:
    """Run the trials."""

    def trial(config: dict[str, Any]) -> None:
        def hear(step: int, progress: Progress) -> None:
            tune.report({"step": step, "score": progress.score, "running_bias": progress.running_bias})

        objective(**config, steps=args.steps, seed=args.seed, hear=hear, k=args.heads, warmup=args.warmup)

    stopping = MedianStoppingRule(
        time_attr="step", metric="running_bias", mode="min", grace_period=args.steps // 2, min_samples_required=4
    )
    tuner = tune.Tuner(
        trial,
        param_space={"alpha": tune.loguniform(*ALPHA), "learning_rate": tune.loguniform(*LEARNING_RATE)},
        tune_config=tune.TuneConfig(
            num_samples=args.trials, scheduler=stopping, max_concurrent_trials=args.concurrent or None
        ),
        run_config=tune.RunConfig(storage_path=str(args.out.resolve())),
    )
    return tuner.fit()


def main(argv: Sequence[str] | None = None) -> tune.ResultGrid:
    """Search, and say what was found."""
    results = search(arguments(argv))
    best = results.get_best_result("score", "max")
    print(f"{len(results)} trials, {results.num_errors} failed")
    if best.metrics is not None and best.config is not None:
        print(f"best: alpha {best.config['alpha']:.3f}, learning rate {best.config['learning_rate']:.2e}", end=", ")
        print(f"return {best.metrics['score']:.1f}, bias off by {best.metrics['running_bias']:.2f}")
    return results


if __name__ == "__main__":
    main()
