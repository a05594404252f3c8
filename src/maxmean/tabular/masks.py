"""Masks: finite MDPs in which some actions are illegal in some states.

The compiled loop wants a state's actions to be its first ones. So the legal ones are put first, and what was learned of them is
put back in its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .checks import MDPError
from .mdp import MDP


class LegalFirst(NamedTuple):
    """An MDP without the illegal actions of another, and where its actions were there."""

    mdp: MDP
    order: np.ndarray
    """int64[S, A]: the number that each action had."""
    places: np.ndarray
    """int64[S, A]: the number that each action has now."""

    @classmethod
    def of(cls, mdp: MDP, legal: Any = None) -> LegalFirst:
        """The MDP with its ``legal`` actions alone, bool[S, A]; as it is where none is given.

        What is said of terminal states, and of actions that a state does not have, is ignored.
        """
        shape = (mdp.n_states, mdp.n_actions)
        numbers = np.broadcast_to(np.arange(mdp.n_actions), shape)
        has = numbers < mdp.actions[:, None]
        if legal is None:
            return cls(mdp, numbers, numbers)
        mask = np.asarray(legal)
        if mask.shape != shape or mask.dtype.kind not in "biuf" or not ((mask == 0) | (mask == 1)).all():
            raise MDPError(
                f"legal must hold a truth value for each state and action, shape {shape}, not {legal!r:.200}"
            )
        there = has & (mask == 1)
        if (there == has).all():  # its probabilities would be normalised anew, and their last digits change
            return cls(mdp, numbers, numbers)
        for s in np.flatnonzero(~there.any(axis=1) & ~mdp.terminal)[:1]:
            raise MDPError(f"{mdp.state(s)} has no legal action, but is not terminal")
        order = np.argsort(~there, axis=1, kind="stable")
        actions = there.sum(axis=1)
        before = (np.arange(mdp.n_states)[:, None] * mdp.n_actions + order).ravel()
        sizes = np.where((numbers < actions[:, None]).ravel(), np.diff(mdp.offsets)[before], 0)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        kept = np.repeat(mdp.offsets[before] - offsets[:-1], sizes) + np.arange(offsets[-1])
        outcomes = mdp.next_states, mdp.probabilities, mdp.rewards, mdp.noise
        next_states, probabilities, rewards, noise = (each[kept] for each in outcomes)
        fewer = replace(
            mdp,
            offsets=offsets,
            next_states=next_states,
            probabilities=probabilities,
            rewards=rewards,
            noise=noise,
            actions=actions,
            action_names=(),
        )
        return cls(fewer, order, np.argsort(order, axis=1))

    def back(self, table: np.ndarray) -> np.ndarray:
        """Values [..., S, A] of this MDP's pairs, in the places that they have in the other."""
        return np.take_along_axis(table, np.broadcast_to(self.places, table.shape), axis=-1)
