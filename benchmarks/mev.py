"""Speed of the statistics, as ratios against a peer measured in the same run.

Run with ``make benchmark`` on a quiet machine. Each line says what was measured and the bound it should meet.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.special

from maxmean import mev


def best_of(job: Callable[[], object], repeats: int = 5) -> float:
    """Shortest of several runs: the one that the rest of the machine disturbed least."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        job()
        times.append(time.perf_counter() - begin)
    return min(times)


def kernel_estimates() -> None:
    """K-estimates of a million problems of ten options, against one Gaussian cdf over the same array."""
    rng = np.random.default_rng(0)
    means, variances = rng.normal(size=(1_000_000, 10)), rng.uniform(0.1, 1.0, size=(1_000_000, 10))
    statistic = mev.t_statistic(means, variances)
    ours = best_of(lambda: mev.kernel_estimate(means, variances))
    for name, array in (("the statistics T", statistic), ("the means", means)):
        peer = best_of(lambda array=array: scipy.special.ndtr(array))  # type: ignore[misc]
        report(f"kernel_estimate of 1,000,000 x 10 / ndtr over {name}", ours / peer, "at most 5")


def import_time() -> None:
    """``import maxmean`` in a fresh interpreter, less what an empty interpreter takes."""

    def seconds(code: str) -> float:
        return best_of(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    empty = seconds("pass")
    report("import maxmean, seconds beyond an empty interpreter", seconds("import maxmean") - empty, "below 0.5")
    report("the same, with mev", seconds("from maxmean import mev") - empty, "below 0.5")
    report("the same, with mm.estimate", seconds("from maxmean import estimate") - empty, "")


def million_rows() -> None:
    """A million rows of CSV through the command line, with all answers, against pandas reading and grouping the same file."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"ad": rng.choice(list("ABCDEFGHIJ"), 1_000_000), "value": rng.normal(size=1_000_000)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        rows.to_csv(path, index=False)
        argv = ["maxmean", "estimate", str(path), "--json", "--quiet"]
        jobs = {
            "maxmean estimate, all answers": f"import sys; sys.argv = {argv}; from maxmean import cli; cli.run()",
            "pandas: read and group": f"import pandas; pandas.read_csv({str(path)!r}).groupby('ad').mean()",
        }
        spent = {name: min(_spent(code) for _ in range(5)) for name, code in jobs.items()}
        for name, (seconds, memory) in spent.items():
            report(f"a million rows of CSV, whole process, CPU seconds: {name}", seconds, "")
            report(
                f"a million rows of CSV, whole process, MB: {name}", memory, "below 300" if "maxmean" in name else ""
            )
        ours, peer = (seconds for seconds, _ in spent.values())
        report("a million rows: CPU of ours / of pandas", ours / peer, "at most 3")


def _spent(code: str) -> tuple[float, float]:
    """CPU seconds and the most megabytes of a process of its own; by its own account: others count the parent's."""
    said = "import sys; print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0], file=sys.stderr)"
    command = [sys.executable, "-c", f"{code}\n{said}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr
        memory = int(process.stderr.read().split()[-1]) * 1024 / 1e6
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"a process that is timed ended with status {process.returncode}: {code}")
    return used.ru_utime + used.ru_stime, memory


def report(what: str, number: float, bound: str) -> None:
    print(f"{what:<75} {number:8.2f}   {bound}", flush=True)


if __name__ == "__main__":
    kernel_estimates()
    import_time()
    million_rows()
