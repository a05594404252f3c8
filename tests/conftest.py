"""What all tests share: the array kinds, and property tests that are the same in every run."""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

gc.disable()  # until all is imported: see `pytest_collection`

# Both workers, the processes that tests start, and the next run find what was compiled once. JAX reads this when it is imported.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

# A worker for each core is enough: threads of PyTorch and of linear algebra beside it would wait for one another, and they wait
# by spinning. The processes that tests start, and the processes of those, have one as well.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# Containers often tell Python to keep no bytecode; every process that tests start would then compile all that it imports, which
# takes longer than what it does. It is kept beside what JAX compiled.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": sys.pycache_prefix}

# No test pulls the plug, so nothing waits for the disk; the processes that tests start do.
os.fsync = lambda fd: None

# Most of the time goes into compiling programs that run for milliseconds. What is compiled here is called once or twice: favour
# compile time. `make test-slow` compiles as users do, and repeats there what compares bits. XLA stops at a flag that it does not
# know, so this is for the version that `make test` installs.
PINNED = (Path(__file__).parents[1] / "constraints.txt").read_text().split()
if "MAXMEAN_TESTS_COMPILE_AS_USERS" not in os.environ and f"jaxlib=={importlib.metadata.version('jaxlib')}" in PINNED:
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1")

import hypothesis
import numpy as np
import pytest

from maxmean import mev
from seldom import mostly_slow

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell leaves it for what it starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # or the processes that tests start would not hear Ctrl-C

hypothesis.settings.register_profile("maxmean", derandomize=True, deadline=None, max_examples=40, database=None)
hypothesis.settings.load_profile("maxmean")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is there before the first test stays to the end: a quarter of the time went into looking through it for garbage."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000)
        gc.enable()


TABULAR = ("src/maxmean/tabular/", "tests/tabular/")
"""Where Numba compiles the loops, which takes half a minute in a fresh clone."""


PROGRAMS = ("tests/deep/host/", "tests/deep/")
"""The two drivers of deep learning: the files of each train with the same few programs, which a process compiles once."""

ORDER: tuple[str | tuple[str, ...], ...] = (
    TABULAR,
    "tests/deep/test_deep_mistakes.py",  # its program is that of processes which other files start
    "tests/deep/",
    "tests/mev/test_estimators.py",
    "tests/lab/",
    "tests/test_readme.py",
    "tests/examples/",
    "tests/envs/",
    "tests/test_",
)
"""What comes first. The files that take longest do, so that no worker begins one when the other has nothing left to do."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The loops come first of all: they are on the disk when the laboratory and the documents ask for them."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and _seldom(item.callspec.params):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: next((i for i, start in enumerate(ORDER) if item.nodeid.startswith(start)), len(ORDER)))


def _seldom(params: dict[str, Any]) -> bool:
    """A fact about every kernel and every library holds for two kernels in JAX, which takes longest to compile them."""
    in_jax = any(isinstance(value, Kind) and value.library == "jax" for value in params.values())
    return in_jax and params.get("kernel", mev.Gaussian()) not in (mev.Gaussian(), mev.Indicator(0.1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A worker takes a whole file, whose tests share what they compile and set up; one takes all the loops, and one a driver."""
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(TABULAR):
                return "tabular"
            return next((room for room in PROGRAMS if nodeid.startswith(room)), nodeid.partition("::")[0])

    if config.option.dist != "load":  # another way was asked for
        return None
    config.option.loadscopereorder = False  # its order, by the number of tests, says little about the time
    return Files(config, log)


@cache
def library(name: str) -> ModuleType:
    """One of the three, imported where its arrays are made: the process that waits for the workers needs none of them."""
    return importlib.import_module(name)


