"""Records: one row for each run at each test, as tidy tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ..storage import as_parquet, write_whole
from ..untrusted import Check, ContentError, mapping, real, several, take, text, whole
from .core.measuring import Measurement
from .runs import RunId

TABLES = ("records", "heads", "quantiles")

RECORD_COLUMNS = {
    "step": "int64",
    "agent": "str",
    "variant": "str",
    "learning_rate": "float64",
    "seed": "int64",
    "test_return": "float64",
    "bias": "float64",
    "bias_error": "float64",
    "alpha": "float64",
    "scale": "float64",
    "loss": "float64",
    "value": "float64",
    "epsilon": "float64",
    "train_return": "float64",
    "episodes": "int64",
    "bias_pairs": "int64",
    "diverged": "int64",
}
"""``alpha`` and ``scale`` are the parameter in use where the agent has such a one; ``loss`` and ``value`` (mean Q) are means over
the updates, ``train_return`` over the training episodes that ended, all since the last record; ``diverged`` is the step at which
the loss stopped being finite, or -1.
"""

_RUN_COLUMNS = {"step": "int64", "variant": "str", "learning_rate": "float64", "seed": "int64"}
HEAD_COLUMNS = {**_RUN_COLUMNS, "head": "int64", "bias": "float64"}
QUANTILE_COLUMNS = {**_RUN_COLUMNS, "fifth": "int64", "value": "float64", "bias": "float64"}
"""``fifth`` 0 holds the fifth of the visited pairs with the smallest predicted values."""

_COLUMNS = {"records": RECORD_COLUMNS, "heads": HEAD_COLUMNS, "quantiles": QUANTILE_COLUMNS}
LONGEST_LABEL = 1000
"""Characters of an agent's or a variant's name in a table that is read."""
_CHECKS: dict[str, Check[Any]] = {"int64": whole(-1), "float64": real, "str": text}


class Records:
    """The tables of a training, as they grow."""

    def __init__(self, rows: dict[str, list[dict[str, Any]]] | None = None) -> None:
        self.rows = rows or {name: [] for name in TABLES}

    @classmethod
    def checked(cls, rows: dict[str, Any]) -> Records:
        """The tables of a file, if they have the columns of records and values of their kinds."""
        found: dict[str, list[dict[str, Any]]] = {}
        for table, columns in _COLUMNS.items():
            found[table] = list(take(rows, table, several(mapping)))
            for row in found[table]:
                if set(row) != set(columns):
                    raise ContentError(f"a row of its {table} has other columns than {', '.join(columns)}")
                for name, kind in columns.items():
                    take(row, name, _CHECKS[kind])
        return cls(found)

    def add(self, runs: Sequence[RunId], step: int, found: Measurement) -> list[dict[str, Any]]:
        """Add what was measured of runs at a step; gives the new rows of the main table."""
        return [self.add_run(run, step, jax.tree.map(lambda leaf, i=i: leaf[i], found)) for i, run in enumerate(runs)]

    def add_run(self, run: RunId, step: int, found: Measurement) -> dict[str, Any]:
        """Add what was measured of one run at a step; gives the new row of the main table."""
        agent = run.variant.agent
        who = {"variant": run.variant.label, "learning_rate": run.variant.learning_rate, "seed": run.seed}
        bias, tally = found.bias, found.tally
        updates, episodes = max(int(tally.updates), 1), int(tally.episodes)
        learned = int(tally.updates) > 0
        parameter = float(np.mean(found.parameter))
        if agent.bootstrapped:
            self.rows["heads"] += [
                {"step": step, **who, "head": head, "bias": float(value)} for head, value in enumerate(bias.heads)
            ]
        self.rows["quantiles"] += [
            {"step": step, **who, "fifth": fifth, "value": float(value), "bias": float(each)}
            for fifth, (value, each) in enumerate(zip(bias.values, bias.quantiles, strict=True))
        ]
        row = {
            "step": step,
            "agent": agent.name,
            **who,
            "test_return": float(found.test_return),
            "bias": float(bias.mean),
            "bias_error": float(bias.error),
            "alpha": parameter if agent.parameter_name == "alpha" else np.nan,
            "scale": parameter if agent.parameter_name == "scale" else np.nan,
            "loss": float(tally.loss) / updates if learned else np.nan,
            "value": float(tally.value) / updates if learned else np.nan,
            "epsilon": float(agent.exploration.epsilon(jnp.int32(step))),
            "train_return": float(tally.returns) / episodes if episodes else np.nan,
            "episodes": episodes,
            "bias_pairs": int(bias.pairs),
            "diverged": int(found.diverged),
        }
        self.rows["records"].append(row)
        return row

    def reach(self, runs: Iterable[tuple[RunId, int]], interval: int, stride: int = 1) -> bool:
        """Whether the tests are there that each run had on its way to its step, one every ``interval``; and of no other run.

        Where ``stride`` environments are stepped side by side, a test is so many steps late at most.
        """
        ways = {(run.variant.label, run.variant.learning_rate, run.seed): step for run, step in runs}
        tested = {(row["variant"], row["learning_rate"], row["seed"], row["step"]) for row in self.rows["records"]}
        if tested and {each[:3] for each in tested} != set(ways):
            return False
        return all(
            any((*who, test + late) in tested for late in range(stride))
            for who, step in ways.items()
            for test in range(interval, step + 1, interval)
        )

    def frame(self, table: str = "records") -> pd.DataFrame:
        """A table, in the order of steps, variants and seeds."""
        columns = _COLUMNS[table]
        frame = pd.DataFrame(self.rows[table], columns=list(columns)).astype(columns)
        keys = [key for key in ("step", "variant", "learning_rate", "seed", "head", "fifth") if key in columns]
        return frame.sort_values(keys, ignore_index=True, kind="stable")

    def write(self, folder: Path) -> None:
        """Write all tables, each whole and in its own place."""
        for table in TABLES:
            write_whole(folder / f"{table}.parquet", as_parquet(self.frame(table)), within=folder)

    @classmethod
    def read(cls, folder: Path, most: int) -> Records:
        """The tables that :meth:`write` wrote; :class:`ContentError` if they are others, or have more than ``most`` rows."""
        return cls({name: read_table(folder / f"{name}.parquet", name, most).to_dict("records") for name in TABLES})


def read_table(path: Path, table: str = "records", most: int = 2**20) -> pd.DataFrame:
    """A table that was written here, or what a stranger put in its place: :class:`ContentError` if it is not such a one."""
    import pyarrow as pa
    import pyarrow.parquet

    columns = _COLUMNS[table]
    texts = [name for name, kind in columns.items() if kind == "str"]
    if not path.is_file():
        raise ContentError(f"{path.name} is no file")
    try:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            if file.metadata.num_rows > most:
                raise ContentError(f"{path.name} has {file.metadata.num_rows:,} rows")
            if file.schema_arrow.names != list(columns):
                raise ContentError(f"{path.name} has other columns")
            for column in file.schema_arrow:
                if not _holds(column.type, columns[column.name]):
                    raise ContentError(f"{path.name} has a column {column.name} of another kind")
        # A text that is repeated stays one text until it is known how long it is: a small file can hold gigabytes of them.
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False) as file:
            # Without its metadata: pandas would take its word for how to read it. In one thread: no other outlives an error.
            found = file.read(use_threads=False).replace_schema_metadata(None)
        for name in texts:
            for chunk in found[name].chunks:
                if any(label is None or len(label) > LONGEST_LABEL for label in chunk.dictionary.to_pylist()):
                    raise ContentError(f"{path.name} has a text in its column {name} that is no label")
        return found.to_pandas(ignore_metadata=True, use_threads=False).astype(columns)
    except ContentError:
        raise
    except (pa.ArrowException, ValueError, TypeError, OverflowError, OSError) as error:
        raise ContentError(f"{path.name} cannot be read: {' '.join(str(error).split())[:100]}") from None


def _holds(kind: Any, wanted: str) -> bool:
    """Whether a column of Arrow's is one of texts or of numbers, as is wanted."""
    import pyarrow.types as types

    if wanted == "str":
        return bool(types.is_string(kind) or types.is_large_string(kind))
    return bool(types.is_integer(kind) or types.is_floating(kind))


def latest(frame: pd.DataFrame, columns: Sequence[str] = ("test_return", "bias")) -> pd.DataFrame:
    """The means over the seeds of each variant's last records."""
    last = frame[frame["step"] == frame["step"].max()]
    return last.groupby(["variant", "learning_rate"], sort=False)[list(columns)].mean()
