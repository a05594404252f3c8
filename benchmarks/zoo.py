"""Learning results: our agents with their defaults beside Stable-Baselines3's DQN with tuned hyper-parameters.

    HOST_PYTHON=path/to/python python benchmarks/zoo.py

names an interpreter that has stable-baselines3, torch, gymnasium[box2d] and our own dependencies (see CONTRIBUTING.md);
what cannot run there is left out. All take the same number of steps in CartPole, Acrobot, MountainCar and LunarLander and are
tested twenty times on the way, with twenty greedy episodes in a second environment. Each run is a process of its own on one core,
and a file when it is done: stop the program any time, and the same command runs what is missing. Seeds 0 to 4 are for results;
choose settings on others.

MinAtar's games are trained with `maxmean train`; name its directories with --records and they join the table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile

import pandas as pd
import zoo_table
from turns import ALONE
from zoo_runs import PEER, RECOMMENDED, Row, Run, plan

from maxmean.deep.directory import held
from maxmean.deep.registry import REGISTRY
from maxmean.errors import MaxmeanError
from maxmean.lab.figures import save
from maxmean.storage import as_parquet, write_whole

STEPS = {"CartPole-v1": 50_000, "Acrobot-v1": 100_000, "MountainCar-v0": 120_000, "LunarLander-v3": 100_000}
AGENTS = [PEER, RECOMMENDED, *(each.name for each in REGISTRY)]
EVERY = 30.0
"""Seconds between two lines about the runs under way."""


class Progress:
    """Says what is running and how long it will take."""

    def __init__(self, runs: Sequence[Run], workers: int) -> None:
        self.left = dict.fromkeys(runs, 0)
        """The runs that have not ended, and how many steps each has taken."""
        self.running: dict[Run, tuple[float, str]] = {}
        """When each began, and what was last heard of it."""
        self.rates: dict[tuple[str, str], float] = {}
        """Seconds a step of an agent in an environment, tests included, by the last run that was heard of."""
        self.total, self.workers = len(runs), min(workers, len(runs))
        self.said, self.lock = time.monotonic(), threading.Lock()

    def begin(self, run: Run) -> None:
        with self.lock:
            self.running[run] = (time.monotonic(), "begins")
            self._say()

    def test(self, run: Run, row: Row) -> None:
        with self.lock:
            began, _ = self.running[run]
            self.left[run] = row["step"]
            self.rates[run.agent, run.environment] = (time.monotonic() - began) / row["step"]
            self.running[run] = (began, f"{row['step']:,} of {run.steps:,} steps, return {row['test_return']:.1f}")
            if time.monotonic() - self.said > EVERY:
                self._say()

    def end(self, run: Run, failure: str = "") -> None:
        with self.lock:
            _, heard = self.running.pop(run)
            del self.left[run]
            print(f"{_name(run)}: {failure or heard}", file=sys.stderr, flush=True)

    def _say(self) -> None:
        self.said = time.monotonic()
        under_way = "; ".join(f"{_name(run)}: {heard}" for run, (_, heard) in self.running.items())
        done = self.total - len(self.left)
        print(f"[{done} of {self.total} runs done{self._time()}] {under_way}", file=sys.stderr, flush=True)

    def _time(self) -> str:
        """How long the rest will take, as far as can be known: what was never run is taken for the average."""
        if not self.rates:
            return ""
        usual = sum(self.rates.values()) / len(self.rates)
        left = sum(
            (run.steps - at) * self.rates.get((run.agent, run.environment), usual) for run, at in self.left.items()
        )
        return f", {timedelta(seconds=round(left / self.workers))} left"


def _name(run: Run) -> str:
    return f"{run.agent} in {run.environment}, seed {run.seed}"


def folder_of(run: Run, out: Path) -> Path:
    """Where an agent's runs in an environment are kept."""
    return out / "runs" / run.environment / re.sub(r"[^\w.=*-]+", "-", run.agent)


def file_of(run: Run, out: Path) -> Path:
    return folder_of(run, out) / f"seed-{run.seed}.parquet"


def complete(pairs: Sequence[Run], seeds: Sequence[int], out: Path, workers: int) -> bool:
    """Run what is missing; whether nothing failed. Results of other settings than today's are refused, not mixed with them."""
    with ExitStack() as holds:
        ready = []
        for pair in pairs:
            try:
                settings = plan(pair)
            except (ImportError, SyntaxError, ValueError) as error:
                print(f"left out: {pair.agent} in {pair.environment} ({error})", file=sys.stderr)
                continue
            holds.enter_context(held(folder_of(pair, out), "benchmark", settings))
            ready.append(pair)
        runs = [pair._replace(seed=seed) for seed in seeds for pair in ready]
        return run_all([run for run in runs if not file_of(run, out).exists()], out, workers)


