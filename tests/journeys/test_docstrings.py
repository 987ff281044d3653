"""`help()` is enough to use anything public: every docstring is complete, in numpydoc format."""

from __future__ import annotations

import inspect
import re
from dataclasses import is_dataclass
from typing import Any

import pytest

import likely
import likely.datasets
import likely.errors
import likely.functions
from likely.discriminative.softmax_summary import Coefficient, SoftmaxSummary
from likely.evaluation.held_out_scores import CrossValidation, RegressionCrossValidation
from likely.evaluation.learning_curves import Comparison, Lead, Point, Score, Verdict
from likely.evaluation.ranking import CandidateScore, Selection
from likely.model.boundary import LinearBoundary, QuadraticBoundary
from likely.model.class_prior import PriorShift
from likely.model.decision import Decisions
from likely.model.explanation import Explanation
from likely.model.reliability import Reliability
from likely.model.summary import (
    BlockSummary,
    ClassSummary,
    ColumnSummary,
    LineSummary,
    ModelSummary,
    RegressionSummary,
)
from likely.text.language_model import LanguageModel
from tests.journeys.test_public_interface import GOLDEN

HEADING = re.compile(r"^(\S[^\n]*)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^(\S.*?)(?: : (.+))?$")
MODULES = ("datasets", "errors", "functions")
RESULTS = (
    *(BlockSummary, CandidateScore, ClassSummary, Coefficient, ColumnSummary, Comparison, CrossValidation, Decisions),
    *(
        Explanation,
        LanguageModel,
        Lead,
        LinearBoundary,
        LineSummary,
        ModelSummary,
        Point,
        PriorShift,
        QuadraticBoundary,
    ),
    *(RegressionCrossValidation, RegressionSummary, Reliability, Score, Selection, SoftmaxSummary, Verdict),
)


def sections(doc: str) -> dict[str, str]:
    """The text before the first heading, under "", and that of each section."""
    parts = HEADING.split(doc)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(section: str) -> dict[str, str]:
    """Names and types of a section such as Parameters; every entry has a description."""
    found: dict[str, str] = {}
    lines = section.strip("\n").split("\n")
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if not line.strip() or line.startswith(" "):
            continue
        match = ENTRY.match(line)
        assert match is not None
        assert below.startswith("    "), f"{line!r} has no description"
        for name in match[1].split(", "):
            found[name.lstrip("*")] = match[2] or ""
    return found


def members() -> dict[str, Any]:
    """The public objects of the golden file, but for data attributes and what scikit-learn generates."""
    found: dict[str, Any] = {}
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        name = line.split("(")[0]
        head, _, attribute = name.partition(".")
        if head in MODULES:
            value = getattr(getattr(likely, head), attribute)
            if head != "errors" or inspect.isclass(value):  # the functions of errors are internal
                found[name] = value
            continue
        value = getattr(likely, head)
        if attribute:
            value = inspect.getattr_static(value, attribute)
            value = getattr(value, "__func__", getattr(value, "fn", value))
            if not (inspect.isfunction(value) or isinstance(value, property)):
                continue
        found[name] = value
    return found


MEMBERS = members()


def document(name: str) -> str:
    """What `help` shows, inherited if the object has no docstring."""
    head, _, attribute = name.partition(".")
    value = MEMBERS[name]
    if attribute and head not in MODULES and not value.__doc__:
        owners = (vars(kind).get(attribute) for kind in getattr(likely, head).__mro__)
        value = next((owner for owner in owners if owner is not None and owner.__doc__), value)
    return inspect.cleandoc(value.__doc__ or "")


def parameters(value: Any) -> list[str]:
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]


def check_first_sentence(doc: str) -> None:
    first = doc.split("\n\n")[0]
    assert first.endswith(".")
    assert "\n" not in first, "the first sentence takes more than a line"


@pytest.mark.parametrize("name", MEMBERS)
def test_every_public_object_has_a_first_sentence(name: str) -> None:
    check_first_sentence(document(name))


@pytest.mark.parametrize("name", [name for name, value in MEMBERS.items() if callable(value)])
def test_exactly_the_parameters_are_documented_with_types_and_defaults(name: str) -> None:
    value = MEMBERS[name]
    if inspect.isclass(value) and issubclass(value, BaseException):
        return
    documented = entries(sections(document(name)).get("Parameters", ""))
    assert list(documented) == parameters(value)
    for parameter in inspect.signature(value).parameters.values():
        if parameter.name in documented:
            kind = documented[parameter.name]
            assert kind
            if parameter.default not in (parameter.empty, None):
                assert "default=" in kind


@pytest.mark.parametrize("name", [name for name, value in MEMBERS.items() if inspect.isfunction(value)])
def test_what_is_returned_is_documented(name: str) -> None:
    returned = inspect.signature(MEMBERS[name]).return_annotation
    assert ("Returns" in sections(document(name))) == (returned not in (None, "None"))


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_every_field_of_a_result_is_documented(kind: Any) -> None:
    assert is_dataclass(kind)
    doc = inspect.cleandoc(kind.__doc__ or "")
    check_first_sentence(doc)
    documented = entries(sections(doc).get("Attributes", ""))
    assert {name for name in kind.__dataclass_fields__ if not name.startswith("_")} <= set(documented)


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_every_method_of_a_result_is_documented(kind: Any) -> None:
    for name, member in vars(kind).items():
        method = getattr(member, "__func__", member)
        if not inspect.isfunction(method) or name.startswith("_"):
            continue
        doc = inspect.cleandoc(method.__doc__ or "")
        check_first_sentence(doc)
        if parameters(method):
            assert list(entries(sections(doc).get("Parameters", ""))) == parameters(method)
