"""Where the time of our steps goes, for ``host_gpu.py profile``.

On the way a step's parts are measured as the host sees them: a call of the device comes back before its work is done, so what the
device is late with shows as waiting for actions. Alone, each call is measured until its work is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from host_ours import advancing, replace
from standing import calls_in

PARTS = ("environment", "message", "act", "store", "learn", "waiting", "rest")
ALONE = ("act", "store", "learn")


class Awaited:
    """Actions under way; how long they are waited for is added up."""

    def __init__(self, actions: Any, spent: dict[str, float]) -> None:
        self.actions, self.spent = actions, spent

    def copy_to_host_async(self) -> None:
        self.actions.copy_to_host_async()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        begin = time.perf_counter()
        found = np.asarray(self.actions, dtype)
        self.spent["waiting"] += time.perf_counter() - begin
        return found


class Parts:
    """The parts of an agent's steps."""

    def __init__(self, agent: Any, seconds: float) -> None:
        self.driver, self.seconds = agent.driver, seconds
        self.advance, self.calls = advancing(agent), 0
        self.memory: dict[str, float] = {}
        self.spent = dict.fromkeys(PARTS, 0.0)

    def turn(self) -> dict[str, Any]:
        """Microseconds of a step by its parts, of each call alone, and what memory the calls and the replay take.

        The first turn only warms up.
        """
        driver = self.driver
        if not self.memory:
            self.advance(2 * driver.choice.settings.warmup // driver.world.n)
            self.memory = self._memory()
            return {}
        if not self.calls:
            self.alone = self._alone()
            self._watch()
            self.calls = calls_in(self.advance, self.seconds, driver.choice.host.train_every)
        self.spent.update(dict.fromkeys(PARTS, 0.0))
        begin = time.perf_counter()
        self.advance(self.calls)
        took = time.perf_counter() - begin
        self.spent["rest"] = took - sum(self.spent.values())
        update = driver.program.learning.update
        return {
            "us": {name: 1e6 * spent / self.calls for name, spent in self.spent.items()},
            "alone_us": self.alone,
            "mib": self.memory,
            "rate": self.calls * driver.world.n / took,
            "one_kernel": update.one_kernel,
            "device": jax.devices()[0].device_kind,
        }

    def _watch(self) -> None:
        """Have every part of a step add up its time."""
        driver, program = self.driver, self.driver.program
        act = program.act
        driver.world.step = self._timed("environment", driver.world.step)
        driver._tell = self._timed("message", driver._tell)
        replace(driver, "act", lambda *given: Awaited(self._timed("act", act)(*given), self.spent))
        for name in ("store", "learn"):
            replace(driver, name, self._timed(name, getattr(program, name)))

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any) -> Any:
            begin = time.perf_counter()
            found = function(*given)
            self.spent[name] += time.perf_counter() - begin
            return found

        return timed

    def _alone(self) -> dict[str, float]:
        """Microseconds of a call until its work is done, by itself: the median of many."""
        driver = self.driver
        rows = np.zeros((driver.world.n, driver.program.layout.words), np.uint32)

        def once(name: str) -> float:
            begin = time.perf_counter()
            if name == "act":
                driver.program.act(driver.run, rows).block_until_ready()
            else:
                driver.run = getattr(driver.program, name)(driver.run, rows)
                driver.run.tally.updates.block_until_ready()
                jax.tree.leaves(driver.run.replay)[0].block_until_ready()
            return 1e6 * (time.perf_counter() - begin)

        found = {}
        for name in ALONE:
            times: list[float] = []
            end = time.perf_counter() + self.seconds / 4
            while len(times) < 5 or time.perf_counter() < end:
                times.append(once(name))
            found[name] = float(np.median(times))
        return found

    def _memory(self) -> dict[str, float]:
        """MiB of the replay, and of what each call needs beside its arguments: as much again would be a copy of the replay."""
        driver = self.driver
        rows = np.zeros((driver.world.n, driver.program.layout.words), np.uint32)
        found = {"replay": sum(leaf.nbytes for leaf in jax.tree.leaves(driver.run.replay)) / 2**20}
        for name in ALONE:
            call = getattr(driver.program, name)
            whole = jax.jit(lambda run, rows, call=call: call(run, rows), donate_argnums=() if name == "act" else 0)
            own: Any = whole.lower(driver.run, rows).compile().memory_analysis()
            found[name] = own.temp_size_in_bytes / 2**20
        return found


def parts_table(answers: Mapping[Any, list[dict[str, Any]]]) -> str:
    """Of each case the turn with the most steps."""
    heads = [*(f"{name}, us" for name in PARTS), *(f"{name} alone, us" for name in ALONE), "replay, MiB"]
    heads += [f"{name}'s own, MiB" for name in ALONE]
    lines = [
        f"| case | steps/s | {' | '.join(heads)} | one kernel | device |",
        "|---|" + "--:|" * (1 + len(heads)) + "---|---|",
    ]
    for case, turns in answers.items():
        best = max(turns, key=lambda turn: turn["rate"])
        numbers = [*best["us"].values(), *best["alone_us"].values(), *best["mib"].values()]
        shown = " | ".join(f"{number:,.0f}" for number in numbers)
        lines.append(f"| {case.name} | {best['rate']:,.0f} | {shown} | {best['one_kernel']} | {best['device']} |")
    return "\n".join(lines)
