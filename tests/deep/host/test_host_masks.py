"""Masks of illegal actions: an illegal one raises, and none is ever taken; however they are given, they are the same training."""

from __future__ import annotations

import re
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pandas as pd
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList
from scipy import stats

from host_toys import GATED, LENGTH, Gated, GatedByInfo, GatedByMethod, GatedByObservation, Walk, small
from maxmean import DQN, KEBDQN
from maxmean.deep.checks import AgentError
from maxmean.deep.host import HOST_AGENTS, HostAgent, HostError, plain, watch
from maxmean.deep.policy import Policy
from seldom import slow
from strangers import drop, forge_agent, put

HEADS = {"k": 3, "mask": 0.7, "exploration": "heads:0.3"}


class Open(Gated):
    """All actions are legal, and nothing says so."""

    def legal(self) -> Any:
        return [1, 1, 1, 1]


class OpenByMethod(Open):
    """The same, and it says so."""

    def action_masks(self) -> Any:
        return np.ones(4, bool)


def own(kind: type[HostAgent]) -> dict[str, Any]:
    return HEADS if kind is KEBDQN else {}


def made(kind: type[HostAgent], env: Any, single: type[Gated], **settings: Any) -> HostAgent:
    settings = small(measure_bias=True, bias_episodes=2, bias_episodes_per_head=1, **own(kind), **settings)
    return kind(env, eval_env=single(), **settings)


