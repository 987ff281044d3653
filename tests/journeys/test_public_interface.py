"""What other people's code relies on: public names and signatures.

``python -m tests.journeys.test_public_interface`` writes those of now into the golden file.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import likely
import likely.datasets
import likely.errors
import likely.functions

GOLDEN = Path(__file__).parents[1] / "data" / "public_interface.txt"


def signature(function: Any) -> str:
    """Parameters and their defaults, without annotations."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]
    return str(inspect.Signature(parameters))


def described(name: str, value: Any) -> Iterator[str]:
    """A public object on one line, and one more for each public method and property of the library's own."""
    if not inspect.isclass(value):
        yield name + (signature(value) if callable(value) else "")
        return
    yield name + signature(value)
    for attribute in sorted(dir(value)):
        owner = next(kind for kind in value.__mro__ if attribute in vars(kind))
        if attribute.startswith("_") or not owner.__module__.startswith("likely"):
            continue
        member = inspect.getattr_static(value, attribute)
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        yield f"{name}.{attribute}" + (signature(member) if inspect.isfunction(member) else "")


def interface() -> list[str]:
    lines = [line for name in sorted(likely.__all__) for line in described(name, getattr(likely, name))]
    for module in (likely.datasets, likely.errors, likely.functions):
        short = module.__name__.removeprefix("likely.")
        for name, value in sorted(vars(module).items()):
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__:
                lines.append(f"{short}.{name}" + ("" if inspect.isclass(value) else signature(value)))
    return lines


def test_public_names_and_signatures_are_those_of_the_golden_file() -> None:
    how = "If the change is intended: python -m tests.journeys.test_public_interface"
    assert interface() == GOLDEN.read_text(encoding="utf-8").splitlines(), how


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(interface()) + "\n", encoding="utf-8")
