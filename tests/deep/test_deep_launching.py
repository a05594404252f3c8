"""How a round's kernels are launched on a GPU: what can be known of it without one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from deep_toys import CORRIDOR, differences
from maxmean import deep
from maxmean.deep.core.in_place import overwritten
from maxmean.deep.device import launching
from maxmean.deep.device.block import ROUND, Block, make_blocks
from maxmean.deep.device.plan import TrainingPlan

SMALL = deep.Settings(warmup=10, replay_capacity=64, batch_size=4, target_period=3 * ROUND, hidden=8)


def a_block() -> Block:
    (block,) = make_blocks(TrainingPlan.of(CORRIDOR, deep.DQN(), 2, None, SMALL), batched=True)
    block.create()
    return block


def test_this_xla_knows_the_options() -> None:
    """One that it does not know any more would be left out without a word, and a GPU be slower."""
    assert launching.known(launching.OPTIONS)
    assert not launching.known({"xla_gpu_no_such_option": True})
    assert not launching.known({"xla_gpu_command_buffer_scheduling_mode": "NO_SUCH_MODE"})


@pytest.mark.parametrize(("backend", "options"), [("gpu", launching.OPTIONS), ("cpu", {})])
def test_they_are_for_a_gpu(backend: str, options: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert launching.launching.__wrapped__() == options


def test_an_xla_without_them_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(launching, "OPTIONS", {"xla_gpu_no_such_option": True})
    assert launching.launching.__wrapped__() == {}


def test_the_number_of_the_step_stays_in_its_place() -> None:
    """A GPU's launches hold addresses: with another one they would all have to be changed."""
    block = a_block()
    places = []
    for step in (10, 10 + ROUND, 10 + 2 * ROUND, 10 + 3 * ROUND):
        block.advance(step, lambda: False)
        assert block._next is not None
        assert (block.step, int(block._next[1])) == (step, step)
        places.append(block._next[1].unsafe_buffer_pointer())
    assert len(set(places[1:])) == 1


@pytest.mark.parametrize("agent", [deep.DQN(), deep.AdaTEBDQN(k=2, horizon=3)], ids=lambda agent: agent.name)
def test_nothing_of_a_run_moves(agent: deep.Agent) -> None:
    """Neither a round of steps nor a copy of the target, an adaptation or a test: a GPU's launches hold all these addresses."""
    (block,) = make_blocks(TrainingPlan.of(CORRIDOR, agent, 2, None, SMALL), batched=True)
    block.create()
    block.advance(10 + ROUND, lambda: False)

    def places() -> dict[str, int]:
        leaves = jax.tree_util.tree_leaves_with_path(block.state)
        return {jax.tree_util.keystr(path): leaf.unsafe_buffer_pointer() for path, leaf in leaves}

    before = places()
    block.advance(10 + 2 * ROUND, lambda: False)
    assert places() == before
    block.copy_target()
    assert places() == before
    block.look()
    assert places() == before


def test_values_are_written_over_others() -> None:
    values = {"a": jnp.arange(3.0), "b": jnp.ones((2, 2), jnp.int32)}
    there = jax.tree.map(jnp.zeros_like, values)
    address = there["a"].unsafe_buffer_pointer()
    found = overwritten(there, values)
    assert differences(found, values) == []
    assert found["a"].unsafe_buffer_pointer() == address
    assert there["a"].is_deleted()
    assert not values["a"].is_deleted()


@pytest.mark.parametrize("values", [jnp.zeros(4), jnp.zeros(3, jnp.int32)], ids=["longer", "integers"])
def test_only_the_like_is_written_over(values: jax.Array) -> None:
    """Anything else would get memory of its own without a word."""
    with pytest.raises(TypeError, match=r"cannot be written over float32\[3\]"):
        overwritten(jnp.zeros(3), values)


def test_a_block_that_is_set_back_counts_from_there() -> None:
    """As one that goes on from a checkpoint does: the number that it holds on the device is of another step."""
    block = a_block()
    block.advance(10 + ROUND, lambda: False)
    assert block.state is not None
    kept = jax.tree.map(lambda leaf: leaf.copy(), block.state)
    ends = []
    for _ in range(2):
        block.advance(10 + 2 * ROUND, lambda: False)
        assert block._next is not None
        assert int(block._next[1]) == block.step
        ends.append(jax.tree.map(lambda leaf: leaf.copy(), block.state))
        block.state, block.step = jax.tree.map(lambda leaf: leaf.copy(), kept), 10 + ROUND
    assert differences(*ends) == []
    assert differences(ends[0], kept)
