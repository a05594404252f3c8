"""The kinds of files that :mod:`fuzzing` changes: how an original is made, and how it is used."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from pathlib import Path
from typing import Any

from fuzzing import Kind, change_json, fuzz, mutate


def table(name: str) -> Kind:
    """A table of observations; it has no checksum, so that other data are an answer too."""

    def make(folder: Path) -> None:
        import numpy as np
        import pandas as pd

        luck = np.random.default_rng(0)
        frame = pd.DataFrame({"option": list("abc") * 40, "value": luck.normal(size=120).round(3)})
        if name.endswith(".parquet"):
            frame.to_parquet(folder / name)
        else:
            frame.to_csv(folder / name, index=False)

    def use(folder: Path) -> Any:
        from maxmean.mev.compare import compare_problem
        from maxmean.mev.data.collect import read_options
        from maxmean.mev.data.files import stream_table
        from maxmean.mev.data.layout import Columns
        from maxmean.mev.methods import Settings
        from maxmean.mev.problem import Problem

        options = read_options(stream_table(str(folder / name)), Columns())
        problem = Problem.of(options, Settings(), lower_is_better=False, seed=0, resamples=10)
        return json.dumps(compare_problem(problem, ["me", "ke"], level=0.95).to_dict(), allow_nan=False)

    return Kind(make, use, signed=False)


def _make_agent(folder: Path) -> None:
    from host_toys import small
    from maxmean import KEBDQN, mev
    from maxmean.deep.networks import Perceptron

    own = {"kernel": mev.Beta(2.0, 0.5), "network": Perceptron((4,)), "k": 2, "measure_bias": True, "test_episodes": 1}
    KEBDQN("CartPole-v1", **{**small(bias_episodes_per_head=1, replay_capacity=60), **own}).learn(60).save(
        folder / "agent"
    )


def _use_agent(folder: Path) -> Any:
    """What it does where it was trained, and its records; `watch` must come to the same weights or refuse it too."""
    import warnings

    import numpy as np

    from maxmean import KEBDQN
    from maxmean.deep.host import watch

    _little_memory()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent = KEBDQN.load(folder / "agent", "CartPole-v1")
    seen = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    actions = agent.predict(seen)[0].tolist()
    policy, _ = watch.load(folder / "agent.safetensors")
    assert [policy.act(each) for each in seen[:3]] == actions[:3]
    return actions, agent.num_timesteps, agent.table.to_json()


def _forge_agent(folder: Path, luck: random.Random) -> None:
    from strangers import forge_agent

    forge_agent(folder / "agent.safetensors", lambda text: change_json(text, luck))


def _little_memory() -> None:
    """Have the machine look like one with half a gigabyte, so that what asks for more is refused before it is taken."""
    from maxmean.deep.core import memory

    memory.available = lambda: 2**29


def _make_policy(folder: Path) -> None:
    import jax

    from maxmean.deep.networks import Convolution, Ensemble
    from maxmean.deep.policy import Policy

    network = Ensemble(Convolution(2), (10, 10, 4), 6, 2, True, 4)
    about = {
        "environment": {"name": "minatar/breakout", "options": {"sticky": 0.1, "ramping": True, "step_limit": 20}},
        "variant": "ke-bdqn",
        "step": 7,
        "test_return": 1.0,
    }
    Policy(network, network.create(jax.random.key(0)), True, about).save(folder / "policy")


def _use_policy(folder: Path) -> Any:
    import numpy as np

    from maxmean import deep
    from maxmean.deep.watch import _game

    policy = deep.load(folder / "policy")
    _game(policy)
    seen = np.random.default_rng(0).random((3, *policy.network.shape)) < 0.3
    return [policy.act(each) for each in seen], policy.about


def _forge_policy(folder: Path, luck: random.Random) -> None:
    from strangers import forge_policy

    forge_policy(folder / "policy.safetensors", lambda text: change_json(text, luck))


_PLAN = json.dumps({"environment": {"name": "x", "options": {}}, "agents": {"dqn": {"members": 1}}, "seeds": [0, 1]})


def _make_plan(folder: Path) -> None:
    (folder / "plan.json").write_text(_PLAN)


def _use_plan(folder: Path) -> Any:
    """Whether the directory is taken for this training's."""
    from maxmean.deep.directory import _look

    return _look(folder, "device training", json.loads(_PLAN))


