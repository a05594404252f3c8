"""Training on one GPU: speed and memory by the number of runs, against what the memory's bandwidth allows.

    python benchmarks/deep_gpu.py [AGENT:RUNS[:GAME] ...]

Every line is measured in a process of its own, so that its peak of memory is its own. Everything is included: environment,
replay, acting, update. An update must move each weight nine times through the device's memory: read by the target network, by
the forward and by the backward pass, and read and written as weight and as two moments. Where the update is not one kernel's
work (see ``maxmean.deep.core.fused``) it is eleven times, since the gradient is written and read too, and twelve where the rule
looks at the online network's next values. That over the bandwidth is the bound.
"""

from __future__ import annotations

import subprocess
import sys
import time

CASES = (
    "ke-bdqn:1",
    "ke-bdqn:10",
    "ke-bdqn:40",
    "ke-bdqn:80",
    "ke-bdqn:160",
    "ke-bdqn:80:seaquest",
    "bdqn:80",
    "dqn:1",
    "dqn:10",
    "dqn:80",
    "dqn:300",
    "maxmin-dqn:80",
)
STEPS = 300


def measure(agent_name: str, runs: int, game: str) -> str:
    """One line of the table."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from maxmean import deep, envs
    from maxmean.deep.device.block import make_blocks
    from maxmean.deep.device.plan import TrainingPlan

    plan = TrainingPlan.of(envs.make(f"minatar/{game}"), deep.AGENTS[agent_name](), runs, None, deep.Settings())
    (block,) = make_blocks(plan, batched=True)
    block.create()
    block.advance(block.settings.warmup, lambda: False)
    block.advance(block.step + 50, lambda: False)
    best = np.inf
    for _ in range(3):
        begin = time.perf_counter()
        block.advance(block.step + STEPS, lambda: False)
        best = min(best, time.perf_counter() - begin)
    assert block.state is not None
    weights = sum(leaf.size for leaf in jax.tree.leaves(block.state.learner.weights)) / runs
    learning = weights / plan.variants[0].agent.members if agent_name == "maxmin-dqn" else weights
    passes = (9 if block.compiled.program.update.one_kernel else 11 + plan.variants[0].agent.online) * learning
    peak = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
    bound = copy_bandwidth() / (passes * jnp.dtype(jnp.float32).itemsize)
    rate = runs * STEPS / best
    return (
        f"| {agent_name} | {game} | {runs} | {best / STEPS * 1e6:.0f} | {rate:,.0f} | {peak / runs / 2**20:.0f} | "
        f"{peak / 2**30:.1f} | {rate / bound:.0%} of {bound:,.0f} |"
    )


def copy_bandwidth() -> float:
    """Bytes a second, read and written together, of a large copy on the device."""
    import jax
    import jax.numpy as jnp

    size = 2**28 if jax.default_backend() != "cpu" else 2**24
    times = 20
    add = jax.jit(lambda x: x + 1.0)
    x = add(jnp.zeros(size, jnp.float32)).block_until_ready()
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(times):
            x = add(x)
        x.block_until_ready()
        best = min(best, time.perf_counter() - begin)
    return 8 * size * times / best


def main(cases: list[str]) -> None:
    print("| agent | game | runs | us/step | run-steps/s | MiB a run | GiB | share of the bandwidth bound |")
    print("|---|---|---|---|---|---|---|---|")
    for case in cases:
        found = subprocess.run([sys.executable, __file__, "--one", case], capture_output=True, text=True)
        print(found.stdout.strip() or found.stderr.strip().splitlines()[-1], flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        name, number, *rest = sys.argv[2].split(":")
        print(measure(name, int(number), rest[0] if rest else "breakout"))
    else:
        main(sys.argv[1:] or list(CASES))
