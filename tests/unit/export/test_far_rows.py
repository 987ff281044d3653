"""Rows with values near the limits of floating-point numbers, in all targets that need no server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.unit.export.databases import IDENTIFIER, TABLE, in_duckdb, in_sqlite, predicted_of, probabilities_of
from tests.unit.export.far import Name, assert_agree, every_far_case, far_case
from tests.unit.export.node import run_module
from tests.unit.export.test_javascript import objects
from tests.unit.export.test_onnx import run

Result = tuple[Any, list[Any] | None]


def by_sql(dialect: str, engine: Callable[[str, pd.DataFrame], Any]) -> Callable[[Any, pd.DataFrame], Result]:
    def score(model: Any, rows: pd.DataFrame) -> Result:
        result = engine(model.to_sql(TABLE, dialect=dialect, keep=[IDENTIFIER]), rows)
        return probabilities_of(result), predicted_of(result)

    return score


def by_node(model: Any, rows: pd.DataFrame) -> Result:
    results = run_module(model.to_javascript(), objects(rows))["results"]
    found = np.array([each["probabilities"] for each in results], dtype=np.float64)
    return found, [each["predicted"] for each in results]


def by_onnx(model: Any, rows: pd.DataFrame) -> Result:
    label, probabilities, valid = run(model, rows)
    labels = [each if known else None for each, known in zip(label.tolist(), valid.tolist(), strict=True)]
    return np.where(valid[:, None], probabilities, np.nan), labels


TARGETS: dict[str, Callable[[Any, pd.DataFrame], Result]] = {
    "duckdb": by_sql("duckdb", in_duckdb),
    "sqlite": by_sql("sqlite", in_sqlite),
    "javascript": by_node,
    "onnx": by_onnx,
}


@pytest.mark.filterwarnings("ignore::likely.errors.UnseenCategoriesWarning")
@pytest.mark.parametrize("target", list(TARGETS))
@every_far_case
def test_far_and_tiny_values_give_the_probabilities_of_the_model_or_none(name: Name, target: str) -> None:
    case = far_case(name)
    probabilities, labels = TARGETS[target](case.model, case.rows)
    assert_agree(name, probabilities, labels)
