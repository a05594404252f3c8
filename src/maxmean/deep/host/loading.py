"""A saved training, read. Anybody may have written the file: what it says is looked at before any of it is used."""

from __future__ import annotations

import dataclasses
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode

from ...envs import EnvError
from ...mev.errors import KernelError
from ...untrusted import ContentError, mapping, number, one_of, parse, several, take, truth, whole
from ..agent import Adaptation
from ..agents import AGENTS
from ..checks import AgentError
from ..core.run import Run
from ..policy import all_finite, named_leaves
from ..records import Records
from . import plain, states
from .adapters import VectorEnvAdapter, adapter_of
from .driver import KEPT_STATES, Clock, Driver, Lanes
from .errors import HostError, sentence
from .frames import Frames
from .making import is_atari, make_training, opened
from .saving import FORMAT, checksum, describe, file_of, run_leaves
from .settings import choose
from .stored import Stored, stored

T = TypeVar("T")

if TYPE_CHECKING:
    from .agent import HostAgent

    A = TypeVar("A", bound=HostAgent)

ALGORITHM = one_of([make.__name__ for make in AGENTS.values()])
"""The check of an algorithm's name: it is that of its class, and of the function that makes its agent."""


RENAMED = {"covariance": "paired"}
"""Settings that had another name when 0.1 wrote a file."""
BUILDING = {"ensemble", "hidden", "k", "network", "n", "prior"}
"""Settings that say how a network is built."""
FORMERLY = ("run.member", "run.episode_return")
"""Arrays that 0.1 wrote, and that had no meaning on the host."""


def load(cls: type[A], path: str | Path, env: Any, settings: dict[str, Any]) -> A:
    """The algorithm in a file."""
    path = file_of(path)
    text, arrays = read(path)
    env = opened(env, "env", make_training)
    with blaming(path):
        about = take(text, "about", mapping)
        there = take(about, "algorithm", ALGORITHM)
        if there != cls.__name__:
            raise HostError(f"{path} holds a {there}, not a {cls.__name__}: load it with maxmean.{there}.load")
        given = {RENAMED.get(name, name): each for name, each in take(text, "given", mapping).items()}
        given = plain.settings({name: each for name, each in given.items() if name not in settings})
        if given.get("frames") == 0:  # as it could be given for what the environment says
            del given["frames"]
        if is_atari(env) and "clip_reward" not in {*settings, *take(about, "host", mapping)}:
            given["clip_reward"] = False  # as before there was such a setting
        choose(cls.make, adapter_of(env).sight, given)
        masked = "masked" in text and take(text, "masked", truth)
        frames = take(text, "frames", mapping) if "frames" in text else {}
        stacked = take(frames, "count", whole(2, 255)) if frames else 0
        known, clock, records = (
            take(about, "world", mapping),
            _clock(text),
            Records.checked(take(text, "records", mapping)),
        )
    algorithm = cls(env, **given, **settings)
    here = describe(algorithm)["world"]
    if here != known:
        raise HostError(f"{path} was trained in another kind of environment: {_difference(known, here)}")
    driver = algorithm.driver
    if not masked and driver.world.way.masked:
        warnings.warn(
            f"{path} was trained without the masks of illegal actions that this environment has, and goes on without",
            UserWarning,
            stacklevel=4,
        )
    driver.use_masks(masked)
    with blaming(path):
        if "frames" in settings and max(1, stacked) != (1 if driver.stack is None else driver.stack.count):
            raise ContentError(f"frames cannot be changed here: it is {max(1, stacked)} there")
        driver.use_frames(stacked)
        _refuse_other_steps(take(about, "settings", mapping), algorithm.settings.n_step)
        words = driver.program.learning.layout.words
        name = "run.replay.rows" if stacked else "run.replay"
        _fill(arrays, name, clock, (algorithm.settings.replay_capacity, words), take(about, "settings", mapping))
        known_frames = _frames(frames, arrays, driver, clock) if stacked else None
    driver.begin()
    for leaf in jax.tree.leaves(driver.run.replay):
        leaf.delete()  # it may be gigabytes, which the one from the file needs
    with blaming(path):
        for name in FORMERLY:
            arrays.pop(name, None)
        try:
            run = fitting_tree(arrays, "run.", driver.run, run_leaves)
        except ContentError as error:
            for name in BUILDING & settings.keys():
                raise HostError(f"{name} cannot be changed here: the network in it was built with another") from error
            raise
        driver.run = _with_own(run, driver.run, algorithm, take(about, "agent", mapping))
    driver.clock, driver.frames, algorithm.records = clock, known_frames, records
    why = _restore(algorithm, text, arrays, path)
    if why is not None:
        warnings.warn(
            f"everything is restored but the environment's state ({why}): a new episode begins",
            UserWarning,
            stacklevel=4,
        )
        luck = np.random.SeedSequence([algorithm.host.seed, driver.clock.calls]).generate_state(1)
        driver.enter(driver.world.reset(int(luck[0] >> 1)))
    if not all_finite(driver.run.learner.weights):
        warnings.warn(f"{path} holds an agent that has diverged: its actions mean nothing", UserWarning, stacklevel=4)
    return algorithm


