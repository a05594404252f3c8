"""The enemies of Seaquest: fish and submarines, in the order in which they came, sixteen bits each."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .game import SIZE

CROWD = 32
"""Places. Never more than 30 are taken: at the fastest an enemy comes every frame and leaves within thirty; while they stay
longer than that, they come less than every fourteenth frame and leave within sixty.
"""

_GONE = 15


class Crowd(NamedTuple):
    """Each field is an array [32], the newest enemy first: a newcomer pushes all others one place on."""

    x: jax.Array
    """int8."""
    y: jax.Array
    """int8, 1 to 8."""
    right: jax.Array
    submarine: jax.Array
    timer: jax.Array
    """int8: frames until it moves, 0 to 5."""
    shot: jax.Array
    """int8: frames until it shoots, 0 to 10; of no meaning for fish."""
    alive: jax.Array

    @classmethod
    def nobody(cls) -> Crowd:
        none, no = jnp.zeros(CROWD, jnp.int8), jnp.zeros(CROWD, bool)
        return cls(none, none + 1, no, no, none, none, no)

    @classmethod
    def unpack(cls, code: jax.Array) -> Crowd:
        """From uint16 [32]; from the lowest bit: x (4), y - 1 (3), right (1), submarine (1), timer (3), shot (4)."""

        def field(shift: int, bits: int) -> jax.Array:
            return ((code >> shift) & ((1 << bits) - 1)).astype(jnp.int8)

        x = field(0, 4)
        return cls(x, field(4, 3) + 1, field(7, 1) != 0, field(8, 1) != 0, field(9, 3), field(12, 4), x != _GONE)

    def pack(self) -> jax.Array:
        """As uint16 [32]; equal for equal crowds."""
        fields = (
            (self.y - 1, 4),
            (self.right, 7),
            (self.submarine, 8),
            (self.timer, 9),
            (jnp.where(self.submarine, self.shot, 0), 12),
        )
        code = self.x.astype(jnp.uint16)
        for values, shift in fields:
            code = code | (values.astype(jnp.uint16) << shift)
        return jnp.where(self.alive, code, jnp.uint16(_GONE))

    def join(
        self,
        comes: jax.Array,
        y: jax.Array,
        right: jax.Array,
        submarine: jax.Array,
        timer: jax.Array,
        shot: jax.Array,
    ) -> Crowd:
        """The crowd with a newcomer at its edge, if one ``comes``."""
        x = jnp.where(right, 0, SIZE - 1).astype(jnp.int8)
        new = Crowd(x, y, right, submarine, timer, shot, jnp.bool_(True))
        return Crowd(
            *(
                jnp.where(comes, jnp.concatenate([first[None], rest[:-1]]), rest)
                for first, rest in zip(new, self, strict=True)
            )
        )

    def without(self, gone: jax.Array) -> Crowd:
        return self._replace(alive=self.alive & ~gone)


def oldest(candidates: jax.Array) -> jax.Array:
    """The last of the candidates alone."""
    place = jnp.arange(CROWD, dtype=jnp.int8)
    return candidates & (place == jnp.max(jnp.where(candidates, place, -1)))


def newest(candidates: jax.Array) -> jax.Array:
    """The first of the candidates alone."""
    place = jnp.arange(CROWD, dtype=jnp.int8)
    return candidates & (place == jnp.min(jnp.where(candidates, place, CROWD)))
