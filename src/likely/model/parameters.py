"""The estimated parameters of a model as a tidy table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from likely.families.estimation import Estimation
from likely.families.parameters import Parameter, proportion_errors
from likely.model.class_prior import dirichlet_of
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.regression import RegressionModel
from likely.typing import AnyArray, Array

CLASS_PRIOR = "class prior"
Table = dict[str, list[Any]]


def parameter_table(rows: Iterable[tuple[str, Parameter]], classes: AnyArray) -> Table:
    """Blocks and parameters as columns of a table, one entry for each class."""
    table: Table = {name: [] for name in ("class", "block", "column", "parameter", "value", "standard_error")}
    labels = classes.tolist()
    for block, parameter in rows:
        errors = np.full(len(labels), np.nan) if parameter.error is None else parameter.error
        for label, value, error in zip(labels, parameter.value.tolist(), errors.tolist(), strict=True):
            entry = (label, block, parameter.column, parameter.name, value, error)
            for column, cell in zip(table.values(), entry, strict=True):
                column.append(cell)
    return table


def model_parameters(fit: Fit, model: JointModel, class_prior: Array) -> Table:
    """The class prior, and the parameters of all blocks.

    Statistics that are expectations determine values, but not their errors.
    """
    specification, statistics = fit.specification, fit.specification.completed(fit.statistics)
    rows = [(CLASS_PRIOR, Parameter(None, "probability", class_prior, prior_errors(fit)))]
    names = _block_names([type(plan.family._declared_family).__name__ for plan in specification.plans])
    parts = zip(names, specification.plans, statistics.blocks, model.blocks, strict=True)
    for name, plan, part, block in parts:
        found = plan.family._parameters(part, block.conditionals, specification.estimation, specification.columns(plan))
        rows += [(name, parameter) for parameter in found]
    if fit.history is not None:
        rows = [(name, Parameter(each.column, each.name, each.value)) for name, each in rows]
    return parameter_table(rows, model.classes)


def regression_parameters(fit: Fit, model: RegressionModel, class_prior: Array) -> Table:
    """The class prior, and intercepts, slopes and residual standard deviations of each target.

    Standard errors are those of least squares, which is maximum likelihood; they are not known otherwise.
    """
    specification, lines = fit.specification, model.lines
    (plan,), (moments,) = specification.plans, specification.completed(fit.statistics).blocks
    names, classes = specification.columns(plan), range(len(model.classes))
    slopes, intercepts, deviations = (
        np.array([of(k) for k in classes]) for of in (lines.slopes, lines.intercepts, lines.standard_deviations)
    )
    errors: list[Array] = [np.full_like(values, np.nan) for values in (slopes, intercepts, deviations)]
    complete = fit.history is None and moments.observed == 1.0
    if specification.estimation == Estimation.MLE and plan.family.shrinkage is None and complete:
        found = [lines.least_squares_errors(k, moments.group_weight(), moments.weight) for k in classes]
        errors = [np.array(parts) for parts in zip(*found, strict=True)]
    rows = [(CLASS_PRIOR, Parameter(None, "probability", class_prior, prior_errors(fit)))]
    for i, target in enumerate(names[lines.inputs :]):
        rows.append((target, Parameter("(intercept)", "coefficient", intercepts[:, i], errors[1][:, i])))
        rows += [
            (target, Parameter(name, "coefficient", slopes[:, i, j], errors[0][:, i, j]))
            for j, name in enumerate(names[: lines.inputs])
        ]
        rows.append((target, Parameter(target, "standard deviation", deviations[:, i], errors[2][:, i])))
    return parameter_table(rows, model.classes)


def prior_errors(fit: Fit) -> Array | None:
    """Standard errors of class proportions; None if the class prior was given."""
    counts, estimation = fit.statistics.counts, fit.specification.estimation
    dirichlet = dirichlet_of(fit.specification.class_prior, estimation)
    if dirichlet is None:
        return None
    if estimation == Estimation.MLE:
        return proportion_errors(counts.weight, estimation)
    return proportion_errors(counts.weight + dirichlet.weights(counts.classes), Estimation.BAYES)


def _block_names(families: list[str]) -> list[str]:
    """The names of families, numbered where several blocks have the same."""
    often, seen = Counter(families), Counter[str]()
    names = []
    for family in families:
        seen[family] += 1
        names.append(f"{family} {seen[family]}" if often[family] > 1 else family)
    return names