@contextmanager
def blaming(path: Path) -> Iterator[None]:
    """Have what is wrong with the content of a file said of that file."""
    try:
        yield
    except RecursionError:
        raise HostError(f"{path} cannot be used: its JSON is nested too deeply") from None
    except (ContentError, AgentError, EnvError, KernelError) as error:
        raise HostError(f"{path} cannot be used: {error}") from None
    except HostError as error:
        said = str(error)
        raise HostError(said if str(path) in said else f"{path} cannot be used: {said}") from None


def read(path: Path, wanted: str = "") -> tuple[dict[str, Any], dict[str, Stored]]:
    """What is in a file, if it is whole and ours; of the arrays, those whose names begin with ``wanted``."""
    try:
        header, arrays = stored(path)
        found = checksum(header.get("maxmean", ""), {name: array.parts() for name, array in arrays.items()})
    except FileNotFoundError:
        raise HostError(f"there is no file {path}") from None
    except Exception as error:  # whatever a stranger's file makes of the reader
        raise HostError(f"{path} is not a training of maxmean, or is damaged: {sentence(error)}") from None
    if "maxmean" not in header or "sha256" not in header:
        raise HostError(f"{path} is not a training of maxmean")
    if header["sha256"] != found:
        raise HostError(f"{path} is damaged: its checksum is wrong")
    with blaming(path):
        text = parse(header["maxmean"])
        kind = take(text, "format", whole())
        if kind != FORMAT:
            raise HostError(f"{path} has format {kind}, which this version of maxmean does not know")
    return text, {name: each for name, each in arrays.items() if name.startswith(wanted)}


def fitting(arrays: dict[str, Stored], name: str, leaf: Any) -> np.ndarray:
    """The array of that name, if it has the shape and the type that are expected."""
    array = arrays.pop(name, None)
    if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
        raise ContentError(f"its array {name} is missing or has another shape; were other settings given?")
    return array.read()


def fitting_tree(
    arrays: dict[str, Stored], start: str, form: T, named: Callable[[T], list[tuple[str, Any]]] = named_leaves
) -> T:
    """All arrays whose names begin with ``start``, if they are those of a tree of that form, and no others."""
    leaves = [jnp.asarray(fitting(arrays, f"{start}{name}", leaf)) for name, leaf in named(form)]
    more = next((name for name in arrays if name.startswith(start)), None)
    if more is not None:
        raise ContentError(f"its array {more:.100} has no place in this agent; were other settings given?")
    return jax.tree.unflatten(jax.tree.structure(form), leaves)


def _clock(text: Mapping[str, Any]) -> Clock:
    said = take(text, "clock", mapping)
    counts = [field.name for field in dataclasses.fields(Clock) if field.name != "returns"]
    return Clock(
        **{name: take(said, name, whole(0, 2**31 - 1)) for name in counts}, returns=take(said, "returns", number)
    )


