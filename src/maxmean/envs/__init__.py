"""Environments as pure functions in JAX: the five MinAtar games, and adapters from and to Gymnasium and gymnax.

>>> from maxmean import envs
>>> envs.make("minatar/breakout").observation
ShapeDtypeStruct(shape=(10, 10, 4), dtype=bool)
"""

from .environment import EnvError, Environment, Step
from .gymnasium import register_gymnasium, to_gymnasium
from .gymnax import Gymnax, from_gymnax
from .minatar import Asterix, Breakout, Freeway, MinAtar, Seaquest, SpaceInvaders
from .pictures import render, save_gif
from .registry import list, make

__all__ = [
    "Asterix",
    "Breakout",
    "EnvError",
    "Environment",
    "Freeway",
    "Gymnax",
    "MinAtar",
    "Seaquest",
    "SpaceInvaders",
    "Step",
    "from_gymnax",
    "list",
    "make",
    "register_gymnasium",
    "render",
    "save_gif",
    "to_gymnasium",
]
