"""What Matplotlib finds in the working directory: it reads a file there as soon as it is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from maxmean.drawing import check_matplotlibrc
from maxmean.untrusted import ContentError
from seldom import mostly_slow

pytest.importorskip("matplotlib")

FOUND: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "matplotlibrc is no file"),
    "no text": (lambda path: path.write_bytes(b"\xff\xfe"), "matplotlibrc is not UTF-8 text"),
    "without end": (lambda path: path.symlink_to("/dev/zero"), "matplotlibrc is no file"),
    "large": (lambda path: path.write_bytes(b"#" * 2**21), "matplotlibrc is too large: .*"),
    "unreadable": (lambda path: path.symlink_to("/proc/self/mem"), "matplotlibrc cannot be read: .*"),
}
SENTENCE = ", and Matplotlib reads it in the working directory: remove it, or work in another directory"


@pytest.mark.parametrize("what", FOUND)
def test_what_matplotlib_cannot_be_imported_with_is_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, said = FOUND[what]
    make(tmp_path / "matplotlibrc")
    monkeypatch.chdir(tmp_path)
    check_matplotlibrc()  # somebody has imported it: nothing will be read
    monkeypatch.delitem(sys.modules, "matplotlib", raising=False)
    with pytest.raises(ContentError, match=said + SENTENCE):
        check_matplotlibrc()


def test_settings_that_matplotlib_can_read_are_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "matplotlib", raising=False)
    check_matplotlibrc()
    (tmp_path / "matplotlibrc").mkdir()
    check_matplotlibrc()
    (tmp_path / "matplotlibrc").rmdir()
    (tmp_path / "matplotlibrc").write_text("text.usetex: True")
    check_matplotlibrc()


COMMANDS = {
    "estimate": "estimate table.csv --plot x.png",
    "reproduce": "reproduce kernels --out out --workers 1",
    "report": "report --out out",
    "watch": "watch minatar/breakout --gif x.gif --frames 2",
}


@pytest.mark.parametrize("command", mostly_slow(COMMANDS, ["estimate", "reproduce"]))
def test_every_command_that_draws_says_so_before_it_begins(command: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "matplotlibrc")
    (tmp_path / "table.csv").write_text("option,value\na,1\na,2\nb,3\nb,5\n")
    found = subprocess.run(
        [sys.executable, "-m", "maxmean.cli", *COMMANDS[command].split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.returncode == 2
    assert found.stderr.splitlines()[-1] == f"maxmean: matplotlibrc is no file{SENTENCE}"
    assert "Traceback" not in found.stderr
    assert found.stdout == ""
    assert not list((tmp_path / "out").glob("*/*"))
