"""The README is true: its table is what its command prints, its Python runs, its files exist."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from inside import maxmean
from maxmean.cli import app
from seldom import mostly_slow

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path not in TUTORIALS]
DOCUMENTS = [ROOT / "README.md", *PAGES, *TUTORIALS, ROOT / "CONTRIBUTING.md"]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), flags=re.M | re.S)


def test_the_table_is_what_the_demo_prints() -> None:
    (shown,) = blocks(ROOT / "README.md", "text")
    run = maxmean("estimate", "src/maxmean/data/ads.csv", cwd=ROOT, columns=80)
    assert run.returncode == 0, run.stderr
    assert [line.rstrip() for line in run.stdout.splitlines()] == shown.splitlines()


def ink(picture: np.ndarray, size: int = 30) -> np.ndarray:
    """How much red, green and blue is missing from white in each square of ``size`` pixels."""
    drawn = np.pad(1 - picture[..., :3], [(0, -picture.shape[0] % size), (0, -picture.shape[1] % size), (0, 0)])
    rows, columns = drawn.shape[0] // size, drawn.shape[1] // size
    return drawn.reshape(rows, size, columns, size, 3).sum(axis=(1, 3))


def difference(drawn: np.ndarray, shown: np.ndarray) -> float:
    """How much ink is in other squares or of another colour, as a share of the ink of ``shown``."""
    assert drawn.shape == shown.shape
    return float(np.abs(ink(drawn) - ink(shown)).sum() / ink(shown).sum())


OTHER_FONTS = 0.1
"""What another version of the fonts may change: more than moving everything by a pixel."""


def test_the_picture_is_what_the_command_draws(tmp_path: Path) -> None:
    """The same picture: the same size, and the same ink in the same places."""
    from matplotlib.image import imread

    fresh = tmp_path / "ads.png"
    run = maxmean("estimate", "src/maxmean/data/ads.csv", "--quiet", "--plot", fresh, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert difference(imread(fresh), imread(ROOT / "docs" / "ads.png")) < OTHER_FONTS


@pytest.mark.parametrize(
    ("order", "third"),
    [
        ("left to right", 1),
        ("at random", 0),
        pytest.param("top to bottom", 0, marks=pytest.mark.slow),
        pytest.param("left to right", 2, marks=pytest.mark.slow),
        pytest.param("dark to light", 2, marks=pytest.mark.slow),
    ],
)
def test_a_picture_without_a_third_of_its_ink_is_noticed(order: str, third: int) -> None:
    from matplotlib.image import imread

    shown = imread(ROOT / "docs" / "ads.png")
    darkness = (1 - shown[..., :3]).sum(axis=-1)
    down, across = np.indices(darkness.shape)
    by = {"top to bottom": down, "left to right": across, "dark to light": -darkness}
    rank = np.lexsort([np.random.default_rng(third).random(darkness.size), by.get(order, 0 * down).ravel()])
    share = np.cumsum(darkness.ravel()[rank]) / darkness.sum()
    erased = shown.reshape(-1, shown.shape[-1]).copy()
    erased[rank[(share > third / 3) & (share <= (third + 1) / 3)]] = 1
    assert difference(erased.reshape(shown.shape), shown) == pytest.approx(1 / 3, abs=0.001)
    assert difference(np.roll(shown, 1, axis=(0, 1)), shown) < OTHER_FONTS < 1 / 3


def test_the_bundled_data_is_what_its_script_makes() -> None:
    run = subprocess.run([sys.executable, "examples/make_ads.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == (ROOT / "src/maxmean/data/ads.csv").read_text()


SELDOM = ("bias.md", "deep.md", "environments.md", "gymnasium.md", "masks.md")
"""Pages that train as the README and the tutorials do, each with programs of its own to compile."""


def with_python(paths: list[Path]) -> pytest.MarkDecorator:
    """A test for each of the documents that have Python in them."""
    chosen = [path for path in paths if blocks(path, "python")]
    few = [path for path in chosen if path.name not in SELDOM]
    return pytest.mark.parametrize("path", mostly_slow(chosen, few), ids=name)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if blocks(path, "python")], ids=name)
def test_python_in_the_documents_is_python_and_finds_what_it_imports_of_us(path: Path) -> None:
    for code in blocks(path, "python"):
        tree = ast.parse(code, str(path))
        tree.body = [node for node in tree.body if isinstance(node, ast.ImportFrom) and "maxmean" in str(node.module)]
        exec(compile(tree, str(path), "exec"), {})


FOLLOWED = [path for path in [*TUTORIALS, ROOT / "docs" / "tools.md"] if blocks(path, "python")]


@with_python([path for path in DOCUMENTS if path not in TUTORIALS and path.name != "tools.md"])
def test_python_in_the_documents_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block by itself."""
    monkeypatch.chdir(tmp_path)  # where they write what they write
    for code in blocks(path, "python"):
        exec(compile(code, str(path), "exec"), {})


@pytest.mark.parametrize(
    "path",
    mostly_slow(
        FOLLOWED, [path for path in FOLLOWED if path.stem not in ("cross-validation", "gymnasium", "researcher")]
    ),  # they take their time
    ids=name,
)
def test_tutorials_can_be_followed_word_for_word(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Block after block, and where a text follows one, it is what that block prints."""
    monkeypatch.chdir(tmp_path)
    followed: dict[str, Any] = {"__name__": "tutorial"}
    for code, shown in re.findall(
        r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", path.read_text(), flags=re.M | re.S
    ):
        exec(compile(code, str(path), "exec"), followed)
        printed = capsys.readouterr().out
        if shown:
            assert [line.rstrip() for line in printed.splitlines()] == [line.rstrip() for line in shown.splitlines()]


def commands(path: Path) -> list[list[str]]:
    """The command lines of maxmean in a document's blocks for the shell, in words."""
    lines = "\n".join(blocks(path, "sh") + blocks(path, "console")).replace("\\\n", " ").splitlines()
    calls = [re.search(r"(?:^|\| )maxmean (.*)", line) for line in lines]
    return [shlex.split(call[1], comments=True) for call in calls if call]


def test_commands_are_found() -> None:
    assert ["estimate", "-"] in commands(ROOT / "README.md")
    assert sum(map(len, map(commands, DOCUMENTS))) > 30


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if commands(path)], ids=name)
def test_commands_in_the_documents_are_understood(path: Path) -> None:
    """Each is read as the command line reads it, with all its options, but not run."""
    group: Any = typer.main.get_command(app)
    for command, *arguments in commands(path):
        group.commands[command].make_context(command, arguments)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target.partition("#")[0]).exists(), target


def test_make_targets_in_the_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for path in DOCUMENTS:
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", path.read_text(), flags=re.M))
        assert named <= targets, (path.name, named - targets)
