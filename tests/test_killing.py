"""Whatever is killed, and however often, ends as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from killing import VICTIMS, Killing, interrupted_elsewhere

KILLS = 200
"""Of each command; some fifteen minutes each on a quiet core."""


@pytest.mark.slow
@pytest.mark.parametrize("name", VICTIMS)
def test_kills_full_disks_and_jumping_clocks_change_no_bit_and_lose_nothing(name: str, tmp_path: Path) -> None:
    counts = Killing(VICTIMS[name], tmp_path, seed=17).run(KILLS)
    assert counts["kills"] >= KILLS
    assert min(counts[f"kills {where}"] for where in ("at the start", "between writes")) > 0
    assert counts["full disks"] > 0


@pytest.mark.parametrize(
    ("where", "elsewhere"),
    [
        ('File "/there/src/maxmean/cli.py", line 14, in <module>', True),
        ('File "/there/site-packages/jax/_src/lib/__init__.py", line 132, in _xla_gc_callback', True),
        ('File "/there/src/maxmean/cli.py", line 44, in run', False),
        (
            'File "/there/src/maxmean/deep/train.py", line 9, in train\n  File "/there/numpy/f.py", line 1, in mean',
            False,
        ),
    ],
)
def test_an_interrupt_elsewhere_is_told_from_one_in_our_code(where: str, elsewhere: bool) -> None:
    assert interrupted_elsewhere(f"Traceback (most recent call last):\n  {where}\nKeyboardInterrupt\n") == elsewhere
    assert interrupted_elsewhere(f"Exception ignored in: <function f>\n  {where}\nKeyboardInterrupt: \n") == elsewhere
    assert not interrupted_elsewhere(f"Traceback (most recent call last):\n  {where}\nValueError: no\n")
