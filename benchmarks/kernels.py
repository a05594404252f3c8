"""Kernels that a step of training launches on an H200, counted in what XLA compiles for one. It takes no GPU.

    python benchmarks/kernels.py [AGENT,AGENT,...:RUNS:GAME ...] [--list]

with an interpreter that has JAX's CUDA plugin (CONTRIBUTING.md has the recipe).
With few runs a GPU waits for the next kernel to be launched rather than for memory, so the time of a step depends on how many
there are. ``--list`` shows them all: the operation, the type of its result, and what it was made of.

On the GPU itself XLA tries several kernels for each product, so that the number there may differ by a few.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

CASES = (
    "te-bdqn:0.1:10:space_invaders",
    "ke-bdqn:10:breakout",
    "ke-bdqn:10:seaquest",
    "dqn:10:breakout",
    "dqn:10:seaquest",
    "maxmin-dqn:2:5:space_invaders",
)
LAUNCHED = ("fusion", "custom-call", "copy", "sort", "convolution", "dot", "scatter", "reduce", "concatenate")
"""Operations of a compiled program that are a kernel each; the others change how memory is read, or are loops."""
H200 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  core_count: 132 fpus_per_core: 128 registers_per_core_limit: 65536 registers_per_block_limit: 65536
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 150000000000
  cuda_compute_capability { major: 9 minor: 0 }
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
  kernel_mode_driver_version: "580.0.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
runtime_version { major: 13 }
device_description_str: "NVIDIA H200"
"""


def compiled(agents: list[str], runs: int, game: str, options: Mapping[str, str | bool] | None = None) -> str:
    """The program of a round of steps with updates, as XLA has compiled it for an H200, with further options of its compiler."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import topologies

    from maxmean import envs
    from maxmean.deep import Settings
    from maxmean.deep.core import fused
    from maxmean.deep.device.block import IN_PLACE, make_blocks
    from maxmean.deep.device.plan import TrainingPlan

    try:
        gpu = topologies.get_topology_desc("", "cuda", target_config=H200, topology="1x1x1").devices[0]
    except NotImplementedError:
        sys.exit("JAX has no CUDA plugin here: CONTRIBUTING.md says how to get one (A GPU's program without a GPU)")
    there = jax.sharding.SingleDeviceSharding(gpu)

    def form(leaf: Any) -> Any:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=there)  # type: ignore[no-untyped-call]

    plan = TrainingPlan.of(envs.make(f"minatar/{game}"), agents, runs // len(agents), None, Settings())
    (block,) = make_blocks(plan, batched=True)
    block.create()
    state, number = jax.tree.map(form, block.state), form(jnp.int32(0))
    # What the package looks at to choose its kernels: here it computes on a CPU, and the program is for a GPU that has them.
    vars(jax)["default_backend"], vars(fused)["available"] = lambda: "gpu", lambda batch: True
    _let_pallas_know()
    learn = block.compiled.round_of(block.compiled.program.learn)
    program = jax.jit(learn, **IN_PLACE).lower(state, number)
    return str(program.compile(compiler_options={"xla_gpu_autotune_level": "0", **(options or {})}).as_text())


def _let_pallas_know() -> None:
    """JAX 0.11 asks the GPU that is there what it is, before it compiles the fused update."""
    with suppress(ImportError):
        info = import_module("jax._src.pallas.triton.gpu_info")
        h200 = info.get_gpu_info_from_version(info.GpuVersion.H200)
        vars(info)["get_gpu_info"] = lambda: h200


def kernels(text: str) -> list[tuple[str, str, str]]:
    """The kernels of the program's innermost loop: operation, type of the result, and what it was made of."""
    bodies: dict[str, list[tuple[str, str, str]]] = {}
    body: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        if begins := re.match(r"(?:ENTRY )?%?([\w.-]+) \(.*\{$", line):
            body = bodies.setdefault(begins[1], [])
        elif found := re.match(r"\s+(?:ROOT )?%[\w.-]+ = (\(.*?\)|\S+) ([\w-]+)\(", line):
            made_of = re.search(r'op_name="(?:[^"]*while/body/)?([^"]*)"', line)
            result = re.sub(r"{[^}]*}|/\*.*?\*/", "", found[1])
            if found[2] in LAUNCHED:
                body.append((found[2], result, made_of[1] if made_of else ""))
    # Kernels are computations too, of a single line each that launches anything or none; the step's is the longest.
    return max(bodies.values(), key=lambda body: sum(operation == "fusion" for operation, _, _ in body))


def main(arguments: list[str]) -> None:
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")  # which asks for libraries that only a GPU needs
    cases = [each for each in arguments if each != "--list"] or CASES
    print("| agents | runs | game | kernels a step | of these, copies |")
    print("|---|--:|---|--:|--:|")
    for case in cases:
        names, runs, game = case.rsplit(":", 2)
        found = kernels(compiled(names.split(","), int(runs), game))
        count = Counter(operation for operation, _, _ in found)
        print(f"| {names} | {runs} | {game} | {len(found)} | {count['copy']} |", flush=True)
        if "--list" in arguments:
            for operation, result, made_of in found:
                print(f"  {operation:12} {result[:80]:80} {made_of[:80]}")


if __name__ == "__main__":
    main(sys.argv[1:])
