"""A run's two checkpoints: the newest, and the one before it, which serves when the newest is damaged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...whole import appearing
from ..directory import writing
from .errors import HostError

if TYPE_CHECKING:
    from .algorithm import Algorithm


class Keeper:
    """Keeps a training in a folder. There is a whole newest file at every moment, once there is one at all."""

    def __init__(self, folder: Path) -> None:
        self.newest, self.before = folder / "training.safetensors", folder / "training-before.safetensors"
        self.sound = False
        """Whether the newest is known to be whole, and so worth to be the one before."""

    def load(self, kind: type[Algorithm], env: Callable[[], Any], say: Callable[[str], None]) -> Algorithm | None:
        """The agent as it was kept last; None if it never was."""
        faults: list[str] = []
        for path in (self.newest, self.before):
            if not path.exists():
                continue
            try:
                agent = kind.load(path, env())
            except HostError as fault:
                faults.append(str(fault))
                continue
            if faults:
                say(f"{faults[0]}; going back to the one before.")
            self.sound = path == self.newest
            return agent
        if faults:
            raise HostError(f"{faults[0]}; no sound one is beside it: remove {self.newest.parent} to begin anew")
        return None

    def save(self, agent: Algorithm) -> None:
        """Keep the agent, and what was the newest as the one before."""
        if self.sound and not (self.before.exists() and self.before.samefile(self.newest)):
            with writing(self.before), appearing(self.before) as beside:
                beside.unlink()
                try:
                    os.link(self.newest, beside)
                except OSError:  # a disk without links
                    shutil.copyfile(self.newest, beside)
        agent.save(self.newest)
        self.sound = True