def _refuse_other_steps(about: Mapping[str, Any], n_step: int) -> None:
    """Refuse to go on with another number of steps: the transitions are stored for the one that they were taken with."""
    there = take({"n_step": 1, **about}, "n_step", whole(1))
    if there != n_step:
        raise ContentError(f"n_step cannot be changed here: it is {there} there and {n_step} here")


def _fill(arrays: dict[str, Stored], name: str, clock: Clock, form: tuple[int, int], about: Mapping[str, Any]) -> None:
    """Bring the transitions, of which a file has those that were stored, to the replay's form: [capacity, words]."""
    replay, (capacity, words) = arrays.get(name), form
    if replay is None or replay.shape[1:] != (words,):
        raise ContentError(f"its array {name} is missing or has another shape")
    if replay.shape[0] != min(clock.stored, capacity):
        known = take(about, "replay_capacity", whole(1))
        raise ContentError(
            f"its {replay.shape[0]:,} transitions do not fit into a replay of {capacity:,}: load it with replay_capacity={known}"
        )
    arrays[name] = replay.padded(capacity)


def _frames(said: Mapping[str, Any], arrays: dict[str, Stored], driver: Driver, clock: Clock) -> Frames:
    """What is known of the frames, whose arrays are brought to their forms too."""
    store = driver.program.frames
    assert store is not None
    frames = Frames(store, driver.world.n, take(said, "written", whole()), take(said, "first", whole()))
    filled, start = min(clock.stored, store.capacity), max(0, clock.stored - store.capacity)
    for name, words in (("run.replay.frames", (store.layout.words,)), ("run.replay.links", ())):
        there = arrays.get(name)
        if there is None or there.shape != (frames.filled, *words):
            raise ContentError(f"its array {name} is missing or has another shape")
        arrays[name] = there.padded(store.places)
    frames.numbers = fitting(arrays, "frames.numbers", frames.numbers)
    frames.oldest[:filled] = oldest = fitting(arrays, "frames.oldest", frames.oldest[:filled])
    lost = frames.written - store.places
    known = (frames.numbers >= max(0, lost)) & (frames.numbers < frames.written)
    sound = bool(known.all()) and start <= frames.first <= clock.stored
    if not sound or (oldest[np.arange(frames.first, clock.stored) % store.capacity] < lost).any():
        raise ContentError("its arrays frames.numbers and frames.oldest name frames that there are not")
    return frames


def _kept(text: Mapping[str, Any], driver: Driver) -> deque[tuple[Any, ...]]:
    """The states that were kept for roll-outs, with what was seen in them, if roll-outs can begin in all of them."""
    sight, world = driver.world.sight, driver.eval_world
    if not driver.keeps or world is None:
        return deque(maxlen=KEPT_STATES)
    found = plain.unpack(list(take(text, "kept", several(lambda each: each, 0, KEPT_STATES))))
    world.reset(0)  # some environments must have been reset once
    masked = int(driver.program.masked)
    for each in found:
        seen, others = (each[0], each[2:]) if isinstance(each, tuple) and len(each) >= 2 else (None, ())
        legal, lives = others[:masked], others[masked:]
        sound = (
            _is_array(seen, sight.shape, sight.dtype)
            and len(legal) == masked
            and all(_is_array(mask, (driver.world.n_actions,), bool) and mask.any() for mask in legal)
            and len(lives) <= 1
            and all(_is_array(left, (1,), np.int64) for left in lives)
        )
        if not sound:
            raise ContentError("a state that it keeps for roll-outs has another form")
        _put(world.env, each[1])
    return deque(found, maxlen=KEPT_STATES)


def _is_array(found: Any, shape: tuple[int, ...], dtype: Any) -> bool:
    return isinstance(found, np.ndarray) and (found.shape, found.dtype) == (shape, dtype)


