"""Saved agents from strangers: what they say is refused in one sentence, and nothing of it runs."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from host_toys import Walk, small
from maxmean import DQN, KEBDQN, AdaTEBDQN, mev
from maxmean.deep import EpsilonGreedy
from maxmean.deep.host import HostError, plain, saving, stored, watch
from maxmean.deep.networks import Convolution, Nature, Perceptron
from seldom import slow
from strangers import NASTY, drop, entries, forge_agent, nothing_runs, put

CARTPOLE = "CartPole-v1"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent with all that a file can hold: a kernel, a trunk, records, kept states, an environment's state."""
    own = {"kernel": mev.Beta(2.0, 0.5), "network": Perceptron((4,)), "k": 2, "measure_bias": True, "test_episodes": 1}
    agent = KEBDQN(CARTPOLE, **{**small(bias_episodes_per_head=1, replay_capacity=60), **own}).learn(60)
    return agent.save(tmp_path_factory.mktemp("saved") / "agent")


@pytest.fixture
def file(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(saved, tmp_path / "agent.safetensors"))


def kernel(name: str, /, **numbers: Any) -> Callable[[dict[str, Any]], None]:
    return put("given/kernel", {"__kind__": "kernel", "name": name, "numbers": numbers})


def exploration(name: str, /, **numbers: Any) -> Callable[[dict[str, Any]], None]:
    return put("given/exploration", {"__kind__": "exploration", "name": name, "numbers": numbers})


