"""Facts about the store: nothing half-written, nothing mixed up, damage found and named."""

from __future__ import annotations

import errno
import importlib.metadata
import json
import os
import time
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from maxmean import storage
from maxmean.lab.experiment import Shard, plain
from maxmean.lab.store import DamagedError, Store, StoreError, StudyPlan
from maxmean.storage import as_parquet
from toys import Settings, Toy

TABLE = pd.DataFrame({"a": [1.0, 2.5], "name": ["x", "<script>"]})


def shard(**changes: object) -> Shard:
    content = {"experiment": "toy", "version": 1, "settings": {"n": 3}, "part": {"shard": 0}, "seed": 0} | changes
    return Shard(**content)  # type: ignore[arg-type]


def test_what_is_written_is_read_back_with_its_manifest(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "folder")
    assert not store.has(shard())
    store.write(shard(), as_parquet(TABLE), seconds=1.5)
    assert store.has(shard())
    table, manifest = store.read(shard())
    pd.testing.assert_frame_equal(table, TABLE, check_dtype=False)
    assert manifest["settings"] == {"n": 3}
    assert manifest["seed"] == 0
    assert manifest["seconds"] == 1.5
    assert {"maxmean", "numpy", "python"} <= set(manifest["versions"])


@pytest.mark.parametrize(
    "change",
    [{"experiment": "other"}, {"version": 2}, {"settings": {"n": 4}}, {"part": {"shard": 1}}, {"seed": 1}],
    ids=lambda change: next(iter(change)),
)
def test_any_change_of_content_is_another_shard_with_other_numbers(change: dict[str, object]) -> None:
    assert shard(**change).key != shard().key
    assert shard(**change).rng().random() != shard().rng().random()


def test_the_same_content_is_the_same_shard_whatever_its_order() -> None:
    one, other = shard(settings={"a": 1, "b": [1, 2]}), shard(settings={"b": [1, 2], "a": 1})
    assert one.key == other.key
    np.testing.assert_array_equal(one.rng().random(3), other.rng().random(3))


def test_shards_of_an_experiment_draw_from_different_streams() -> None:
    first = {s.rng().random() for s in Toy().shards(Settings(shards=50), 0)}
    assert len(first) == 50


def test_the_same_table_gives_the_same_bytes() -> None:
    assert as_parquet(TABLE) == as_parquet(TABLE.copy())


@pytest.mark.parametrize("how", ["truncated", "changed", "missing", "manifest"])
def test_damage_is_found_and_named(tmp_path: Path, how: str) -> None:
    store = Store(tmp_path)
    store.write(shard(), as_parquet(TABLE), 0.0)
    table = tmp_path / "toy" / f"{shard().key}.parquet"
    manifest = table.with_suffix(".json")
    if how == "truncated":
        table.write_bytes(table.read_bytes()[:-20])
    elif how == "changed":
        table.write_bytes(table.read_bytes().replace(b"x", b"y"))
    elif how == "missing":
        table.unlink()
    else:
        manifest.write_text("{")
    with pytest.raises(DamagedError, match=str(manifest if how == "manifest" else table)):
        store.has(shard())
    store.remove(shard())
    assert not store.has(shard())


def test_a_full_disk_is_one_sentence_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    store.write(shard(), as_parquet(TABLE), 0.0)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"the disk of .* is full; what is finished is kept"):
        store.write(shard(seed=1), as_parquet(TABLE), 0.0)
    monkeypatch.undo()
    assert store.has(shard())
    assert not store.has(shard(seed=1))
    assert not list(tmp_path.rglob(f"{storage.PREFIX}*"))


def test_a_directory_of_another_version_is_refused(tmp_path: Path) -> None:
    Store(tmp_path)
    (tmp_path / "maxmean-results.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(StoreError, match=r"made by another version of maxmean \(format 99, this one writes 1\)"):
        Store(tmp_path)


def test_a_directory_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(StoreError, match="holds other files"):
        Store(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_reading_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there are no results in"):
        Store(tmp_path / "nowhere", create=False)
    assert not (tmp_path / "nowhere").exists()


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot use .*file"):
        Store(tmp_path / "file")


def test_what_killed_processes_left_is_swept_when_it_is_old(tmp_path: Path) -> None:
    Store(tmp_path)
    old, young = tmp_path / f"{storage.PREFIX}1", tmp_path / f"{storage.PREFIX}2"
    for path in (old, young):
        path.touch()
    long_ago = time.time() - 7200
    os.utime(old, (long_ago, long_ago))
    Store(tmp_path)
    assert not old.exists()
    assert young.exists()


def test_the_versions_are_kept_that_the_numbers_depend_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(shard(), as_parquet(TABLE), 0.0, ["numba"])
    versions = store.read(shard())[1]["versions"]
    assert versions["numba"] == importlib.metadata.version("numba")
    assert versions["numpy"] == np.__version__
    assert "jax" not in versions


def test_plans_are_kept(tmp_path: Path) -> None:
    store, shards = Store(tmp_path), Toy().shards(Settings(), 3)
    assert store.read_plan("toy", "quick", 3) is None
    plan = StudyPlan(plain(Settings()), shards)
    store.write_plan("toy", "quick", plan)
    assert store.read_plan("toy", "quick", 3) == plan
    assert store.seeds("toy", "quick") == [3]


def test_the_latest_plan_is_known_whatever_the_clock_says(tmp_path: Path) -> None:
    """Each is written with a clock that was set back by an hour more."""
    store, clock = Store(tmp_path), count(time.time(), -3600.0)

    def write(seed: int) -> None:
        store.write_plan("toy", "quick", StudyPlan(plain(Settings()), Toy().shards(Settings(), seed)))
        now = next(clock)
        os.utime(store.plan_path("toy", "quick", seed), (now, now))

    for seed in (1, 3, 2):
        write(seed)
    assert store.seeds("toy", "quick") == [2, 3, 1]
    before = store.plan_path("toy", "quick", 2).read_bytes()
    write(2)  # what is the latest already does not change
    assert store.plan_path("toy", "quick", 2).read_bytes() == before
    write(1)
    assert store.seeds("toy", "quick") == [1, 2, 3]


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"run": -1}', '{"run": "x"}', '{"run": 1e999}', '{"run": 99999999999999999999}']
)
def test_a_plan_without_its_number_is_the_earliest(tmp_path: Path, content: str) -> None:
    """As those of earlier versions are; of several the smallest seed comes first."""
    store = Store(tmp_path)
    store.write_plan("toy", "quick", StudyPlan(plain(Settings()), Toy().shards(Settings(), 9)))
    for seed in (5, 4):
        store.plan_path("toy", "quick", seed).write_text(content)
    assert store.seeds("toy", "quick") == [9, 4, 5]


def test_another_shards_files_under_this_ones_name_are_damage(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for each in (shard(), shard(seed=1)):
        store.write(each, as_parquet(TABLE), seconds=1.0)
    for kind in ("json", "parquet"):
        (tmp_path / "toy" / f"{shard(seed=1).key}.{kind}").replace(tmp_path / "toy" / f"{shard().key}.{kind}")
    with pytest.raises(DamagedError, match="another shard's"):
        store.read(shard())


def test_a_manifest_whose_time_is_no_number_is_damage(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(shard(), as_parquet(TABLE), seconds=1.0)
    path = tmp_path / "toy" / f"{shard().key}.json"
    path.write_text(path.read_text().replace('"seconds": 1.0', '"seconds": "abc"'))
    with pytest.raises(DamagedError, match="no manifest"):
        store.has(shard())
