"""Environments by name."""

from __future__ import annotations

import builtins
import dataclasses
from typing import Any

from ..errors import unknown
from .environment import EnvError, Environment
from .gymnax import from_gymnax
from .minatar import GAMES

GYMNAX = "gymnax/"
"""What the names of gymnax's environments begin with here."""


def make(name: str, /, **options: Any) -> Environment:
    """The environment of that name.

    ``minatar/...`` are the five games; their options and defaults are ``sticky=0.1, ramping=True, minimal_actions=False,
    step_limit=10_000`` (2,501 in Freeway). ``gymnax/...`` are gymnax's environments, where it is installed; their options
    are those of :func:`from_gymnax`.

    >>> make("minatar/breakout", sticky=0.0, minimal_actions=True)
    Breakout(sticky=0.0, ramping=True, minimal_actions=True, step_limit=10000)
    >>> make("minatar/brakeout")
    Traceback (most recent call last):
    maxmean.envs.environment.EnvError: unknown environment 'minatar/brakeout'; did you mean 'minatar/breakout'? ...
    """
    if not isinstance(name, str):
        raise EnvError(f"an environment is named by a text such as 'minatar/breakout', not by {name!r}")
    if name.startswith(GYMNAX):
        return from_gymnax(name.removeprefix(GYMNAX), **options)
    if name not in GAMES:
        raise EnvError(
            unknown("unknown environment", name, GAMES, more=f", and {GYMNAX}NAME for those of gymnax", cutoff=0.5)
        )
    game = GAMES[name]
    known = [field.name for field in dataclasses.fields(game)]
    for option in options:
        if option not in known:
            raise EnvError(unknown(f"{name} has no option", option, known, cutoff=0.5))
    return game(**options)


def list() -> builtins.list[str]:
    """The names of the environments that come with the package, sorted.

    >>> list()
    ['minatar/asterix', 'minatar/breakout', 'minatar/freeway', 'minatar/seaquest', 'minatar/space_invaders']
    """
    return sorted(GAMES)