def run_all(runs: Sequence[Run], out: Path, workers: int) -> bool:
    """Runs in processes of their own, a core for each; whether nothing failed."""
    progress, cores = Progress(runs, workers), SimpleQueue[int]()
    for core in sorted(os.sched_getaffinity(0), reverse=True)[:workers]:
        cores.put(core)

    def one(run: Run) -> bool:
        core = cores.get()
        try:
            progress.begin(run)
            failure = run_one(run, file_of(run, out), core, progress)
            progress.end(run, failure)
            return not failure
        finally:
            cores.put(core)

    with ThreadPoolExecutor(workers) as pool:
        try:
            return all(list(pool.map(one, runs)))
        except KeyboardInterrupt:  # the runs under way hear of it too
            pool.shutdown(cancel_futures=True)
            raise


def run_one(run: Run, path: Path, core: int, progress: Progress) -> str:
    """Run one process to its end; the last line of what it said if it failed."""
    script = str(Path(__file__).with_name("zoo_runs.py"))
    command = [sys.executable, script, json.dumps(run), str(path), str(core)]
    with TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, **ALONE}
        ) as process:
            for test in process.stdout or ():
                progress.test(run, json.loads(test))
        errors.seek(0)
        said = errors.read().strip().splitlines()
    return f"failed: {said[-1] if said else process.returncode}" if process.returncode else ""


def report(records: pd.DataFrame, out: Path, page: Path | None) -> None:
    """Print the tables, and write them, the records, the scores and the learning curves; put them into a page if one is named."""
    found = zoo_table.scores(records)
    agents = zoo_table.summary(found)
    text = zoo_table.markdown(found, agents)
    print(text)
    write_whole(out / "table.md", text.encode())
    tables = {"records": records, "scores": found, "summary": agents}
    for name, each in tables.items():
        write_whole(out / f"{name}.parquet", as_parquet(each))
    figure = zoo_table.curves(records)
    curves = {kind: save(figure, kind, "zoo") for kind in ("png", "svg")}
    for kind, picture in curves.items():
        write_whole(out / f"curves.{kind}", picture)
    if page is not None:
        write_whole(page, zoo_table.replaced(page.read_text(), text).encode())
        write_whole(page.with_suffix(".png"), curves["png"])


def whole_numbers(text: str) -> list[int]:
    """Whole numbers as one writes them: 0-4, or 100,101,102.

    >>> whole_numbers("0-2,7")
    [0, 1, 2, 7]
    """
    parts = [part.partition("-") for part in text.split(",")]
    return [seed for first, _, last in parts for seed in range(int(first), int(last or first) + 1)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--agent",
        action="append",
        help=f"{PEER}, {RECOMMENDED}, dqn, te-bdqn:0.2, 'dqn learning_rate=3e-4', ...; all with their defaults",
    )
    parser.add_argument("--env", action="append", choices=STEPS, help="all four, if none is named")
    parser.add_argument("--seeds", type=whole_numbers, default="0-4", help="such as 0-4 or 100,101 (%(default)s)")
    parser.add_argument("--steps", type=int, help="of every run, for a trial; else each environment's own")
    parser.add_argument("--workers", type=int, default=2, help="runs at once (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/zoo"), help="where runs are kept (%(default)s)")
    parser.add_argument(
        "--records",
        type=Path,
        action="append",
        default=[],
        help="also a directory of maxmean train, or records.parquet of another --out",
    )
    parser.add_argument("--no-run", action="store_true", help="only the table of what is there")
    parser.add_argument("--page", type=Path, help="put the tables between this page's marks, and the curves beside it")
    return parser.parse_args()


def main() -> int:
    if os.environ.get("PYTHONPATH") != ALONE["PYTHONPATH"]:  # so that plans are made where, and of what, runs will be
        python = os.environ.get("HOST_PYTHON", sys.executable)
        os.execve(python, [python, *sys.argv], os.environ | ALONE)
    asked = arguments()
    pairs = [
        Run(agent, name, asked.steps or STEPS[name]) for name in asked.env or STEPS for agent in asked.agent or AGENTS
    ]
    asked.out.mkdir(parents=True, exist_ok=True)
    try:
        whole = asked.no_run or complete(pairs, asked.seeds, asked.out, asked.workers)
        trained = [zoo_table.read_training(folder) for folder in asked.records]
    except MaxmeanError as error:
        sys.exit(f"zoo: {error}")
    records = pd.concat([zoo_table.read_runs(asked.out / "runs", asked.seeds), *trained], ignore_index=True)
    if records.empty:
        sys.exit("zoo: there are no runs to show")
    report(records, asked.out, asked.page)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
