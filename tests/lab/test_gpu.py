"""Facts about sharing a GPU: what child processes start with, what fits, and what happens where there is none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from maxmean.lab import gpu
from maxmean.lab.children import LostError
from maxmean.lab.errors import LabError
from maxmean.lab.gpu import Gpu, Load, Sharing, shared_gpu
from maxmean.lab.tasks import Task
from toys import GpuToy, Settings

H200 = Gpu("NVIDIA H200", 100)
OWN = {"CUDA_MPS_PIPE_DIRECTORY": "/own", "CUDA_MPS_LOG_DIRECTORY": "/own"}


def tasks(shards: int = 3) -> list[Task]:
    toy, settings = GpuToy(Path("nowhere")), Settings(shards=shards)
    return [Task(toy, settings, shard, Path("nowhere")) for shard in toy.shards(settings, 0)]


def shared(
    monkeypatch: pytest.MonkeyPatch, service: dict[str, str] | None, sees: Callable[[dict[str, str]], Gpu | None]
) -> tuple[Sharing, list[str]]:
    """With such a service, and a GPU that a program with these variables sees."""

    @contextmanager
    def multi_process_service(say: Callable[[str], None]) -> Iterator[dict[str, str] | None]:
        yield service

    def look(some: Sequence[Task], variables: dict[str, str]) -> tuple[Gpu | None, dict[str, Load]]:
        return sees(variables), {}

    monkeypatch.setattr(gpu, "multi_process_service", multi_process_service)
    monkeypatch.setattr(gpu, "_look", look)
    said: list[str] = []
    with shared_gpu(tasks(), said.append) as found:
        return found, said


def test_programs_find_the_service_take_memory_as_they_need_it_and_never_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, said = shared(monkeypatch, OWN, lambda variables: H200 if variables == OWN else None)
    assert found.environment == OWN | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_PLATFORMS": "cuda,cpu"}
    assert found.overlapping
    assert said == []


def test_a_service_through_which_no_gpu_is_seen_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    found, said = shared(monkeypatch, OWN, lambda variables: None if variables else H200)
    assert (found.gpu, found.overlapping) == (H200, False)
    assert "CUDA_MPS_PIPE_DIRECTORY" not in found.environment
    assert said == ["JAX finds no GPU through NVIDIA's multi-process service."]


def test_without_the_service_programs_would_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = shared(monkeypatch, None, lambda variables: H200)
    assert (found.gpu, found.overlapping) == (H200, False)


def lost(variables: dict[str, str]) -> Gpu:
    raise LostError("its process was killed by SIGSEGV")


def test_a_service_that_ends_programs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    found, said = shared(monkeypatch, OWN, lambda variables: lost(variables) if variables else H200)
    assert (found.gpu, found.overlapping) == (H200, False)
    assert said == ["JAX finds no GPU through NVIDIA's multi-process service."]


@pytest.mark.parametrize("service", [OWN, {}, None])
def test_where_nothing_is_known_of_the_gpu_nothing_is_computed(
    monkeypatch: pytest.MonkeyPatch, service: dict[str, str] | None
) -> None:
    sentence = "cannot be found out: its process was killed by SIGSEGV; --engine inline goes without"
    with pytest.raises(LabError, match=sentence):
        shared(monkeypatch, service, lost)


def test_a_gpu_that_jax_cannot_use_is_none(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """JAX raises where it was told of a platform that is not there."""
    found, _ = gpu._look(tasks(), {"JAX_PLATFORMS": "cuda"} if not gpu.has_gpu() else {"CUDA_VISIBLE_DEVICES": ""})
    assert found is None
    assert "Traceback" not in capfd.readouterr().err


def test_what_fits_and_what_comes_first() -> None:
    some = tasks()
    loads = {task.shard.key: Load(40, seconds) for task, seconds in zip(some, (1.0, 3.0, 2.0), strict=True)}
    found = Sharing(H200, loads, {}, overlapping=True)
    assert found.longest_first(some) == [some[1], some[2], some[0]]
    assert found.fits(some[:2])
    assert not found.fits(some)


def test_beside_a_shard_that_fills_the_gpu_comes_one_that_does_not() -> None:
    """Of five, three are full: the longest one begins, then those that are not, by their length, and then the other two."""
    some = tasks(5)
    kinds = ((1.0, False), (5.0, True), (4.0, True), (2.0, False), (3.0, True))
    loads = {task.shard.key: Load(1, *kind) for task, kind in zip(some, kinds, strict=True)}
    found = Sharing(H200, loads, {}, overlapping=True)
    assert [some.index(task) for task in found.mixed(some)] == [1, 3, 0, 2, 4]
    assert found.beside([some[0]], found.longest_first(some)) is some[1]
    assert found.beside([some[4]], [some[1], some[2]]) is some[1]


@pytest.mark.skipif(gpu.has_gpu(), reason="there is one")
def test_where_there_is_no_gpu_a_child_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer has what each shard would take; this process has not asked JAX, and its environment is as it was."""
    monkeypatch.setenv("PATH", "/nowhere")
    before, some, said = dict(os.environ), tasks(), list[str]()
    with shared_gpu(some, said.append) as found:
        assert found.gpu is None
        assert list(found.loads.values()) == [Load(1, 0), Load(1, 1), Load(1, 2)]
        assert found.environment == {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    assert said[-1] == "JAX finds no GPU: shards are computed on the CPU."
    assert dict(os.environ) == before
