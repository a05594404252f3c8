"""Where records go: Parquet, TensorBoard, Weights & Biases; each library is imported by those who ask for it."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ...errors import missing
from ...storage import refuse_links
from ...untrusted import ContentError
from ..directory import PLAN, alone, check_name, system_error, unwritten, write_plan, writing
from ..records import Records, read_table
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


def open_sinks(
    about: dict[str, Any], out: str | Path | None, step: int, records: Records, *, tensorboard: bool, wandb: bool
) -> Sinks:
    """Open what is asked for, all or nothing, for a training that goes on from ``step``; one sentence for what is missing."""
    sinks = Sinks()
    with ExitStack() as stack:
        folder = None if out is None else stack.enter_context(_folder(Path(out), about, records))
        if folder is not None:
            sinks.sinks.append(lambda row, records: _tables(folder, records))
        if tensorboard:
            if folder is None:
                raise HostError("TensorBoard reads from a folder: give one as out")
            with writing(folder / "tensorboard"):
                refuse_links(folder / "tensorboard", folder)
            board = stack.enter_context(_Board(folder / "tensorboard", step))
            sinks.sinks.append(board.add)
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


def _tables(folder: Path, records: Records) -> None:
    with writing(folder / "records.parquet"):
        records.write(folder)


PATIENCE = 60.0
"""Seconds that TensorBoard may take for a record."""


class _Board:
    """TensorBoard's file. What its libraries make of a full disk is one sentence: they raise anything, or wait for ever for a
    thread of theirs that has died of it.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self.folder, self.stuck = folder, False
        kind = _summary_writer()
        # Its file is named after the second: another training that began in the same one would be written over.
        self.writer = self._do(lambda: kind(str(folder), filename_suffix=f".{step}"))

    def add(self, row: dict[str, Any], records: Records) -> None:
        def write() -> None:
            for name, value in numbers(row).items():
                self.writer.add_scalar(name, value, row["step"])
            self.writer.flush()

        self._do(write)

    def __enter__(self) -> _Board:
        return self

    def __exit__(self, *error: object) -> None:
        if not self.stuck:
            self._do(self.writer.close)

    def _do(self, act: Callable[[], Any]) -> Any:
        results: list[Any] = []
        failures: list[Exception] = []

        def run() -> None:
            try:
                results.append(act())
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        if failures:
            (error,) = failures
            why = error if isinstance(error, OSError) and error.strerror else system_error(error)
            raise HostError(unwritten(self.folder, why)) from None
        if not results:
            self.stuck = True
            raise HostError(
                unwritten(self.folder, OSError(0, "TensorBoard's library does not answer; is the disk full?"))
            )
        return results[0]


@contextmanager
def _folder(folder: Path, about: dict[str, Any], records: Records) -> Iterator[Path]:
    """The folder, with what is trained in it written down, and held: nobody else trains in it meanwhile."""
    check_name(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"cannot use {folder}: {error.strerror}") from None
    with alone(folder):
        _refuse_another(folder, records)
        with writing(folder / PLAN):
            write_plan(folder, "agent", about)
        yield folder


def _refuse_another(folder: Path, records: Records) -> None:
    """Refuse a folder with records that are not this training's: it would write over them."""
    path = folder / "records.parquet"
    if not os.path.lexists(path):
        return
    try:
        there = read_table(path)
    except ContentError as fault:
        raise HostError(
            f"{path} is there already and is no training's table ({fault}); choose another directory"
        ) from None
    own = records.frame()
    rows = min(len(own), len(there))
    if len(there) and not (rows and own.head(rows).equals(there.head(rows))):
        raise HostError(
            f"{folder} holds the records of another training, to step {there['step'].max():,}, and this agent would write over "
            "them; choose another directory"
        )


def _summary_writer() -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise HostError(missing("tensorboard=True", "tensorboardX", extra="tensorboard")) from None
    return SummaryWriter


def _begin_wandb(about: dict[str, Any]) -> Any:
    try:
        import wandb
    except ImportError:
        raise HostError(missing("wandb=True", "wandb")) from None
    try:
        return wandb.init(project="maxmean", config=about)
    except wandb.errors.Error as error:
        raise HostError(f"wandb=True cannot begin: {sentence(error)} (WANDB_MODE=offline needs no account)") from None
