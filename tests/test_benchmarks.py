"""What the benchmarks say about what they measured."""

from __future__ import annotations

import importlib
import json
import re
import runpy
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.special import stdtr

import maxmean as mm

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ENVS = runpy.run_path(str(BENCHMARKS / "envs.py"))


def test_a_missed_target_is_said_of_the_table_that_shows_it_and_an_absent_peer_is_no_target_met() -> None:
    verdict, layouts = ENVS["verdict"], list(ENVS["LAYOUTS"])
    ours = {("maxmean", "given"): 1.0, ("maxmean", "before"): 4.0}
    peers = {("gymnax", "given"): 2.0, ("pgx", "given"): 1.0}
    assert verdict({(1024, "freeway"): ours | peers}, ["given"]) == "freeway x 1024 against gymnax: 0.50, not 1"
    assert verdict({(1024, "freeway"): ours | peers}, layouts) == "no target"
    assert verdict({(1024, "seaquest"): ours | peers}, layouts) == "seaquest x 1024 against gymnax: 2.00, not 3"
    assert verdict({(1024, "freeway"): ours}, layouts) == "not compared: gymnax, pgx"


PROGRAM = """HloModule step, is_scheduled=true

%fused_computation (param_0: f32[2], param_1: f32[2]) -> f32[2] {
  %param_0 = f32[2]{0} parameter(0)
  %param_1 = f32[2]{0} parameter(1)
  ROOT %add.1 = f32[2]{0} add(%param_0, %param_1), metadata={op_name="jit(learn)/while/body/add"}
}

%body (arg: (s32[], f32[2])) -> (s32[], f32[2]) {
  %arg = (s32[], f32[2]{0}) parameter(0)
  %number = s32[] get-tuple-element(%arg), index=0
  %copy.1 = f32[2]{0} copy(%number)
  %two = (f32[2]{0}, /*index=1*/f32[2]{0}) fusion(%copy.1, %copy.1), kind=kLoop, metadata={op_name="jit(learn)/while/body/add"}
  %again = f32[2]{0} bitcast(%copy.1)
  ROOT %tuple.1 = (s32[], f32[2]{0}) tuple(%number, %again)
}

ENTRY %main (begin: f32[2]) -> f32[2] {
  %begin = f32[2]{0} parameter(0)
  ROOT %while.1 = f32[2]{0} while(%begin), condition=%fused_computation, body=%body
}
"""


def test_kernels_are_what_the_loop_launches() -> None:
    """Neither what is inside a kernel nor what only reads memory in another way."""
    kernels = runpy.run_path(str(BENCHMARKS / "kernels.py"))["kernels"]
    assert kernels(PROGRAM) == [("copy", "f32[2]", ""), ("fusion", "(f32[2], f32[2])", "add")]


SEQUENCE = """000: kCommandBuffer [source | sink]
    001: kWhile        [source | sink]
  condition:
        002: kCustomKernel [source | sink] compare grid: [1, 1, 1]
      body:
        003: kCustomKernel [source        | next=004 (1)] draw grid: [1, 1, 1]
        004: kCustomKernel [prev=003 (1)  | next=006 (2)] fused_look grid: [1, 1, 1]
        005: kCustomKernel [source        | next=006 (1)] count grid: [1, 1, 1]
        006: kCustomKernel [prev=005 (1)  | sink        ] _improve grid: [1, 1, 1]
    007: kCustomKernel [prev=001 (1) | sink        ] after grid: [1, 1, 1]
"""
LOG = """I1 command_executor.cc:275] Execution graph: ExecutionGraph: 1 nodes, #source_nodes=1 #sink_nodes=1, is_sequential=true
node 0 (priority=0): in=[] out=[]

I1 command_executor.cc:275] Execution graph: ExecutionGraph: 4 nodes, #source_nodes=2 #sink_nodes=1, is_sequential=false
node 0 (priority=2): in=[] out=[NodeEdge {kind: execution, id: 1}]
node 1 (priority=1): in=[NodeEdge {kind: execution, id: 0}] out=[NodeEdge {kind: execution, id: 3}]
node 2 (priority=1): in=[] out=[NodeEdge {kind: execution, id: 3}]
node 3 (priority=0): in=[NodeEdge {kind: execution, id: 1}, NodeEdge {kind: execution, id: 2}] out=[]

"""
NAMES = ("while.1", "compare", "draw", "look.2", "count", "pallas_call.3", "after")
ALLOCATIONS = """BufferAssignment:
allocation 0: size 8, page 0, parameter 1, shape |f32[2]| at ShapeIndex {}, maybe-live-out:
 value: <0 arg_tuple.7{1} (phi) @0> (size=8,offset=0): f32[2]{0}
 value: <1 pallas_call.3{0} @0> (size=8,offset=0): f32[2]{0}
allocation 1: size 12, page 0, preallocated-temp:
 value: <2 draw @0> (size=4,offset=0): f32[]
 value: <3 look.2 @0> (size=8,offset=4): f32[2]{0}
 value: <4 count @0> (size=4,offset=0): s32[]
"""
VALUES = """Used values:
<0 arg_tuple.7{1} (phi) @0>
 uses:
  look.2, operand 1
  pallas_call.3, operand 0
 from instruction: %arg_tuple.7 = (s32[], f32[2]) parameter(0)
<1 pallas_call.3{0} @0>
 uses:
  tuple.1, operand 0
<2 draw @0>
 uses:
  look.2, operand 0
<3 look.2 @0>
 uses:
  pallas_call.3, operand 1
<4 count @0>
 uses:
  tuple.1, operand 1
"""


