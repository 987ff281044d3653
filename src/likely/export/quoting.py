"""Names, text and numbers as literals of SQL and JavaScript."""

from __future__ import annotations

import json
import math
from typing import Any

from likely.data.names import double_quoted, is_unicode
from likely.errors import ExportError


def quoted_name(name: str) -> str:
    """A name of a table or column in double quotes, as all SQL dialects read it."""
    return double_quoted(_checked(name, "name"))


def quoted_text(text: str) -> str:
    """Text in single quotes."""
    return "'" + _checked(text, "text").replace("'", "''") + "'"


def comment_text(text: str) -> str:
    """Text within a comment of SQL, which it neither ends nor nests; control characters and line breaks are escaped."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in _checked(text, "text"))
    return shown.replace("*/", "* /").replace("/*", "/ *")


def _checked(text: str, what: str) -> str:
    """Raise for text that databases do not hold."""
    if "\0" in text:
        raise ExportError(f"The {what} {text!r} contains a NUL character, which SQL cannot express. Rename it.")
    if not text and what == "name":
        raise ExportError("A name is empty, which SQL cannot express. Rename the column.")
    return check_utf8(text, what)


def check_utf8(text: str, what: str) -> str:
    """The text; an error where UTF-8 cannot express it."""
    if not is_unicode(text):
        raise ExportError(f"The {what} {text!r} contains a lone surrogate, which UTF-8 cannot express. Rename it.")
    return text


def number_text(value: float) -> str:
    """A finite number with an exponent, so that it is read as a double and not as an exact decimal."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def sql_label(label: Any, dialect: str = "duckdb") -> str:
    """A class label as a literal."""
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, str):
        return quoted_text(label)
    if isinstance(label, int):
        check_integer("class label", label, 2**63 - 1)
        return str(label) if label >= 0 else f"({label})"
    if isinstance(label, float) and math.isfinite(label):
        text = number_text(label)
        text = text if label >= 0.0 else f"({text})"
        return f"{text}::float8" if dialect == "postgres" else text  # else PostgreSQL reads an exact decimal
    raise unsupported("class label", label)


def javascript_value(value: Any) -> str:
    """Text, a number or a boolean as a literal; line separators and </script> are escaped."""
    if not isinstance(value, bool | str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise unsupported("value", value)
    if isinstance(value, int):
        check_integer("value", value, 2**53)
    return json.dumps(value, ensure_ascii=True).replace("<", "\\u003c")


def check_integer(what: str, value: int, largest: int) -> None:
    """Raise for a whole number that another system does not hold exactly."""
    if abs(value) > largest:
        raise ExportError(
            f"The {what} {value!r} cannot be exported: whole numbers beyond ±{largest} are not exact there. Convert it "
            "to text before the fit."
        )


def unsupported(what: str, value: Any) -> ExportError:
    """The error for labels and categories of types that other systems do not have."""
    return ExportError(
        f"The {what} {value!r} of type {type(value).__name__} cannot be exported: only text, booleans and finite "
        "numbers can. Convert it to text before the fit."
    )