def same(first: HostAgent, second: HostAgent, *, replay: bool = True) -> None:
    """Weights, optimiser, counters, pending actions and records are the same, bit for bit; and the replay, if its rows are."""
    a, b = first.driver, second.driver
    runs = [each.run if replay else each.run._replace(replay=each.run.key) for each in (a, b)]
    for x, y in zip(jax.tree.leaves((runs[0], a.pending)), jax.tree.leaves((runs[1], b.pending)), strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
    assert a.clock == b.clock
    pd.testing.assert_frame_equal(first.table, second.table)


@pytest.mark.parametrize("kind", [*slow(DQN), KEBDQN], ids=lambda kind: kind.__name__)
def test_three_ways_of_giving_masks_are_one_training(kind: type[HostAgent]) -> None:
    """And no illegal action was taken: exploring, in tests or in roll-outs from stored states, for one would have raised."""
    ways = [made(kind, each(), each, n_step=1 if kind is DQN else 3).learn(300) for each in GATED.values()]
    assert ways[0].driver.program.masked
    assert ways[0].bias().how == "stored states"
    same(ways[0], ways[1])
    same(ways[0], ways[2])
    transitions = stored(ways[0])
    check_stored(transitions)
    assert set(np.asarray(transitions.action)) == {0, 1, 2, 3}


@pytest.mark.slow  # 20 s an agent
@pytest.mark.parametrize("name", list(HOST_AGENTS))
def test_no_agent_takes_an_illegal_action_in_20_000_steps(name: str) -> None:
    settings = small(
        test_interval=5_000, target_period=500, measure_bias=True, bias_episodes=2, bias_episodes_per_head=1
    )
    agent = HOST_AGENTS[name](GatedByInfo(), eval_env=GatedByInfo(), **settings).learn(20_000)
    assert agent.num_timesteps == 20_000


@pytest.mark.parametrize(
    ("kind", "n_step"),
    [(KEBDQN, 3), *(pytest.param(kind, n, marks=pytest.mark.slow) for kind, n in ((DQN, 1), (DQN, 3), (KEBDQN, 1)))],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_masks_of_all_ones_change_no_bit(kind: type[HostAgent], n_step: int) -> None:
    masked, plain = (made(kind, each(), each, n_step=n_step).learn(150) for each in (OpenByMethod, Open))
    assert masked.driver.program.masked
    assert not plain.driver.program.masked
    same(masked, plain, replay=False)
    ours, theirs = stored(masked), stored(plain)
    assert np.asarray(ours.next_legal).all()
    for x, y in zip(jax.tree.leaves(ours._replace(next_legal=())), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(x, y)


def stored(agent: HostAgent) -> Any:
    """The transitions in the replay."""
    driver = agent.driver
    rows = driver.run.replay[: driver.clock.stored]
    return jax.jit(jax.vmap(driver.program.learning.layout.unpack))(rows)


def check_stored(transitions: Any) -> None:
    """What was stored as legal is what is legal in the state that was reached, and all where nothing follows."""
    world = Gated()
    states, ends = np.asarray(transitions.state, int), np.asarray(transitions.next_state, int)
    for state, action, end, legal in zip(states, transitions.action, ends, transitions.next_legal, strict=True):
        (world.episode, world.time) = state
        assert world.legal()[int(action)]
        (world.episode, world.time) = end
        over = end[1] == LENGTH and end[0] % 2 == 0
        np.testing.assert_array_equal(legal, [True] * 4 if over else world.legal())


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name.lower())
@pytest.mark.parametrize("way", list(GATED))
def test_vector_environments_with_every_way_of_beginning_anew(way: str, mode: AutoresetMode) -> None:
    env = SyncVectorEnv([partial(GATED[way], i) for i in range(3)], autoreset_mode=mode)
    agent = DQN(env, eval_env=GATED[way](), **small(replay_capacity=500))
    if way == "method" and mode is AutoresetMode.SAME_STEP:
        with pytest.raises(HostError, match="make it with autoreset_mode=NEXT_STEP"):
            agent.learn(90)
        return
    transitions = stored(agent.learn(90))
    check_stored(transitions)
    assert (np.asarray(transitions.next_state)[:, 1] == LENGTH).any()


@pytest.mark.parametrize("way", list(GATED))
def test_what_was_saved_in_the_middle_goes_on_as_if_never_stopped(way: str, tmp_path: Path) -> None:
    kind = GATED[way]
    whole = made(KEBDQN, kind(), kind)
    saved: list[Path] = []

    def save(row: dict[str, Any]) -> None:
        if not saved:
            saved.append(whole.save(tmp_path / "half"))

    whole.learn(130, callback=save)
    loaded = KEBDQN.load(saved[0], kind(), eval_env=kind())
    same(whole, loaded.learn(130 - loaded.num_timesteps))


def test_a_training_knows_from_its_file_whether_it_has_masks(tmp_path: Path) -> None:
    path = DQN(GatedByInfo(), eval_env=GatedByInfo(), **small()).learn(50).save(tmp_path / "masked")
    with pytest.raises(
        HostError, match=r"info\['action_mask'\] is missing or None at reset, and this training has masks"
    ):
        DQN.load(path, Gated(), eval_env=Gated())
    path = DQN(Open(), eval_env=Open(), **small()).learn(50).save(tmp_path / "plain")
    said = "was trained without the masks .* that this environment has, and goes on", "a new episode begins"
    with pytest.warns(UserWarning, match=said[0]), pytest.warns(UserWarning, match=said[1]):
        agent = DQN.load(path, OpenByMethod(), eval_env=OpenByMethod())
    assert not agent.learn(20).driver.program.masked


@pytest.mark.parametrize("way", list(GATED))
def test_tests_without_the_masks_of_the_training_are_refused(way: str, tmp_path: Path) -> None:
    """Whether the environment raises at an illegal action or not: tests and roll-outs would take some."""
    said = "eval_env gives no mask of the legal actions at reset, and this training has masks"
    with pytest.raises(HostError, match=said):
        DQN(GATED[way](), eval_env=Open(), **small()).learn(50)
    path = DQN(GATED[way](), eval_env=GATED[way](), **small()).learn(50).save(tmp_path / "agent")
    with pytest.raises(HostError, match=said):
        DQN.load(path, GATED[way](), eval_env=Open()).learn(50)
    others = [each for each in GATED if each != way]
    assert DQN(GATED[way](), eval_env=GATED[others[0]](), **small()).learn(50).num_timesteps == 50  # however it says it


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("masked", 1), "masked"),
        (drop("masked"), "run.replay is missing or has another shape"),
        (put("kept/0/items/2", plain.pack(np.zeros(4, bool))), "a state that it keeps for roll-outs has another form"),
        (put("kept/0/items/2", plain.pack(np.ones(4))), "a state that it keeps for roll-outs has another form"),
        (drop("kept/0/items/2"), "a state that it keeps for roll-outs has another form"),
    ],
)
def test_masks_in_a_strangers_file_are_looked_at(change: Any, said: str, tmp_path: Path) -> None:
    path = DQN(GatedByInfo(), eval_env=GatedByInfo(), **small()).learn(30).save(tmp_path / "agent")
    forge_agent(path, change)
    with pytest.raises(HostError, match=rf"^{path} cannot be used: .*{said}"):
        DQN.load(path, GatedByInfo(), eval_env=GatedByInfo())