def test_kernels_that_touch_the_same_memory_are_seen_to_wait_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """`look` reads what `draw` wrote, and the weights that the update overwrites with what `look` found.

    `count` writes where `draw` did and `look` reads, and waits for neither; the update waits for both.
    """
    monkeypatch.syspath_prepend(BENCHMARKS)
    metadata = "".join(
        f'thunk_info {{\n profile_annotation: "{name}"\n thunk_id: {i}\n}}\n' for i, name in enumerate(NAMES, 1)
    )
    order = importlib.import_module("kernel_order")
    step = order.read_step(SEQUENCE, LOG, metadata, ALLOCATIONS, VALUES)
    assert step.names == ["draw", "look.2", "count", "pallas_call.3"]
    assert step.longest_chain() == 3
    assert step.touching() == [(0, 1), (0, 2), (1, 2), (1, 3)]
    assert step.ordered() == {(0, 1), (0, 3), (1, 3), (2, 3)}
    assert step.fused_updates() == {3}
    with pytest.raises(SystemExit, match="logged 0 graphs of 4 kernels"):
        order.read_step(SEQUENCE, LOG.replace("4 nodes", "5 nodes"), metadata, ALLOCATIONS, VALUES)


@pytest.fixture
def coverage(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("coverage")


def test_every_setting_of_the_coverage_has_its_truth(coverage: Any) -> None:
    """At least sixty, each with a name of its own; the means of 500 data sets are the true ones, to six standard errors."""
    settings = list(coverage.settings())
    assert len({each.name for each in settings}) == len(settings) >= 60
    for each in [one for one in settings if len(one.means) <= 10][::4]:
        rng = np.random.default_rng(0)
        drawn = [each.draw(rng) for _ in range(500)]
        means = np.array([_sample_means(data) for data in drawn])
        assert means.shape[1:] == each.means.shape
        error = means.std(axis=0) / len(drawn) ** 0.5
        assert (abs(means.mean(axis=0) - each.means) < 6 * error + 1e-12).all(), each.name


def test_pages_say_how_many_settings_there_are(coverage: Any) -> None:
    number = len(list(coverage.settings()))
    root = BENCHMARKS.parent
    pages = ("README.md", "docs/intervals.md", "docs/notes/inference.md", "benchmarks/coverage.py")
    for page in pages:
        (found,) = re.findall(
            r"\b(\d+) (?:simulated )?settings(?= with known truth|\. 95%)", (root / page).read_text("utf-8")
        )
        assert int(found) == number, page


def test_the_guide_has_the_least_shares_of_the_notes() -> None:
    """Of each answer, in the two kinds of data that the guide speaks of."""
    notes, guide = (
        (BENCHMARKS.parent / "docs" / page).read_text("utf-8") for page in ("notes/inference.md", "intervals.md")
    )
    worst = notes.partition("<!-- coverage: worst -->")[2].partition("<!-- end of worst -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in worst.splitlines() if line.startswith("|")]
    least = {row[0]: [cell.partition(" ")[0] for cell in row[1:3]] for row in rows[2:]}
    for row, answers in (
        ("maximum", ["maximum"]),
        ("winner: conditional, hybrid, recommended", ["conditional", "hybrid", "recommended"]),
        ("best set, ranks", ["best set", "ranks"]),
        ("the naive interval of the winner", ["naive"]),
    ):
        shares = [", ".join(least[answer][kind] for answer in answers) for kind in (0, 1)]
        assert f"| {row} | {shares[0]} | {shares[1]} |" in guide


def test_where_lower_is_better_the_smallest_is_the_best(coverage: Any) -> None:
    """Far apart, so that every answer is certain: the first has the smallest mean, and ranks the first."""
    truth, spread = np.array([0.0, 100.0, 200.0]), np.array([-1.0, 0.0, 1.0])
    for values, lower in ((truth, True), (-truth, False)):
        est = mm.estimate([each + spread for each in values], lower_is_better=lower)
        found = coverage.judged(values, est)
        assert found["maximum"] == found["best set"] == found["ranks"] == 1.0
        assert found["best set size"] == 1
        wrong = coverage.judged(-values, est)
        assert wrong["best set"] == wrong["ranks"] == 0.0


def _sample_means(data: dict[str, Any]) -> np.ndarray:
    if "data" not in data:
        return np.asarray(data["successes"]) / data["trials"]
    return (
        data["data"].mean(axis=0)
        if isinstance(data["data"], np.ndarray)
        else np.array([v.mean() for v in data["data"]])
    )


def test_coverage_is_counted_and_kept(coverage: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two blocks of twelve data sets are one of 24, but for the median width of the conditional interval."""
    name = "Gaussian, 3 options, equal, n = 5"
    setting = next(each for each in coverage.settings() if each.name == name)
    whole = [coverage.judged(setting.means, coverage.data_set(setting, k)) for k in range(24)]
    monkeypatch.setattr(coverage, "BLOCK", 12)
    for first in (0, 12):
        coverage.compute(coverage.block(name, first), tmp_path, "")
    assert len(coverage.results(tmp_path, 12)) == 1
    found = coverage.results(tmp_path, 24)[name]
    assert (found["setting"], found["data_sets"]) == (name, 24)
    for answer in ("maximum", "hybrid", "ranks", "shrunk winner"):
        assert found[answer] == pytest.approx(np.mean([row[answer] for row in whole]))
    naive = np.mean([row["naive width"] for row in whole])
    assert found["hybrid width"] == pytest.approx(np.mean([row["hybrid width"] for row in whole]) / naive)
    for answer, size in coverage.ANSWERS.items():
        assert answer == "tied" or 0.5 < found[answer] <= 1.0, answer
        assert not size or found[size] > (0.5 if answer in ("top", "shrinkage") else 1.0), size
    assert found["best set size"] <= 3.0
    assert found["warned"] == 1.0  # five observations are few
    assert name in coverage.table({name: found})
    assert f"({name})" in coverage.worst({name: found})
    assert name not in coverage.peers({name: {"setting": name, "data_sets": 3}})


def test_the_peer_gets_the_same_problems(coverage: Any, tmp_path: Path) -> None:
    """A stand-in answers with the largest of the means that it is given, give or take one: its width and coverage are known."""
    peer = tmp_path / "peer"
    peer.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        "print(json.dumps([[max(each['means']) - 1, max(each['means']) + 1] for each in json.load(sys.stdin)]))\n"
    )
    peer.chmod(0o755)
    setting = next(each for each in coverage.settings() if each.name == "Gaussian, 3 options, equal, n = 5")
    found = coverage.compare_with_peer(setting, str(peer))
    estimates = [coverage.data_set(setting, k) for k in range(coverage.PEER_SETS)]
    errors = [est.problem.standard_errors[int(np.argmax(est.problem.means))] for est in estimates]
    assert found["theirs width"] == pytest.approx(1 / (1.959964 * np.mean(errors)), rel=1e-6)
    assert found["theirs"] == np.mean([abs(max(est.problem.means)) <= 1 for est in estimates])
    assert found["ours width"] > 1


def test_planning_errors_are_counted_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    planning = importlib.import_module("planning")
    settings = list(planning.settings())
    assert len({each.name for each in settings}) == len(settings) >= 30
    for each in settings:
        truth, data = each.draw(np.random.default_rng(0))
        assert len(mm.estimate(**data).problem.names) == len(truth)
    name = "3 options, one ahead by 8"
    planning.compute(name, 20, tmp_path)
    assert name in planning.table(tmp_path)
    (path,) = tmp_path.iterdir()
    found = json.loads(path.read_text())
    # Far ahead nothing has to be corrected: all are about as good as the sample mean, which has one standard error.
    for key in ("winner naive", "winner hybrid", "maximum me", "maximum ke"):
        assert 0.4 < found[key] < 1.8


def test_lifts_plans_and_looks_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A few experiments each; that all, or none, of them hold where most do would be a mistake in the counting."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    lift, plans, anytime = (importlib.import_module(name) for name in ("lift", "plans", "anytime"))
    for module in (lift, plans, anytime):
        names = [each.name for each in module.settings()]
        assert len(set(names)) == len(names) >= 7
    for each in lift.settings():
        est = mm.estimate(**each.draw(np.random.default_rng(0)), **each.how, control="v0")
        spread = est.problem.spread
        errors = np.sqrt(spread if spread.ndim == 1 else spread.diagonal())
        assert (np.abs(np.array(est.problem.means) - each.means) < 6 * errors).all(), each.name
    lift.compute("means, 4 equal, n = 5", 10, tmp_path)
    assert "means, 4 equal, n = 5" in lift.table(tmp_path)
    found = lift.measure(next(lift.settings()), 10)
    assert found["difference"] >= 0.6
    assert found["best_naive"] > found["best_corrected"]
    looked = anytime.measure(next(anytime.settings()), 20)
    assert looked["usual"] > 0.2
    assert max(looked[name] for name in ("winner", "maximum", "lift")) <= 0.3
    kept = plans.measure(next(each for each in plans.settings() if "far apart" in each.name), 30)
    assert 0.5 <= kept["reached"] <= 1.0


def test_the_loop_beside_measure_bias_finds_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With an untrained network: in the same episodes but for rounding, in others within four standard errors."""
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(BENCHMARKS)
    measure = importlib.import_module("measure")
    case = measure.CASES["network as CleanRL's, CartPole-v1"]._replace(steps=1)
    found = measure.measure(case, 20)
    assert found["same"] == pytest.approx(found["ours"], rel=1e-4)
    assert measure.apart(found) < 4.0
    measure.kept.keep(found, tmp_path)
    assert f"{found['ours']:+.3f} ± {found['error']:.3f}" in measure.table(tmp_path)


@pytest.fixture
def bias_interval(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("bias_interval")


def test_the_problems_of_the_bias_interval_have_their_bias(bias_interval: Any) -> None:
    """The mean over 40,000 episodes is within five errors of the true bias; one of seven is not in 1 of 100,000 seeds."""
    problems = list(bias_interval.problems())
    assert len({each.name for each in problems}) == len(problems) == 7
    for each in problems:
        sums, counts = each.play(np.random.default_rng(0), 40_000)
        bias = sums.sum() / counts.sum()
        error = np.std(sums - bias * counts) / counts.mean() / len(sums) ** 0.5
        assert abs(bias - each.bias) < 5 * error, each.name


def test_the_bias_interval_holds_as_often_as_is_known(bias_interval: Any) -> None:
    """Of 1,000 measurements from ten episodes; shares four of their standard errors away come once in 10,000 seeds.

    Of fixed length and with normal rewards, the mean over its error has Student's distribution with nine degrees of freedom: the
    share within two errors is known, and the interval, which has no more degrees of freedom, holds in 95% or more (97.5% by the
    table). Where one in twenty differs, the interval has no width without such an episode, and holds with one.
    """
    fixed, rare = (
        next(each for each in bias_interval.problems() if each.name == name)
        for name in ("fixed length", "one in twenty")
    )
    found = bias_interval.measure(fixed, 10, 1_000)
    two_errors = float(1 - 2 * stdtr(9, -2.0))
    assert found.two_errors == pytest.approx(two_errors, abs=4 * (two_errors * (1 - two_errors) / 1_000) ** 0.5)
    assert found.two_errors < found.interval
    assert 0.95 <= found.interval < 0.995
    seen = 1 - 0.95**10
    assert bias_interval.measure(rare, 10, 1_000).interval == pytest.approx(
        seen, abs=4 * (seen * (1 - seen) / 1_000) ** 0.5
    )


@pytest.fixture
def host_gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("host_gpu")


def test_both_sides_of_a_comparison_learn_as_often(host_gpu: Any) -> None:
    """From two environments, with two updates in every third call after the warm-up: in 24 calls these are eight less two."""
    ours, peers = importlib.import_module("host_ours"), importlib.import_module("host_peers")
    load = peers.Load("minatar", 2, 3, 2, 500, 12)
    agent, loop = ours.host_agent("dqn", load), peers.Loop(load, "cpu")
    ours.advancing(agent)(24)
    loop.advance(24)
    steps = [int(state["step"]) for state in loop.optimizer.state.values()]
    assert agent.driver.clock.updates == 12
    assert steps == [12] * 6
    assert agent.driver.clock.stored == loop.stored == 48
    here, there = (
        sum(each.size for each in _arrays(weights)) for weights in (agent.driver.run.learner.weights, loop.q)
    )
    assert here == there


def _arrays(weights: Any) -> list[Any]:
    import jax

    return (
        [each.detach().numpy() for each in weights.parameters()]
        if hasattr(weights, "parameters")
        else jax.tree.leaves(weights)
    )


def test_frames_that_stand_for_a_game_roll_on(host_gpu: Any) -> None:
    worlds = importlib.import_module("host_worlds")
    env = worlds.Frames(2, seconds=0.002)
    before, _ = env.reset(seed=0)
    assert not before[:, :-1].any()
    begin, ends = time.perf_counter(), 0
    for _ in range(worlds.EPISODE):
        after, _, over, truncated, info = env.step(np.zeros(2, np.int64))
        assert not truncated.any()
        reached = info["final_obs"] if over.any() else after
        np.testing.assert_array_equal(reached[:, :-1], before[:, 1:])
        assert not after[over, :-1].any()
        before, ends = after, ends + over.sum()
    assert ends == 2 - 1  # the second began in the middle of an episode
    assert time.perf_counter() - begin > 0.002 * worlds.EPISODE


def test_a_rate_is_compared_with_the_best_peer_in_the_same_place(host_gpu: Any) -> None:
    def turns(*rates: float) -> list[dict[str, Any]]:
        return [{"rate": rate, "device": "abacus"} for rate in rates]

    first, other = host_gpu.LOADS[:2]
    found = host_gpu.table(
        {
            host_gpu.Case("dqn", first): turns(10.0, 30.0, 20.0),
            host_gpu.Case("Stable-Baselines3", first): turns(4.0),
            host_gpu.Case("PyTorch loop", first): turns(5.0),
            host_gpu.Case("dqn", other): turns(7.0),
            host_gpu.Case("ke-bdqn", other): [],
        }
    )
    rows = [line.split(" | ")[1:] for line in found.splitlines()[2:]]
    assert [row[:4] for row in rows] == [
        ["dqn", "20", "10 to 30", "4.00"],
        ["Stable-Baselines3", "4", "4 to 4", ""],
        ["PyTorch loop", "5", "5 to 5", ""],
        ["dqn", "7", "7 to 7", ""],
    ]


def test_standing_cases_take_turns(host_gpu: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What libraries print is no answer, the first turn does not count, and a case that breaks is left out and named."""
    standing = importlib.import_module("standing")
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys\nsys.path.insert(0, {str(BENCHMARKS)!r})\nfrom standing import stand\nturns = []\n"
        "def turn():\n    print('hello'); turns.append(sys.argv[2]); assert turns != ['b', 'b'], 'enough'\n"
        "    return {'turns': turns}\nstand(turn)\n"
    )
    assert standing.in_turns(str(script), {"a": {}, "b": {}}, [], 2) == {
        "a": [{"turns": ["a"] * 2}, {"turns": ["a"] * 3}]
    }
    assert "left out: b" in (said := capfd.readouterr().err)
    assert "AssertionError: enough" in said


@pytest.mark.slow
def test_both_ways_to_launch_are_timed_on_the_same_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has its own program; without a GPU they are alike. Runs of which one has gone a step further are not the same."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    bench = importlib.import_module("launching")
    monkeypatch.setattr(bench, "SECONDS", 0.1)
    print(bench.measure("dqn:1:freeway"))
    row = capsys.readouterr().out.strip("| \n").split(" | ")
    assert (row[:3], row[-1]) == (["dqn", "1", "freeway"], "yes")
    assert all(float(cell) > 0 for cell in row[3:6])
    pair = [bench.Training("dqn", 1, "freeway", {}) for _ in range(2)]
    assert pair[0].block.compiled.learn is not pair[1].block.compiled.learn
    assert bench.same(*pair)
    pair[0].advance(1)
    assert not bench.same(*pair)


@pytest.mark.slow
def test_tests_are_timed_one_by_one_and_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of episodes that are cut short; which way is faster depends on the machine, and is not asked for here."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    at_once = importlib.import_module("tests_at_once")
    timed = at_once.seconds
    monkeypatch.setattr(at_once, "seconds", lambda name, runs, tests: timed(name, runs, tests, limit=20))
    at_once.main(["dqn:1"])
    row = capsys.readouterr().out.splitlines()[-1].strip("| ").split(" | ")
    assert row[:2] == ["dqn", "1"]
    assert all(float(cell) > 0 for cell in row[2:])


@pytest.fixture
def fused_update(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark of the fused update, for a small layer; its kernels are interpreted on a CPU."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    bench = importlib.import_module("fused_update")
    small = {"LAYER": (32, 128), "UPDATES": 2, "TURNS": 2, "ROWS": (16, 32), "COLUMNS": (64,), "WARPS": (4,)}
    for name, value in small.items():
        monkeypatch.setattr(bench, name, value)
    return bench


def cells(printed: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines()[2:]]


def test_ways_to_write_the_fused_update_compute_the_same(
    fused_update: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A way that cannot be compiled says so, and the others go on."""
    fused_update.main(["--runs", "2"])
    rows = cells(capsys.readouterr().out)
    tiles, own = [["16", "64", "4"], ["32", "64", "4"]], ["2", "32", "64", "4", "plain"]
    assert [row[:5] for row in rows] == [
        own,
        *(["2", *tile, way] for tile in tiles for way in ("plain", "turned")),
        own,
    ]
    assert [row[-1] for row in rows] == ["", *["yes"] * 5]

    def refused(*_: object) -> None:
        raise ValueError("no | such tile\nat all")

    monkeypatch.setattr(fused_update, "turned", refused)
    fused_update.main(["--runs", "2"])
    rows = cells(capsys.readouterr().out)
    assert [row[5] for row in rows if row[4] == "turned"] == ["no / such tile"] * 2
    assert [row[-1] for row in rows if row[4] == "plain"] == ["", "yes", "yes", "yes"]
    monkeypatch.setattr(fused_update, "turned", Mock(side_effect=AssertionError))
    fused_update.main(["16:64:4:turned", "24:64:4", "--runs", "1"])
    first, turned, odd, last = cells(capsys.readouterr().out)
    assert (first[:5], last[:5]) == (["1", *own[1:]],) * 2
    assert (turned[5], odd[5]) == ("AssertionError", "32 x 128 cannot be cut into such tiles")


def test_a_way_is_handed_to_the_kernel(fused_update: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = importlib.import_module("maxmean.deep.core.fused")
    own, tiles, called = (fused.ROWS, fused.COLUMNS, fused.WARPS), [], fused.pl.pallas_call

    def recorded(kernel: Any, **options: Any) -> Any:
        tiles.append((options["grid"], options["out_specs"][0].block_shape, fused.WARPS))
        return called(kernel, **options)

    monkeypatch.setattr(fused.pl, "pallas_call", recorded)
    fused_update.Way(16, 32, 8, turned=False).updates(fused_update.arguments_of(1))
    assert {*tiles} == {((4, 2), (16, 32), 8)}
    assert own == (fused.ROWS, fused.COLUMNS, fused.WARPS)


def test_the_speed_of_an_update(fused_update: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two updates of 32 x 128 numbers of 4 bytes, each moved seven times, take a millisecond."""
    clock = iter(np.arange(0.0, 1.0, 0.001))
    monkeypatch.setattr(fused_update.time, "perf_counter", lambda: next(clock))
    line, _ = fused_update.measure(fused_update.Way(32, 64, 4, turned=False), 3, None)
    assert line == f"| 3 | 32 | 64 | 4 | plain | 500.0 | {7 * 3 * 32 * 128 * 4 / 0.0005 / 1e12:.2f} |  |"


def test_other_results_are_told_apart(fused_update: Any) -> None:
    """Also where only what goes back differs."""
    way = fused_update.Way(32, 64, 4, turned=False)
    _, came_out = fused_update.measure(way, 1, None)
    for i in range(4):
        other = [leaf.at[0, 0, 0].add(1.0) if i == k else leaf for k, leaf in enumerate(came_out)]
        assert fused_update.measure(way, 1, other)[0].endswith("| no |")


def test_all_ways_fit_the_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's own among them."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    bench = importlib.import_module("fused_update")
    fused = importlib.import_module("maxmean.deep.core.fused")
    ways = {(way.rows, way.columns, way.warps) for way in bench.ways()}
    assert all(bench.LAYER[0] % rows == bench.LAYER[1] % columns == 0 for rows, columns, _ in ways)
    assert (fused.ROWS, fused.COLUMNS, fused.WARPS) in ways
    assert fused.fits(*bench.LAYER, bench.BATCH)
