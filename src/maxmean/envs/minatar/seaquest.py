"""Seaquest: a submarine hunts, rescues divers, and must breathe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from ..random import below, chance, coin
from .game import DOWN, FIRE, LEFT, NOOP, RIGHT, SIZE, UP, MinAtar, cell, cells, moved
from .seaquest_crowd import Crowd, newest, oldest

FULL_OXYGEN = 200
MOST_DIVERS = 6
SPAWN_INTERVAL = 20
DIVER_INTERVAL = 30
DIVER_MOVE_INTERVAL = 5
MOVE_INTERVAL = 5
FASTEST = 2
SHOT_INTERVAL = 5
ENEMY_SHOT_INTERVAL = 10

_ALL = (1 << SIZE) - 1


class Shots(NamedTuple):
    """The player's bullets, the newest first. Two are enough: one is fired every five frames and leaves within ten."""

    x: jax.Array
    """int8 [2], -1 where there is none."""
    y: jax.Array
    right: jax.Array


class Divers(NamedTuple):
    """The divers, the newest first. Two are enough: one comes every thirty frames and leaves within sixty."""

    x: jax.Array
    """int8 [2], -1 where there is none."""
    y: jax.Array
    right: jax.Array
    timer: jax.Array


class SeaquestState(NamedTuple):
    """Scalars are int8 or bool unless said otherwise."""

    x: jax.Array
    y: jax.Array
    right: jax.Array
    """Whether the submarine looks to the right."""
    oxygen: jax.Array
    """int16."""
    rescued: jax.Array
    """int16: divers on board. MinAtar's count falls below zero after a full boat has surfaced, and so does this one."""
    surfaced: jax.Array
    shot_timer: jax.Array
    shots: Shots
    divers: Divers
    diver_timer: jax.Array
    enemies: jax.Array
    """uint16 [32]: fish and enemy submarines, packed; see :class:`Crowd`."""
    torpedoes_left: jax.Array
    """uint16 [8]: the enemies' bullets that travel to the left; bit x of row i is the cell in row i + 1."""
    torpedoes_right: jax.Array
    spawn_interval: jax.Array
    spawn_timer: jax.Array
    move_interval: jax.Array
    ramp: jax.Array
    """int16: how often the game has become harder."""


class Outcomes(NamedTuple):
    """Who comes, should it be time for somebody to come; rows are 1 to 8."""

    right: jax.Array
    """Whether the new enemy swims to the right (1/2)."""
    submarine: jax.Array
    """Whether it is a submarine (1/3)."""
    row: jax.Array
    diver_right: jax.Array
    diver_row: jax.Array