def test_a_policy_at_play_takes_legal_actions_alone() -> None:
    class Drawn(GatedByInfo):
        def render(self) -> Any:
            return np.zeros((300, 300, 3), np.uint8)

    driver = DQN(Drawn(), eval_env=Drawn(), **small()).driver
    driver.make()
    policy = Policy(driver.program.network, driver.run.learner.weights, False, {"variant": "dqn"})
    env = Drawn()
    for seed in range(4):  # an illegal action would raise
        assert len(list(watch.play(policy, env, seed=seed))) == LENGTH + 1
    with pytest.raises(AgentError, match="one of 4 actions at least"):
        policy.act(np.zeros(2), [False] * 4)


def test_an_agent_may_be_asked_before_its_masks_are_known() -> None:
    """Masks in ``info`` are found at the first reset: what was made before is made anew, with the same weights."""
    asked, other = (made(DQN, GatedByInfo(), GatedByInfo) for _ in range(2))
    for each in (asked, other):
        each.bias(1)
    asked.predict(np.zeros(2, np.float32))
    same(asked.learn(60), other.learn(60))


def test_predict_takes_legal_actions_alone() -> None:
    agent = DQN(GatedByObservation(), eval_env=GatedByObservation(), **small())
    seen = np.zeros(2, np.float32)
    for only in range(4):
        mask = np.eye(4, dtype=np.int8)[only]
        for deterministic in (True, False):
            inside = {"observation": seen, "action_mask": mask}
            assert agent.predict(inside, deterministic)[0] == only
            open_ = {"observation": seen, "action_mask": np.ones(4, np.int8)}
            assert agent.predict(open_, deterministic, action_masks=mask)[0] == only
    batch = {"observation": np.zeros((4, 2), np.float32), "action_mask": np.eye(4, dtype=np.int8)[::-1]}
    assert agent.predict(batch)[0].tolist() == [3, 2, 1, 0]
    for masks, said in (
        (np.zeros(4), "without a legal action"),
        ([1, 0], "a mask has 4 zeros and ones, one for each action, and"),
        ([1, 0, 2, 0], "is none"),
        ([[1], 0, 2, 0], "is none"),
    ):
        with pytest.raises(HostError, match=said):
            agent.predict(inside, action_masks=masks)
    for several, said in (([[1, 1, 1, 1]], "there are 4 observations and 1 masks"), (1, "a mask has 4 zeros and ones")):
        with pytest.raises(HostError, match=said):
            agent.predict(batch, action_masks=several)


def test_one_mask_may_be_for_a_whole_batch() -> None:
    agent = DQN(GatedByMethod(), eval_env=GatedByMethod(), **small())
    for n in (3, 4):  # four observations and four actions: still one mask
        seen = np.zeros((n, 2), np.float32)
        for only in range(4):
            for mask in (np.eye(4)[only], np.eye(4, dtype=bool)[only].tolist()):
                assert agent.predict(seen, action_masks=mask)[0].tolist() == [only] * n
        with pytest.raises(HostError, match=r"a mask has 4 zeros and ones, .* \[1, 0, 1\] is none"):
            agent.predict(seen, action_masks=[1, 0, 1])


