"""Categories that differ by case or by blanks at the ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from likely.data.categories import Categories, normalized_label, number_categories, spelling_difference


def column(*values: Any) -> Categories:
    words = tuple(sorted({value for value in values if value is not None}, key=str))
    codes = [-1 if value is None else words.index(value) for value in values]
    return Categories(np.array(codes, dtype=np.int8), words)


def test_categories_that_differ_by_case_or_blanks_are_merged() -> None:
    found = column("RENT", "rent ", None, "OWN", "\tRent", "own").normalized()
    assert found.vocabulary == ("own", "rent")
    assert found.codes.tolist() == [1, 1, -1, 0, 1, 0]


def test_the_name_of_a_category_does_not_depend_on_the_other_rows() -> None:
    assert column("RENT").normalized().vocabulary == column("rent ", "Rent").normalized().vocabulary


def test_normalized_categories_and_numbers_stay_as_they_are() -> None:
    same, numbers = column("own", "rent", None), number_categories(np.array([3.0, np.nan, 1.0]))
    assert same.normalized() is same
    assert numbers.normalized() is numbers
    mixed = Categories(np.array([0, 1, 2]), (1, "A", "a "))
    assert mixed.normalized().vocabulary == (1, "a")
    assert mixed.normalized().codes.tolist() == [0, 1, 1]


def test_inner_blanks_and_other_scripts() -> None:
    assert normalized_label(" New  York ") == "new  york"
    assert normalized_label("STRASSE") == normalized_label("Straße")
    assert normalized_label("") == ""
    assert normalized_label(b" A") == b" A"


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("a ", "a", "a blank"),
        (" a ", "a", "blanks"),
        ("A", "a", "case"),
        ("A ", "a", "a blank and case"),
        ("a ", " a", "blanks"),
    ],
)
def test_the_difference_of_two_spellings_is_named(one: str, other: str, words: str) -> None:
    assert spelling_difference(one, other) == words
