"""Names of tables and columns in SQL statements, and the names that a database does not distinguish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from likely.data.names import without_case
from likely.errors import ExportError, InputError, InputTypeError, listed
from likely.export.quoting import quoted_name
from likely.export.scorer import Scorer
from likely.model.result_names import check_clash, result_names

LONGEST_NAME = 63  # bytes, in PostgreSQL


def table_name(table: Any) -> str:
    """The name of a table, or of a table in a schema."""
    parts = [table] if isinstance(table, str) else table
    if not isinstance(parts, list | tuple) or not parts or not all(isinstance(part, str) for part in parts):
        raise InputTypeError(f"table={table!r} must be the name of a table, or a tuple such as ('schema', 'table').")
    if not all(parts):
        raise InputError(f"table={table!r} has an empty name. Pass the name of a table.")
    return ".".join(quoted_name(part) for part in parts)


def kept_names(keep: Any) -> list[str]:
    """The columns to keep, from any iterable of text."""
    names = list(keep) if isinstance(keep, Iterable) and not isinstance(keep, str | bytes) else [None]
    if not all(isinstance(name, str) for name in names):
        raise InputTypeError(f"keep={keep!r} must be a sequence of names of columns, such as keep=['id'].")
    return [str(name) for name in names]


def checked_names(scorer: Scorer, dialect: str, kept: Sequence[str], prefix: str) -> list[str]:
    """The names of the results; an error where the database does not distinguish names.

    Classes whose names differ by case only are not an error, because no prefix would distinguish their results.
    """
    names = result_names(scorer.classes, prefix)
    long = [name for name in names if dialect == "postgres" and len(name.encode()) > LONGEST_NAME]
    if long:
        raise ExportError(
            f"The name {listed(long)} of a result has more than {LONGEST_NAME} bytes, which PostgreSQL cuts off. "
            "Rename the class."
        )
    same, cause = (_cut, "cuts names off") if dialect == "postgres" else (without_case, "ignores the case of names")
    check_clash(names, kept, same)
    read = [scorer.inputs[j].name for j in scorer.program.inputs()]
    for where, columns in (("keep= has", kept), ("The model reads", read)):
        clash = _indistinct(columns, same)
        if clash:
            raise ExportError(
                f"{where} the columns {listed(clash)}, which are the same for dialect={dialect!r}, which {cause}. "
                "Rename or leave out one of them."
            )
    return names


def _cut(name: str) -> str:
    """A name as PostgreSQL stores it."""
    return name.encode("utf-8", "surrogatepass")[:LONGEST_NAME].decode("utf-8", "ignore")


def _indistinct(names: Sequence[str], same: Callable[[str], str]) -> list[str]:
    """The names that are equal to others for a database."""
    count = Counter(map(same, names))
    return [name for name in names if count[same(name)] > 1]
