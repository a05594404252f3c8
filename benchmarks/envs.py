"""Steps a second of the five games with a random policy on one core, beside minatar, gymnax and pgx in one run.

The peers need other versions of things than our own environment has, so they live in one of their own (CONTRIBUTING.md has the
recipe): ``ENVS_PYTHON=path/to/python make benchmark`` names its interpreter, and the whole benchmark runs there. A peer that is
not installed is left out.

All that run in JAX have one driver: keys and actions drawn beforehand, a ``lax.scan`` over them, every observation written to
memory, every episode that ends followed by a new one. Where the observation comes from decides what XLA fuses with what, by
factors of ten, and not alike for all. So the driver has three forms (``LAYOUTS``), all are measured for everyone, and there are
two tables: with the observation that ``step`` returns, and with the form that suits each best.

All take MinAtar's six actions; ours, pgx and minatar have sticky actions, gymnax has none. A second is a second of the core's
time, so that a machine with other work tells the same; the best of some repeats, taken in turns, counts.

``--gpu`` measures ours alone, on JAX's default device, by the clock, with many more games at once.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
MANY = 1024
ON_GPU = 4096
REPEATS = 5
SECONDS = 0.3
"""How long a measurement lasts at least."""


LAYOUTS = {
    "given": "the observation that step or reset returned",
    "after": "the state is observed when the reset is done",
    "before": "the state is observed when the next step begins",
}
TABLES = {
    "with the observation that step returns": ["given"],
    "with the form that suits each best": list(LAYOUTS),
}
"""What is compared, and which layouts it may choose from."""


@dataclass(frozen=True)
class Functions:
    """An environment as the driver takes it."""

    reset: Callable[[Any, Any], tuple[Any, Any]]
    """Of a key and the state in which the last episode ended, or None: state, observation."""
    step: Callable[[Any, Any, Any], tuple[Any, Any, Any, Any]]
    """Of key, state, action: state, observation, reward, whether the episode is over."""
    observe: Callable[[Any], Any]
    """Of a state: what is seen of it."""
    bare: Callable[[Any], Any] = lambda state: state
    """A state without the observation that it carries, if it carries one."""


def ours(game: str) -> Functions:
    from maxmean import envs

    env = envs.make(f"minatar/{game}")

    def step(key: Any, state: Any, action: Any) -> tuple[Any, Any, Any, Any]:
        out = env.step(key, state, action)
        return out.state, out.observation, out.reward, out.terminated | out.truncated

    return Functions(env.reset, step, env.observe)


def gymnax(game: str) -> Functions:
    import gymnax

    env, params = gymnax.make(f"{_title(game)}-MinAtar", use_minimal_action_set=False)

    def reset(key: Any, previous: Any) -> tuple[Any, Any]:
        observation, state = env.reset_env(key, params)
        return state, observation

    def step(key: Any, state: Any, action: Any) -> tuple[Any, Any, Any, Any]:
        observation, state, reward, terminated, _ = env.step_env(key, state, action, params)
        return state, observation, reward, terminated | env.is_truncated(state, params)

    return Functions(reset, step, lambda state: env.get_obs(state, params=params))


def pgx(game: str) -> Functions:
    module = importlib.import_module(f"pgx.minatar.{game}")
    env = getattr(module, f"MinAtar{_title(game)}")(use_minimal_action_set=False)

    def reset(key: Any, previous: Any) -> tuple[Any, Any]:
        state = env.init(key)
        return state, state.observation

    def step(key: Any, state: Any, action: Any) -> tuple[Any, Any, Any, Any]:
        state = env.step(state, action, key)
        return state, state.observation, state.rewards[0], state.terminated | state.truncated

    return Functions(reset, step, env.observe, lambda state: state.replace(observation=0))


def _title(game: str) -> str:
    return game.title().replace("_", "")


class Compiled:
    """A driver: a compiled scan that is run again and again, each time from where the last one ended."""

    def __init__(
        self, functions: Functions, layout: str, parallel: int, length: int, clock: Callable[[], float]
    ) -> None:
        import jax
        import jax.numpy as jnp

        bare: Callable[[Any], Any] = functions.bare if layout != "given" else lambda state: state

        def one(carry: Any, drawn: Any) -> Any:
            state, observation, total = carry
            step_key, reset_key, action = drawn
            if layout == "before":
                observation = functions.observe(state)
            state, given, reward, over = functions.step(step_key, state, action)

            def fresh() -> tuple[Any, Any]:
                begun, seen = functions.reset(reset_key, state)
                return bare(begun), seen

            if parallel == 1:  # a branch that is not taken costs nothing; many games at once take both anyway
                state, given = jax.lax.cond(over, fresh, lambda: (bare(state), given))
            else:
                state, given = jax.tree.map(partial(jnp.where, over), fresh(), (bare(state), given))
            if layout == "after":
                observation = functions.observe(state)
            return state, given if layout == "given" else observation, total + reward

        shape = (length,) if parallel == 1 else (length, parallel)
        map_over: Callable[[Any], Any] = (lambda function: function) if parallel == 1 else jax.vmap
        keys = [jax.random.split(jax.random.key(seed), shape) for seed in (1, 2)]
        self.drawn = (*keys, jax.random.randint(jax.random.key(3), shape, 0, 6))
        starts = jax.random.split(jax.random.key(0), shape[1:])
        state, observation = map_over(lambda key: functions.reset(key, None))(starts)
        carry = (map_over(bare)(state), observation, jnp.zeros(shape[1:]))
        # what is a Python number at the start is an array of a definite type after a step
        self.carry = jax.tree.map(lambda x: jax.lax.convert_element_type(x, jnp.asarray(x).dtype), carry)
        self.run = jax.jit(lambda c, drawn: jax.lax.scan(lambda c, d: (map_over(one)(c, d), None), c, drawn)[0])
        self.steps, self.clock = length * parallel, clock
        self.measure(0.0)

    def measure(self, seconds: float = SECONDS) -> float:
        """Steps a second."""
        import jax

        calls, begin = 0, self.clock()
        while calls == 0 or self.clock() - begin < seconds:
            self.carry = jax.block_until_ready(self.run(self.carry, self.drawn))  # type: ignore[no-untyped-call]
            calls += 1
        return calls * self.steps / (self.clock() - begin)


class Python:
    """The package minatar, stepped by Python."""

    def __init__(self, game: str) -> None:
        import numpy as np
        from minatar import Environment

        self.env = Environment(game)
        self.env.seed(0)
        self.actions = np.random.default_rng(0).integers(6, size=2_000).tolist()

    def measure(self, seconds: float = SECONDS) -> float:
        calls, begin, env = 0, time.process_time(), self.env
        while calls == 0 or time.process_time() - begin < seconds:
            for action in self.actions:
                _, over = env.act(action)
                if over:
                    env.reset()
                env.state()
            calls += 1
        return calls * len(self.actions) / (time.process_time() - begin)


def compile_seconds(game: str) -> float:
    """Tracing and compiling one step, by the clock."""
    import jax

    functions = ours(game)
    key = jax.random.key(0)
    state, _ = functions.reset(key, None)
    begin = time.perf_counter()
    jax.jit(functions.step).lower(key, state, 0).compile()
    return time.perf_counter() - begin


def interleaved(entries: dict[Any, Any]) -> dict[Any, float]:
    """The best of some repeats of each, taken in turns, so that a busy moment of the machine harms all alike."""
    rates = dict.fromkeys(entries, 0.0)
    for _ in range(REPEATS):
        for name, entry in entries.items():
            rates[name] = max(rates[name], entry.measure())
    return rates


Rates = dict[tuple[int, str], dict[tuple[str, str], float]]
"""Steps a second, by how many games at once and which, and by whose and in which layout."""


def compare(games: list[str]) -> None:
    """Measure all games, ours beside the peers, and print two tables."""
    makers = {"maxmean": ours, "gymnax": gymnax, "pgx": pgx, "minatar": None}
    for name in [name for name in makers if importlib.util.find_spec(name) is None]:
        print(f"{name}: not measured (not installed here; ENVS_PYTHON names another interpreter)", file=sys.stderr)
        del makers[name]
    rates: Rates = {}
    for parallel, length in ((1, 2_000), (MANY, 16)):
        for game in games:
            entries: dict[Any, Any] = {
                (name, layout): Compiled(maker(game), layout, parallel, length, time.process_time)
                for name, maker in makers.items()
                if maker is not None
                for layout in LAYOUTS
            }
            if "minatar" in makers and parallel == 1:
                entries["minatar", "given"] = Python(game)
            rates[parallel, game] = interleaved(entries)
            print(f"measured {game} x {parallel}", file=sys.stderr)
    print("Thousand steps a second of one core,", end="")
    for title, layouts in TABLES.items():
        print(f"\n{title}:\n")
        _table(rates, list(makers), layouts)
    for layout, what in LAYOUTS.items():
        print(f"\n{layout}: {what}", end="")
    seconds = {game: compile_seconds(game) for game in games}
    print("\n\nCompiling one step, seconds: " + ", ".join(f"{game} {value:.1f}" for game, value in seconds.items()))
    slow = [f"{game} compiles in {value:.1f} s, not under 3" for game, value in seconds.items() if value >= 3]
    print(f"Missed: {'; '.join(slow) or 'no target'}")
    for title, layouts in TABLES.items():
        print(f"Missed {title}: {verdict(rates, layouts)}")


def _best(found: dict[tuple[str, str], float], name: str, layouts: list[str]) -> tuple[float, str]:
    """The best rate that ``name`` reaches in one of the layouts, and which one that is."""
    return max(
        ((rate, layout) for (n, layout), rate in found.items() if n == name and layout in layouts), default=(0, "")
    )


def _table(rates: Rates, names: list[str], layouts: list[str]) -> None:
    print(f"| game | at once | {' | '.join(names)} | ours / best peer |")
    print("|---|" + "--:|" * (len(names) + 2))
    for (parallel, game), found in rates.items():
        best = {name: _best(found, name, layouts) for name in names}
        cells = [
            f"{rate / 1e3:,.0f}{f' ({layout})' if len(layouts) > 1 and name != 'minatar' else ''}" if rate else ""
            for name, (rate, layout) in best.items()
        ]
        peer = max((rate for name, (rate, _) in best.items() if name != "maxmean"), default=0)
        ratio = f"{best['maxmean'][0] / peer:.2f}" if peer else ""
        print(f"| {game} | {parallel:,} | {' | '.join(cells)} | {ratio} |")


def verdict(rates: Rates, layouts: list[str]) -> str:
    """Which targets were not met, and which peers were not there: with many games, faster than each peer and three times as
    fast in Seaquest; with one game, as fast as gymnax.
    """
    missed, absent = [], set()
    for (parallel, game), found in rates.items():
        factor = 3.0 if (game, parallel) == ("seaquest", MANY) else 1.0
        mine = _best(found, "maxmean", layouts)[0]
        for name in ("gymnax",) if parallel == 1 else ("gymnax", "pgx"):
            peer = _best(found, name, layouts)[0]
            if not peer:
                absent.add(name)
            elif mine < factor * peer:
                missed.append(f"{game} x {parallel} against {name}: {mine / peer:.2f}, not {factor:g}")
    if absent:
        missed.append(f"not compared: {', '.join(sorted(absent))}")
    return "; ".join(missed) or "no target"


def on_gpu(games: list[str]) -> None:
    """Print ours alone, on the default device."""
    import jax

    print(f"Million steps a second, {ON_GPU:,} games at once, on {jax.devices()[0].device_kind}:\n")
    print(f"| game | {' | '.join(LAYOUTS)} | compiling one step, s |")
    print("|---|" + "--:|" * (len(LAYOUTS) + 1))
    for game in games:
        entries = {layout: Compiled(ours(game), layout, ON_GPU, 256, time.perf_counter) for layout in LAYOUTS}
        rates = interleaved(entries)
        cells = " | ".join(f"{rates[layout] / 1e6:.1f}" for layout in LAYOUTS)
        print(f"| {game} | {cells} | {compile_seconds(game):.1f} |", flush=True)


def main() -> None:
    """Measure, in the interpreter that ``ENVS_PYTHON`` names if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", help=f"some of {', '.join(GAMES)}; all, if none is named")
    parser.add_argument("--gpu", action="store_true", help="ours alone, on JAX's default device")
    arguments = parser.parse_args()
    games = arguments.games or list(GAMES)
    for game in games:
        if game not in GAMES:
            parser.error(f"unknown game {game!r} (there are {', '.join(GAMES)})")
    if arguments.gpu:
        on_gpu(games)
        return
    python = os.environ.pop("ENVS_PYTHON", None)
    if python is not None:
        source = str(Path(__file__).parents[1] / "src")
        os.execve(python, [python, *sys.argv], os.environ | {"PYTHONPATH": source})
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before JAX starts its threads
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    compare(games)


if __name__ == "__main__":
    main()