@dataclass(frozen=True)
class Seaquest(MinAtar):
    """A point an enemy shot. Oxygen runs out under water; surfacing refills it and costs a diver.

    To surface without a diver is the end, as is to touch an enemy or its bullet, or to run out of oxygen. To surface with six
    gives up to ten points, one for each cell of the oxygen gauge. Each surfacing makes the game harder.
    """

    game_name: ClassVar[str] = "seaquest"
    channels: ClassVar[tuple[str, ...]] = (
        "sub_front",
        "sub_back",
        "friendly_bullet",
        "trail",
        "enemy_bullet",
        "enemy_fish",
        "enemy_sub",
        "oxygen_gauge",
        "diver_gauge",
        "diver",
    )
    useful_actions: ClassVar[tuple[int, ...]] = (NOOP, LEFT, UP, RIGHT, DOWN, FIRE)
    frame_words: ClassVar[int] = 3

    def start(self, drawn: tuple[jax.Array, ...]) -> SeaquestState:
        nowhere, no = jnp.full(2, -1, jnp.int8), jnp.zeros(2, bool)
        rows = jnp.zeros(2, jnp.int8)
        return SeaquestState(
            x=jnp.int8(5),
            y=jnp.int8(0),
            right=jnp.bool_(False),
            oxygen=jnp.int16(FULL_OXYGEN),
            rescued=jnp.int16(0),
            surfaced=jnp.bool_(True),
            shot_timer=jnp.int8(0),
            shots=Shots(nowhere, rows, no),
            divers=Divers(nowhere, rows, no, rows),
            diver_timer=jnp.int8(DIVER_INTERVAL),
            enemies=Crowd.nobody().pack(),
            torpedoes_left=jnp.zeros(8, jnp.uint16),
            torpedoes_right=jnp.zeros(8, jnp.uint16),
            spawn_interval=jnp.int8(SPAWN_INTERVAL),
            spawn_timer=jnp.int8(SPAWN_INTERVAL),
            move_interval=jnp.int8(MOVE_INTERVAL),
            ramp=jnp.int16(0),
        )

    def outcomes(self, drawn: tuple[jax.Array, ...]) -> Outcomes:
        """One word decides about submarines; rows and directions are other words' bits."""
        return Outcomes(
            right=coin(drawn[1], 0),
            submarine=chance(drawn[0], 1 / 3),
            row=(1 + below(drawn[1], 8)).astype(jnp.int8),
            diver_right=coin(drawn[2], 0),
            diver_row=(1 + below(drawn[2], 8)).astype(jnp.int8),
        )

    def frame(
        self, game: SeaquestState, action: jax.Array, outcomes: Outcomes
    ) -> tuple[SeaquestState, jax.Array, jax.Array]:
        crowd = self._spawn_enemy(game, outcomes)
        divers = self._spawn_diver(game, outcomes)

        fires = (action == FIRE) & (game.shot_timer == 0)
        shots = _launch(game.shots, fires, game)
        x = moved(game.x, action == LEFT, action == RIGHT)
        y = moved(game.y, action == UP, action == DOWN, 0, SIZE - 2)
        right = (game.right | (action == RIGHT)) & (action != LEFT)
        me = (x, y)

        shots, crowd, hits = _strike(shots, crowd)
        divers, rescued = _rescue(divers, game.rescued, me)
        subs, shots, more, sub_contact = _swim(crowd, crowd.submarine & crowd.alive, shots, me, game.move_interval)
        crowd, torpedoes, torpedo_contact = self._torpedoes(game, crowd, subs, me)
        crowd, shots, most, fish_contact = _swim(crowd, ~crowd.submarine & crowd.alive, shots, me, game.move_interval)

        shot_timer = jnp.where(fires, SHOT_INTERVAL, game.shot_timer).astype(jnp.int8)
        spawn_timer = jnp.where(game.spawn_timer == 0, game.spawn_interval, game.spawn_timer)
        diver_timer = jnp.where(game.diver_timer == 0, DIVER_INTERVAL, game.diver_timer).astype(jnp.int8)
        after = game._replace(
            x=x,
            y=y,
            right=right,
            rescued=rescued,
            shot_timer=_less(shot_timer),
            shots=shots,
            divers=divers,
            diver_timer=_less(diver_timer),
            enemies=crowd.pack(),
            torpedoes_left=torpedoes[0],
            torpedoes_right=torpedoes[1],
            spawn_timer=_less(spawn_timer),
        )
        after, bonus, drowned = self._breathe(after)
        over = sub_contact | torpedo_contact | fish_contact | drowned
        return after, hits + more + most + bonus, over

    def _spawn_enemy(self, game: SeaquestState, outcomes: Outcomes) -> Crowd:
        """Let an enemy in, unless somebody swims the other way in its row."""
        crowd = Crowd.unpack(game.enemies)
        against = jnp.any(crowd.alive & (crowd.y == outcomes.row) & (crowd.right != outcomes.right))
        comes = (game.spawn_timer == 0) & ~against
        return crowd.join(
            comes, outcomes.row, outcomes.right, outcomes.submarine, game.move_interval, jnp.int8(ENEMY_SHOT_INTERVAL)
        )

    def _spawn_diver(self, game: SeaquestState, outcomes: Outcomes) -> Divers:
        edge = jnp.where(outcomes.diver_right, 0, SIZE - 1).astype(jnp.int8)
        new = Divers(edge, outcomes.diver_row, outcomes.diver_right, jnp.int8(DIVER_MOVE_INTERVAL))
        comes = game.diver_timer == 0
        return Divers(*(jnp.where(comes, jnp.stack([a, b[0]]), b) for a, b in zip(new, game.divers, strict=True)))

    def _torpedoes(
        self, game: SeaquestState, before: Crowd, after: Crowd, me: tuple[jax.Array, jax.Array]
    ) -> tuple[Crowd, tuple[jax.Array, jax.Array], jax.Array]:
        """Enemy submarines shoot, even those that were hit in this frame; then all torpedoes travel."""
        shoots = before.alive & before.submarine & (before.shot == 0)
        # ``after.x`` is the column it has moved to, also for one that was hit there or has left: that one shoots into the void.
        place = jnp.where(shoots, jnp.uint32(1) << (after.x & 15).astype(jnp.uint32), jnp.uint32(0)) & _ALL
        place = jnp.where(after.right, place << SIZE, place)
        row = jnp.arange(1, 9, dtype=jnp.int8)
        new = _either(jnp.where(row[:, None] == after.y, place, jnp.uint32(0)))
        left = game.torpedoes_left | (new & _ALL).astype(jnp.uint16)
        right = game.torpedoes_right | (new >> SIZE).astype(jnp.uint16)
        here = jnp.where(row == me[1], jnp.uint16(1) << me[0].astype(jnp.uint16), jnp.uint16(0))
        contact = jnp.any((left | right) & here != 0)
        left, right = left >> 1, (right << 1) & _ALL
        contact = contact | jnp.any((left | right) & here != 0)
        reload = jnp.where(after.shot == 0, ENEMY_SHOT_INTERVAL, after.shot - 1).astype(jnp.int8)
        return after._replace(shot=jnp.where(after.submarine, reload, after.shot)), (left, right), contact

    def _breathe(self, game: SeaquestState) -> tuple[SeaquestState, jax.Array, jax.Array]:
        """Oxygen, and what happens at the surface: the new game, the reward and whether it is over."""
        empty = game.oxygen <= 0
        under = game.y > 0
        emerges = ~under & ~game.surfaced
        alone = emerges & (game.rescued == 0)
        surfaces = emerges & ~alone
        full = surfaces & (game.rescued == MOST_DIVERS)
        bonus = jnp.where(full, game.oxygen.astype(jnp.int32) * 10 // FULL_OXYGEN, 0)
        rescued = jnp.where(full, 0, game.rescued).astype(jnp.int16) - surfaces.astype(jnp.int16)
        harder = surfaces & ((game.spawn_interval > 1) | (game.move_interval > FASTEST)) & self.ramping
        faster = harder & (game.move_interval > FASTEST) & (game.ramp % 2 == 1)
        oftener = harder & (game.spawn_interval > 1)
        after = game._replace(
            oxygen=jnp.where(surfaces, FULL_OXYGEN, game.oxygen - under.astype(jnp.int16)).astype(jnp.int16),
            rescued=rescued,
            surfaced=jnp.where(under, False, game.surfaced | surfaces),
            move_interval=game.move_interval - faster.astype(jnp.int8),
            spawn_interval=game.spawn_interval - oftener.astype(jnp.int8),
            ramp=game.ramp + harder.astype(jnp.int16),
        )
        return after, bonus, empty | alone

    def observe_game(self, game: SeaquestState) -> jax.Array:
        crowd = Crowd.unpack(game.enemies)
        inner = _crowd_rows(crowd)
        fish, submarine, trail = (jnp.pad((inner >> (SIZE * i)) & _ALL, 1) for i in range(3))
        torpedoes = jnp.pad(game.torpedoes_left | game.torpedoes_right, 1)
        trails = cells(trail)
        diver = shot = jnp.zeros((SIZE, SIZE), bool)
        for i in range(2):
            shot |= cell(game.shots.y[i], game.shots.x[i])
            diver |= cell(game.divers.y[i], game.divers.x[i])
            behind = game.divers.x[i] - jnp.where(game.divers.right[i], 1, -1).astype(jnp.int8)
            trails |= cell(game.divers.y[i], behind) & (game.divers.x[i] >= 0)
        bottom = jnp.arange(SIZE)[:, None] == SIZE - 1
        column = jnp.arange(SIZE, dtype=jnp.int16)[None, :]
        air = (jnp.maximum(game.oxygen, 0).astype(jnp.int32) * 10 // FULL_OXYGEN).astype(jnp.int16)
        back = game.x - jnp.where(game.right, 1, -1).astype(jnp.int8)
        return jnp.stack(
            [
                cell(game.y, game.x),
                cell(game.y, back),
                shot,
                trails,
                cells(torpedoes),
                cells(fish),
                cells(submarine),
                bottom & (column < air),
                bottom & (column >= 9 - game.rescued) & (column < 9),
                diver,
            ],
            axis=-1,
        )


def _less(timer: jax.Array) -> jax.Array:
    """A timer that counts down to zero and stays there."""
    return timer - (timer > 0).astype(jnp.int8)


def _either(bits: jax.Array) -> jax.Array:
    """The bits of all entries along the last axis."""
    return jax.lax.reduce(bits, jnp.uint32(0), jax.lax.bitwise_or, (bits.ndim - 1,))


def _crowd_rows(crowd: Crowd) -> jax.Array:
    """Where the enemies are, rows 1 to 8 (uint32 [8]): ten bits of fish, ten of submarines, ten of trails."""
    here = jnp.uint32(1) << (crowd.x & 15).astype(jnp.uint32)
    behind = jnp.where(crowd.right, here >> 1, (here << 1) & _ALL)
    bits = jnp.where(crowd.submarine, here << SIZE, here) | (behind << (2 * SIZE))
    row = jnp.arange(1, 9, dtype=jnp.int8)
    return _either(jnp.where((row[:, None] == crowd.y) & crowd.alive, bits, jnp.uint32(0)))


def _launch(shots: Shots, fires: jax.Array, game: SeaquestState) -> Shots:
    new = (game.x, game.y, game.right)
    return Shots(*(jnp.where(fires, jnp.stack([a, b[0]]), b) for a, b in zip(new, shots, strict=True)))


def _strike(shots: Shots, crowd: Crowd) -> tuple[Shots, Crowd, jax.Array]:
    """The player's bullets travel; each takes the oldest fish in its cell with it, or else the oldest submarine."""
    x = shots.x + jnp.where(shots.right, 1, -1).astype(jnp.int8)
    x = jnp.where((shots.x < 0) | (x >= SIZE), -1, x).astype(jnp.int8)
    hits = jnp.int32(0)
    for i in range(2):
        there = crowd.alive & (crowd.x == x[i]) & (crowd.y == shots.y[i]) & (x[i] >= 0)
        fish = there & ~crowd.submarine
        victim = oldest(jnp.where(jnp.any(fish), fish, there))
        crowd = crowd.without(victim)
        hit = jnp.any(victim)
        hits += hit
        x = x.at[i].set(jnp.where(hit, -1, x[i]))
    return shots._replace(x=x), crowd, hits


def _rescue(divers: Divers, rescued: jax.Array, me: tuple[jax.Array, jax.Array]) -> tuple[Divers, jax.Array]:
    """Divers get on board where they meet the player, before or after their own move, while there is room."""
    columns, timers = [], []
    for i in range(2):
        x, y, timer = divers.x[i], divers.y[i], divers.timer[i]
        there = x >= 0
        room = rescued < MOST_DIVERS
        boards = there & (x == me[0]) & (y == me[1]) & room
        swims = there & ~boards & (timer == 0)
        ahead = x + jnp.where(divers.right[i], 1, -1).astype(jnp.int8)
        ahead = jnp.where(ahead >= SIZE, -1, ahead).astype(jnp.int8)
        boards_then = swims & (ahead == me[0]) & (y == me[1]) & room
        aboard = boards | boards_then
        columns.append(jnp.where(aboard, -1, jnp.where(swims, ahead, x)).astype(jnp.int8))
        timers.append(jnp.where(swims, DIVER_MOVE_INTERVAL, timer - 1).astype(jnp.int8))
        rescued = rescued + aboard.astype(jnp.int16)
    return divers._replace(x=jnp.stack(columns), timer=jnp.stack(timers)), rescued


def _swim(
    crowd: Crowd, group: jax.Array, shots: Shots, me: tuple[jax.Array, jax.Array], interval: jax.Array
) -> tuple[Crowd, Shots, jax.Array, jax.Array]:
    """A group of enemies moves: the crowd, the shots, how many ran into a shot, whether one touched the player.

    A shot takes the newest of those that run into it.
    """
    here = group & (crowd.x == me[0]) & (crowd.y == me[1])
    swims = group & (crowd.timer == 0)
    ahead = crowd.x + jnp.where(crowd.right, 1, -1).astype(jnp.int8)
    inside = (ahead >= 0) & (ahead < SIZE)
    then = swims & (ahead == me[0]) & (crowd.y == me[1])
    exposed = swims & inside & ~then
    killed = jnp.zeros_like(group)
    columns = shots.x
    for i in range(2):
        victim = newest(exposed & ~killed & (ahead == shots.x[i]) & (crowd.y == shots.y[i]))
        killed |= victim
        columns = columns.at[i].set(jnp.where(jnp.any(victim), -1, columns[i]))
    timer = jnp.where(swims, interval, crowd.timer - group.astype(jnp.int8))
    after = crowd._replace(
        x=jnp.where(swims, ahead, crowd.x), timer=timer, alive=crowd.alive & ~killed & ~(swims & ~inside)
    )
    return after, shots._replace(x=columns), jnp.sum(killed), jnp.any(here | then)
