"""The bias of other people's agents, by `maxmean.measure_bias` and by a loop that shares no code with it.

    HOST_PYTHON=path/to/python; $HOST_PYTHON benchmarks/measure.py

names an interpreter that has stable-baselines3, sb3-contrib, torch, gymnasium[box2d] and our own dependencies (see
CONTRIBUTING.md). Each agent is trained, then measured three times: by us, by the loop in the same episodes, and by the loop in
episodes of its own. In the same episodes the two should differ by rounding only, in others by chance, two standard errors at
most in nineteen of twenty cases. The agents are Stable-Baselines3's DQN with the tuned hyper-parameters of rl-baselines3-zoo,
sb3-contrib's QR-DQN with the same, a network as in CleanRL's scripts (examples/torch_dqn.py), and the critics of SAC, TD3 and
TQC with their defaults but for when they begin to learn. Results are kept, a file an agent: stop any time, and the same command
computes what is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import kept
import numpy as np
import zoo_runs

sys.path.append(str(Path(__file__).parents[1] / "examples"))

FIRST = 1_000_000
"""Seed of the first episode of the loop's own."""


class Asked(NamedTuple):
    """A trained agent, and how the loop asks it."""

    agent: Any
    discount: float
    act: Callable[[Any], Any]
    value: Callable[[Any, Any], float]


def loop(env: Any, asked: Asked, seeds: Iterable[int]) -> tuple[float, float]:
    """Mean of Q minus return, and its standard error by leaving out one episode at a time."""
    sums, counts = [], []
    for seed in seeds:
        seen, _ = env.reset(seed=int(seed))
        predicted, rewards, over = [], [], False
        while not over:
            action = asked.act(seen)
            predicted.append(asked.value(seen, action))
            seen, reward, terminated, truncated, _ = env.step(action)
            rewards.append(float(reward))
            over = terminated or truncated
        later, total = 0.0 if terminated else asked.value(seen, asked.act(seen)), 0.0
        for q, reward in zip(predicted[::-1], rewards[::-1], strict=True):
            later = reward + asked.discount * later
            total += q - later
        sums.append(total)
        counts.append(len(rewards))
    s, n = np.array(sums), np.array(counts)
    without = (s.sum() - s) / (n.sum() - n)
    return s.sum() / n.sum(), float(np.sqrt((len(s) - 1) * without.var()))


def of_module(module: Any, discount: float) -> Asked:
    """A network of the values of all actions."""
    import torch

    def q(seen: Any) -> Any:
        return module(torch.tensor(np.array(seen), dtype=torch.float32).unsqueeze(0)).detach().numpy().ravel()

    return Asked(module, discount, lambda seen: int(q(seen).argmax()), lambda seen, action: float(q(seen)[action]))


def dqn(env: str, steps: int) -> Asked:
    import stable_baselines3 as sb3

    model = sb3.DQN("MlpPolicy", env, seed=0, device="cpu", **zoo_runs.ZOO[env], policy_kwargs={"net_arch": [256, 256]})
    model.learn(steps)
    return of_module(model.policy.q_net, model.gamma)._replace(agent=model)


def qr_dqn(env: str, steps: int) -> Asked:
    import sb3_contrib
    import torch

    layers = {"net_arch": [256, 256], "n_quantiles": 10}
    model = sb3_contrib.QRDQN("MlpPolicy", env, seed=0, device="cpu", **zoo_runs.ZOO[env], policy_kwargs=layers)
    model.learn(steps)

    def mean_of_quantiles(seen: torch.Tensor) -> torch.Tensor:
        return torch.stack(list(model.policy.quantile_net(seen)[0]))[None].mean(dim=1)

    return of_module(mean_of_quantiles, model.gamma)._replace(agent=model)


def cleanrl(env: str, steps: int) -> Asked:
    import torch_dqn

    args = torch_dqn.arguments(["--env", env, "--steps", str(steps), "--bias-every", str(steps + 1)])
    return of_module(torch_dqn.train(args)[0], args.gamma)


