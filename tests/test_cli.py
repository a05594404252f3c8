"""``maxmean estimate`` as a person at a terminal meets it: files in, an answer or one sentence out."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import maxmean as mm
from inside import maxmean
from maxmean import cli, mev
from maxmean.mev import problem
from maxmean.mev.data.limits import LONGEST_ROW
from seldom import mostly_slow, slow

RNG = np.random.default_rng(20)
DATA = {name: RNG.normal(mu, 2, 12).round(3) for name, mu in (("red", 1.0), ("green", 1.5), ("blue", -1.0))}
QUICK = ("--resamples", "40")
LONG = "option,value\na,1\na,2\nb,3\nb,5\n"
COUNTS = "option,clicks,views\na,3,50\nb,7,60\n"
SUMMARIES = "option,mean,se\na,1,0.5\nb,2,0.25\n"

NAMES = [
    "[red]x[/red]", "[/]", "\x1b[31mred\x1b[0m", "\x9b31m", "new\nline", "tab\there", "\u202ertl", "\u2028sep", "$x^2$",
    "\\$", "$\\frac", "<script>alert(1)</script>", "&amp;", "%s %d", "{}{0}", ":smile:", "😀👩\u200d👧", "日本語", "א ב",
    " edge ", "'", '"q"', "a,b;c", "--json", "nan", "true", "-", "L" * 10_000,
]  # fmt: skip


@dataclass(frozen=True)
class Answer:
    status: object
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out, parse_constant=pytest.fail)


Run = Callable[..., Answer]
Write = Callable[..., str]


@pytest.fixture(autouse=True)
def _few_possible_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an estimate's time most goes into biases at the means that the data allow: here a few will do."""
    monkeypatch.setattr(problem, "_POSSIBLE", 4)


@pytest.fixture
def run() -> Run:
    """``run("estimate", ...)`` is the command with these arguments, in this process."""

    def command(*arguments: object, stdin: bytes | None = None) -> Answer:
        found = maxmean(*arguments, stdin=stdin, columns=100)
        return Answer(found.returncode, found.stdout, found.stderr)

    return command


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write(content)`` makes a file of text, bytes or a DataFrame (as CSV or Parquet) and returns its path."""

    def file(content: str | bytes | pd.DataFrame | pa.Table, name: str = "table.csv") -> str:
        path = tmp_path / name
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        elif isinstance(content, pd.DataFrame) and path.suffix == ".parquet":
            content.to_parquet(path)
        elif isinstance(content, pd.DataFrame):
            content.to_csv(path, index=False)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return file


def shell(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """The command in a process of its own."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [sys.executable, "-m", "maxmean.cli", *arguments], **pipes | options
    )
    return process


def frames() -> dict[str, pd.DataFrame]:
    """The same observations, or what summarises them, in every layout; rows of the long table are mixed."""
    long = pd.DataFrame([(name, x) for name, values in DATA.items() for x in values], columns=["option", "value"])
    n = [len(values) for values in DATA.values()]
    sd = [np.std(values, ddof=1) for values in DATA.values()]
    means = pd.DataFrame({"option": list(DATA), "mean": [np.mean(values) for values in DATA.values()]})
    first = long.groupby("option").cumcount().eq(0)
    mixed = pd.concat([long[first], long[~first].sample(frac=1, random_state=1)])
    return {
        "long": mixed,
        "wide": pd.DataFrame(DATA),
        "se": means.assign(se=np.array(sd) / np.sqrt(n)),
        "sd": means.assign(sd=sd, n=n),
    }


FLAGS = {
    "long": ("--by", "A", "--value", "B"),
    "wide": ("--layout", "wide"),
    "se": ("--by", "A", "--mean", "B", "--se", "C"),
    "sd": ("--by", "A", "--mean", "B", "--sd", "C", "--n", "D"),
}


def close(found: Iterable[float], expected: Iterable[float]) -> None:
    np.testing.assert_allclose(list(found), list(expected), rtol=1e-12, atol=1e-12)


def moments(answer: Any) -> list[float]:
    return [number for option in answer["options"] for number in (option["mean"], option["se"])]


def values(answer: Any, methods: Iterable[str] = ("me", "ae", "we", "te", "ke")) -> list[float]:
    return [answer["estimates"][method]["value"] for method in methods]


# --- what goes in ---


SOURCES = ("csv", "parquet", "stdin", "parquet-stdin")
CASES = {
    (layout, source, named): (row + column) % 2 == 0 and named == ((row + column) % 4 == 0)
    for row, layout in enumerate(FLAGS)
    for column, source in enumerate(SOURCES)
    for named in (False, True)
}
"""Whether it is one of the few: there each layout and each source is recognised once and named once."""


@pytest.mark.parametrize("case", mostly_slow(CASES, [case for case, few in CASES.items() if few]), ids=str)
def test_every_layout_gives_the_same_estimates(run: Run, write: Write, case: tuple[str, str, bool]) -> None:
    layout, kind, named = case
    frame, flags = frames()[layout], FLAGS[layout] if named else ()
    if named and layout != "wide":
        frame = frame.set_axis(list("ABCD")[: frame.shape[1]], axis=1)
    path = write(frame, "table.parquet" if "parquet" in kind else "table.csv")
    piped = "stdin" in kind
    answer = run(
        "estimate", "-" if piped else path, "--json", *QUICK, *flags, stdin=Path(path).read_bytes() if piped else None
    )
    means = np.array([np.mean(v) for v in DATA.values()])
    errors = np.array([np.std(v, ddof=1) / np.sqrt(len(v)) for v in DATA.values()])
    assert [option["name"] for option in answer.json["options"]] == list(DATA)
    close(moments(answer.json), np.column_stack([means, errors]).ravel())
    expected = [
        means.max(),
        means.mean(),
        float(mev.weighted_estimate(means, errors**2)),
        float(mev.t_estimate(means, errors**2, 0.1)),
        float(mev.kernel_estimate(means, errors**2, mev.Gaussian())),
    ]
    close(values(answer.json), expected)
    assert [option["n"] for option in answer.json["options"]] == ([None] * 3 if layout == "se" else [12] * 3)
    kind_said = "summaries" if layout in ("se", "sd") else layout
    assert answer.err.startswith(f"Read {'standard input' if piped else path} as {kind_said}: ")
    assert answer.err.count("\n") == 1
    for column in () if layout == "wide" else frame.columns[:2]:
        assert repr(column) in answer.err
    assert answer.json["taken_for"] in answer.err


