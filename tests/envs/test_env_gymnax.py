"""Environments of gymnax as ours: through a stand-in with gymnax's interface, and through gymnax itself where it is installed.

gymnax 1.0.1 wants an older Gymnasium than the one we test with, so that it is not in our own environment.
"""

from __future__ import annotations

import re
import sys
import types
import urllib.error
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxmean import envs
from maxmean.envs import gymnax as adapter

ROOT = Path(__file__).parents[2]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    slip: float = 0.0
    max_steps_in_episode: int = 5


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Place:
    x: Any
    time: Any


class Corridor:
    """Three cells to the right is the end; written as gymnax's environments are."""

    name = "Corridor"

    def __init__(self, length: int = 3) -> None:
        self.length = length

    @property
    def default_params(self) -> Params:
        return Params()

    def reset_env(self, key: jax.Array, params: Params) -> tuple[jax.Array, Place]:
        state = Place(x=jnp.int32(0), time=0)  # a Python number, as gymnax has it
        return self.get_obs(state, key), state

    def step_env(self, key: jax.Array, state: Place, action: Any, params: Params) -> tuple[Any, ...]:
        slips = jax.random.bernoulli(key, params.slip)
        x = jnp.maximum(state.x + jnp.where(slips, 0, 2 * action - 1), 0)
        state = Place(x=x, time=state.time + 1)
        return self.get_obs(state, key), state, -1, self.is_terminated(state, params), {}

    def get_obs(self, state: Place, key: jax.Array) -> jax.Array:
        """With noise of its own: it is no function of the state."""
        return jnp.stack([state.x.astype(jnp.float32), jax.random.uniform(key)])

    def is_terminated(self, state: Place, params: Params) -> jax.Array:
        return state.x >= self.length

    def is_truncated(self, state: Place, params: Params) -> jax.Array:
        return state.time >= params.max_steps_in_episode

    def action_space(self, params: Params | None = None) -> Any:
        return types.SimpleNamespace(n=2)


def walk(env: envs.Environment, actions: list[int]) -> list[tuple[float, bool, bool]]:
    state, _ = env.reset(jax.random.key(0))
    found = []
    for action in actions:
        step = env.step(jax.random.key(action), state, jnp.int32(action))
        state = step.state
        found.append((float(step.observation[0]), bool(step.terminated), bool(step.truncated)))
    return found


def test_its_own_end_is_terminated_and_the_limit_is_truncated() -> None:
    """The stand-in ends after three steps to the right, and is cut off after five."""
    env = envs.from_gymnax(Corridor())
    assert walk(env, [1, 1, 1]) == [(1, False, False), (2, False, False), (3, True, False)]
    assert [step[1:] for step in walk(env, [0] * 5)] == [(False, False)] * 4 + [(False, True)]
    # both at once: it has ended
    assert walk(envs.from_gymnax(Corridor(), Params(max_steps_in_episode=3)), [1, 1, 1])[-1] == (3, True, False)


def test_there_is_no_reset_of_its_own() -> None:
    assert [x for x, _, _ in walk(envs.from_gymnax(Corridor()), [1, 1, 1, 1])] == [1, 2, 3, 4]


def test_what_is_observed_is_what_the_step_gave() -> None:
    """Even where gymnax draws it at random."""
    env = envs.from_gymnax(Corridor())
    state, observation = env.reset(jax.random.key(0))
    assert (env.observe(state) == observation).all()
    step = env.step(jax.random.key(1), state, jnp.int32(1))
    assert (env.observe(step.state) == step.observation).all()
    assert env.observation.shape == (2,)


def test_types_are_definite() -> None:
    """Rewards are float32 and a state can be carried through ``lax.scan``, whatever Python numbers gymnax starts with."""
    env = envs.from_gymnax(Corridor())
    state, _ = env.reset(jax.random.key(0))
    step = env.step(jax.random.key(0), state, jnp.int32(1))
    assert [x.dtype.name for x in (step.reward, step.terminated, step.truncated)] == ["float32", "bool", "bool"]
    before, after = (
        jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), s) for s in (state, step.state)
    )
    assert before == after
    keys = jax.random.split(jax.random.key(0), 4)
    jax.lax.scan(lambda s, key: (env.step(key, s, jnp.int32(1)).state, None), state, keys)


def test_equal_ones_are_equal_and_hash_alike() -> None:
    corridor = Corridor()
    one = envs.from_gymnax(corridor, slip=0.5)
    assert one == envs.from_gymnax(corridor, Params(slip=0.5))
    assert hash(one) == hash(envs.from_gymnax(corridor, Params(slip=0.5)))
    assert one != envs.from_gymnax(corridor)
    with pytest.raises(AttributeError):
        one.label = "other"  # type: ignore[misc]


def test_options_are_parameters() -> None:
    assert walk(envs.from_gymnax(Corridor(), slip=1.0), [1, 1])[-1][0] == 0
    assert envs.from_gymnax(Corridor(), Params(slip=1.0), max_steps_in_episode=2).params == Params(1.0, 2)


