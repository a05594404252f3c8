"""How a GPU's kernels are launched: those of a whole round as one CUDA graph, in which independent kernels run concurrently.

A step of few runs takes some fifty kernels of a microsecond or two. By default XLA makes a CUDA graph of each step, a chain of
its kernels. With these options the graph has the kernels of all steps of a round, and their dependencies.
"""

from __future__ import annotations

from functools import cache

import jax

OPTIONS: dict[str, str | bool] = {
    "xla_gpu_command_buffer_scheduling_mode": "CONCURRENT",
    "xla_gpu_command_buffer_unroll_loops": True,
    # What XLA puts into a graph by default, and loops.
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE",
}


@cache
def launching() -> dict[str, str | bool]:
    """The compiler's options for a round of steps. None on other devices, or where this XLA does not know one of them."""
    return OPTIONS if jax.default_backend() == "gpu" and known(OPTIONS) else {}


def known(options: dict[str, str | bool]) -> bool:
    """Whether XLA knows these options. It refuses to compile anything with one that it does not know."""
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except Exception:  # of a kind that depends on what is wrong
        return False
    return True