def test_files_and_python_agree_to_the_last_digit(run: Run, write: Write) -> None:
    answer = run("estimate", write(frames()["wide"]), "--unpaired", "--json", *QUICK).json
    for data in (DATA, list(DATA.values()), frames()["wide"]):
        same = mm.compare(data, paired=False, resamples=40).to_dict()
        assert moments(same) == moments(answer)
        assert values(same, same["estimates"]) == values(answer, answer["estimates"])
        assert same["maximum"] == answer["maximum"]
        for part in ("ranks", "shrinkage", "probability_best"):
            assert list(same[part].values()) == list(answer[part].values())


def test_zeros_and_ones_are_counts(run: Run, write: Write) -> None:
    rows = {"a": [1] * 3 + [0] * 17, "b": [1] * 6 + [0] * 24}
    clicks = "ad,clicked\n" + "".join(f"{name},{click}\n" for name, v in rows.items() for click in v)
    truths = clicks.replace(",1\n", ",True\n").replace(",0\n", ",false\n")
    table = pa.table({"ad": ["a"] * 20 + ["b"] * 30, "clicked": [bool(x) for v in rows.values() for x in v]})
    counts = "ad,clicks,views\na,1,5\nb,6,30\na,2,15\n"  # rows of one ad add up
    expected = run("estimate", write(counts), "--json", *QUICK).json
    assert [(o["n"], o["mean"]) for o in expected["options"]] == [(20, 0.15), (30, 0.2)]
    for content in (clicks, truths, table):
        found = run("estimate", write(content, "other"), "--json", *QUICK).json
        close(moments(found), moments(expected))
        close(values(found), values(expected))
        close(found["probability_best"].values(), expected["probability_best"].values())


@pytest.mark.parametrize(
    "content",
    [
        LONG.replace(",", ";"),
        LONG.replace(",", "\t"),
        "\ufeff" + LONG,
        LONG.replace("\n", "\r\n"),
        LONG.replace("\n", "\n\n"),
        "\n" + LONG.rstrip(),
        'option,value\n"a","1"\n"a", 2\nb,3 \n"b",5e0\n',
        '"option";"value"\n"a";"1"\na;2.0\nb;+3\nb;5.\n',
        ",option,value\n0,a,1\n1,a,2\n2,b,3\n3,b,5\n",
        "option,value,\na,1,\na,2,\nb,3,\nb,5,\n",
        pa.table({"option": pa.array(list("aabb")).dictionary_encode(), "value": pa.array([1, 2, 3, 5], pa.int8())}),
        pa.table({"option": list("aabb"), "value": [Decimal("1.0"), Decimal("2.0"), Decimal("3.0"), Decimal("5.0")]}),
        pa.table({"option": list("aabb"), "value": pa.array([1.0, 2, 3, 5]).dictionary_encode()}),
    ],
    ids=["semicolon", "tab", "bom", "crlf", "blank-lines", "no-last-newline", "quotes", "quoted-semicolon", "index",
         "last-comma", "int8-dictionary", "decimal", "number-dictionary"],
)  # fmt: skip
def test_tables_as_they_come(run: Run, write: Write, content: str | pa.Table) -> None:
    found = run("estimate", write(content), "--json", *QUICK).json
    assert found["options"] == [
        {"name": "a", "n": 2, "mean": 1.5, "se": 0.5},
        {"name": "b", "n": 2, "mean": 4.0, "se": 1.0},
    ]


def test_ragged_columns_and_quoted_line_breaks(run: Run, write: Write) -> None:
    content = '"first,\nrow",b,"tab\t"\n1,2,3\n4,5,\n"7",,\n1,,\n'
    with pytest.raises(AssertionError, match="'tab' has fewer than two"):
        _ = run("estimate", write(content), "--json").json
    found = run("estimate", write(content.replace("4,5,", "4,5,6")), "--json", *QUICK).json
    assert [(o["name"], o["n"], o["mean"]) for o in found["options"]] == [
        ("first,\nrow", 4, 3.25),
        ("b", 2, 3.5),
        ("tab", 2, 4.5),
    ]
    assert set(found["skipped"]) == {"te*", "ke*"}


@pytest.mark.parametrize("kind", [*slow("csv"), "parquet"])
def test_a_pipe_may_hand_over_one_byte_at_a_time(write: Write, kind: str) -> None:
    path = write(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]}), f"t.{kind}")
    process = shell("estimate", "-", "--json", "--quiet", "-m", "me", *QUICK, stdin=subprocess.PIPE)
    assert process.stdin
    content = Path(path).read_bytes()
    for k in range(8):
        os.write(process.stdin.fileno(), content[k : k + 1])
        time.sleep(0.01)
    out, err = process.communicate(content[8:])
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["estimates"]["me"]["value"] == 4.0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("flags", [*slow([]), ["--quiet"]])
def test_nobody_waits_in_silence_for_a_pipe(tmp_path: Path, flags: list[str]) -> None:
    os.mkfifo(pipe := tmp_path / "pipe.csv")
    with shell("estimate", str(pipe), "--json", "-m", "me", *QUICK, *flags) as process:
        assert process.stderr
        alarm = threading.Timer(60, process.kill)
        alarm.start()
        said = process.stderr.readline().decode()
        alarm.cancel()
        assert said == f"maxmean: '{pipe}' is a pipe, and nothing has come yet: waiting for whoever writes to it\n"
        with pipe.open("wb", buffering=0) as writer:
            writer.write(LONG[:5].encode())
            time.sleep(0.1)
            writer.write(LONG[5:].encode())
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out)["estimates"]["me"]["value"] == 4.0


