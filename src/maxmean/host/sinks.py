"""Where records go: Parquet, TensorBoard, Weights & Biases; each library is imported by those who ask for it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..deep.records import Records
from ..whole import write_whole
from .errors import HostError, sentence

Sink = Callable[[dict[str, Any], Records], None]


class Sinks:
    """Those that hear of each record, closed together at the end."""

    def __init__(self) -> None:
        self.sinks: list[Sink] = []
        self.stack = ExitStack()

    def add(self, row: dict[str, Any], records: Records) -> None:
        """Hand a new record on."""
        for sink in self.sinks:
            sink(row, records)

    def __enter__(self) -> Sinks:
        return self

    def __exit__(self, *error: Any) -> None:
        self.stack.__exit__(*error)


def open_sinks(about: dict[str, Any], out: str | Path | None, step: int, *, tensorboard: bool, wandb: bool) -> Sinks:
    """Open what is asked for, all or nothing, for a training that goes on from ``step``; one sentence for what is missing."""
    sinks = Sinks()
    folder = None if out is None else _folder(Path(out), about)
    if folder is not None:
        sinks.sinks.append(lambda row, records: records.write(folder))
    with ExitStack() as stack:
        if tensorboard:
            if folder is None:
                raise HostError("TensorBoard reads from a folder: give one as out")
            # Its file is named after the second: another training that began in the same one would be written over.
            writer = _summary_writer()(str(folder / "tensorboard"), filename_suffix=f".{step}")
            stack.callback(writer.close)
            sinks.sinks.append(lambda row, records: _scalars(writer, row))
        if wandb:
            run = _begin_wandb(about)
            stack.push(lambda kind, *_: run.finish(exit_code=0 if kind is None else 1))
            sinks.sinks.append(lambda row, records: run.log(numbers(row), step=row["step"]))
        sinks.stack = stack.pop_all()
    return sinks


def numbers(row: dict[str, Any]) -> dict[str, float]:
    """What of a record can be drawn as a curve: its finite numbers, but not the step."""
    return {
        name: value
        for name, value in row.items()
        if isinstance(value, int | float) and math.isfinite(value) and name not in ("step", "seed", "learning_rate")
    }


def _scalars(writer: Any, row: dict[str, Any]) -> None:
    for name, value in numbers(row).items():
        writer.add_scalar(name, value, row["step"])
    writer.flush()


def _folder(folder: Path, about: dict[str, Any]) -> Path:
    """The folder, with what is trained in it written down."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "plan.json", json.dumps(about, indent=1).encode())
    except OSError as error:
        raise HostError(f"cannot use {folder}: {error.strerror}") from None
    return folder


def _summary_writer() -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise HostError(
                "tensorboard=True needs the package tensorboardX: pip install 'maxmean[tensorboard]'"
            ) from None
    return SummaryWriter


def _begin_wandb(about: dict[str, Any]) -> Any:
    try:
        import wandb
    except ImportError:
        raise HostError("wandb=True needs the package wandb: pip install 'maxmean[wandb]'") from None
    try:
        return wandb.init(project="maxmean", config=about)
    except wandb.errors.Error as error:
        raise HostError(f"wandb=True cannot begin: {sentence(error)} (WANDB_MODE=offline needs no account)") from None
