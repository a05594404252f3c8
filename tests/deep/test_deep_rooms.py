"""The rooms of deep and the one list of agents: what imports what, and what a new agent takes."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import maxmean
from maxmean import deep
from maxmean.deep import agents
from maxmean.deep.agent import Agent
from maxmean.deep.agents import AGENTS
from maxmean.deep.host import HOST_AGENTS, HostAgent
from maxmean.deep.registry import FUNCTIONS, REGISTRY, USAGE

ROOM = Path(deep.__file__).parent

WHAT_AN_AGENT_IS = {
    "agent",
    "agents",
    "checks",
    "registry",
    "targets",
    "exploration",
    "networks",
    "recommended",
    "settings",
}
WHAT_STAYS = {
    "records",
    "policy",
    "checkpoint",
    "directory",
    "watch",
    "progress",
    "runs",
    "spread",
    "tasks",
    "telling",
    "places",
}
MAY_IMPORT = {
    **dict.fromkeys(WHAT_AN_AGENT_IS, WHAT_AN_AGENT_IS),
    "core": WHAT_AN_AGENT_IS | {"core"},
    **dict.fromkeys(WHAT_STAYS, WHAT_AN_AGENT_IS | {"core"} | WHAT_STAYS),
    "device": WHAT_AN_AGENT_IS | {"core", "device"} | WHAT_STAYS,
    "host": WHAT_AN_AGENT_IS | {"core", "host"} | WHAT_STAYS,
}
"""Which parts of deep each part may import; the package itself is above all of them."""


def imported(path: Path) -> Iterator[str]:
    """The parts of deep that a file imports, also inside its functions."""
    package = ("deep", *path.relative_to(ROOM).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package[: len(package) - node.level + 1]
        module = (*base, *(node.module or "").split(".")) if node.module else base
        if module == ("deep",):
            yield from (name.name for name in node.names if name.name.islower())
        elif module[:1] == ("deep",):
            yield module[1]


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: path.relative_to(ROOM).as_posix())
def test_imports_point_downwards(path: Path) -> None:
    part = path.relative_to(ROOM).parts[0].removesuffix(".py")
    if part != "__init__":
        assert set(imported(path)) <= MAY_IMPORT[part]


def test_the_registry_is_all_there_is_to_a_new_agent() -> None:
    """Every function that makes an agent is on the list, and everything that has agents has those of the list."""
    made = {
        name for name, each in vars(agents).items() if getattr(each, "__annotations__", {}).get("return") == "Agent"
    }
    assert made - {"parse_agent", "_ensemble"} == set(FUNCTIONS)
    assert list(AGENTS) == [each.name for each in REGISTRY]
    assert list(HOST_AGENTS) == [each.name for each in REGISTRY if not each.paired]
    for each in REGISTRY:
        agent = AGENTS[each.name]()
        assert agent.name == each.name
        if each.paired:
            assert agent == getattr(deep, each.function)(paired=True)
    for name, kind in HOST_AGENTS.items():
        make = AGENTS[name]
        agent = make()
        assert isinstance(agent, Agent)
        assert agent.name == name
        assert getattr(deep, make.__name__) is make
        assert getattr(maxmean, make.__name__) is kind
        assert issubclass(kind, HostAgent)
        assert kind.make is make
        assert kind.__doc__ == make.__doc__
    assert set(FUNCTIONS) <= set(dir(maxmean)) & set(dir(deep)) & set(dir(deep.host))


def test_the_list_for_the_command_line_says_what_each_takes() -> None:
    """An agent whose line says so takes something after the colon; the others refuse it."""
    assert USAGE.startswith("dqn, ddqn, scdqn:BETA, maxmin-dqn:N, ")
    values = {"KERNEL": "gaussian", "N": "2", "HEADS": "2"}
    for each in REGISTRY:
        text = f"{each.name}:{values.get(each.takes, '0.2')}"
        if each.takes:
            assert agents.parse_agent(text).name == each.name
        else:
            with pytest.raises(deep.AgentError, match="takes no number"):
                agents.parse_agent(text)


def test_the_list_needs_no_jax() -> None:
    code = "import sys, maxmean.deep.registry, maxmean.commands.train; print('jax' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