@pytest.mark.skipif(shutil.which("bash") is None, reason="process substitution is the shell's")
@pytest.mark.parametrize(
    ("writer", "status", "said"),
    [
        pytest.param("cat table.csv", 0, "", marks=pytest.mark.slow),
        ("sleep 1; cat table.csv", 0, ""),
        ("true", 2, "maxmean: '/dev/fd/.*' is empty\n"),
    ],
)
def test_what_another_process_writes_is_read(write: Write, tmp_path: Path, writer: str, status: int, said: str) -> None:
    write(LONG)
    command = f"{sys.executable} -m maxmean.cli estimate <({writer}) --quiet --json -m me --resamples 40"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert found.returncode == status
    assert re.fullmatch(said, found.stderr)


def test_options_choose_rows_and_options(run: Run, write: Write) -> None:
    content = "land,ad,eur\nDE,a,1\nDE,a,2\nFR,a,9\nDE,b,3\nDE,b,5\nDE,c,4\nDE,b,NA\nDE,Total,15\n"
    flags = (
        "--by",
        "ad",
        "--value",
        "eur",
        "--where",
        "land = DE",
        "--where",
        "ad != Total",
        "--options",
        "a, b",
        "--drop-missing",
    )
    found = run("estimate", write(content), *flags, "--json", "--quiet", *QUICK).json
    assert [(o["name"], o["n"], o["mean"]) for o in found["options"]] == [("a", 2, 1.5), ("b", 2, 4.0)]
    assert "1 of 5 rows was left out, since 'eur' is empty there" in found["notes"]


def test_units_pair_long_rows(run: Run, write: Write) -> None:
    content = "user,ad,eur\nu1,a,1\nu2,a,2\nu3,a,4\nu3,b,9\nu2,b,5\nu1,b,3\n"
    path = write(content)
    paired = run("estimate", path, "--unit", "user", "--json", *QUICK)
    assert "paired by 'user'" in paired.err
    wide = run("estimate", write("a,b\n1,3\n2,5\n4,9\n", "wide.csv"), "--json", *QUICK).json
    assert paired.json["estimates"] == wide["estimates"]
    assert "ke*" in paired.json["estimates"]


@pytest.mark.parametrize("flags", [[], ["--quiet"], ["--json", "--quiet"]])
def test_quiet_does_not_hide_what_changes_the_answer(run: Run, write: Write, flags: list[str]) -> None:
    content = "question,old,new\n" + "".join(f"{k},{k % 2},{int(k % 3 > 0)}\n" for k in range(1, 13))
    answer = run("estimate", write(content), *flags, *QUICK)
    assert "column 'question' numbers the rows and is no option" in answer.out
    assert ("Read " in answer.err) == (flags == [])


def test_the_words_turn_with_the_direction(run: Run, write: Write) -> None:
    higher, lower = (run("estimate", write(LONG), *flags, *QUICK).out for flags in ((), ("--lower-is-better",)))
    assert "largest mean, naive" in higher
    assert "smallest mean, naive" in lower
    assert "largest" not in lower.partition("bias: from")[0]


# --- what comes out ---


def test_json_has_the_promised_keys(run: Run, write: Write) -> None:
    answer = run("estimate", write(frames()["wide"]), "--json", "--quiet", *QUICK)
    assert answer.err == ""
    found = answer.json
    assert all(set(option) == {"name", "n", "mean", "se"} for option in found["options"])
    assert list(found["estimates"]) == ["me", "ae", "de", "cve", "we", "mme", "te", "ke", "te*", "ke*"]
    for estimate in found["estimates"].values():
        assert set(estimate) == {"value", "weights", "bias"}
        assert set(estimate["weights"]) == set(DATA)
        close([sum(estimate["weights"].values())], [1])
    assert found["maximum"]["value"] == found["estimates"]["ke*"]["value"]
    assert found["maximum"]["interval"][0] <= found["maximum"]["value"] <= found["maximum"]["interval"][1]
    assert set(found["best_set"]) <= set(DATA)
    for part in ("ranks", "shrinkage", "probability_best"):
        assert set(found[part]) == set(DATA)
    for name in DATA:
        assert set(found["ranks"][name]) == {"low", "high"}
        low, high = found["shrinkage"][name]["interval"]
        assert low <= found["shrinkage"][name]["value"] <= high
    assert set(found["winner"]) == {"option", "conditional", "hybrid", "recommended", "tied"}
    assert set(found["winner"]["recommended"]) == {"value", "interval", "method"}
    assert found["winner"]["option"] == max(DATA, key=lambda name: DATA[name].mean())
    for kind in ("conditional", "hybrid"):
        assert set(found["winner"][kind]) == {"value", "interval"}


