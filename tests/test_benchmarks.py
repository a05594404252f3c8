"""What the benchmarks say about what they measured."""

from __future__ import annotations

import runpy
from pathlib import Path

ENVS = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "envs.py"))


def test_a_missed_target_is_said_of_the_table_that_shows_it_and_an_absent_peer_is_no_target_met() -> None:
    verdict, layouts = ENVS["verdict"], list(ENVS["LAYOUTS"])
    ours = {("maxmean", "given"): 1.0, ("maxmean", "before"): 4.0}
    peers = {("gymnax", "given"): 2.0, ("pgx", "given"): 1.0}
    assert verdict({(1024, "freeway"): ours | peers}, ["given"]) == "freeway x 1024 against gymnax: 0.50, not 1"
    assert verdict({(1024, "freeway"): ours | peers}, layouts) == "no target"
    assert verdict({(1024, "seaquest"): ours | peers}, layouts) == "seaquest x 1024 against gymnax: 2.00, not 3"
    assert verdict({(1024, "freeway"): ours}, layouts) == "not compared: gymnax, pgx"
