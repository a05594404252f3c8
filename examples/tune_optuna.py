"""Search alpha and the learning rate of TE-BDQN with Optuna; trials whose values drift from the truth are given up early.

    pip install '.[deep,gymnasium]' optuna && python examples/tune_optuna.py --trials 20 --steps 20000

The test return is maximised. The pruner hears of the running bias instead: what is given up is what believes in wrong values.
Whether that also finds the best return sooner has not been measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import optuna
from tuning import ALPHA, LEARNING_RATE, Progress, objective


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The settings, from the command line."""
    parser = argparse.ArgumentParser(
        description="Search alpha and learning rate with Optuna, pruned by the running bias.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--trials", type=int, default=20, help="trainings")
    parser.add_argument("--steps", type=int, default=20_000, help="steps of a training")
    parser.add_argument("--heads", type=int, default=10, help="heads of an agent")
    parser.add_argument("--warmup", type=int, default=1_000, help="steps before learning begins")
    parser.add_argument("--seed", type=int, default=0, help="of the search and of every training")
    parser.add_argument("--storage", default=None, help="where to keep the study, such as sqlite:///study.db")
    return parser.parse_args(argv)


def search(args: argparse.Namespace) -> optuna.Study:
    """Run the trials."""

    def trial(trial: optuna.Trial) -> float:
        def hear(step: int, progress: Progress) -> None:
            trial.report(-progress.running_bias, step)  # larger is better, as for the return
            trial.set_user_attr("running_bias", progress.running_bias)
            if step < args.steps and trial.should_prune():
                raise optuna.TrialPruned

        progress = objective(
            trial.suggest_float("alpha", *ALPHA, log=True),
            trial.suggest_float("learning_rate", *LEARNING_RATE, log=True),
            steps=args.steps,
            seed=args.seed,
            hear=hear,
            k=args.heads,
            warmup=args.warmup,
        )
        return progress.score

    study = optuna.create_study(
        study_name="te-bdqn",
        storage=args.storage,
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=args.seed),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=args.steps // 2),
    )
    study.optimize(trial, n_trials=args.trials)
    return study


def main(argv: Sequence[str] | None = None) -> optuna.Study:
    """Search, and say what was found."""
    study = search(arguments(argv))
    pruned = len(study.get_trials(states=(optuna.trial.TrialState.PRUNED,)))
    best = study.best_trial
    print(f"{len(study.trials)} trials, {pruned} given up early")
    print(f"best: alpha {best.params['alpha']:.3f}, learning rate {best.params['learning_rate']:.2e}", end=", ")
    print(f"return {best.value:.1f}, bias off by {best.user_attrs['running_bias']:.2f}")
    return study


if __name__ == "__main__":
    main()