def test_it_goes_on_to_gymnasium() -> None:
    env = envs.to_gymnasium(envs.from_gymnax(Corridor()))
    env.reset(seed=0)
    assert [env.step(1)[2:4] for _ in range(3)] == [(False, False), (False, False), (True, False)]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package gymnax with one environment."""
    module = types.ModuleType("gymnax")
    module.registered_envs = ["Corridor-v0"]  # type: ignore[attr-defined]
    module.make = lambda name, **arguments: (Corridor(**arguments), Params())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gymnax", module)
    adapter._make.cache_clear()


@pytest.mark.usefixtures("stand_in")
def test_by_name() -> None:
    env = envs.make("gymnax/Corridor-v0", length=1, slip=0.0)
    assert env.name == "gymnax/Corridor-v0"
    assert env.n_actions == 2
    assert walk(env, [1]) == [(1, True, False)]
    assert env == envs.make("gymnax/Corridor-v0", length=1)
    assert env != envs.make("gymnax/Corridor-v0")


@pytest.mark.usefixtures("stand_in")
def test_mistakes_get_one_sentence() -> None:
    with pytest.raises(envs.EnvError, match=r"no environment 'Coridor-v0'; did you mean 'Corridor-v0'\? \(there are"):
        envs.make("gymnax/Coridor-v0")
    with pytest.raises(envs.EnvError, match=r"no option 'lenght'; did you mean 'length'\?"):
        envs.make("gymnax/Corridor-v0", lenght=1)
    with pytest.raises(envs.EnvError, match="there are slip, max_steps_in_episode, length"):
        envs.make("gymnax/Corridor-v0", colour=1)
    with pytest.raises(envs.EnvError, match="'length' goes to the class of gymnax/Corridor: give its name"):
        envs.from_gymnax(Corridor(), length=1)
    for value, said in (("a", "'a'"), (None, "None"), ([1, 2], "a list of 2"), ([[1], [1, 2]], "a list of 2")):
        expected = f"max_steps_in_episode of gymnax/Corridor-v0 must be a number, such as [0-9]+, not {said}"
        with pytest.raises(envs.EnvError, match=expected):
            envs.make("gymnax/Corridor-v0", max_steps_in_episode=value)
    with pytest.raises(envs.EnvError, match="action 2 is out of range"):
        walk(envs.from_gymnax(Corridor()), [2])
    env = envs.from_gymnax(Corridor())
    state, _ = env.reset(jax.random.key(0))
    for step in (env.step, jax.jit(env.step)):
        with pytest.raises(envs.EnvError, match="an action is an integer from 0 to 1, not"):
            step(jax.random.key(0), state, 0.5)  # type: ignore[arg-type]


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("options", [{}, {"slip": 0.5}])
def test_a_download_that_failed_is_said_to_have(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As without a network: in Python a named error, and on the command line status 2."""

    def make(name: str) -> Any:
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(sys.modules["gymnax"], "make", make)
    with pytest.raises(
        envs.EnvError, match="Corridor-v0 needs data that gymnax downloads, and the download failed: no network"
    ):
        envs.make("gymnax/Corridor-v0", **options)


def test_what_does_not_fit_is_refused() -> None:
    class Continuous(Corridor):
        def action_space(self, params: Params | None = None) -> Any:
            return types.SimpleNamespace(low=-1.0, high=1.0)

    class Many(Corridor):
        def reset_env(self, key: jax.Array, params: Params) -> Any:
            observation, state = super().reset_env(key, params)
            return {"x": observation}, state

    with pytest.raises(envs.EnvError, match="has continuous actions"):
        envs.from_gymnax(Continuous())
    with pytest.raises(envs.EnvError, match="observes more than one array"):
        envs.from_gymnax(Many())
    with pytest.raises(envs.EnvError, match=r"no environment of gymnax 1\.0 or newer: it has no method reset_env"):
        envs.from_gymnax(object())


# --- gymnax itself, where it is installed ---


@pytest.mark.filterwarnings("default")
def test_gymnax_itself_steps_the_same() -> None:
    """Every environment with discrete actions: our steps are its own, between resets."""
    gymnax = pytest.importorskip("gymnax")
    checked = []
    for name in gymnax.registered_envs:
        if name == "MNISTBandit-bsuite":  # wants a download
            continue
        theirs, params = gymnax.make(name)
        if not hasattr(theirs.action_space(params), "n"):
            with pytest.raises(envs.EnvError, match="continuous"):
                envs.make(f"gymnax/{name}")
            continue
        params = replace(params, max_steps_in_episode=7)
        env = envs.make(f"gymnax/{name}", max_steps_in_episode=7)
        their_step, step = jax.jit(theirs.step), jax.jit(env.step)
        their_observation, their_state = theirs.reset(jax.random.key(0), params)
        state, observation = env.reset(jax.random.key(0))
        np.testing.assert_array_equal(observation, their_observation)
        for k in range(30):
            key, action = jax.random.key(k), jnp.int32(k % env.n_actions)
            step_key, reset_key = jax.random.split(key)
            out = step(step_key, state, action)
            _, their_state, reward, terminated, truncated, info = their_step(key, their_state, action, params)
            np.testing.assert_allclose(out.observation, info["final_observation"], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(out.reward, reward, rtol=1e-5, atol=1e-6)
            assert bool(out.terminated) == bool(terminated)
            assert bool(out.truncated) == bool(truncated & ~terminated)
            state = out.state
            if terminated | truncated:
                state, _ = env.reset(reset_key)
                if name == "DeepSea-bsuite":  # which carries its score over
                    state = state._replace(state=their_state)
        checked.append(name)
    assert len(checked) >= 15


@pytest.mark.filterwarnings("default")
def test_the_documents_run_with_gymnax_itself() -> None:
    pytest.importorskip("gymnax")
    found = re.findall(r"^```py\n(.*?)^```", (ROOT / "docs" / "environments.md").read_text(), flags=re.M | re.S)
    assert found
    for code in found:
        exec(compile(code, "environments.md", "exec"), {})