def test_json_repeats_what_python_says(run: Run, write: Write) -> None:
    found = run("estimate", write(COUNTS), "--json", "--seed", "5", *QUICK).json
    est = mm.estimate(successes={"a": 3, "b": 7}, trials={"a": 50, "b": 60}, resamples=40, seed=5)
    assert found["estimates"]["ke"]["value"] == est.value
    assert found["estimates"]["ke"]["bias"] == {"value": est.bias().value, "interval": list(est.bias().interval)}
    assert tuple(found["maximum"]["interval"]) == est.interval()
    assert tuple(found["best_set"]) == est.best_set()
    assert found["ranks"] == est.ranks().to_dict("index")
    assert {name: each["value"] for name, each in found["shrinkage"].items()} == est.shrinkage()["value"].to_dict()
    assert found["estimates"]["ke"]["weights"] == est.weights.to_dict()
    assert found["probability_best"] == est.probability_best().to_dict()
    winner = est.winner()
    assert found["winner"]["option"] == winner.option
    assert found["winner"]["recommended"]["method"] == winner.recommended.method
    for kind in ("conditional", "hybrid", "recommended"):
        assert found["winner"][kind]["value"] == getattr(winner, kind).value
        assert tuple(found["winner"][kind]["interval"]) == getattr(winner, kind).interval


def test_same_seed_same_bytes(run: Run, write: Write) -> None:
    path = write(LONG)
    first, again, other = (run("estimate", path, "--json", *QUICK, "--seed", seed) for seed in (3, 3, 4))
    assert first.out == again.out
    assert first.out != other.out
    assert first.json["options"] == other.json["options"]
    assert values(first.json) == values(other.json)
    assert first.json["winner"] == other.json["winner"]
    assert first.json["probability_best"] == other.json["probability_best"]


def test_a_method_does_not_depend_on_its_company(run: Run, write: Write) -> None:
    path = write(LONG)
    every = run("estimate", path, "--json", *QUICK).json["estimates"]
    repeated = run("estimate", path, "--json", *QUICK, "--method", "te", "-m", "de").json["estimates"]
    listed = run("estimate", path, "--json", *QUICK, "--method", "de, te").json["estimates"]
    assert repeated == listed == {method: every[method] for method in ("de", "te")}


@pytest.mark.parametrize("layout", ["long", "wide", "se", "counts"])
def test_lower_is_better_mirrors(run: Run, write: Write, layout: str) -> None:
    if layout == "counts":
        frame = pd.DataFrame({"option": ["a", "b", "c"], "clicks": [5, 8, 20], "views": [50, 60, 70]})
        mirrored, shift = frame.assign(clicks=frame["views"] - frame["clicks"]), 1.0
    else:
        frame, shift = frames()[layout], 0.0
        turned = {"long": ["value"], "wide": list(DATA), "se": ["mean"]}[layout]
        mirrored = frame.assign(**{name: -frame[name] for name in turned})
    low = run("estimate", write(frame), "--json", "--lower-is-better", *QUICK).json
    high = run("estimate", write(mirrored), "--json", *QUICK).json
    assert low["lower_is_better"]
    assert not high["lower_is_better"]
    for method, estimate in low["estimates"].items():
        other = high["estimates"][method]
        close([estimate["value"], estimate["bias"]["value"]], [shift - other["value"], -other["bias"]["value"]])
        close(estimate["bias"]["interval"], [-end for end in reversed(other["bias"]["interval"])])
        close(estimate["weights"].values(), other["weights"].values())
    assert low["winner"]["option"] == high["winner"]["option"]
    close([low["winner"]["hybrid"]["value"]], [shift - high["winner"]["hybrid"]["value"]])
    close(low["maximum"]["interval"], [shift - end for end in reversed(high["maximum"]["interval"])])
    assert (low["best_set"], low["ranks"]) == (high["best_set"], high["ranks"])
    close(low["probability_best"].values(), high["probability_best"].values())
    close([o["mean"] for o in low["options"]], [shift - o["mean"] for o in high["options"]])


@pytest.mark.parametrize(
    ("flags", "kernel"),
    [
        (["--kernel", "gaussian:0.5"], mev.Gaussian(0.5)),
        (["--kernel", "student-t:3"], mev.StudentT(3.0)),
        (["--kernel", "Beta:2,0.5"], mev.Beta(2.0, 0.5)),
        (["--kernel", "triangle"], mev.Triangle()),
        (["--kernel", "indicator:0.3", "--alpha", "0.3"], mev.Indicator(0.3)),
        (["--alpha", "0.5"], mev.Gaussian()),
    ],
)
def test_kernels_and_alpha(run: Run, write: Write, flags: list[str], kernel: mev.Kernel) -> None:
    found = run("estimate", write(SUMMARIES), "--json", *QUICK, *flags).json
    means, variances = np.array([1.0, 2.0]), np.array([0.25, 0.0625])
    alpha = float(flags[-1]) if "--alpha" in flags else 0.1
    expected = [mev.t_estimate(means, variances, alpha), mev.kernel_estimate(means, variances, kernel)]
    close(values(found, ["te", "ke"]), map(float, expected))


def test_zero_variance_follows_the_rule_of_t(run: Run, write: Write) -> None:
    answer = run("estimate", write("a,b,c\n1,2,2\n1,2,2\n"), "--json", *QUICK)
    assert values(answer.json) == [2.0, 5 / 3, 2.0, 2.0, 2.0]
    assert answer.json["estimates"]["ke"]["weights"] == {"a": 0.0, "b": 0.5, "c": 0.5}
    assert run("estimate", write("a,b,c\n1,2,2\n1,2,2\n"), *QUICK).status == 0


