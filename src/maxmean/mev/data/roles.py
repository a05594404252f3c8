"""Which column plays which role in a layout: what the user has not said is guessed from names and types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from ..errors import DataError
from .aliases import alias, error_of, labels_rows, limits_of
from .first_look import FirstLook
from .layout import listed, quoted

_LOOKED_AT = 1000  # rows


def roles_of(kind: str, table: FirstLook, covaries: bool) -> tuple[dict[str, str], float | None, tuple[str, ...]]:
    """The column of every role that the layout needs: what the user has not said is guessed from names and types."""
    roles, level = dict(table.said), None
    if kind == "long":
        roles |= _long_roles(table, roles)
    elif kind == "counts":
        if "successes" not in roles and "rate" not in roles:
            role = "successes" if alias("successes", _free(table, roles)) else "rate"
            roles[role] = _guess(role if alias(role, _free(table, roles)) else "successes", table, roles)
        if "trials" not in roles:
            roles["trials"] = _guess("trials", table, roles)
    else:
        level = _summary_roles(table, roles, covaries)
    if "by" not in roles and (by := _guess_by(table, roles)) is not None:
        roles["by"] = by
    if "by" not in roles and kind == "long":
        raise DataError("no column tells the options apart: name it with by (--by)")
    if kind == "counts":
        return roles, level, tuple(_other_counts(table, roles))
    return roles, level, _unpaired(table, roles) if kind == "long" else ()


def _other_counts(table: FirstLook, roles: Mapping[str, str]) -> Iterator[str]:
    """A sentence on a column that could be the successes or the trials as well as the one that was guessed."""
    for role in ("successes", "trials"):
        if role in roles and role not in table.said:
            others = [name for name in _free(table, roles) if table.kinds[name] == "number" and alias(role, [name])]
            if others:
                yield f"the {role} are those in {roles[role]!r}; --{role} {quoted(others[0])} takes those in {others[0]!r}"


def _unpaired(table: FirstLook, roles: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence on a column by which rows could be paired: its values stand beside several options, once beside each."""
    for name in filter(labels_rows, _free(table, roles)) if "unit" not in roles else ():
        units, options = (_codes(table, column) for column in (name, roles["by"]))
        if len(set(units)) < len(units) == len(set(zip(units, options, strict=True))):
            return (f"rows with the same {name!r} are not paired; --unit {quoted(name)} pairs them",)
    return ()


def _codes(table: FirstLook, column: str) -> list[int]:
    """A number for each value of the first rows, the same for the same value."""
    values = table.batch.column(column).slice(0, _LOOKED_AT)
    try:
        return list(values.dictionary_encode().indices.to_pylist())
    except pa.ArrowException:  # lists, structures and the like, which are refused elsewhere
        return list(range(len(values)))


def _free(table: FirstLook, roles: Mapping[str, str]) -> list[str]:
    return [name for name in table.names if name not in roles.values()]


def _long_roles(table: FirstLook, said: Mapping[str, str]) -> dict[str, str]:
    roles = dict(said)
    by = _guess_by(table, roles) if "by" not in roles else None
    if by is None and "by" not in roles:
        truths = table.of_kind("truth")
        by = truths[0] if len(truths) == 1 and len(table.numeric) == 1 else table.index
    roles |= {"by": by} if by else {}  # first, so that numbered options are not mistaken for the values
    if "value" not in roles:
        free = _free(table, roles)
        candidates = [name for name in free if table.kinds[name] in ("number", "truth")]
        measured = [name for name in candidates if not labels_rows(name)]
        found = alias("value", free) or next((each[0] for each in (candidates, measured) if len(each) == 1), None)
        if found is None:
            raise DataError(
                f"no column is known to hold the value: name it with value (--value); there are {listed(table.names)}"
            )
        roles["value"] = found
    return roles


def _summary_roles(table: FirstLook, roles: dict[str, str], covaries: bool) -> float | None:
    """Fill in the roles of summaries; returns the level of the confidence limits, if their names tell it."""
    free = [name for name in table.numeric if name not in roles.values()]
    level = None
    pair = error_of(free)
    if "mean" not in roles:
        if not alias("mean", free) and pair and "se" not in roles:
            roles["mean"] = pair[0]
        else:
            roles["mean"] = (
                alias("mean", free) or alias("rate", free) or alias("value", free) or _guess("mean", table, roles)
            )
    free = [name for name in free if name not in roles.values()]
    limits = limits_of(free)
    if covaries:
        se = None if "sd" in roles else alias("se", free)
        roles |= {"se": se} if se and "se" not in roles else {}
    elif not ({"se", "lower", "upper"} & set(roles) or {"sd", "n"} <= set(roles)):
        own = pair[1] if pair and pair[0] == roles["mean"] else None
        se = None if {"sd", "n"} & set(roles) else alias("se", free) or own
        if se:
            roles["se"] = se
        elif limits and not alias("sd", free) and "sd" not in roles:
            roles["lower"], roles["upper"], level = limits
        else:
            roles |= {role: roles.get(role) or _guess(role, table, roles) for role in ("sd", "n")}
    for role in ("lower", "upper"):
        if {"lower", "upper"} & set(roles) and role not in roles:
            roles[role] = _guess(role, table, roles)
    if "n" in table.names and "n" not in (*roles, *roles.values()):
        roles["n"] = "n"
    return level


def _guess(role: str, table: FirstLook, roles: Mapping[str, str]) -> str:
    free = _free(table, roles)
    found = alias(role, free)
    if found is None:
        hint = ""
        if role == "sd" and "mean" in roles and alias("trials", free):
            n = alias("trials", free)
            hint = f", or give --se; if {roles['mean']!r} is a share of {n!r}, --rate {quoted(roles['mean'])}"
        raise DataError(
            f"no column is known to hold the {role}: name it with {role} (--{role}){hint}; there are {listed(table.names)}"
        )
    return found


def _guess_by(table: FirstLook, roles: Mapping[str, str]) -> str | None:
    free = _free(table, roles)
    text = [name for name in free if table.kinds[name] == "text"]
    return alias("by", free) or (text[0] if len(text) == 1 else None if text else table.index)
