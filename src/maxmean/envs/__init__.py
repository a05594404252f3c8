"""Environments as pure functions in JAX: the five MinAtar games, and adapters from and to Gymnasium and gymnax."""

from .environment import EnvError, Environment, Step
from .minatar import Asterix, Breakout, Freeway, MinAtar, Seaquest, SpaceInvaders

__all__ = [
    "Asterix",
    "Breakout",
    "EnvError",
    "Environment",
    "Freeway",
    "MinAtar",
    "Seaquest",
    "SpaceInvaders",
    "Step",
]