def test_terminal_answer_says_it_all(run: Run, write: Write) -> None:
    answer = run("estimate", write(LONG), "--quiet", *QUICK)
    assert (answer.status, answer.err) == (0, "")
    for part in (
        "2 options, higher is better",
        "P(best)",
        "maybe",
        "The largest true mean, 95% interval",
        "naive",
        "The winner, b",
        "hybrid",
        "to plan with, shrinkage",
        "picked for looking",
    ):
        assert part in answer.out
    assert "\x1b" not in answer.out


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_pictures(run: Run, write: Write, tmp_path: Path, kind: str) -> None:
    target = tmp_path / f"out.{kind.upper()}"
    answer = run("estimate", write(LONG), "--plot", target, *QUICK)
    assert f"Picture: {target}" in answer.err
    assert target.read_bytes()[:4] == {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xm"}[kind]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([target.name, "table.csv"])


@pytest.mark.parametrize("command", [["--help"], ["estimate", "-h"], ["--version"]])
def test_help(run: Run, command: list[str]) -> None:
    answer = run(*command)
    assert (answer.status, answer.err) == (0, "")
    assert "maxmean" in answer.out


# --- mistakes ---

ROWS = "option,value\n"
MISTAKES: list[tuple[str, str | bytes, list[str], list[str]]] = [
    ("empty", "", [], ["'table.csv' is empty"]),
    ("only blank lines", "\n\n", [], ["is empty"]),
    ("header only", "option,value\n", [], ["no rows"]),
    ("garbage", bytes(range(128, 256)) * 30, [], ["UTF-8", "or Parquet"]),
    ("half a parquet", b"PAR1" + bytes(200), [], ["table.csv"]),
    ("latin-1 value", "option,value\na,1\né,2\n".encode("latin-1"), [], ["row 2", "UTF-8"]),
    ("old mac", LONG.replace("\n", "\r"), [], ["carriage returns"]),
    ("open quote", '"option,value\n' + "a,1\n" * 50, [], ["quotation mark", "first line"]),
    ("huge header field", "x" * 200_000 + ",value\na,1\n", [], ["first line"]),
    ("ragged rows", ROWS + "a,1\na,2,3\n", [], ["row 2", "3 columns", "header 2"]),
    ("unknown column", LONG, ["--by", "opton"], ["'opton'", "did you mean 'option'?"]),
    ("unknown column, none near", LONG, ["--value", "zzz"], ["'zzz'", "'option', 'value'"]),
    ("two roles", COUNTS, ["--successes", "views", "--trials", "views"], ["'views'", "successes", "trials"]),
    ("role of another layout", COUNTS, ["--mean", "views", "--trials", "clicks"], ["mean", "counts"]),
    ("column twice", "a,a\n1,2\n3,4\n", [], ["'a' appears twice"]),
    ("no names", "1.5,2.5\n1,2\n3,4\n", [], ["first line holds numbers"]),
    ("no names, long", "a,2.5\na,3\nb,4\nb,4\n", [], ["first line holds numbers"]),
    ("who knows", "x,y,z\na,b,1\nc,d,2\n", [], ["'x', 'y', 'z'", "--by"]),
    ("no options' column", "value,w\n1,1\n2,2\n", ["--value", "value", "--layout", "long"], ["--by"]),
    ("no n", "option,mean,sd\na,1,2\nb,3,4\n", [], ["--n", "'option', 'mean', 'sd'"]),
    ("text", ROWS + "a,1\na,x\nb,3\nb,4\n", [], ["row 2", "'value'", "'x'"]),
    ("resamples without end", LONG, ["--resamples", "99999999999"], ["resamples", "1,000,000", "99999999999"]),
    ("draws without end", LONG, ["--draws", "1000000000000"], ["draws", "1,000,000"]),
    ("parts without end", LONG, ["--parts", "9" * 30], ["parts", "1,000"]),
    ("quote never closed", LONG + '"c,1\n', [], ["quotation mark", "never closed"]),
    ("ragged and not text", b"option,value\na,1\n\xff,2,3\n", [], ["row 2 has 3 columns"]),
    ("more trials than can be counted", "option,clicks,views\n" + f"a,1,{2**53}\n" * 2 + "b,1,5\n", [], ["'a'", "too many"]),
    ("zeros", bytes(1000), [], ["no rows"]),
    ("a zip", b"PK\x03\x04" + bytes(range(128, 256)) * 9, [], ["not a zip file"]),
    ("escapes", "\x1b[2J\u202e,value\na,1\na,x\n", [], ["'\\x1b[2J\\u202e'", "--by"]),
    ("digit separator", ROWS + "a,1_000\na,2\nb,3\nb,4\n", [], ["row 1", "'1_000'"]),
    ("text in a wide table", "a,b\n1,2\n3,oops\n4,4\n", [], ["row 2", "'b'", "'oops'"]),
    ("nan", ROWS + "a,1\na,nan\nb,3\nb,4\n", [], ["row 2", "'value'", "empty, in 1 of 4 rows"]),
    ("infinity", ROWS + "a,1\na,2\nb,-inf\nb,4\n", [], ["row 3", "'value'", "-inf"]),
    ("too large", ROWS + "a,1\na,2\nb,1e999\nb,4\n", [], ["row 3", "inf"]),
    ("empty value", ROWS + "a,1\na,\nb,3\nb,4\n", [], ["row 2", "'value'", "empty, in 1 of 4 rows", "--drop-missing"]),
    ("empty option", ROWS + "a,1\n ,2\nb,3\nb,4\n", [], ["row 2", "'option'", "no option"]),
    ("hole in a wide table", "a,b\n1,2\n,3\n4,4\n", [], ["row 2", "'a'", "empty, in 1 of 3 rows"]),
    ("one option", ROWS + "a,1\na,2\n", [], ["only one option", "'a'", "long"]),
    ("one value", ROWS + "a,1\na,2\nb,3\n", [], ["'b'", "fewer than two values", "'value'"]),
    ("one trial", "option,clicks,views\na,1,1\nb,1,5\n", [], ["'a'", "fewer than two"]),
    ("n of one", "option,mean,sd,n\na,1,1,1\nb,1,5,9\n", [], ["'a'", "fewer than two"]),
    ("more successes than trials", "option,clicks,views\na,1,5\nb,7,5\n", [], ["row 2", "7 successes out of 5"]),
    ("fraction of a click", "option,clicks,views\na,1.5,5\nb,2,5\n", [], ["row 1", "'clicks'", "1.5"]),
    ("negative count", "option,clicks,views\na,-1,5\nb,2,5\n", [], ["row 1", "'clicks'", "-1"]),
    ("too many to count", "option,clicks,views\na,1,1e17\nb,2,5\n", [], ["row 1", "'views'", "1e+17"]),
    ("negative se", "option,mean,se\na,1,2\nb,3,-4\n", [], ["row 2", "'se'", "-4"]),
    ("summarised twice", "option,mean,se\na,1,2\nb,3,4\na,2,1\n", [], ["row 3", "'a'", "row 1"]),
    ("unknown layout", LONG, ["--layout", "lng"], ["'lng'", "'long'"]),
    ("empty layout", LONG, ["--layout", ""], ["''", "summaries"]),
    ("wrong layout", LONG, ["--layout", "wide"], ["'option'", "holds text", "--unit option"]),
    ("unknown method", LONG, ["--method", "kee"], ["'kee'", "did you mean 'ke'?"]),
    ("unknown method in a list", LONG, ["--method", "te,cvee"], ["'cvee'", "'cve'"]),
    ("unknown kernel", LONG, ["--kernel", "gausian:1"], ["'gausian'", "did you mean 'gaussian'?"]),
    ("kernel of a word", LONG, ["--kernel", "gaussian:wide"], ["'gaussian'", "'wide'"]),
    ("kernel of too much", LONG, ["--kernel", "gaussian:1,2"], ["'gaussian'"]),
    ("kernel out of range", LONG, ["--kernel", "gaussian:-1"], ["scale", "-1"]),
    *[(f"alpha {a}", LONG, ["--alpha", a], ["alpha", "(0, 0.5]", a]) for a in ("0.0", "0.6", "-0.1", "nan")],
    *[(f"level {level}", LONG, ["--level", level], ["level", level]) for level in ("0.0", "1.0", "2.0", "nan")],
    ("no resamples", LONG, ["--resamples", "0"], ["resamples", "0"]),
    ("no draws", LONG, ["--draws", "0"], ["draw", "0"]),
    ("no parts", LONG, ["--parts", "0"], ["part", "0"]),
    ("negative seed", LONG, ["--seed", "-1"], ["seed", "-1"]),
    ("too few values for mme", LONG, ["--method", "mme", "--parts", "3"], ["mme", "3", "'a'"]),
    ("mme of summaries", SUMMARIES, ["--method", "mme"], ["mme", "summaries"]),
    ("unpaired te*", ROWS + "a,1\na,2\nb,3\nb,4\nb,5\n", ["--method", "te*"], ["te*", "paired"]),
    ("ke* of counts", COUNTS, ["--method", "ke*"], ["ke*", "paired"]),
    ("picture of no kind", LONG, ["--plot", "picture.jpg"], ["'picture.jpg'", ".png"]),
    ("picture nowhere", LONG, ["--plot", "nowhere/picture.png"], ["'nowhere'", "'picture.png'"]),
    ("picture is a folder", LONG, ["--plot", "folder.png", *QUICK], ["'folder.png'"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "flags", "parts"), [mistake[1:] for mistake in MISTAKES], ids=[mistake[0] for mistake in MISTAKES]
)
def test_a_mistake_is_one_sentence(
    run: Run,
    write: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: str | bytes,
    flags: list[str],
    parts: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    write(content)
    answer = run("estimate", "table.csv", *flags)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("maxmean: ")
    assert answer.err.endswith("\n")
    assert len(answer.err.splitlines()) == 1
    for part in parts:
        assert part in answer.err
    assert sorted(os.listdir()) == ["folder.png", "table.csv"]


@pytest.mark.parametrize("path", ["nope.csv", ".", "table.csv/x", "\udcff.csv", "a\nb", ""])
def test_what_is_no_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    write(LONG)
    answer = run("estimate", path)
    assert (answer.status, answer.out) == (2, "")
    assert repr(path) in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(run: Run, write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    answer = run("estimate", write(LONG), "--plot", folder / "x.png", *QUICK)
    assert (answer.status, answer.out) == (2, "")
    assert "Permission denied" in answer.err


@pytest.mark.parametrize(
    "arguments", ["estimate", "estimate x --alpha abc", "estmate x", "estimate x --nope", "estimate x y"]
)
def test_usage_errors(run: Run, arguments: str) -> None:
    answer = run(*arguments.split())
    assert (answer.status, answer.out) == (2, "")
    assert "Traceback" not in answer.err


def test_closed_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run("estimate", "-") == Answer(2, "", "maxmean: standard input is closed\n")


# --- names are data ---


def named_csv() -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["option", "value"])
    writer.writerows([name, k + x] for k, name in enumerate(NAMES) for x in (0.5, 1.25))
    return text.getvalue()


def test_json_gives_every_name_back(run: Run, write: Write) -> None:
    found = run("estimate", write(named_csv()), "--json", "-m", "ke", *QUICK).json
    names = [name.strip() for name in NAMES]
    assert [option["name"] for option in found["options"]] == names
    assert list(found["estimates"]["ke"]["weights"]) == names
    assert list(found["probability_best"]) == names
    assert found["winner"]["option"] == NAMES[-1]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_are_shown_and_never_interpreted(
    run: Run, write: Write, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    frame = pd.DataFrame({"arm": [name, name, "other", "other"], name: [5.0, 6.0, 1.0, 2.0]})
    answer = run("estimate", write(frame), "-m", "ke", *QUICK)
    assert answer.status == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", answer.out)
    assert all(c.isprintable() or c == "\n" for c in plain + re.sub(r"\x1b\[[0-9;]*m", "", answer.err))
    assert "\x1b[31m" not in answer.out + answer.err
    if name.isprintable() and name == name.strip() and len(name) < 30:
        assert f"The winner, {name}" in plain
        assert f" {name} " in plain
        assert repr(name) in answer.err
    wrong = run("estimate", write(frame.iloc[1:]), "-m", "ke", *QUICK)
    assert (wrong.status, len(wrong.err.splitlines())) == (2, 1)
    assert all(c.isprintable() for c in wrong.err[:-1])
    assert len(wrong.err) < 600
    if len(name) < 100:
        assert repr(name) in wrong.err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems' names of files are text")
def test_names_of_files_that_are_no_text(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name, folder = os.fsdecode(b"\xff"), os.fsdecode(b"d\xfe")
    Path(f"{name}.csv").write_text(LONG)
    os.mkdir(folder)
    pq.write_table(pa.table({"option": list("aabb"), "value": [1, 2, 3, 5]}), "t.parquet")
    os.rename("t.parquet", f"{folder}/{name}.parquet")
    for source in (f"{name}.csv", f"{folder}/{name}.parquet"):
        answer = run("estimate", source, "--plot", f"{folder}/{name}.svg", *QUICK)
        assert answer.status == 0
        assert answer.err.splitlines()[0].startswith(f"Read {source}".encode("ascii", "backslashreplace").decode())
        assert os.path.exists(f"{folder}/{name}.svg")
    for mistake in (
        [f"{folder}"], [f"{folder}x.csv"], [f"{name}.csv", "--plot", f"{name}/x.svg"], [f"{name}.csv", "--plot", f"x.{name}"],
        [f"{name}.csv", "--by", name], [f"{name}.csv", "--method", name], [f"{name}.csv", "--kernel", name],
    ):  # fmt: skip
        answer = run("estimate", *mistake)
        assert (answer.status, len(answer.err.splitlines())) == (2, 1)
        assert "\\udcf" in answer.err


def test_a_number_that_seeds_may_be_large(run: Run, write: Write) -> None:
    assert run("estimate", write(LONG), "--seed", 10**30, "--quiet", *QUICK).status == 0


# --- the process ---


@pytest.mark.parametrize("flags", [[], *slow(["--json"])])
def test_a_reader_that_leaves(write: Write, flags: list[str]) -> None:
    with shell("estimate", write(LONG), *QUICK, *flags, "--quiet") as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
def test_a_full_disk(write: Write) -> None:
    with open("/dev/full", "wb") as full:
        process = shell("estimate", write(LONG), *QUICK, "--json", "--quiet", stdout=full)
        _, err = process.communicate()
    assert process.returncode == 1
    assert err.decode().splitlines() == ["maxmean: cannot write the answer: No space left on device"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(5, "Input/output error", "runs/a.json"), "cannot use runs/a.json: Input/output error"),
        (OSError("odd"), "cannot write the answer: odd"),
        (OSError(), "cannot write the answer: OSError"),
    ],
)
def test_the_last_resort_names_the_path(
    error: OSError, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise error

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which it puts its own in the place of
    monkeypatch.setattr(cli, "_status", fail)
    monkeypatch.setattr(cli, "_drop_output", lambda: None)
    assert cli.run() == 1
    assert capsys.readouterr().err == f"maxmean: {said}\n"


def test_ctrl_c_ends_quietly() -> None:
    process = shell("estimate", "-", stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.write(LONG.encode() * 100_000)  # more than a pipe holds: it is being read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


def test_a_terminal_without_unicode(write: Write) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    process = shell("estimate", write("日本,b\n1,2\n3,5\n4,9\n"), *QUICK, env=environment)
    out, err = process.communicate()
    assert process.returncode == 0
    assert b"\\u65e5\\u672c" in out
    assert b"Traceback" not in err


# --- every way out ---


def ragged(folder: Path) -> str:
    """A table whose first row has a field too many: it is refused while most of it is still to be read."""
    path = folder / "ragged.csv"
    path.write_text("option,value\na,1,9\n" + "a,1\nb,2\nc,3\n" * 500_000)
    return str(path)


def ended(*arguments: str) -> tuple[int, bytes, bytes]:
    process = shell(*arguments, stdin=subprocess.DEVNULL)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return process.returncode, out, err


REFUSED = (2, b"", b"maxmean: row 1 has 3 columns, the header 2\n")


def test_a_refusal_ends_at_once(tmp_path: Path) -> None:
    path = ragged(tmp_path)
    assert [ended("estimate", path) for _ in range(3)] == [REFUSED] * 3


@pytest.mark.slow
def test_a_refusal_ends_every_time(tmp_path: Path) -> None:
    """Once in ten or twenty times the process hung or aborted after its sentence."""
    path, small, field = ragged(tmp_path), tmp_path / "small.csv", tmp_path / "field.csv"
    small.write_text("option,value\na,1\nb,2,3\n")
    field.write_text("option,value\na," + "x" * 200_000_000 + "\nb,1\n")
    assert [ended("estimate", path) for _ in range(300)] == [REFUSED] * 300
    assert [ended("estimate", str(small)) for _ in range(50)] == [(2, b"", REFUSED[2].replace(b"row 1", b"row 2"))] * 50
    found = [ended("estimate", str(field)) for _ in range(50)]
    assert found == found[:1] * 50
    assert (found[0][0], len(found[0][2].splitlines())) == (2, 1)


def test_a_reader_who_waits_does_not_keep_a_refusal_from_ending() -> None:
    """More than the parser takes at once has come, the pipe stays open, and nothing further is read from it."""
    with shell("estimate", "-", stdin=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stderr
        os.write(process.stdin.fileno(), b"option,value\na,1,9\n")
        with suppress(BrokenPipeError):
            process.stdin.write(b"a,1\n" * ((LONGEST_ROW + 8192) // 4))
            process.stdin.flush()
        assert process.wait(60) == 2
        assert process.stderr.read() == REFUSED[2]


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("print('x')", 0),
        ("raise DataError('no')", 2),
        ("raise BrokenPipeError", 1),
        ("raise KeyboardInterrupt", 130),
        pytest.param("raise MemoryError", 2, marks=pytest.mark.slow),
        pytest.param("raise OSError(28, 'full')", 1, marks=pytest.mark.slow),
        pytest.param("raise typer.Exit(7)", 7, marks=pytest.mark.slow),
    ],
)
def test_every_way_out_does_what_python_does_when_it_ends(command: str, status: int) -> None:
    """Functions that wait for the end are called, threads are waited for, buffers are written, and the status stays."""
    code = f"""
import atexit, sys, threading, time, typer
from maxmean import cli
from maxmean.mev.errors import DataError
@cli.app.command()
def go():
    atexit.register(lambda: print("last words", file=sys.stderr))
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread", file=sys.stderr))).start()
    sys.stdout.write("buffered ")
    {command}
cli.main()
"""
    process = subprocess.run([sys.executable, "-c", code, "go"], capture_output=True, text=True, timeout=60)
    assert process.returncode == status
    assert "last words\n" in process.stderr
    assert "Traceback" not in process.stderr
    assert ("thread\n" in process.stderr) == (status != 130)
    if status != 1:  # then there is nobody to write to
        assert process.stdout.startswith("buffered ")


# --- memory ---

HOSTILE = {
    "zeros": ["estimate", "/dev/zero"],
    "one word for ever": ["sh", "-c", "yes | {maxmean} estimate -"],
    "blank lines for ever": ["sh", "-c", "yes '' | {maxmean} estimate -"],
    "commas for ever": ["sh", "-c", "yes , | tr -d '\\n' | {maxmean} estimate -"],
    "a quotation mark": ["sh", "-c", "(printf 'a,b\\n\"'; yes 1,2) | {maxmean} estimate -"],
}
ENDLESS = {"rows for ever": ["sh", "-c", "(echo a,b; yes 1,2) | {maxmean} estimate -"]}


def peak(command: list[str]) -> tuple[int, int, str]:
    """Exit status, megabytes and words of a command in a shell, or of ``maxmean`` itself; half an hour is for busy machines."""
    maxmean = f"{sys.executable} -m maxmean.cli"
    words = [word.replace("{maxmean}", maxmean) for word in command]
    if words[0] != "sh":
        words = [*maxmean.split(), *words]
    meter = (
        "import resource, subprocess, sys; p = subprocess.run(sys.argv[1:], capture_output=True, timeout=1800); "
        "print(p.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, p.stderr.decode())"
    )
    found = subprocess.run([sys.executable, "-c", meter, *words], capture_output=True, text=True, check=True).stdout
    status, megabytes, said = found.split(" ", 2)
    return int(status), int(megabytes), said.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /dev/zero, or memory is counted otherwise")
@pytest.mark.parametrize("name", mostly_slow(HOSTILE, ["zeros", "a quotation mark"]))
def test_what_never_ends_is_refused_in_little_memory(name: str) -> None:
    status, megabytes, said = peak(HOSTILE[name])
    assert (status, len(said.splitlines())) == (2, 1)
    assert said.startswith("maxmean: ")
    assert megabytes < 300


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted otherwise")
def test_the_largest_tables_fit_a_gigabyte(tmp_path: Path) -> None:
    status, megabytes, said = peak(ENDLESS["rows for ever"])
    assert (status, "20,000,000 values" in said) == (2, True)
    assert megabytes < 1000
    rng = np.random.default_rng(0)
    tables = {"long": "option,value\n" + "".join(f"{'ab'[k & 1]},{k % 97}\n" for k in range(10_000_000))}
    for name, rows, options in (("wide", 2, 20_000), ("paired", 40, 2_500)):
        values = rng.normal(size=(rows, options)).round(3).tolist()
        tables[name] = "\n".join(
            [",".join(f"c{k}" for k in range(options)), *(",".join(map(str, row)) for row in values), ""]
        )
    for name, flags in (("long", []), ("wide", []), ("wide", ["--unpaired"]), ("paired", [])):
        path = tmp_path / f"{name}.csv"
        path.write_text(tables[name])
        status, megabytes, said = peak(["estimate", str(path), "--quiet", "--resamples", "5", *flags])
        assert status == (2 if (name, flags) == ("wide", []) else 0), said
        assert megabytes < 1000, (name, flags)


def test_a_covariance_matrix_from_a_file(run: Run, write: Write) -> None:
    means = write("option,mean\nx,1.0\ny,0.7\nz,0.2\n", "means.csv")
    bare = write("0.25,0.24,0\n0.24,0.25,0\n0,0,0.3\n", "bare.csv")
    named = write(",z,x,y\nx,0,0.25,0.24\ny,0,0.24,0.25\nz,0.3,0,0\n", "named.csv")
    one, other = (run("estimate", means, "--covariance", path, "--json", *QUICK).json for path in (bare, named))
    assert one == other
    assert one["maximum"]["value"] == one["estimates"]["ke*"]["value"]
    assert one["best_set"] == ["x", "z"]
    assert one["taken_for"] == "summaries: options in 'option', means in 'mean', with a covariance matrix"
    failed = run("estimate", means, "--covariance", bare, "--unpaired")
    assert failed.status == 2
    assert "choose one" in failed.err
    failed = run("estimate", means, "--covariance", means)
    assert failed.status == 2
    assert "where 4 are expected" in failed.err
    failed = run("estimate", write("x,y\n1,2\n3,4\n", "wide.csv"), "--covariance", bare, "--layout", "wide")
    assert "belongs to means" in failed.err
