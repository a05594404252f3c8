"""The five MinAtar games (Young and Tian, 2019) as pure functions in JAX."""

from .asterix import Asterix
from .breakout import Breakout
from .freeway import Freeway
from .game import DOWN, FIRE, LEFT, NOOP, RIGHT, UP, MinAtar, State
from .seaquest import Seaquest
from .space_invaders import SpaceInvaders

GAMES: dict[str, type[MinAtar]] = {
    f"minatar/{game.game_name}": game for game in (Asterix, Breakout, Freeway, Seaquest, SpaceInvaders)
}

__all__ = [
    "DOWN",
    "FIRE",
    "GAMES",
    "LEFT",
    "NOOP",
    "RIGHT",
    "UP",
    "Asterix",
    "Breakout",
    "Freeway",
    "MinAtar",
    "Seaquest",
    "SpaceInvaders",
    "State",
]
