"""Options are made from settings: what the dataclass says is what the command line takes and shows."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from maxmean.commands.options import docstrings, option, options_of, takes
from maxmean.commands.train import train
from maxmean.deep.agents import AGENTS
from maxmean.deep.exploration import EpsilonGreedy, HeadPerEpisode
from maxmean.deep.settings import AgentOptions, Settings


@dataclass(frozen=True)
class Kettle:
    litres: float = 1.5
    """How much it holds.
    Nobody fills it to the brim."""
    cups: int = 4
    whistles: bool = False
    """Whether one hears it."""


def brew(name: str = "tea", **given: Any) -> None:
    """Brew something."""
    typer.echo(f"{name} {sorted(given.items())}")


def run(*words: str) -> str:
    app = typer.Typer()
    app.command()(takes(*options_of(Kettle, panel="Kettle", spelled={"cups": "--mugs"}))(brew))
    done = CliRunner().invoke(app, words, env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("words", "heard"),
    [
        ((), "tea []"),
        (("--name", "mate", "--mugs", "3"), "mate [('cups', 3)]"),
        (("--litres", "0", "--whistles"), "tea [('litres', 0.0), ('whistles', True)]"),
    ],
    ids=["nothing", "another spelling", "zero and a flag"],
)
def test_a_command_hears_what_was_given_and_nothing_else(words: tuple[str, ...], heard: str) -> None:
    assert run(*words).strip() == heard


def test_the_help_has_the_fields_words_and_defaults() -> None:
    shown = " ".join(run("--help").split())
    assert "How much it holds." in shown
    assert "brim" not in shown
    assert "1.5" in shown
    assert "--cups" not in shown


def test_the_words_of_a_field_are_the_first_sentence_beneath_it() -> None:
    assert docstrings(Kettle) == {"litres": "How much it holds.", "whistles": "Whether one hears it."}


def test_an_option_of_its_own_says_its_default_in_words() -> None:
    shown = option("limit", int, "the game's own", "Steps.").annotation.__metadata__[0].show_default
    assert shown == "the game's own"


def test_training_takes_every_setting() -> None:
    taken = inspect.signature(train).parameters
    assert {field.name for field in fields(Settings)} <= set(taken)
    assert all(docstrings(Settings).get(field.name) for field in fields(Settings))


@pytest.mark.parametrize("name", [field.name for field in fields(AgentOptions)])
def test_an_agents_option_shows_the_default_that_agents_have(name: str) -> None:
    """ada-te-bdqn's alpha is the one that is meant: te-bdqn is told its own after the colon. Explorations are the agents' own."""
    shown = {field.name: field.default for field in fields(AgentOptions)}[name]
    found = [
        inspect.signature(make).parameters
        for agent, make in AGENTS.items()
        if agent not in ("te-bdqn", "te*-bdqn") or name != "alpha"
    ]
    defaults = {parameters[name].default for parameters in found if name in parameters}
    if name == "exploration":
        assert shown == "the agent's own"
        assert defaults == {EpsilonGreedy(), HeadPerEpisode()}
        return
    assert defaults == {shown}
