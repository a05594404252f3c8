"""How a GPU's kernels are launched: all of a round at once, and those beside each other that do not wait for each other.

A step of few runs takes some fifty kernels of a microsecond or two. XLA launches those of a step together, one after the other,
as a graph of CUDA's. With these options it launches those of all steps of a round together, and the graph says only which has
to wait for which.
"""

from __future__ import annotations

from functools import cache

import jax

OPTIONS: dict[str, str | bool] = {
    "xla_gpu_command_buffer_scheduling_mode": "CONCURRENT",
    "xla_gpu_command_buffer_unroll_loops": True,
    # What is in there by default, and loops.
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
