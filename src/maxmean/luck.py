"""The random generators that a whole process shares: work that a caller knows nothing of leaves them as they were.

``import jax`` draws from Python's and from NumPy's, and an environment may as well. A training of another library that was seeded
before would go another way from there on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put Python's, NumPy's and PyTorch's global generators back where they were, of those that are imported.

    PyTorch's are those of the CPU and, where CUDA is in use already, of its GPUs.

    >>> import random
    >>> random.seed(1)
    >>> with undisturbed():
    ...     inside = random.random()
    >>> random.random() == inside
    True
    """
    python, numpy, torch = (sys.modules.get(name) for name in ("random", "numpy", "torch"))
    kept_python = None if python is None else python.getstate()
    kept_numpy = None if numpy is None else numpy.random.get_state(legacy=False)
    kept_torch = None if torch is None else torch.get_rng_state()
    kept_cuda = torch.cuda.get_rng_state_all() if torch is not None and torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        if python is not None:
            python.setstate(kept_python)
        if numpy is not None:
            numpy.random.set_state(kept_numpy)
        if torch is not None:
            torch.set_rng_state(kept_torch)
            if kept_cuda is not None:
                torch.cuda.set_rng_state_all(kept_cuda)