def _restore(algorithm: HostAgent, text: Mapping[str, Any], arrays: dict[str, Stored], path: Path) -> str | None:
    """Put the environment where it was; or say why that cannot be done."""
    why = states.obstacle(algorithm.env)
    if why is not None:
        return why
    if text.get("environment") is None:
        return "its state was not saved"
    if text.get("layers") != states.layers(algorithm.env):
        return "it is made otherwise than the one that was saved"
    driver = algorithm.driver
    n, world = driver.world.n, driver.world
    with blaming(path):
        state = plain.unpack(text["environment"])
        lanes = {name: fitting(arrays, f"lanes.{name}", array) for name, array in driver.lanes.arrays.items()}
        earlier, end = lanes.setdefault("earlier", driver.lanes.earlier), driver.clock.stored
        first = max(0, end - algorithm.settings.replay_capacity)
        if not ((earlier == -1) | ((first <= earlier) & (earlier < end))).all():
            raise ContentError("its array lanes.earlier names transitions that there are not")
        if not (np.isfinite(lanes["total"]).all() and (lanes["episode"] < driver.clock.begun).all()):
            raise ContentError("its arrays lanes.total and lanes.episode hold what no episode under way has")
        if lanes["seen"].dtype.kind == "f" and not np.isfinite(lanes["seen"]).all():
            raise ContentError("its array lanes.seen holds numbers that are not finite")
        pending = fitting(arrays, "pending", driver.pending)
        if not ((pending >= 0) & (pending < world.n_actions)).all():
            raise ContentError("its array pending holds actions that there are not")
        ended = fitting(arrays, "ended", np.zeros(n, bool)) if isinstance(world, VectorEnvAdapter) else None
        lives = fitting(arrays, "lives", world.no_lives()) if "lives" in arrays else world.no_lives()
        _put(algorithm.env, state, False if ended is None else ended)
        driver.kept = _kept(text, driver)
    driver.lanes, driver.pending = Lanes(**lanes), pending
    if world.lives is not None:
        world.lives = lives
    if isinstance(world, VectorEnvAdapter) and ended is not None:
        world.ended = ended
        world.env._autoreset_envs = ended & (world.mode is AutoresetMode.NEXT_STEP)
    return None


def _put(env: Any, state: Any, over: Any = False) -> None:
    """Put an environment into a state, which it looks at."""
    try:
        states.set_state(env, state, over=over)
    except (HostError, EnvError):
        raise
    except Exception as error:  # of an environment's own set_state
        raise HostError(f"the environment was given the state in it, and said: {sentence(error)}") from error


def _with_own(run: Run, new: Run, algorithm: HostAgent, about: Mapping[str, Any]) -> Run:
    """The run from the file, with the numbers that settings give it: they may have been given anew."""
    there, own, agent = run.traits, new.traits, algorithm.agent
    for name, found, expected in (("members", there.members, own.members), ("rule", there.rule, own.rule)):
        if found != expected:
            raise ContentError(f"its array run.{name} must hold {expected}, not {found}")
    begun = take(about, agent.parameter_name or "parameter", number)
    parameter = own.parameter
    if agent.parameter == begun:  # as far as it has adapted
        parameter = there.parameter
        if not _reached(np.asarray(parameter), np.asarray(own.parameter), agent.adaptation, run):
            raise ContentError("its array run.parameter holds what this agent's parameter cannot have become")
    return run._replace(key=new.key, traits=own._replace(parameter=parameter))


def _reached(parameter: np.ndarray, first: np.ndarray, adaptation: Adaptation | None, run: Run) -> bool:
    """Whether an agent can have come to a parameter from its first one; to nan too, once it has diverged."""
    if adaptation is None:
        return bool((parameter == first).all())
    within = (np.float32(adaptation.low) <= parameter) & (parameter <= np.float32(adaptation.high))
    return bool((within | (parameter == first)).all()) or not all_finite(run.learner.weights)


def _difference(known: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    name = next((name for name in known if known[name] != here.get(name)), "what is known of it")
    return f"{name} is {known.get(name)!r:.60} there and {here.get(name)!r:.60} here"
