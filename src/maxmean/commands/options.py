"""Options made from the settings that they set: their names, kinds, defaults and words stand in the dataclass alone."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import fields
from itertools import pairwise
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

F = TypeVar("F", bound=Callable[..., None])


def options_of(
    settings: type, *, panel: str | None = None, spelled: Mapping[str, str] | None = None
) -> list[inspect.Parameter]:
    """An option for each field of a dataclass, in a panel of the help; ``spelled`` are those that are not spelled as their field.

    An option that is not given is None, so that other defaults can take its place; the help shows the field's own default, and
    the first sentence of the docstring beneath the field.

    >>> from maxmean.deep.settings import AgentOptions
    >>> [each.name for each in options_of(AgentOptions)][:3]
    ['k', 'mask', 'alpha']
    """
    words, kinds, flags = docstrings(settings), get_type_hints(settings), spelled or {}
    return [
        option(
            each.name, kinds[each.name], each.default, words.get(each.name, ""), flag=flags.get(each.name), panel=panel
        )
        for each in fields(settings)
    ]


def option(
    name: str,
    kind: Any,
    default: Any,
    words: str,
    *,
    flag: str | None = None,
    metavar: str | None = None,
    panel: str | None = None,
) -> inspect.Parameter:
    """One option; ``flag`` is how it is spelled if not as its name, ``metavar`` what its value is called if not by its kind.

    What is true or false is a flag without a value. The help shows the default, unless that is None.
    """
    spelled = flag or f"--{name.replace('_', '-')}"
    if kind is bool:
        about = typer.Option(spelled, metavar="", help=words, rich_help_panel=panel, show_default=False)
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, about])
    shown = False if default is None else _shown(default)
    about = typer.Option(spelled, metavar=metavar, help=words, rich_help_panel=panel, show_default=shown)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, about]
    )


def takes(*options: inspect.Parameter) -> Callable[[F], F]:
    """Let a command take these options, which reach it in its ``**given``: those alone that were given."""

    def decorate(command: F) -> F:
        def called(*args: Any, **named: Any) -> None:
            absent = {each.name for each in options if named[each.name] is None or named[each.name] is False}
            command(*args, **{name: value for name, value in named.items() if name not in absent})

        signature = inspect.signature(command, eval_str=True)
        own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        called.__name__, called.__doc__ = command.__name__, command.__doc__
        called.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in (*own, *options)}
        return called  # type: ignore[return-value]

    return decorate


def docstrings(settings: type) -> dict[str, str]:
    """The first sentence of the text beneath each field of a dataclass, by field; Python itself forgets these texts."""
    body = ast.parse(textwrap.dedent(inspect.getsource(settings))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in pairwise(body.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                found[name] = " ".join(words.split()).partition(". ")[0].rstrip(".") + "."
    return found


def _shown(default: Any) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)
