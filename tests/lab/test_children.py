"""Facts about child processes: what they start with, how they are told to stop, and what is known of their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from child_work import be_deaf, die, tell_about, wait_for_ctrl_c
from maxmean.lab.children import Child, LostError, stop


def test_a_child_has_variables_of_its_own_and_leaves_the_terminals_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAXMEAN_TOLD", "before")
    child = Child(tell_about, "MAXMEAN_TOLD", environment={"MAXMEAN_TOLD": "child"})
    assert os.environ["MAXMEAN_TOLD"] == "before"
    assert child.hear() == ("child", True)
    child.end()
    assert child.process.exitcode == 0


def test_how_a_child_ended_is_known() -> None:
    child = Child(die, environment={})
    with pytest.raises(LostError, match="killed by SIGKILL"):
        child.hear()
    assert "MAXMEAN_TOLD" not in os.environ


def test_children_are_stopped_as_by_ctrl_c(tmp_path: Path) -> None:
    child = Child(wait_for_ctrl_c, tmp_path / "kept", environment={})
    child.hear()
    begin = time.monotonic()
    stop([child])
    assert (tmp_path / "kept").read_text() == "kept"
    assert child.process.exitcode == 130
    assert time.monotonic() - begin < 30


def test_children_follow_a_killed_parent() -> None:
    program = (
        "from maxmean.lab.children import Child\n"
        "from child_work import say_who_and_wait\n"
        "if __name__ == '__main__':\n"
        "    child = Child(say_who_and_wait, environment={})\n"
        "    print(child.hear(), flush=True)\n"
        "    child.hear()\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command, env = [sys.executable, "-c", program], os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(child, 0)  # it is there
        parent.kill()
    deadline = time.monotonic() + 60
    while runs(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.1])
def test_a_child_that_is_stopped_while_it_imports_says_nothing(
    moment: float, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    child = Child(wait_for_ctrl_c, tmp_path / "kept", environment={})
    time.sleep(moment)
    stop([child])
    assert child.process.exitcode == 130
    assert capfd.readouterr().err == ""
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_child_that_does_not_stop_is_ended() -> None:
    child = Child(be_deaf, environment={})
    child.hear()
    stop([child], patience=0.2)
    assert child.process.exitcode == -signal.SIGKILL
