"""Policies from strangers, and policies that a disk has damaged: refused in one sentence, and nothing of them runs."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from inside import maxmean
from maxmean import deep, envs
from maxmean.deep.networks import Convolution, Ensemble
from maxmean.deep.policy import Policy
from maxmean.deep.watch import play
from strangers import NASTY, drop, entries, forge_policy, nothing_runs, put

OPTIONS = {"sticky": 0.1, "ramping": True, "minimal_actions": False, "step_limit": 20}
ABOUT = {
    "environment": {"name": "minatar/breakout", "options": OPTIONS},
    "variant": "ke-bdqn",
    "step": 7,
    "test_return": 1.0,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    network = Ensemble(Convolution(2), (10, 10, 4), 6, 2, True, 4)
    path = tmp_path_factory.mktemp("saved") / "policy.safetensors"
    Policy(network, network.create(jax.random.key(0)), True, ABOUT).save(path)
    return path


@pytest.fixture
def file(saved: Path, tmp_path: Path) -> Path:
    shutil.copy(saved.with_suffix(".json"), tmp_path / "policy.json")
    return Path(shutil.copy(saved, tmp_path / "policy.safetensors"))


def test_a_flipped_bit_is_noticed_wherever_it_is(saved: Path, file: Path) -> None:
    luck = np.random.default_rng(0)
    for source in (saved, saved.with_suffix(".json")):
        whole, target = source.read_bytes(), file.parent / source.name
        for place in luck.integers(len(whole), size=25):
            changed = bytearray(whole)
            changed[place] ^= 1 << int(luck.integers(8))
            target.write_bytes(changed)
            accepted = _accepted(file)
            assert accepted is None or json.loads(target.read_text()) == json.loads(whole), place  # white space aside
        target.write_bytes(whole)
    deep.load(file)


def _accepted(file: Path) -> Policy | None:
    try:
        return deep.load(file)
    except deep.AgentError as error:
        said = str(error)
    assert str(file) in said
    assert "\n" not in said
    return None


def test_the_weights_of_another_policy_are_not_taken_for_these(file: Path) -> None:
    arrays = {name: array + np.float32(1.0) for name, array in load_file(file).items()}
    save_file(arrays, file)
    with pytest.raises(deep.AgentError, match=r"it is damaged, or its \.json belongs to another policy"):
        deep.load(file)


def test_a_policy_of_the_first_format_is_read_with_a_warning(file: Path) -> None:
    text = json.loads(file.with_suffix(".json").read_text())
    del text["sha256"]
    file.with_suffix(".json").write_text(json.dumps({**text, "format": 1}))
    with pytest.warns(UserWarning, match="written by maxmean 0.1, without a checksum") as said:
        assert deep.load(file).about["step"] == 7
    assert [each.filename for each in said] == [__file__]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(value: float, file: Path) -> None:
    forge_policy(file, lambda text: None, {"output.bias": np.full_like(load_file(file)["output.bias"], value)})
    with pytest.raises(deep.AgentError, match="its weights are not finite numbers: the agent has diverged"):
        deep.load(file)


def test_finite_weights_with_infinite_values_play_nothing(file: Path) -> None:
    forge_policy(file, lambda text: None, {name: np.full_like(array, 3e38) for name, array in load_file(file).items()})
    with pytest.raises(deep.AgentError, match="values are not finite numbers here"):
        deep.load(file).act(jnp.ones((10, 10, 4), bool))


def test_every_entry_of_another_kind_is_refused_or_plays(file: Path, saved: Path, tmp_path: Path) -> None:
    """Each entry of the text is missing once, and has each of the nasty values once."""
    text = json.loads(saved.with_suffix(".json").read_text())
    accepted = []
    for place in entries(text):
        for value in ("drop", *NASTY):
            shutil.copy(saved.with_suffix(".json"), file.with_suffix(".json"))
            forge_policy(file, drop(place) if value == "drop" else put(place, value))
            policy = _accepted(file) if place != "sha256" else None
            if policy is None:
                continue
            accepted.append((place, value))
            if place.startswith("about/environment"):
                with suppress(deep.AgentError, envs.EnvError):
                    next(play(policy, frames=1))
    taken = {place for place, value in accepted if value is not True}
    assert not any(place.startswith(("network", "bootstrapped", "format")) for place in taken), accepted


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "[]", "it holds no JSON object"),
        (lambda text: "[" * 100_000, "nested too deeply"),
        (lambda text: "x", "it is not JSON"),
        (lambda text: " " * 2**21, "of at most 1,048,576"),
        (put("format", 99), "it has format 99"),
        (
            put("network/trunk", {"kind": "evil", "filters": 16}),
            "'kind' must be one of convolution, nature, perceptron",
        ),
        (put("network/trunk", {"kind": "convolution", "filters": 16, "evil": 1}), "its trunk has other entries"),
        (put("network/hidden", 10**15), "a whole number from 1 to 1048576"),
        (put("network/shape", [10, 10, 2**19]), "its array trunk.weights is missing or has another shape"),
        (put("about", 3), "its entry 'about' must be an object, not 3"),
    ],
)
def test_text_that_is_no_policys_is_refused(
    change: Any, said: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep.load(file)
    forge_policy(file, change)
    with nothing_runs(tmp_path, monkeypatch), pytest.raises(deep.AgentError, match=said):
        deep.load(file)


def test_a_network_that_this_machine_has_no_memory_for_is_refused_before_it_is_read(file: Path) -> None:
    forge_policy(file, put("network/hidden", 2**20))
    forge_policy(file, put("network/trunk/filters", 2**20))
    os.truncate(file, 2**42)
    with pytest.raises(deep.AgentError, match=r"its network takes .* and this machine has .* of memory"):
        deep.load(file)


def test_extra_weights_have_no_place(file: Path) -> None:
    forge_policy(file, lambda text: None, {"evil": np.zeros(3, np.float32)})
    with pytest.raises(deep.AgentError, match="it holds arrays that have no place in its network"):
        deep.load(file)


def test_a_name_that_drives_a_terminal_is_spelt_out(file: Path, tmp_path: Path) -> None:
    """Also one that no font could draw."""
    forge_policy(file, put("about/variant", "\x1b[2J\x07ke\u202e\ud800" + "x" * 500_000))
    shown = maxmean("watch", file, "--gif", tmp_path / "a.gif", "--frames", 2, "-q")
    assert (shown.returncode, shown.stderr) == (0, "")
    shown = maxmean("watch", file, "--gif", tmp_path / "a.gif", "--frames", 2)
    assert shown.returncode == 0
    assert "\\x1b[2J\\x07ke\\u202e\\ud800" in shown.stdout
    assert "\x1b[2J" not in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seed", 10**30], "seed must be a whole number from 0 to 2^32 - 1"),
        (["--seed", 2**32 - 1, "--episodes", 2], "seed must be a whole number from 0 to 2^32 - 1, not 4294967296"),
        (["--seed", -1], "seed must be a whole number from 0 to 2^32 - 1"),
        (["--frames", 0], "frames must be at least 1"),
        (["--frames", 10**12], "--episodes times --frames must be at most 10,000"),
        (["--fps", "nan"], "fps must be from 1 to 50"),
        (["--env", "CartPole-v1"], "--env is for agents of Gymnasium's environments"),
    ],
)
def test_watch_refuses_what_cannot_be(options: list[Any], said: str, file: Path, tmp_path: Path) -> None:
    shown = maxmean("watch", file, "--gif", tmp_path / "a.gif", *options)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert said in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert not (tmp_path / "a.gif").exists()
