"""Names of tables and columns as databases and files hold them."""

from __future__ import annotations


def double_quoted(name: str) -> str:
    """A name in double quotes, as all SQL dialects read it."""
    return '"' + name.replace('"', '""') + '"'


def without_case(name: str) -> str:
    """A name as DuckDB, SQLite and Spark compare it: they ignore the case of ASCII letters."""
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates, which stand for bytes that are not UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