@pytest.mark.parametrize(
    "names", [("action_mask", "observation"), ("observation", "action_mask"), ("action_mask", "a", "b")]
)
def test_all_actions_are_legal_to_who_asks_without_a_mask(names: tuple[str, ...]) -> None:
    """The entry of a ``Dict`` observation may be left out, whichever it is of its space, and whatever is beside it."""

    class Asked(GatedByObservation):
        observation_space = spaces.Dict(
            [(name, spaces.MultiBinary(4) if name == "action_mask" else Walk.observation_space) for name in names]
        )

    agent = DQN(Asked(), eval_env=Asked(), **small())
    seen: dict[str, Any] = {name: np.zeros(2, np.float32) for name in names if name != "action_mask"}
    best = agent.predict({**seen, "action_mask": np.ones(4, np.int8)})[0]
    assert agent.predict(seen)[0] == agent.predict({**seen, "action_mask": None})[0] == best
    assert agent.predict({name: np.zeros((3, 2), np.float32) for name in seen})[0].tolist() == [best] * 3


def test_random_actions_are_uniform_among_the_legal_ones() -> None:
    """Of 30,000 random actions with three of four legal. A chi-square test, which errs in one of 100,000 cases."""
    agent = DQN(GatedByMethod(), eval_env=GatedByMethod(), **small(exploration="epsilon:1"))
    legal = np.tile([True, False, True, True], (30_000, 1))
    actions, _ = agent.predict(np.zeros((30_000, 2), np.float32), False, action_masks=legal)
    counts = np.bincount(actions, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]]).pvalue > 1e-5


class Strange(Walk):
    """Gives what it is told to give as a mask after so many steps, and one of all ones else."""

    def __init__(self, mask: Any, after: int) -> None:
        super().__init__()
        self.mask, self.after = mask, after

    def reset(self, **options: Any) -> Any:
        seen, _ = super().reset(**options)
        return seen, self._info()

    def step(self, action: Any) -> Any:
        return *super().step(action)[:4], self._info()

    def _info(self) -> dict[str, Any]:
        mask = self.mask if self.time == self.after else [1, 1]
        return {} if mask is None else {"action_mask": np.asarray(mask)}


@pytest.mark.parametrize(
    ("mask", "after", "said"),
    [
        ([0, 0], 3, "no action is legal after step 3: have the episode terminate where nothing can be done"),
        ([0, 0], 0, "no action is legal at reset"),
        ([1, 0, 1], 2, r"gave no mask after step 2: a mask has 2 zeros and ones, .* array\(\[1, 0, 1\]\) is none"),
        ([1, 0.5], 2, "is none"),
        (None, 2, r"info\['action_mask'\] is missing or None after step 2, and this training has masks"),
        (None, 0, r"info\['action_mask'\] was there after step 1, but not at the first reset"),
    ],
)
def test_what_is_no_mask_is_said_in_one_sentence(mask: Any, after: int, said: str) -> None:
    agent = DQN(Strange(mask, after), eval_env=Strange([1, 1], 0), **small())
    with pytest.raises(HostError, match=said):
        agent.learn(20)


class NoneByMethod(GatedByMethod):
    def action_masks(self) -> Any:
        return None if self.time == 2 else super().action_masks()


class NoneByObservation(GatedByObservation):
    def _see(self) -> Any:
        return {**super()._see(), "action_mask": None} if self.time == 2 else super()._see()


class LeftOut(GatedByObservation):
    def _see(self) -> Any:
        found = super()._see()
        return {"observation": found["observation"]} if self.time == 2 else found


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (NoneByMethod, r"action_masks\(\) gave None"),
        (NoneByObservation, "the entry 'action_mask' of the observation is missing or None"),
        (LeftOut, "the entry 'action_mask' of the observation is missing or None"),
    ],
)
def test_who_gave_no_mask_is_named(kind: type[Gated], said: str) -> None:
    with pytest.raises(HostError, match=rf"^{said} after step 2, and this training has masks"):
        DQN(kind(), eval_env=kind(), **small()).learn(20)


