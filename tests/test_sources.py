"""No step of the source makes code of data: names that are not written in the source are looked up in tables of ours.

The test walks the source for every call that could turn a name into something that runs. A new one must be looked at, and its
place and the reason why no file can reach it are written down here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import maxmean

SOURCE = Path(maxmean.__file__).parent

ALWAYS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "import_module",
    "attrgetter",
    "methodcaller",
    "globals",
    "locals",
    "system",
}
"""Calls that are noticed whatever their arguments are."""
BY_NAME = {"getattr": 1, "setattr": 1, "delattr": 1, "__setattr__": 1, "find_spec": 0}
"""Calls that are noticed unless the argument of this number is a text in the source."""
FORBIDDEN = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "subprocess", "ctypes"}
"""Modules that are not imported."""
EXCEPT = {"lab/mps": {"subprocess"}}
"""But here: it starts one program of NVIDIA's, by the name and with the words that are in the source."""

REASONS = {
    "deep/host/program.__reduce__": "fields of a dataclass",
    "errors.need": "packages that a caller of ours names; whether they are there, without importing them",
    "lazy.lazily": "names of a package's own table",
    "deep/agents._made_by": "names of the registry, in the source",
    "deep/agent.describe": "names in the source, on the same line",
    "deep/exploration.__repr__": "fields of a dataclass",
    "deep/exploration.checked": "names in the source, one line above",
    "deep/policy.save": "names in the source, on the same line",
    "deep/host/classes": "names of the registry, in the source",
    "envs/gymnasium_env": "one creator for each of our games",
    "deep/agent.__post_init__": "names in the source, one line above",
    "deep/device/plan.describe_environment": "fields of a dataclass",
    "deep/settings.__post_init__": "names in the source, one line above",
    "envs/minatar/game.__post_init__": "fields of a dataclass",
    "deep/host/making._share_statistics": "names in the source, one line above",
    "deep/host/making._registered": "names in the source",
    "deep/host/making.make_env": "a package that the caller named; whether it is there, without importing it",
    "deep/host/readers.evaluating": "PyTorch's name for how a module behaves when it does not learn",
    "deep/host/worlds.world_of": "names of a table in the source",
    "deep/host/worlds._check_seen": "names in the source, on the same line",
    "deep/host/settings.__post_init__": "names in the source, one line above",
    "deep/host/states._get": "names of a table in the source",
    "deep/host/states._set": "names that are in a table in the source, with values that its checks accept",
    "lab/experiment.missing": "a package that an experiment of ours names",
    "mev/data/recognise.recognise": "fields of a dataclass",
    "mev/pytrees.register": "fields of a dataclass",
    "tabular/kernels.compile_kernel": "fields of a dataclass",
    "tabular/mdp._check_outcomes": "names in the source",
    "tabular/mdp._check_shapes": "names in the source",
    "tabular/mdp.__post_init__": "names in the source",
}


def calls() -> Iterator[tuple[str, str]]:
    """Every such call: where it is, and what is called."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).with_suffix("").as_posix()
        yield from _within(ast.parse(path.read_text()), module, "")


def _within(node: ast.AST, module: str, function: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        inner = f".{child.name}" if isinstance(child, ast.FunctionDef) and not function else function
        if isinstance(child, ast.Call):
            name = child.func.attr if isinstance(child.func, ast.Attribute) else getattr(child.func, "id", "")
            if (name in ALWAYS and not _of_regex(child)) or (name in BY_NAME and not _written(child, BY_NAME[name])):
                yield f"{module}{function}", name
        yield from _within(child, module, inner)


def _of_regex(call: ast.Call) -> bool:
    """``re.compile`` and JAX's ``lowered.compile()`` compile no text of Python."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "compile"


def _written(call: ast.Call, number: int) -> bool:
    """Whether the argument of that number is a text in the source; ``object.__setattr__`` has the object first."""
    return len(call.args) > number and isinstance(call.args[number], ast.Constant)


def test_every_step_from_a_name_to_something_that_runs_has_a_reason() -> None:
    found = {where for where, _ in calls()}
    assert found - set(REASONS) == set(), "new: can a file reach it? Look it up in a table instead, or say why not"
    assert set(REASONS) - found == set(), "gone: the reason can go too"


def test_nothing_that_runs_what_it_reads_is_imported() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            module = path.relative_to(SOURCE).with_suffix("").as_posix()
            forbidden = FORBIDDEN - EXCEPT.get(module, set())
            assert not {name.partition(".")[0] for name in names} & forbidden, f"{path}: {names}"


def test_the_walk_sees_what_it_should() -> None:
    source = "def f(name):\n    def g():\n        return getattr(np.random, name)()\n    return eval(name), g\n"
    assert sorted(_within(ast.parse(source), "m", "")) == [("m.f", "eval"), ("m.f", "getattr")]
    assert not list(_within(ast.parse("getattr(x, 'y'); re.compile('z')"), "m", ""))