def generator(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda text: text["environment"][-1]["random"].update(bit_generator=name)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (kernel("__init__", name="evil"), "it names a kernel that there is not: '__init__'"),
        (kernel("__getattr__", name="evil"), "it names a kernel that there is not: '__getattr__'"),
        (kernel("theory"), "it names a kernel that there is not: 'theory'"),
        (kernel("Custom", function="evil"), "it names a kernel that there is not: 'Custom'"),
        (kernel("Beta", a=2.0, b="0.5"), "its entry 'b' must be a finite number, not '0.5'"),
        (kernel("Beta", a=2.0, b=float("inf")), "its entry 'b' must be a finite number, not inf"),
        (kernel("Beta", a=2.0), "the kernel Beta in it has other parameters than a, b"),
        (exploration("__init__", name="evil"), "it names an exploration that there is not: '__init__'"),
        (
            exploration("Thompson", initial=0.1),
            "the exploration Thompson in it has other parameters than initial, final, steps",
        ),
        (
            exploration("HeadPerEpisode", initial=7.0, final=0.0, steps=0),
            "HeadPerEpisode's initial is a probability, from 0 to 1, not 7.0",
        ),
        (generator("test"), "the state of a random generator names its kind, one of PCG64, .*, not 'test'"),
        (generator("default_rng"), "not 'default_rng'"),
        (put("given/eval_env", "evil:Env-v0"), "KEBDQN has no setting 'eval_env': it is an environment, which"),
    ],
)
def test_what_a_file_names_is_looked_up_and_never_called(
    change: Any, said: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = gymnasium.make(CARTPOLE)
    KEBDQN.load(file, env)
    forge_agent(file, change)
    with nothing_runs(tmp_path, monkeypatch), pytest.raises(HostError, match=said) as refusal:
        KEBDQN.load(file, env)
    assert str(file) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "name",
    ["evil:Env-v0", "evil.part:Env-v0", "NoSuch-v0", "ALE/evil:Pong-v5", "evil", "Ant-v5", "phys2d/CartPole-v1"],
)
def test_no_file_has_an_environment_imported(
    name: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.load(file)
    forge_agent(file, put("about/environment", name))
    with nothing_runs(tmp_path, monkeypatch), pytest.raises(HostError, match="name it yourself with --env") as refusal:
        watch.load(file)
    assert repr(name) in str(refusal.value)


def test_who_names_the_environment_gets_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge_agent(file, put("about/environment", "evil:Env-v0"))
    policy, env = watch.load(file, CARTPOLE)
    assert (env.spec.id, policy.about["environment"]) == (CARTPOLE, {"name": CARTPOLE})


def test_a_state_sets_only_what_an_environments_state_is_made_of(file: Path) -> None:
    with safe_open(file, "numpy") as opened:
        layers = json.loads(opened.metadata()["maxmean"])["layers"]
    assert layers[-1] == "CartPoleEnv"
    for name, value in (("step", 1), ("unwrapped", None), ("__class__", "x"), ("gravity", 0.0)):
        forge_agent(file, put(f"environment/3/{name}", value))
        with pytest.raises(HostError, match=f"that is no state of CartPoleEnv: '{name}' is"):
            KEBDQN.load(file, CARTPOLE)
        forge_agent(file, drop(f"environment/3/{name}"))
    assert KEBDQN.load(file, CARTPOLE).num_timesteps == 60


@pytest.mark.parametrize(
    ("place", "value"), [("0/_elapsed_steps", None), ("1/_has_reset", False)], ids=["no steps", "not reset"]
)
def test_a_state_that_is_in_no_episode_is_refused(place: str, value: Any, file: Path) -> None:
    """Gymnasium's wrappers have such a one before their first episode, and cannot step in it."""
    forge_agent(file, put(f"environment/{place}", value))
    with pytest.raises(HostError, match="that is no state of"):
        KEBDQN.load(file, CARTPOLE)


def everything(many: int) -> list[tuple[str, Any]]:
    """Every entry of a saved agent taken away, and with some values of other kinds in its place, others for each."""
    places = [
        "format", "about", "about/algorithm", "about/world", "about/world/shape", "about/world/actions", "about/agent",
        "about/agent/parameter", "about/settings", "given", "given/kernel", "given/kernel/name", "given/kernel/numbers",
        "given/kernel/numbers/a", "given/network", "given/network/trunk", "given/network/trunk/kind",
        "given/network/trunk/widths", "given/k", "given/warmup", "given/replay_capacity", "given/batch_size", "given/hidden",
        "given/measure_bias", "clock", "clock/stored", "clock/calls", "clock/returns", "records", "records/records",
        "records/records/0", "records/records/0/step", "records/records/0/variant", "records/heads", "kept", "kept/0",
        "kept/0/items", "kept/0/items/0/type", "kept/0/items/0/shape", "kept/0/items/0/data", "environment/0",
        "environment/0/_elapsed_steps", "environment/3/state", "environment/3/random", "environment/3/random/state",
        "environment/3/random/state/state", "environment/3/random/has_uint32",
    ]  # fmt: skip
    return [(place, value) for i, place in enumerate(places) for value in ("drop", *(2 * NASTY)[4 * i % 14 :][:many])]


@pytest.mark.parametrize("many", [1, *slow(4)])
def test_no_entry_of_another_kind_ends_in_anything_but_a_sentence(file: Path, saved: Path, many: int) -> None:
    """Each entry is missing once, and has so many of the nasty values; what is not refused loads and plays."""
    env, seen, accepted = gymnasium.make(CARTPOLE), np.zeros(4, np.float32), []
    with safe_open(saved, "numpy") as opened:
        known = set(entries(json.loads(opened.metadata()["maxmean"])))
    for place, value in everything(many):
        assert place in known or place.startswith("environment/"), f"there is no entry {place}"
        shutil.copy(saved, file)
        forge_agent(file, drop(place) if value == "drop" else put(place, value))
        said, agent = None, None
        try:
            agent = KEBDQN.load(file, env)
        except HostError as error:
            said = str(error)
        if agent is not None:
            accepted.append((place, value))
            assert agent.predict(seen)[0] in (0, 1)
        else:
            assert said is not None
            assert str(file) in said or "this training needs" in said, (place, value, said)
            assert "\n" not in said, (place, value, said)
            assert len(said) < 600, (place, value, said)
    assert 0 < len(accepted) < 25, accepted


def nested(text: dict[str, Any]) -> str:
    return json.dumps(text).replace('"kept": ', '"kept": ' + "[" * 100_000 + "]" * 100_000 + ', "old": ', 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "[1, 2]", "it holds no JSON object, but a list"),
        (lambda text: "{", r"it is not JSON \(line 1, column 2"),
        (nested, "its JSON is nested too deeply"),
        (lambda text: '{"format": ' + "9" * 5000 + "}", "a number with thousands of digits"),
        (lambda text: '{"format": 99}', "has format 99, which this version of maxmean does not know"),
        (lambda text: "[" + "0," * 4_000_001 + "0]", "more than 4,000,000 values"),
    ],
    ids=["list", "cut", "nested", "digits", "format", "large"],
)
def test_text_that_is_no_agents_is_refused(change: Any, said: str, file: Path) -> None:
    forge_agent(file, change)
    with pytest.raises(HostError, match=said):
        KEBDQN.load(file, CARTPOLE)
    with pytest.raises(HostError, match=said):
        watch.load(file)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("run.replay", None),
        ("run.replay", np.zeros((60, 3), np.uint32)),
        ("run.replay", np.zeros(60, np.uint32)),
        ("run.learner.weights.hidden.bias", None),
        ("run.learner.weights.hidden.bias", np.zeros((2, 3), np.float32)),
        ("lanes.seen", np.zeros((1, 5), np.float32)),
        ("lanes.episode", np.zeros(1, np.float64)),
        ("pending", np.zeros(3, np.int32)),
        ("pending", np.full(1, 9, np.int32)),
        ("pending", None),
        ("run.learner.weights.evil", np.zeros(3, np.float32)),
    ],
)
def test_arrays_of_another_form_are_refused(name: str, array: Any, file: Path) -> None:
    forge_agent(file, lambda text: None, {name: array})
    with pytest.raises(HostError, match=rf"{file} cannot be used: its (array {name}|\d+ transitions)"):
        KEBDQN.load(file, CARTPOLE)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_agent_that_has_diverged_says_so(value: float, file: Path) -> None:
    with safe_open(file, "numpy") as opened:
        name = next(name for name in opened.keys() if name.startswith("run.learner.weights."))  # noqa: SIM118
        array = opened.get_tensor(name)
    forge_agent(file, lambda text: None, {name: np.full_like(array, value)})
    with pytest.raises(HostError, match="its weights are not finite numbers: the agent has diverged"):
        watch.load(file)
    with pytest.warns(UserWarning, match="holds an agent that has diverged: its actions mean nothing"):
        KEBDQN.load(file, CARTPOLE)