class Plural(Open):
    def reset(self, **options: Any) -> Any:
        return super().reset(**options)[0], {"action_masks": self.legal()}


class Attribute(Open):
    action_masks = (1, 1, 1, 1)


class Property(Open):
    @property
    def action_masks(self) -> Any:
        return self.found

    def reset(self, **options: Any) -> Any:
        self.found = self.legal()
        return super().reset(**options)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            Plural,
            r"^info\['action_masks'\] is ignored, and all actions count as legal: masks must be in info\['action_mask'\]$",
        ),
        (Attribute, r"^the environment's action_masks is ignored, .*: it must be a method, action_masks\(\)"),
        (Property, r"^the environment's action_masks is ignored, .*: it must be a method, action_masks\(\)"),
    ],
)
def test_what_only_looks_like_a_mask_is_said_once(kind: type[Gated], said: str) -> None:
    agent = DQN(kind(), eval_env=kind(), **small())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")  # as programs have it: once for each place that warns
        agent.learn(60)
    assert len(caught) == 1
    assert re.search(said, str(caught[0].message))
    assert not agent.driver.program.masked


@pytest.mark.parametrize("listed", [False, True])
def test_vector_environments_have_near_misses_in_info_too(listed: bool) -> None:
    env: Any = SyncVectorEnv([Plural, Plural])
    agent = DQN(DictInfoToList(env) if listed else env, eval_env=Open(), **small())
    with pytest.warns(UserWarning, match=r"^info\['action_masks'\] is ignored"):
        agent.learn(60)


def test_who_has_masks_is_not_asked_for_near_misses(recwarn: pytest.WarningsRecorder) -> None:
    class Both(GatedByInfo):
        action_masks = None

        def step(self, action: Any) -> Any:
            *found, info = super().step(action)
            return *found, {**info, "action_masks": None}

    assert DQN(Both(), eval_env=Both(), **small()).learn(50).driver.program.masked
    assert [each.message for each in recwarn if "ignored" in str(each.message)] == []


def test_a_mask_of_another_length_is_known_from_the_space() -> None:
    class Short(Gated):
        observation_space: Any = spaces.Dict({"seen": spaces.Discrete(2), "action_mask": spaces.MultiBinary(3)})

    class Blind(Gated):
        observation_space: Any = spaces.Dict({"action_mask": spaces.MultiBinary(4)})

    with pytest.raises(HostError, match=r"is MultiBinary\(3\), and a mask has 4 zeros and ones"):
        DQN(Short())
    with pytest.raises(HostError, match="nothing to see beside the mask"):
        DQN(Blind())


def test_several_entries_beside_the_mask_are_flattened() -> None:
    class Several(GatedByObservation):
        observation_space: Any = spaces.Dict(
            {"at": spaces.Discrete(8), "action_mask": spaces.Box(0, 1, (4,)), "seen": Walk.observation_space}
        )

        def _see(self) -> Any:
            found = super()._see()
            return {"at": self.time, "action_mask": found["action_mask"], "seen": found["observation"]}

    agent = DQN(Several(), eval_env=Several(), **small())
    assert agent.driver.world.sight.shape == (10,)
    agent.learn(40)


def test_taxi_has_masks() -> None:
    env = gymnasium.make("Taxi-v4")
    agent = DQN(env, **small(test_episodes=1, test_interval=1_000)).learn(60)
    transitions = stored(agent)
    assert agent.driver.program.masked
    for seen, legal in zip(transitions.next_state, transitions.next_legal, strict=True):
        expected = env.unwrapped.action_mask(int(np.argmax(seen)))  # type: ignore[attr-defined]
        np.testing.assert_array_equal(legal, expected)
