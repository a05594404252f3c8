"""Whatever is killed, and however often, ends as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from killing import VICTIMS, Killing

KILLS = 200
"""Of each command; some fifteen minutes each on a quiet core."""


@pytest.mark.slow
@pytest.mark.parametrize("name", VICTIMS)
def test_kills_full_disks_and_jumping_clocks_change_no_bit_and_lose_nothing(name: str, tmp_path: Path) -> None:
    counts = Killing(VICTIMS[name], tmp_path, seed=17).run(KILLS)
    assert counts["kills"] >= KILLS
    assert min(counts[f"kills {where}"] for where in ("at the start", "between writes")) > 0
    assert counts["full disks"] > 0