def test_the_best_of_strange_files_is_looked_for_without_a_traceback(file: Path, tmp_path: Path) -> None:
    for i, change in enumerate(
        (drop("records"), put("records/records/0", 3), put("records/records", 7), lambda text: "[]")
    ):
        run = tmp_path / "runs" / str(i)
        run.mkdir(parents=True)
        forge_agent(Path(shutil.copy(file, run / "training.safetensors")), change)
    assert watch.training_at(tmp_path) in [tmp_path / "runs" / str(i) / "training.safetensors" for i in range(4)]
    (empty := tmp_path / "empty").mkdir()
    for plan in ("[]", "{", "[" * 100_000, "\xff"):
        (empty / "plan.json").write_text(plan, encoding="latin-1")
        assert watch.training_at(empty) is None


def test_an_environments_own_set_state_is_quoted(tmp_path: Path) -> None:
    path = DQN(Walk(), eval_env=Walk(), **small()).learn(33).save(tmp_path / "agent")
    forge_agent(path, drop("environment/0/time"))
    with pytest.raises(HostError, match="the environment was given the state in it, and said: 'time'"):
        DQN.load(path, Walk(), eval_env=Walk())


@pytest.fixture(scope="module")
def dealt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    agent = DQN("Blackjack-v1", **small(measure_bias=True, replay_capacity=60)).learn(60)
    return agent.save(tmp_path_factory.mktemp("dealt") / "agent")


