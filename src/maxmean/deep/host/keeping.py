"""A run's two checkpoints: the newest, and the one before it, which serves when the newest is damaged."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...mev.show import shortened
from ...storage import appearing
from ..checks import AgentError
from ..directory import difference, writing
from . import saving
from .errors import HostError

if TYPE_CHECKING:
    from .agent import HostAgent


class Keeper:
    """Keeps a training in a folder. There is a whole newest file at every moment, once there is one at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.newest, self.before = folder / "training.safetensors", folder / "training-before.safetensors"
        self.sound = False
        """Whether the newest is known to be whole, and so worth to be the one before."""

    def load(self, new: HostAgent, env: Callable[[], Any], say: Callable[[str], None]) -> HostAgent | None:
        """The agent as it was kept last, if it is what ``new`` is at its beginning; None if it never was kept."""
        faults: list[str] = []
        for path in (self.newest, self.before):
            if not path.exists():
                continue
            try:
                agent = type(new).load(path, env())
                _refuse_another(agent.describe(), new.describe(), path)
                _refuse_untested(agent, path)
            except (HostError, AgentError) as fault:
                faults.append(str(fault))
                continue
            if faults:
                say(f"{faults[0]}; going back to the one before.")
            self.sound = path == self.newest
            return agent
        if faults:
            raise HostError(f"{faults[0]}; no sound one is beside it: remove {self.newest.parent} to begin anew")
        return None

    def save(self, agent: HostAgent) -> None:
        """Keep the agent, and what was the newest as the one before."""
        if self.sound and not self._same():
            with writing(self.before), appearing(self.before, within=self.folder) as beside:
                if self.newest.is_symlink():  # its content is kept, not where it leads
                    shutil.copyfile(self.newest, beside)
                else:
                    beside.unlink()
                    try:
                        os.link(self.newest, beside)
                    except OSError:  # a disk without links
                        shutil.copyfile(self.newest, beside)
        saving.save(agent, self.newest, within=self.folder)
        self.sound = True

    def _same(self) -> bool:
        """Whether the newest is the one before already: a kill came between the two steps."""
        return self.before.exists() and not self.before.is_symlink() and self.before.samefile(self.newest)


def _refuse_untested(agent: HostAgent, path: Path) -> None:
    """Refuse a checkpoint that says it is further than its records reach."""
    way, stride = [(agent.run_id, agent.num_timesteps)], agent.driver.world.n
    if not agent.records.reach(way, agent.settings.test_interval, stride):
        raise HostError(f"{path} is at step {agent.num_timesteps:,}, and its records do not reach there")


def _refuse_another(there: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
    """Refuse a checkpoint of other settings than those that the command asks for."""
    found = difference(json.loads(json.dumps(there)), json.loads(json.dumps(wanted)))
    if found:
        raise HostError(f"{path} holds another training: {shortened(found, 300)}")
