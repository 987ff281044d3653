"""Every family of the library is in all lists and tables of families; a failure names the file that lacks it."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from typing import Any, NamedTuple

import pytest

from likely.families import MEMBERS
from likely.families.base import Family
from tests.pages import ROOT


class Place(NamedTuple):
    """A list of families: from a text to the next empty line of a page, or the definition of a name in a module."""

    file: str
    start: str = ""  # of a page: all of it
    without: str = ""  # families with tests or sections of their own


SPECIAL = "Histogram Pairs PointMass Text"
TABLES = f"{SPECIAL} Categorical Multinomial"
PLACES = [
    Place("CHANGELOG.md"),
    Place("src/likely/__init__.py", "Families of columns:"),
    Place("docs/mixed-tables.md", "| family | columns |"),
    Place("docs/serving.md", "| exported |"),
    Place("tests/laws/families.py", "MEMBERS", "Text"),
    Place("tests/unit/export/far.py", "MODELS", "Categorical Pairs Text"),
    Place("tests/unit/model/test_parameters.py", "LIKELIHOODS", TABLES),
    Place("tests/journeys/test_algebra_edges.py", "test_no_family_forgets_what_it_has_not_learnt", SPECIAL),
    Place("tests/journeys/test_mixed_tables.py", "UNOBSERVED", f"{SPECIAL} Multinomial"),
    Place("tests/journeys/test_column_types.py", "SUPPORTED", f"{TABLES} Bernoulli"),
    Place("tests/journeys/test_odd_tables.py", "UNBOUNDED", f"{TABLES} Bernoulli Beta VonMises"),
    Place(
        "tests/laws/test_em.py",
        "FAMILIES OTHERS test_pseudo_counts_belong_to_the_objective_of_maximum_likelihood",
        SPECIAL,
    ),
    Place("tools/snapshot_cases.py", "families"),
]
EVIDENCE = Place("tests/laws/test_evidence.py", "CASES NONE", SPECIAL)
NO_EVIDENCE = Place("docs/model-selection.md", "It is not available for")
PRIORS = [Place("docs/estimation.md", "| prior | for"), Place("tests/laws/test_empty_classes.py", "IMPROPER PROPER")]
# These tables have the names of distributions in their first column.
FORMULAS = [
    Place("docs/theory.md", "| family | $p(x", f"{SPECIAL} Gaussian"),
    Place("docs/theory.md", "| family | estimate", f"{SPECIAL} Gaussian"),
]
FORMULA_OF_EVIDENCE = Place("docs/theory.md", "| block | log evidence")


@cache
def text_of(place: Place) -> str:
    text = (ROOT / place.file).read_text(encoding="utf-8")
    found = text.index(place.start) if place.start else 0
    return text[found:].split("\n\n")[0] if place.start else text


@cache
def names_of(place: Place) -> set[str]:
    """The names in definitions of a module, or in a page."""
    if not place.file.startswith(("tests/", "tools/")):
        return set(re.findall(r"\w+", text_of(place)))
    found: set[str] = set()
    for node in ast.parse((ROOT / place.file).read_text(encoding="utf-8")).body:
        targets: list[Any] = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        if {getattr(each, "id", getattr(each, "name", "")) for each in targets} & set(place.start.split()):
            found |= {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node)}
    return found


def first_cells(place: Place) -> str:
    return "\n".join(row.split("|")[1] for row in text_of(place).splitlines())


def distribution(kind: type[Family]) -> str:
    """The name of the distribution as a pattern: `VonMises` is "von Mises"."""
    return rf"(?i:\b{'[- ]'.join(re.findall('[A-Z][a-z]+', kind.__name__))}\b)"


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)
def test_a_family_is_in_every_list_of_families(kind: type[Family]) -> None:
    name, no_evidence = kind.__name__, kind._log_evidence is Family._log_evidence
    listed = [*PLACES, EVIDENCE, *([NO_EVIDENCE] * no_evidence)]
    listed += PRIORS if "prior" in inspect.signature(kind).parameters else []
    named = FORMULAS if no_evidence else [*FORMULAS, FORMULA_OF_EVIDENCE]
    missing = [each for each in listed if name not in names_of(each)]
    missing += [each for each in named if not re.search(distribution(kind), first_cells(each))]
    lacking = [f"{each.file}: {each.start or 'the page'}" for each in missing if name not in each.without.split()]
    assert not lacking, "\n".join([f"{name} is missing in", *lacking])


@pytest.mark.parametrize("place", [*PLACES, EVIDENCE], ids=lambda place: f"{place.file}: {place.start}")
def test_an_exception_is_a_family_that_the_list_lacks(place: Place) -> None:
    exceptions = set(place.without.split())
    assert exceptions <= {kind.__name__ for kind in MEMBERS}
    assert not exceptions & names_of(place)
