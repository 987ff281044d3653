"""A model of the library as a view: one term, its log p(x | class)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self

import numpy as np
from sklearn.base import clone

from likely.data.batches import Batches
from likely.errors import InputError
from likely.estimators.generative import JointDensity
from likely.evidence.densities import batch_of
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import FittedView, View
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.persistence import register
from likely.numerics.shapes import Shape
from likely.typing import Array

register(Fit)
LEAST = -1e4  # evidence relative to the most probable class: impossible classes count as this improbable


class ModelView(View):
    """A generative classifier, which is fitted to all columns of the table."""

    def __init__(self, estimator: JointDensity) -> None:
        self.estimator = estimator

    @property
    def name(self) -> str:
        return type(self.estimator).__name__

    def fit(self, rows: TrainingRows, encoding: Encoding, seed: int) -> FittedModelView:
        model = clone(self.estimator)
        model._check_options()
        batches = Batches.of([batch_of(rows, rows.rows.table)])
        fit = model._fit_rows(model._specify(batches), batches)
        if fit.history is not None:
            raise InputError(
                f"views: {model!r} is fitted by EM over the rows, and has no leave-one-out evidence. Leave it out."
            )
        return FittedModelView(self.name, fit.with_statistics(fit.statistics.align(rows.classes)))


@register
@dataclass(frozen=True, eq=False)
class FittedModelView(FittedView):
    """One term: log p(x | class) of a model."""

    title: str
    fit: Annotated[Fit, Shape("names classes")]

    term_names = ("log-density",)
    term_columns = (None,)

    @property
    def name(self) -> str:
        return self.title

    @cached_property
    def _model(self) -> JointModel:
        model, _ = self.fit.specification.estimate(self.fit.statistics)
        return model.with_log_prior(np.zeros(len(model.classes)))

    def terms(self, rows: EncodedRows) -> Array:
        return _finite(self._model.evidence(rows.table))[None]

    def left_out(self, rows: TrainingRows) -> Array:
        specification, table = self.fit.specification, rows.rows.table
        total = np.zeros((len(rows.classes), len(rows)))
        for plan, part in zip(specification.plans, self.fit.statistics.blocks, strict=True):
            total += specification.leave_one_out(plan, part)(table, rows.codes, rows.held_out)
        return _finite(total)[None]

    def updated(self, rows: TrainingRows, sign: float) -> Self:
        part, before = self.fit.specification.summarise(batch_of(rows, rows.rows.table)), self.fit.statistics
        after = before + part if sign > 0.0 else before - part
        return replace(self, fit=replace(self.fit, statistics=after.align(rows.classes)))

    def counted(self, rows: TrainingRows) -> Self:
        part = self.fit.specification.summarise(batch_of(rows, rows.rows.table)).align(rows.classes)
        return replace(self, fit=replace(self.fit, statistics=part))

    def __add__(self, other: Self) -> Self:
        return replace(self, fit=replace(self.fit, statistics=self.fit.statistics + other.fit.statistics))

    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        found = self._model.explain(rows.table)
        evidence = found.evidence + (found.offset / found.evidence.shape[2])[:, :, None]
        total = evidence.sum(axis=2)
        with np.errstate(invalid="ignore"):
            limited = ~(total.min(axis=1) - total.max(axis=1) >= LEAST)
        if limited.any():  # their evidence is divided equally
            rest = self.terms(rows.take(np.flatnonzero(limited)))[0].T
            evidence[limited] = rest[:, :, None] / evidence.shape[2]
        return np.asarray(weights[0] * evidence)


def _finite(terms: Array) -> Array:
    """Evidence relative to the most probable class, (classes, n); 0 where all classes are impossible."""
    top = terms.max(axis=0)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(top), np.maximum(terms - top, LEAST), 0.0)
