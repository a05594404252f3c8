"""A trained agent at play: the game, and beside it what the agent thinks its actions are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from .. import envs
from ..mev.show import escaped, shortened
from ..untrusted import ContentError, mapping, take, text
from .checks import AgentError, whole_number
from .policy import Policy

SCALE = 30
WIDTH = 340
_ACTIONS = ("none", "left", "up", "right", "down", "fire")


class Moment(NamedTuple):
    """One frame of a play."""

    picture: NDArray[np.uint8]
    total: float
    """Return up to this frame."""
    over: bool
    """Whether the episode ends here, rather than where the frames do."""


def play(policy: Policy, *, seed: int = 0, frames: int = 400) -> Iterator[Moment]:
    """One episode of the policy in the environment that it was trained on, at most ``frames`` long."""
    check_play(seed, frames)
    game = _game(policy)
    step = jax.jit(game.step)
    key = jax.random.key(seed)
    key, first = jax.random.split(key)
    state, seen = game.reset(first)
    total, values, names = 0.0, policy.values(seen), [_name(game, a) for a in range(game.n_actions)]
    panel = Panel(str(policy.about.get("variant", "")), names)
    for _ in range(frames):
        values = policy.values(seen)
        action = policy.act(seen, game.legal(state))
        yield Moment(panel.beside(envs.render(game, state, scale=SCALE), values, action, total), total, False)
        key, now = jax.random.split(key)
        state, seen, reward, terminated, truncated = step(now, state, action)
        total += float(reward)
        if terminated or truncated:
            values = policy.values(seen)
            yield Moment(panel.beside(envs.render(game, state, scale=SCALE), values, None, total), total, True)
            return


def title(policy: Policy) -> str:
    """Who plays, in a few words; a policy that somebody else has made may not say all of it."""
    about = policy.about
    step, env = about.get("step"), about.get("environment")
    name = str(about.get("variant", "an agent"))
    name += f" after {step:,} steps" if isinstance(step, int) else ""
    name += f" on {env['name']}" if isinstance(env, dict) and "name" in env else ""
    return shortened(escaped(name), 200)


def check_play(seed: int, frames: int) -> None:
    """Refuse a seed that there is not, and a play of no frames."""
    whole_number("frames", frames)
    if not isinstance(seed, Integral) or not 0 <= seed < 2**32:
        raise AgentError(f"seed must be a whole number from 0 to 2^32 - 1, not {seed!r}")


def _game(policy: Policy) -> envs.Environment:
    """The environment that the policy says it was trained on, if that fits its network."""
    try:
        known = take(policy.about, "environment", mapping)
        name, options = take(known, "name", text), take(known, "options", mapping)
    except ContentError:
        raise AgentError("this policy does not say what it was trained on") from None
    try:
        game = envs.make(name, **options)
    except envs.EnvError:
        raise
    except Exception as error:  # whatever gymnax makes of a stranger's options
        raise AgentError(f"this policy's options of {name!r:.60} cannot be used: {error}") from None
    if (game.observation.shape, game.n_actions) != (policy.network.shape, policy.network.n_actions):
        raise AgentError(f"this policy's network does not fit {name}, on which it says it was trained")
    return game


class Panel:
    """What stands beside the pictures of one episode: for every action a bar for the mean of the members' values, and a mark for
    each of them. The bars' scale grows with what has been seen.
    """

    def __init__(self, title: str, names: Sequence[str]) -> None:
        self.title, self.names = shortened(escaped(title), 40), names
        self.low, self.high = 0.0, 0.0

    def beside(
        self, picture: NDArray[np.uint8], values: NDArray[np.floating], action: int | None, total: float
    ) -> NDArray[np.uint8]:
        """The picture with the panel for Q [members, actions] and the chosen action on its right."""
        from PIL import Image, ImageDraw, ImageFont

        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        height = picture.shape[0]
        panel = Image.new("RGB", (WIDTH, height), "white")
        draw, font = ImageDraw.Draw(panel), ImageFont.load_default(14)
        members = values.shape[0]
        spread = f", spread over {members} members" if members > 1 else ""
        draw.text((12, 8), f"{self.title}   return {total:g}", fill="black", font=font)
        draw.text((12, 28), f"Q{spread}", fill="#555555", font=font)
        reach = max(self.high - self.low, 1e-6)

        def across(value: float) -> float:
            return 70 + (WIDTH - 130) * (value - self.low) / reach

        room = (height - 56) / values.shape[1]
        for a, name in enumerate(self.names):
            top = 52 + a * room
            mean = float(values[:, a].mean())
            colour = "#c0392b" if a == action else "#7f8c8d"
            draw.text((12, top + room / 2 - 9), name, fill=colour, font=font)
            left, right = sorted((across(0.0), across(mean)))
            gap = min(6.0, room / 4)
            draw.rectangle((left, top + gap, right, top + room - gap), fill=colour)
            for value in values[:, a]:
                x = across(float(value))
                draw.line((x, top + gap / 2, x, top + room - gap / 2), fill="black")
            draw.text((WIDTH - 52, top + room / 2 - 9), f"{mean:.2f}", fill=colour, font=font)
        return np.concatenate([picture, np.asarray(panel)], axis=1)


def _name(game: envs.Environment, action: int) -> str:
    if isinstance(game, envs.MinAtar):
        return _ACTIONS[game.actions[action]]
    return str(action)