@pytest.mark.parametrize("hand", [[], [10], [10, 10, 10], [10, 10, 5, 2], [0, 5], "x"], ids=str)
@pytest.mark.parametrize("place", ["environment", "kept/59/items/1"])
def test_a_hand_that_nobody_plays_on_with_is_refused_before_it_is_played(
    place: str, hand: Any, dealt: Path, tmp_path: Path
) -> None:
    """The game itself would show an observation that there is not, or end in an IndexError, and no file would be named."""
    path = Path(shutil.copy(dealt, tmp_path / "agent.safetensors"))
    forge_agent(path, put(f"{place}/2/player", hand))
    with pytest.raises(HostError, match=rf"{path} cannot be used: that is no state of BlackjackEnv: 'player' is"):
        DQN.load(path, "Blackjack-v1")


@pytest.mark.parametrize("ended", [True, False])
def test_a_hand_beyond_21_is_one_of_an_episode_that_is_over(ended: bool, tmp_path: Path) -> None:
    def two() -> Any:
        return gymnasium.make_vec("Blackjack-v1", 2, vectorization_mode="sync")

    path = DQN(two(), eval_env="Blackjack-v1", **small()).learn(60).save(tmp_path / "agent")
    forge_agent(path, put("environment/1/2/player", [10, 5, 7]), {"ended": np.array([False, ended])})
    if ended:
        assert DQN.load(path, two(), eval_env="Blackjack-v1").learn(60).num_timesteps >= 120
    else:
        with pytest.raises(HostError, match=rf"{path} cannot be used: that is no state of BlackjackEnv"):
            DQN.load(path, two(), eval_env="Blackjack-v1")


def test_what_is_not_in_the_file_is_asked_for_by_its_name(tmp_path: Path) -> None:
    """A kernel or a trunk of one's own is code, which no file holds."""

    class Wide(Perceptron):
        """It could compute anything."""

    def mine(t: Any) -> Any:
        return mev.Gaussian(0.5)(t)

    given: dict[str, dict[str, Any]] = {"network": {"network": Wide((4,))}, "kernel": {"kernel": mev.Custom(mine)}}
    for name, own in given.items():
        path = KEBDQN(Walk(), eval_env=Walk(), k=2, **small(**own)).save(tmp_path / name)
        with pytest.raises(HostError, match=rf"its {name}, a \w+, is not in the file: give it again as {name}="):
            KEBDQN.load(path, Walk(), eval_env=Walk())
        assert KEBDQN.load(path, Walk(), eval_env=Walk(), **own).num_timesteps == 0


def test_numbers_of_other_libraries_are_saved(tmp_path: Path) -> None:
    agent = KEBDQN(Walk(), eval_env=Walk(), k=2, kernel=mev.Gaussian(np.float32(0.5)), **small())
    assert KEBDQN.load(agent.save(tmp_path / "ke"), Walk(), eval_env=Walk()).given["kernel"] == mev.Gaussian(0.5)
    dqn = DQN(Walk(), eval_env=Walk(), exploration=EpsilonGreedy(1, 0.1, 1e3), **small())  # type: ignore[arg-type]
    assert DQN.load(dqn.save(tmp_path / "dqn"), Walk(), eval_env=Walk()).choice == dqn.choice