def critics(name: str, env: str, steps: int) -> Asked:
    """SAC, TD3 and TQC with the defaults of their libraries: the smallest of the critics, or the mean of the quantiles."""
    import sb3_contrib
    import stable_baselines3 as sb3
    import torch

    kind = sb3_contrib.TQC if name == "TQC" else getattr(sb3, name)
    model = kind("MlpPolicy", env, seed=0, device="cpu", learning_starts=1_000)
    model.learn(steps)
    low, high = model.action_space.low, model.action_space.high

    def act(seen: Any) -> Any:
        return model.predict(seen, deterministic=True)[0]

    def value(seen: Any, action: Any) -> float:
        between = torch.tensor(2.0 * (action - low) / (high - low) - 1.0).reshape(1, -1)  # as the critics see actions
        found = model.critic(torch.tensor(seen).reshape(1, -1), between)
        return float(found.mean()) if name == "TQC" else min(float(each) for each in found)

    return Asked(model, model.gamma, act, value)


class Case(NamedTuple):
    """An agent and what it is trained in."""

    agent: str
    env: str
    steps: int
    make: Callable[[str, int], Asked]

    @property
    def name(self) -> str:
        return f"{self.agent}, {self.env}"


CASES = {
    case.name: case
    for case in (
        Case("DQN (Stable-Baselines3)", "CartPole-v1", 50_000, dqn),
        Case("DQN (Stable-Baselines3)", "LunarLander-v3", 100_000, dqn),
        Case("QR-DQN (sb3-contrib)", "CartPole-v1", 50_000, qr_dqn),
        Case("QR-DQN (sb3-contrib)", "LunarLander-v3", 50_000, qr_dqn),
        Case("network as CleanRL's", "CartPole-v1", 100_000, cleanrl),
        Case("network as CleanRL's", "LunarLander-v3", 100_000, cleanrl),
        *(
            Case(f"{name} ({library})", "Pendulum-v1", 10_000, partial(critics, name))
            for name, library in (("SAC", "Stable-Baselines3"), ("TD3", "Stable-Baselines3"), ("TQC", "sb3-contrib"))
        ),
    )
}


def measure(case: Case, episodes: int) -> dict[str, Any]:
    """The three measurements of one agent."""
    import torch

    import maxmean

    torch.set_num_threads(1)
    asked = case.make(case.env, case.steps)
    given: Any = {} if hasattr(asked.agent, "gamma") else {"discount": asked.discount}  # as a user would
    ours = maxmean.measure_bias(asked.agent, case.env, episodes=episodes, **given)
    env = gymnasium.make(case.env)
    same = [word >> 1 for word in np.random.SeedSequence(0).generate_state(episodes)]
    with torch.no_grad():
        (alike, _), (own, error) = (loop(env, asked, seeds) for seeds in (same, range(FIRST, FIRST + episodes)))
    return {
        "setting": case.name,
        "steps": case.steps,
        "episodes": episodes,
        "ours": ours.value,
        "error": ours.error,
        "value": ours.predicted,
        "same": alike,
        "own": own,
        "own_error": error,
        "versions": {each: _version(each) for each in ("stable-baselines3", "sb3-contrib", "torch", "gymnasium")},
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def apart(found: dict[str, Any]) -> float:
    """How far the two measurements in different episodes are apart, in standard errors of their difference."""
    return abs(found["own"] - found["ours"]) / float(np.hypot(found["error"], found["own_error"]))


def compute(name: str, episodes: int, out: Path) -> None:
    kept.keep(measure(CASES[name], episodes), out)


def table(out: Path) -> str:
    """The results as Markdown."""
    head = "| agent | environment | steps | mean Q | bias | loop, same episodes | loop, other episodes | apart |\n"
    lines = [head + "|---|---|" + "--:|" * 6]
    for name, found in kept.read(out, CASES).items():
        cells = (
            CASES[name].agent,
            CASES[name].env,
            f"{found['steps']:,}",
            f"{found['value']:.2f}",
            f"{found['ours']:+.3f} ± {found['error']:.3f}",
            f"{found['same']:+.3f}",
            f"{found['own']:+.3f} ± {found['own_error']:.3f}",
            f"{apart(found):.1f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    asked = kept.arguments(__doc__, "episodes", 100, "out/measure").parse_args()
    kept.complete(compute, CASES, asked, asked.episodes, asked.out)
    print(table(asked.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
