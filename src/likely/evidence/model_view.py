"""A model of the library as a view: one term, its log p(x | class)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from sklearn.base import clone

from likely.data.batches import Batches
from likely.data.table import Table
from likely.errors import InputError, NotEstimableError
from likely.estimators.generative import JointDensity
from likely.evidence.densities import LEAST, SummedRows, batch_of, relative_to_best
from likely.evidence.encoding import Encoding
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import FittedView, View
from likely.model.joint import JointModel
from likely.model.persistence import register
from likely.model.specification import Specification
from likely.numerics.caches import cached_property
from likely.numerics.shapes import Shape
from likely.statistics.joint import JointStatistics
from likely.typing import Array


@contextmanager
def _named(title: str) -> Iterator[None]:
    """Errors about parameters that have no estimate, with the view and why it needs one from fewer rows."""
    try:
        yield
    except NotEstimableError as error:
        raise NotEstimableError(
            f"views, {title}: {error} The weights of views are learnt on rows that are left out, so the model needs an "
            "estimate without some rows of each class."
        ) from None


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
        with _named(self.name):
            fit = model._fit_rows(model._specify(batches), batches)
        if fit.history is not None:
            raise InputError(
                f"views: {model!r} is fitted by EM over the rows, and has no leave-one-out evidence. Leave it out."
            )
        return FittedModelView(
            fit.specification, fit.specification.with_declared(fit.statistics.align(rows.classes)), self.name
        )


@register
@dataclass(frozen=True, eq=False)
class FittedModelView(SummedRows, FittedView):
    """One term: log p(x | class) of a model."""

    specification: Annotated[Specification, Shape("names")]
    statistics: Annotated[JointStatistics, Shape("classes")]
    title: str

    term_names = ("log-density",)
    term_columns = (None,)

    @property
    def name(self) -> str:
        return self.title

    def table(self, rows: EncodedRows) -> Table:
        return rows.table

    @cached_property
    def model(self) -> JointModel:
        with _named(self.title):
            model, _ = self.specification.estimate(self.statistics)
        return model.with_log_prior(np.zeros(len(model.classes)))

    def terms(self, rows: EncodedRows) -> Array:
        return relative_to_best(self.model.evidence(rows.table))[None]

    def left_out(self, rows: TrainingRows) -> Array:
        with _named(self.title):
            return relative_to_best(self.left_out_evidence(rows.rows.table, rows))[None]

    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        found = self.model.explain(rows.table)
        evidence = found.evidence + (found.offset / found.evidence.shape[2])[:, :, None]
        total = evidence.sum(axis=2)
        with np.errstate(invalid="ignore"):
            limited = ~(total.min(axis=1) - total.max(axis=1) >= LEAST)
        if limited.any():  # their evidence is divided equally
            rest = self.terms(rows.take(np.flatnonzero(limited)))[0].T
            evidence[limited] = rest[:, :, None] / evidence.shape[2]
        return np.asarray(weights[0] * evidence)
