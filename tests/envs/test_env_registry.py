"""Environments by name: the right one, or one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import jax
import numpy as np
import pytest

from inside import maxmean
from maxmean import envs


def test_every_listed_name_makes_the_environment_of_that_name() -> None:
    assert envs.list() == sorted(envs.list())
    assert len(envs.list()) == 5
    for name in envs.list():
        assert envs.make(name).name == name


def test_options_reach_the_game() -> None:
    made = envs.make("minatar/breakout", sticky=0.25, ramping=False, minimal_actions=True, step_limit=7)
    assert made == envs.Breakout(sticky=0.25, ramping=False, minimal_actions=True, step_limit=7)
    assert made.n_actions == 3


def test_equal_environments_are_equal_and_compiled_once() -> None:
    one = envs.make("minatar/breakout", sticky=0, step_limit=np.int64(9), ramping=np.True_)
    two = envs.make("minatar/breakout", sticky=0.0, step_limit=9)
    three = envs.Breakout(sticky=0, step_limit=np.int64(9), ramping=np.True_)  # type: ignore[arg-type]
    assert one == two == three
    assert repr(one) == repr(two) == repr(three)
    assert hash(one) == hash(two) == hash(three)
    traced = []

    def start(env: envs.Environment, key: jax.Array) -> Any:
        traced.append(env)
        return env.reset(key)

    compiled = jax.jit(start, static_argnums=0)
    for env in (one, two):
        compiled(env, jax.random.key(0))
    assert len(traced) == 1


NAMES = "minatar/asterix, minatar/breakout, minatar/freeway, minatar/seaquest, minatar/space_invaders"
OPTIONS = "sticky, ramping, minimal_actions, step_limit"
MISTAKES: list[tuple[Any, dict[str, Any], list[str]]] = [
    ("minatar/brakeout", {}, ["'minatar/brakeout'; did you mean 'minatar/breakout'?", NAMES, "gymnax/NAME"]),
    ("Breakout", {}, ["did you mean 'minatar/breakout'?"]),
    ("MinAtar/SpaceInvaders", {}, ["did you mean 'minatar/space_invaders'?"]),
    ("", {}, ["unknown environment ''", NAMES]),
    (None, {}, ["not by None"]),
    ("minatar/breakout", {"stiky": 0.1}, ["no option 'stiky'; did you mean 'sticky'?", OPTIONS]),
    ("minatar/breakout", {"colour": "red"}, ["no option 'colour' (there are", OPTIONS]),
    ("minatar/breakout", {"sticky": 1.5}, ["sticky must be a probability from 0 to 1, not 1.5"]),
    ("minatar/breakout", {"sticky": float("nan")}, ["sticky must be a probability"]),
    ("minatar/breakout", {"sticky": "often"}, ["sticky must be a number, not 'often'"]),
    ("minatar/breakout", {"sticky": True}, ["sticky must be a number, not True"]),
    ("minatar/breakout", {"ramping": 1}, ["ramping must be True or False, not 1"]),
    ("minatar/breakout", {"ramping": "no"}, ["ramping must be True or False, not 'no'"]),
    ("minatar/breakout", {"name": "minatar/asterix"}, ["no option 'name' (there are", OPTIONS]),
    ("minatar/breakout", {"step_limit": 2.5}, ["step_limit must be an integer, not 2.5"]),
    ("minatar/breakout", {"step_limit": True}, ["step_limit must be an integer, not True"]),
    ("minatar/breakout", {"step_limit": 0}, ["step_limit must be from 1 to 65,535, not 0"]),
]


@pytest.mark.parametrize(("name", "options", "parts"), MISTAKES, ids=str)
def test_mistakes_get_one_sentence(name: Any, options: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(envs.EnvError) as caught:
        envs.make(name, **options)
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    if options and "no option" not in str(caught.value):
        with pytest.raises(envs.EnvError, match=f"^{re.escape(str(caught.value))}$"):
            envs.Breakout(**options)  # a class says the same


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        ("envs.EnvError('no such game')", 2, "maxmean: no such game\n"),
        ("ValueError('a slip of ours')", 1, "Traceback"),
    ],
)
def test_on_the_command_line_it_is_one_sentence_and_status_2(error: str, status: int, says: str) -> None:
    """And an error that is nobody's sentence stays visible."""
    code = f"from maxmean import cli, envs\n@cli.app.command()\ndef slip():\n    raise {error}\ncli.main()"
    run = subprocess.run([sys.executable, "-c", code, "slip"], capture_output=True, text=True)
    assert run.returncode == status
    assert run.stderr.startswith(says)
    assert run.stdout == ""


def test_the_command_line_lists_the_environments_and_their_names_stay_out_of_the_experiments() -> None:
    listed, experiments = maxmean("list").stdout, maxmean("list", "--names").stdout
    assert all(name in listed for name in envs.list())
    assert not any(name in experiments for name in envs.list())


@pytest.mark.parametrize(
    ("module", "hidden"), [("maxmean", "jax"), ("maxmean.envs", "gymnasium"), ("maxmean.envs", "gymnax")]
)
def test_heavy_libraries_are_imported_by_those_who_use_them(module: str, hidden: str) -> None:
    code = f"import sys, {module}; assert {hidden!r} not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("gymnasium", "envs.to_gymnasium(envs.make('minatar/breakout'))"),
        pytest.param("gymnasium", "envs.register_gymnasium()", marks=pytest.mark.slow),
        ("gymnax", "envs.make('gymnax/CartPole-v1')"),
        ("jax", "envs.list()"),
    ],
)
def test_a_package_that_is_not_there_is_named_with_its_extra(package: str, call: str) -> None:
    hide = f"import sys; sys.modules[{package!r}] = None"
    code = f"{hide}\ntry:\n    from maxmean import envs\n    {call}\nexcept (ImportError, ValueError) as error: print(error)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"needs the package {package}, which is not installed: pip install 'maxmean[{package}]'" in said


def test_the_list_does_without_jax() -> None:
    """The extra that brings it is named instead."""
    code = "import sys; sys.modules['jax'] = None\nfrom maxmean import cli; cli.main()"
    run = subprocess.run([sys.executable, "-c", code, "list"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert "pip install 'maxmean[jax]'" in run.stdout
