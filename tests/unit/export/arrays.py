"""Programs evaluated with NumPy, with which densities and the targets of exports are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from likely.export.program import Program, Step
from likely.typing import AnyArray, Array

_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "square": np.square,
    "log": np.log,
    "log1p": np.log1p,
    "exp": np.exp,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "where": np.where,
}


def evaluate(program: Program, values: Mapping[int, Array], codes: Mapping[int, AnyArray], rows: int) -> list[AnyArray]:
    """The outputs of a program for rows of numbers (NaN where missing) and codes of categories (−1 where missing)."""

    def run(step: Step, operands: list[AnyArray]) -> AnyArray:
        if step.operation == "constant":
            return np.full(rows, step.value)
        if step.operation == "number":
            return values[step.value]
        if step.operation == "missing":
            return np.isnan(values[step.value]) if step.value in values else codes[step.value] < 0
        if step.operation == "code":
            return codes[step.value] + 1.0
        if step.operation == "pick":
            return np.array(step.value)[operands[0].astype(np.intp)]
        if step.operation == "cell":
            edges = np.array(step.value)
            found = np.searchsorted(edges, operands[0], side="right")
            return found - (operands[0] == edges[-1]) if len(edges) > 1 else found
        if step.operation == "linear":
            return np.einsum("i,in->n", np.array(step.value), np.array(operands))
        return np.asarray(_OPERATIONS[step.operation](*operands))

    found: list[AnyArray] = []
    with np.errstate(all="ignore"):
        for step in program.steps:
            found.append(run(step, [found[i] for i in step.operands]))
    return [found[i] for i in program.outputs]