def _toy() -> tuple[Any, Any]:
    """A training that takes no time: where, and with what."""
    from deep_toys import CORRIDOR
    from maxmean import deep

    settings: dict[str, Any] = {
        "warmup": 60,
        "replay_capacity": 100,
        "test_interval": 100,
        "target_period": 50,
        "hidden": 4,
    }
    return CORRIDOR, deep.Settings(**settings, test_episodes=1, bias_episodes=1)


def _make_checkpoints(folder: Path) -> None:
    from maxmean import deep

    env, settings = _toy()
    deep.train(env, "dqn", steps=200, settings=settings, out=folder, checkpoint_interval=100)


_KNOWN: dict[int, Any] = {}
"""By step, where a training stood when its checkpoints were whole."""


def _use_checkpoints(folder: Path) -> Any:
    """Where the training stands: a damaged checkpoint leaves the one before it, or the beginning; never anything else."""
    import jax
    import numpy as np

    from maxmean.deep import checkpoint
    from maxmean.deep.device.block import make_blocks
    from maxmean.deep.device.plan import TrainingPlan

    env, settings = _toy()
    (block,) = make_blocks(TrainingPlan.of(env, "dqn", 1, None, settings), batched=None)
    block.create()
    records = checkpoint.restore(folder / "checkpoints", [block], 200, lambda sentence: None)
    table = "" if records is None else records.frame().to_json()
    found = table, [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(block.state)]
    return "as it was" if _KNOWN.setdefault(block.step, found) == found else f"another state at step {block.step}"


def _make_results(folder: Path) -> None:
    from maxmean.lab.engines import Inline
    from maxmean.lab.experiments import EXPERIMENTS
    from maxmean.lab.progress import Silent
    from maxmean.lab.run import ExperimentJob, reproduce
    from maxmean.lab.store import Store

    reproduce([ExperimentJob.of(EXPERIMENTS["correlation"], "quick", [])], Store(folder), Inline(), 0, Silent())


def _use_results(folder: Path) -> Any:
    """The verdicts; an experiment that is left out counts as refused."""
    from maxmean.lab.run import judge_all
    from maxmean.lab.store import DamagedError, Store

    left_out: list[Any] = []
    judged = list(judge_all(Store(folder, create=False), say=left_out.append))
    if left_out:
        raise DamagedError(str(left_out[0]))
    return [verdict.to_dict() for each in judged for verdict in each.verdicts]


def _forge_results(folder: Path, luck: random.Random) -> None:
    """Another table, whose checksum its manifest has."""
    table = luck.choice(sorted(folder.glob("*/*.parquet")))
    table.write_bytes(mutate(table.read_bytes(), luck))
    manifest = table.with_suffix(".json")
    text = json.loads(manifest.read_text()) | {"sha256": hashlib.sha256(table.read_bytes()).hexdigest()}
    manifest.write_text(json.dumps(text))


KINDS = {
    "csv": table("data.csv"),
    "parquet": table("data.parquet"),
    "agent": Kind(_make_agent, _use_agent, forge=_forge_agent),
    "policy": Kind(_make_policy, _use_policy, forge=_forge_policy),
    "plan": Kind(_make_plan, _use_plan),
    "checkpoint": Kind(_make_checkpoints, _use_checkpoints, "checkpoints/**/*"),
    "results": Kind(_make_results, _use_results, forge=_forge_results),
}

if __name__ == "__main__":
    print(json.dumps(fuzz(KINDS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3]))))
