"""What fits through the door, and the one sentence for what does not."""

from __future__ import annotations

from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

from maxmean.deep.host import HostError
from maxmean.deep.host.settings import PRESETS
from maxmean.deep.host.spaces import batched, count_actions, sight
from maxmean.deep.networks import Convolution, Nature, Perceptron, Trunk

BOX = spaces.Box(-1.0, 1.0, (3,), np.float64)
PARTS = spaces.Dict({"place": BOX, "doors": spaces.MultiBinary(2), "room": spaces.Discrete(4)})

SEEN: list[tuple[spaces.Space, tuple[int, ...], str, Trunk]] = [
    (BOX, (3,), "float32", Perceptron()),
    (spaces.Box(0, 1, (), np.float32), (1,), "float32", Perceptron()),
    (spaces.Box(0, 255, (128,), np.uint8), (128,), "uint8", Perceptron()),
    (spaces.Box(0, 1, (3, 5), np.float32), (3, 5), "float32", Perceptron()),
    (spaces.Box(0, 1, (10, 10, 4), bool), (10, 10, 4), "bool", Convolution()),
    (spaces.Box(0, 255, (4, 84, 84), np.uint8), (84, 84, 4), "uint8", Nature()),
    (spaces.Box(0, 255, (84, 84), np.uint8), (84, 84, 1), "uint8", Nature()),
    (spaces.Box(0, 255, (210, 160, 3), np.uint8), (210, 160, 3), "uint8", Nature()),
    (spaces.Discrete(5, start=-2), (5,), "bool", Perceptron()),
    (spaces.MultiBinary(6), (6,), "bool", Perceptron()),
    (spaces.MultiDiscrete([2, 3]), (5,), "float32", Perceptron()),
    (PARTS, (9,), "float32", Perceptron()),
    (spaces.Tuple([BOX, spaces.Discrete(2)]), (5,), "float32", Perceptron()),
]


@pytest.mark.parametrize(("space", "shape", "dtype", "trunk"), SEEN, ids=lambda value: type(value).__name__)
def test_what_is_seen_of_a_space(space: spaces.Space, shape: tuple[int, ...], dtype: str, trunk: Trunk) -> None:
    """Shape, type and network; and a batch shows the same as its parts one by one."""
    seen = sight(space)
    assert (seen.shape, seen.dtype.name, seen.trunk) == (shape, dtype, trunk)
    assert seen.kind in PRESETS
    space.seed(0)
    samples = [space.sample() for _ in range(3)]
    ones = np.stack([np.asarray(seen.one(sample), seen.dtype).reshape(shape) for sample in samples])
    empty: Any = create_empty_array(space, 3)
    batch = concatenate(space, samples, empty)
    assert batch_space(space, 3).contains(batch)
    np.testing.assert_array_equal(np.asarray(seen.many(batch), seen.dtype), ones)
    assert not batched(space, samples[0])
    assert batched(space, batch)


def test_units_are_the_largest_sizes_that_the_bounds_allow() -> None:
    """One for each number of a vector; 1 where there are no bounds, or those of the type, and for bytes, which are 0 to 1."""
    low, high = np.array([-1.2, -0.07, -np.inf, 0.0, -4.0]), np.array([0.6, 0.07, np.inf, 3.0e38, 2.0])
    box = spaces.Box(low.astype(np.float32), high.astype(np.float32))
    np.testing.assert_allclose(sight(box).units, [1.2, 0.07, 1.0, 1.0, 4.0], rtol=1e-6)
    assert sight(spaces.Box(-8.0, 2.0, (), np.float32)).units == (8.0,)
    assert sight(spaces.Box(0.0, 0.0, (2,), np.float32)).units == (1.0, 1.0)
    parts = spaces.Dict({"bytes": spaces.Box(0, 255, (2,), np.uint8), "place": spaces.Box(-2.0, 2.0, (1,), np.float32)})
    assert sight(parts).units == (1.0, 1.0, 2.0)
    for other in (spaces.Discrete(5), spaces.Box(0, 255, (84, 84), np.uint8), spaces.MultiBinary(6)):
        assert sight(other).units == ()


def test_discrete_is_one_hot_from_its_start() -> None:
    assert sight(spaces.Discrete(3, start=7)).one(8).tolist() == [False, True, False]


def test_bytes_are_divided_by_255_in_a_dict_too() -> None:
    space = spaces.Dict(
        number=spaces.Box(-1.0, 1.0, (1,)),
        pixels=spaces.Tuple([spaces.Box(0, 255, (1, 2), cast(Any, np.uint8)), spaces.Discrete(2)]),
    )
    seen = {"number": np.array([0.5], np.float32), "pixels": (np.array([[51, 255]], np.uint8), 1)}
    np.testing.assert_allclose(sight(space).one(seen), [0.5, 0.2, 1.0, 0.0, 1.0])


