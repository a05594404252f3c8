"""Our side of ``host_gpu.py``: an agent for a load, how it advances, and changes of its engine that are tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from host_peers import BATCH, DISCOUNT, EPSILON, LEARNING_RATE, Advance, Load
from host_worlds import FRAMES, make

import maxmean
from maxmean.deep.exploration import EpsilonGreedy

CLASSES = {"dqn": "DQN", "ke-bdqn": "KEBDQN"}


def host_agent(name: str, load: Load) -> Any:
    """The agent with that load's settings; it is never tested."""
    own = {"exploration": EpsilonGreedy(EPSILON, EPSILON, 1)} if name == "dqn" else {}
    return getattr(maxmean, CLASSES[name])(
        make(load.world, load.environments),
        batch_size=BATCH,
        discount=DISCOUNT,
        learning_rate=LEARNING_RATE,
        loss="huber",
        hidden=128 if load.picture else 512,
        frames=1 if load.picture else FRAMES,
        replay_capacity=load.capacity,
        warmup=load.warmup,
        train_every=load.train_every,
        gradient_steps=load.gradient_steps,
        target_period=2_500,
        **own,
    )


def advancing(agent: Any, change: str = "") -> Advance:
    """How the agent advances, without the test at the end of ``learn()``; with a change of its engine, if one is named."""
    driver = agent.driver

    def advance(calls: int) -> None:
        if not driver.started:
            driver.begin()
            if change:
                CHANGES[change](driver)
        for _ in range(calls):
            driver.step()
        np.asarray(driver.run.tally.updates)  # the last update too
        np.asarray(driver.pending)

    return advance


def replace(driver: Any, name: str, function: Any) -> None:
    """Have the driver's program call another function; programs keep what they have compiled under its name."""
    driver.program.__dict__[name] = function


def sent_once(driver: Any) -> None:
    """The message goes to the device once: acting gives it back, to learn from."""
    program = driver.program
    act, store, learn = program.act, program.store, program.learn
    both = jax.jit(lambda acting, rows: (act(acting, rows), rows))
    there: list[Any] = []

    def act_and_keep(run: Any, rows: Any) -> Any:
        acting = run._replace(learner=run.learner._replace(target=(), moments=()), replay=(), tally=(), diverged=())
        actions, on_device = both(acting, rows)
        there[:] = [on_device]
        return actions

    replace(driver, "act", act_and_keep)
    replace(driver, "store", lambda run, rows: store(run, there[0]))
    replace(driver, "learn", lambda run, rows: learn(run, there[0]))


def other_loop(driver: Any) -> None:
    """Several updates of a message are compiled one after the other where they are a loop, and as a loop where they are not."""
    replace(driver, "unrolled", not driver.program.unrolled)


CHANGES: dict[str, Callable[[Any], None]] = {
    "sent once": sent_once,
    "loop or no loop": other_loop,
}
