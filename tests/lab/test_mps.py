"""Facts about NVIDIA's multi-process service: started and stopped by us, or used as it is found. A script stands in for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maxmean.lab.mps import CONTROL, multi_process_service

SCRIPT = """#!/bin/sh
folder="${CUDA_MPS_PIPE_DIRECTORY:-$USUAL}"
if [ "$1" = -d ]; then
    echo "starts in $folder" >> "$LOG"
    [ -z "$BROKEN" ] || exit 1
    touch "$folder/control"
    exit 0
fi
[ -e "$folder/control" ] || { echo "Cannot find MPS control daemon process"; exit 1; }
read -r command
case "$command" in
    quit) echo "stops in $folder" >> "$LOG"; rm "$folder/control";;
    get_default_active_thread_percentage) echo 100.0;;
esac
"""
"""What the program does of which we know: it starts a service at a pipe, and passes a command to the one that is there."""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in is installed; it writes down what it does."""
    (tmp_path / "usual").mkdir()
    control = tmp_path / "bin" / CONTROL
    control.parent.mkdir()
    control.write_text(SCRIPT)
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{control.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("USUAL", str(tmp_path / "usual"))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    (tmp_path / "log").touch()
    return tmp_path / "log"


def test_without_it_there_are_no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said: list[str] = []
    with multi_process_service(said.append) as variables:
        assert variables is None
    assert said == [f"NVIDIA's multi-process service ({CONTROL}) is not installed."]


def test_one_of_our_own_is_started_at_a_pipe_of_its_own_and_stopped(log: Path) -> None:
    with multi_process_service(print) as variables:
        assert variables is not None
        folder = Path(variables["CUDA_MPS_PIPE_DIRECTORY"])
        assert (folder / "control").exists()
        assert variables == {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
        assert log.read_text() == f"starts in {folder}\n"
    assert log.read_text() == f"starts in {folder}\nstops in {folder}\n"
    assert not folder.exists()


def test_a_running_one_is_used_and_goes_on(log: Path, tmp_path: Path) -> None:
    (tmp_path / "usual" / "control").touch()
    with multi_process_service(print) as variables:
        assert variables == {}
    assert log.read_text() == ""
    assert (tmp_path / "usual" / "control").exists()


def test_one_that_does_not_start_is_said(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "yes")
    said: list[str] = []
    with multi_process_service(said.append) as variables:
        assert variables is None
    assert said == [f"NVIDIA's multi-process service ({CONTROL}) does not start here."]


def test_it_stops_even_if_we_are_killed(log: Path) -> None:
    program = (
        "import time\n"
        "from maxmean.lab.mps import multi_process_service\n"
        "if __name__ == '__main__':\n"
        "    with multi_process_service(print):\n"
        "        print('ready', flush=True)\n"
        "        time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert "stops" not in log.read_text()
        os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while "stops" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