@pytest.mark.parametrize("seen", [6, 10, 7.0, "7", np.array([7, 12]), np.uint8(0)], ids=str)
def test_what_is_none_of_a_discrete_space_gets_a_sentence(seen: Any) -> None:
    with pytest.raises(HostError, match=r"is a whole number from 7 to 9, not"):
        sight(spaces.Discrete(3, start=7)).one(seen)


PARTS = spaces.Dict(a=spaces.Box(-1.0, 1.0, (2,)), b=spaces.Tuple([spaces.Discrete(3, start=1)]))


@pytest.mark.parametrize(
    ("space", "seen"),
    [
        (PARTS, {"a": np.zeros(2)}),
        (PARTS, {"a": np.zeros(3), "b": (1,)}),
        (PARTS, {"a": np.zeros(2), "b": (0,)}),
        (PARTS, {"a": np.zeros(2), "b": (1, 2)}),
        (PARTS, np.zeros(5)),
        (spaces.MultiDiscrete([3, 4]), np.array([3, 0])),
        (spaces.MultiDiscrete([3, 4]), np.array([-1, 0])),
        (spaces.MultiDiscrete([3, 4]), np.array([1.0, 0.0])),
    ],
    ids=str,
)
def test_what_is_none_of_a_space_of_parts_gets_a_sentence(space: spaces.Space, seen: Any) -> None:
    with pytest.raises(HostError, match=r"^an observation is one of (Dict|MultiDiscrete).*, not"):
        sight(space).one(seen)


def test_parts_of_a_batch_belong_together() -> None:
    many = sight(PARTS).many
    assert many({"a": np.zeros((0, 2)), "b": (np.zeros(0, int),)}).shape == (0, 5)
    with pytest.raises(HostError, match=r"^these are not 3 observations of Dict"):
        many({"a": np.zeros((3, 2)), "b": (np.ones(2, int),)})


def test_channels_first_are_turned() -> None:
    picture = np.arange(4 * 10 * 10).reshape(4, 10, 10)
    seen = sight(spaces.Box(0, 1, (4, 10, 10), np.float32)).one(picture)
    assert seen[2, 3, 1] == picture[1, 2, 3]


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        (spaces.Text(5), "observations of Text do not fit: Box, Discrete, MultiBinary"),
        (spaces.Sequence(BOX), "observations of Sequence do not fit"),
        (spaces.Dict({"a": spaces.Sequence(BOX)}), "cannot be flattened into one vector"),
        (spaces.Box(0, 255, (2, 2, 2), np.uint8), "pictures of 2 x 2 pixels do not fit, 3 x 3 is the smallest"),
        (spaces.Box(0, 1, (0,), np.float32), "nothing to see"),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else type(value).__name__,
)
def test_what_cannot_be_seen_gets_a_sentence(space: spaces.Space, sentence: str) -> None:
    with pytest.raises(HostError, match=sentence):
        sight(space)


@pytest.mark.parametrize(
    ("space", "sentence"),
    [(BOX, "actions of Box do not fit: these agents choose among Discrete"), (spaces.Discrete(300), "256 at most")],
    ids=["box", "many"],
)
def test_what_cannot_be_chosen_gets_a_sentence(space: spaces.Space, sentence: str) -> None:
    with pytest.raises(HostError, match=sentence):
        count_actions(space)


def test_an_observation_of_another_shape_gets_a_sentence() -> None:
    with pytest.raises(HostError, match=r"sees observations of shape \(3,\), or many of them, not of shape \(4,\)"):
        batched(BOX, np.zeros(4))
    with pytest.raises(HostError, match="sees observations of Dict"):
        batched(PARTS, 3)


class Frames(gymnasium.Env):
    """Four small frames, first axis, in bytes."""

    observation_space = spaces.Box(0, 255, (4, 36, 36), np.uint8)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.np_random.integers(256, size=(4, 36, 36), dtype=np.uint8), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.np_random.integers(256, size=(4, 36, 36), dtype=np.uint8), 1.0, False, False, {}


@pytest.mark.slow
def test_frames_are_learned_from() -> None:
    """Nature's trunk in a short training: what is compiled runs, and the loss is finite."""
    import maxmean

    env = gymnasium.wrappers.TimeLimit(Frames(), 10)
    other = gymnasium.wrappers.TimeLimit(Frames(), 10)
    agent = maxmean.DQN(env, eval_env=other, warmup=20, replay_capacity=100, test_interval=60, train_every=2, hidden=16)
    agent.learn(60)
    assert np.isfinite(agent.table["loss"]).all()
    assert agent.predict(np.zeros((7, 4, 36, 36), np.uint8))[0].shape == (7,)