def test_what_a_header_cannot_hold_is_left_out_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that is written can be read again: what states take is looked at before, the longest first."""
    agent = DQN(Walk(), eval_env=Walk(), **small()).learn(60)
    assert agent.driver.kept
    whole = len(json.dumps(json.dumps({"kept": plain.pack(list(agent.driver.kept))})))
    monkeypatch.setattr(saving, "LONGEST_TEXT", whole)
    with pytest.warns(
        UserWarning, match="everything is saved but the states that roll-outs begin in: the file's header"
    ) as said:
        path = agent.save(tmp_path / "agent")
    assert [each.filename for each in said] == [__file__]
    assert not DQN.load(path, Walk(), eval_env=Walk()).driver.kept
    monkeypatch.setattr(saving, "LONGEST_TEXT", 10)
    with pytest.raises(HostError, match="more than a file's header can hold"):
        agent.save(tmp_path / "other")


def test_a_pipe_is_no_agent(tmp_path: Path) -> None:
    """Nobody may ever write to it."""
    os.mkfifo(pipe := tmp_path / "pipe.safetensors")
    with pytest.raises(HostError, match="it is no file"):
        DQN.load(pipe, CARTPOLE)
    assert watch.training_at(pipe) is None


def test_a_state_of_ragged_numbers_is_none(file: Path) -> None:
    ragged = {"__kind__": "tuple", "items": [1.0, [2.0, 3.0], 4.0, 5.0]}
    forge_agent(file, put("environment/3/state", ragged))
    with pytest.raises(HostError, match="that is no state of CartPoleEnv: 'state' is"):
        KEBDQN.load(file, CARTPOLE)


def test_a_number_larger_than_any_is_refused(file: Path) -> None:
    forge_agent(file, put("given/learning_rate", 10**400))
    with pytest.raises(HostError, match="learning_rate must be a finite number, not about 10"):
        KEBDQN.load(file, CARTPOLE)


@pytest.mark.parametrize("trunk", [Nature(), Convolution()])
def test_a_network_for_pictures_is_refused_where_there_are_none(trunk: Any, file: Path) -> None:
    forge_agent(file, put("given/network", plain.pack(trunk)))
    said = rf"network={type(trunk).__name__} sees pictures, .* and the observations here have the shape \[4\]: give another"
    for act in (lambda: KEBDQN.load(file, CARTPOLE), lambda: watch.load(file)):
        with pytest.raises(HostError, match=f"{file} cannot be used: {said}"):
            act()
    with pytest.raises(HostError, match=f"^{said}"):
        DQN(CARTPOLE, network=trunk)


def test_a_file_that_is_mostly_holes_takes_no_memory(file: Path) -> None:
    """A few kilobytes on the disk say that they are gigabytes: nothing is read before its form has been looked at."""
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    end = len(content) - 8 - length
    header["run.hole"] = {"dtype": "U8", "shape": [2**28], "data_offsets": [end, end + 2**28]}
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    os.truncate(file, 8 + len(text) + end + 2**28)
    KEBDQN(CARTPOLE, k=2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for act in (lambda: KEBDQN.load(file, CARTPOLE), lambda: watch.load(file)):
        with pytest.raises(HostError, match=f"{file} is damaged: its checksum is wrong"):
            act()
    parts = {name: array.parts() for name, array in stored.stored(file)[1].items()}
    header["__metadata__"]["sha256"] = saving.checksum(header["__metadata__"]["maxmean"], parts)
    text = json.dumps(header).encode()  # as long as it was
    with file.open("r+b") as opened:
        opened.seek(8)
        opened.write(text)
    with pytest.raises(HostError, match=r"its array run\.hole has no place in this agent"):
        KEBDQN.load(file, CARTPOLE)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


def test_a_file_larger_than_the_machine_is_not_begun(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "available", lambda: file.stat().st_size - 1)
    with pytest.raises(HostError, match=r"its arrays take .*, and this machine has .* of memory"):
        KEBDQN.load(file, CARTPOLE)


def offsets(change: Callable[[list[int]], list[int]]) -> Callable[[dict[str, Any]], None]:
    return lambda header: header["pending"].update(data_offsets=change(header["pending"]["data_offsets"]))


@pytest.mark.parametrize(
    "change",
    [
        offsets(lambda place: [each + 4 for each in place]),
        offsets(lambda place: [0, place[1] - place[0]]),
        offsets(lambda place: [2**62, 2**62 + place[1] - place[0]]),
        offsets(lambda place: place[::-1]),
        offsets(lambda place: []),
        put("pending/shape", [2]),
        put("pending/shape", [-1]),
        put("pending/dtype", "BF16"),
        put("pending/dtype", None),
        put("pending", 3),
        put("more", {"dtype": "U8", "shape": [0], "data_offsets": [7, 7]}),
        put("__metadata__", []),
        put("__metadata__/more", 3),
        drop("pending"),
    ],
)
def test_a_header_that_does_not_fit_its_file_is_refused(change: Any, file: Path) -> None:
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    change(header := json.loads(content[8 : 8 + length]))
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    with pytest.raises(HostError, match=f"{file} is not a training of maxmean, or is damaged: ") as refusal:
        KEBDQN.load(file, CARTPOLE)
    assert "\n" not in str(refusal.value)


def test_what_another_file_takes_the_name_of_is_still_read(file: Path, tmp_path: Path) -> None:
    """A training that is watched writes its next checkpoint meanwhile."""
    _, arrays = stored.stored(file)
    known = arrays["run.learner.weights.hidden.bias"].read()
    (tmp_path / "next").write_bytes(b"")
    os.replace(tmp_path / "next", file)
    assert known.any()
    np.testing.assert_array_equal(arrays["run.learner.weights.hidden.bias"].read(), known)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("run.members", 31, r"run\.members must hold 2, not 31"),
        ("run.rule", -1, r"run\.rule must hold 0, not -1"),
        ("run.parameter", np.nan, r"run\.parameter holds what"),
        ("run.parameter", 0.51, r"run\.parameter holds what"),
        ("lanes.total", np.nan, r"lanes\.total and lanes\.episode hold what no episode under way has"),
        ("lanes.episode", 10_000, r"lanes\.total and lanes\.episode hold what no episode under way has"),
        ("lanes.seen", np.inf, r"lanes\.seen holds numbers that are not finite"),
    ],
)
def test_numbers_out_of_their_range_are_refused(name: str, value: float, said: str, tmp_path: Path) -> None:
    path = AdaTEBDQN(Walk(), eval_env=Walk(), k=2, **small()).save(tmp_path / "agent")
    array = load_file(path)[name]
    AdaTEBDQN.load(path, Walk(), eval_env=Walk())
    forge_agent(path, lambda text: None, {name: np.full_like(array, value)})
    with pytest.raises(HostError, match=f"{path} cannot be used: its arrays? {said}"):
        AdaTEBDQN.load(path, Walk(), eval_env=Walk())


def test_what_only_0_1_wrote_is_left_out(tmp_path: Path) -> None:
    """It had two more arrays, which meant nothing on the host."""
    agent = AdaTEBDQN(Walk(), eval_env=Walk(), k=2, **small()).learn(40)
    path = agent.save(tmp_path / "agent")
    forge_agent(
        path, lambda text: None, {"run.member": np.array(1, np.int32), "run.episode_return": np.array(0, np.float32)}
    )
    loaded = AdaTEBDQN.load(path, Walk(), eval_env=Walk())
    np.testing.assert_array_equal(loaded.learn(20).driver.run.replay, agent.learn(20).driver.run.replay)


def test_a_parameter_that_does_not_adapt_is_the_agents_own(tmp_path: Path) -> None:
    path = DQN(Walk(), eval_env=Walk(), **small()).save(tmp_path / "agent")
    forge_agent(path, lambda text: None, {"run.parameter": np.full_like(load_file(path)["run.parameter"], 0.25)})
    with pytest.raises(
        HostError, match=r"its array run\.parameter holds what this agent's parameter cannot have become"
    ):
        DQN.load(path, Walk(), eval_env=Walk())
