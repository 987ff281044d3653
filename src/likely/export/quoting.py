"""Names, text and numbers as literals of SQL and JavaScript."""

from __future__ import annotations

import json
import math
from typing import Any

from likely.errors import ExportError


def quoted_name(name: str) -> str:
    """A name of a table or column in double quotes, as all SQL dialects read it."""
    return '"' + _checked(name, "name").replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Text in single quotes."""
    return "'" + _checked(text, "text").replace("'", "''") + "'"


def _checked(text: str, what: str) -> str:
    """Raise for text that databases do not hold."""
    if "\0" in text:
        raise ExportError(f"The {what} {text!r} contains a NUL character, which SQL cannot express. Rename it.")
    if any(0xD800 <= ord(character) < 0xE000 for character in text):
        raise ExportError(f"The {what} {text!r} contains a lone surrogate, which UTF-8 cannot express. Rename it.")
    if not text and what == "name":
        raise ExportError("A name is empty, which SQL cannot express. Rename the column.")
    return text


def number_text(value: float) -> str:
    """A finite number with an exponent, so that it is read as a double and not as an exact decimal."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def sql_label(label: Any) -> str:
    """A class label as a literal."""
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, str):
        return quoted_text(label)
    if isinstance(label, int):
        if not -(2**63) <= label < 2**63:
            raise unsupported("class label", label)
        return str(label) if label >= 0 else f"({label})"
    if isinstance(label, float) and math.isfinite(label):
        text = number_text(label)
        return text if label >= 0.0 else f"({text})"
    raise unsupported("class label", label)


def javascript_value(value: Any) -> str:
    """Text, a number or a boolean as a literal; line separators and </script> are escaped."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if (whole and abs(value) > 2**53) or (isinstance(value, float) and not math.isfinite(value)):
        raise unsupported("value", value)
    if not isinstance(value, bool | str | int | float):
        raise unsupported("value", value)
    return json.dumps(value, ensure_ascii=True).replace("<", "\\u003c")


def unsupported(what: str, value: Any) -> ExportError:
    """The error for labels and categories of types that other systems do not have."""
    return ExportError(
        f"The {what} {value!r} of type {type(value).__name__} cannot be exported: only text, booleans and finite "
        "numbers can. Convert it to text before the fit."
    )