@dataclass(frozen=True)
class Kind:
    """One array library and one floating type."""

    library: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.library}-{self.dtype}"

    @property
    def eps(self) -> float:
        return float(np.finfo(self.dtype).eps)

    @property
    def module(self) -> Any:
        """Where the library has its functions of arrays."""
        return library("jax.numpy" if self.library == "jax" else self.library)

    def scope(self) -> AbstractContextManager[object]:
        """Where arrays of this kind may be made: JAX has float64 only inside, and no other test notices."""
        return library("jax").enable_x64(self.dtype == "float64") if self.library == "jax" else nullcontext()

    def array(self, values: Any) -> Any:
        make = self.module.as_tensor if self.library == "torch" else self.module.asarray
        return make(values, dtype=getattr(self.module, self.dtype))

    def owns(self, result: Any) -> bool:
        """Whether ``result`` is of this kind; a NumPy scalar counts as an array."""
        arrays = self.module.Tensor if self.library == "torch" else self.module.ndarray
        if not isinstance(result, (arrays, np.generic) if self.library == "numpy" else arrays):
            return False
        here = self.library != "torch" or str(result.device) == "cpu"
        return here and result.dtype == getattr(self.module, self.dtype)

    def numbers(self, result: Any) -> Any:
        return np.asarray(result.detach() if self.library == "torch" else result, dtype=np.float64)

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """``function`` of NumPy arrays, moved to this kind; the result must be of this kind and comes back in float64."""
        with self.scope():
            moved = [self.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
            named = {k: self.array(a) if isinstance(a, np.ndarray) else a for k, a in options.items()}
            result = self._fast(function, moved, named)(*moved, **named)
            assert self.owns(result), f"{type(result)}, {getattr(result, 'dtype', None)} is not {self}"
            return self.numbers(result)

    def _fast(self, function: Callable[..., Any], moved: list[Any], named: dict[str, Any]) -> Callable[..., Any]:
        """JAX compiles step by step, which is slow for every new shape, or a whole function, slow for every new kernel."""
        if self.library != "jax" or any(isinstance(a, (mev.Kernel, list)) for a in (function, *moved, *named.values())):
            return function
        jax: Any = library("jax")
        static = [i for i, a in enumerate(moved) if not isinstance(a, jax.Array)]
        names = [k for k, a in named.items() if not isinstance(a, jax.Array)]
        return jax.jit(function, static_argnums=static, static_argnames=names)

    def gradients(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Derivatives of the sum of ``function`` in each argument, by the library's automatic differentiation."""
        with self.scope():
            moved = [self.array(a) for a in arguments]
            if self.library == "jax":
                jax: Any = library("jax")
                slopes = jax.jit(jax.grad(lambda *a: function(*a).sum(), argnums=tuple(range(len(moved)))))(*moved)
                return [self.numbers(slope) for slope in slopes]
            leaves = [a.clone().requires_grad_() for a in moved]
            total = function(*leaves).sum()
            if total.requires_grad:
                total.backward()
            return [np.zeros(a.shape) if a.grad is None else self.numbers(a.grad) for a in leaves]


KINDS = [Kind(name, dtype) for name in ("numpy", "jax", "torch") for dtype in ("float32", "float64")]


SELDOM = Kind("jax", "float64")
"""A fact about every kind holds for its library in float32 and for its type in the two others; this one takes longest."""


USUAL = [k for k in KINDS if k != SELDOM]


@pytest.fixture(params=mostly_slow(KINDS, USUAL), ids=str, scope="session")
def kind(request: pytest.FixtureRequest) -> Kind:
    """Every array kind, one after the other."""
    return request.param


@pytest.fixture(params=[k for k in KINDS if k.dtype == "float64"], ids=str, scope="session")
def kind64(request: pytest.FixtureRequest) -> Kind:
    """The three libraries in float64."""
    return request.param


@pytest.fixture(params=mostly_slow([k for k in KINDS if k.library != "numpy"], USUAL), ids=str, scope="session")
def differentiable(request: pytest.FixtureRequest) -> Kind:
    """The kinds that have gradients."""
    return request.param


@pytest.fixture(
    params=[
        mev.Indicator(0.1),
        mev.Gaussian(),
        mev.Gaussian(0.84),
        mev.StudentT(5.0),
        mev.Epanechnikov(),
        mev.Triangle(),
        mev.Softmax(),
        mev.Beta(),
    ],
    ids=repr,
    scope="session",
)
def kernel(request: pytest.FixtureRequest) -> mev.Kernel:
    """Every kernel of the paper."""
    return request.param


@pytest.fixture(autouse=True)
def _float64_stays_scoped() -> Iterator[None]:
    """No test may leave JAX in float64 for the next one."""
    yield
    assert "jax" not in sys.modules or library("jax.numpy").asarray(1.0).dtype == "float32"
