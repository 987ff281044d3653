"""The fit of a joint model to rows: all stages in their order.

    rows = Batches(X, y, sample_weight, ...)          read: `data`
    profiles = column_profiles(rows, columns)         one pass: types and values of the columns
    plans = choose_families(declared, profiles, rows) families of columns, the joint block, options of text
    fit = summed(specification, rows)                 one pass: sufficient statistics of each class
    fit = with_covariances(fit, rows)                 pooled or per class, strengths of priors, calibration
    fit = with_expectations(fit, rows)                unlabeled rows, and what only EM can use

The result is a `Fit`, which estimates the parameters when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

from likely.choice.column_types import column_profiles
from likely.choice.covariances import calibrate, choose_covariances, labeled_counts
from likely.choice.default_families import Declared, choose_families
from likely.choice.early_choices import warn_of_early_choices
from likely.choice.unlabeled_weight import unlabeled_rows_weight
from likely.data.batches import Batch, Batches
from likely.errors import MissingPatternsError, NoDensityError, trying
from likely.families.estimation import Estimation
from likely.model.em import EMOptions, fit_by_em
from likely.model.expectations import needs_em
from likely.model.fit import Fit
from likely.model.shared_collection import SharedCollection
from likely.model.specification import Specification
from likely.statistics.joint import JointStatistics


@dataclass(frozen=True, slots=True, eq=False)
class FitOptions:
    """What an estimator asks for besides the families of columns."""

    class_prior: Any
    estimation: Estimation
    em: EMOptions
    calibrated: bool = False
    expected: tuple[Any, ...] = ()  # classes that later rows may have
    in_batches: bool = False  # whether later rows come, for which these choose


def fit_model(rows: Batches, declared: Declared, options: FitOptions) -> Fit:
    """The fit of any rows; if unlabeled rows have weight 0, they determine nothing, not even the families."""
    fit = fit_rows(specify(rows, declared, options), rows, options)
    if fit.unlabeled is None or fit.unlabeled.weight > 0.0:
        return fit
    labeled = rows.without_unlabeled()
    return replace(fit_rows(specify(labeled, declared, options), labeled, options), unlabeled=fit.unlabeled)


def specify(rows: Batches, declared: Declared, options: FitOptions) -> Specification:
    """The families of all columns, as declared or chosen by the rows."""
    columns = [] if rows.first.table.is_sparse else declared.undeclared(rows)  # sparse rows have one family
    profiles = column_profiles(rows, columns)
    plans = choose_families(declared, profiles, rows)
    if options.in_batches:
        warn_of_early_choices(declared, profiles, plans, rows)
    for plan in plans:
        plan.family.check(options.estimation)
    names = tuple(rows.first.table.names)
    em = options.em
    return Specification(names, plans, options.class_prior, options.estimation, options.expected, em.max_iter, em.tol)


def fit_rows(specification: Specification, rows: Batches, options: FitOptions) -> Fit:
    """The fit of rows whose families are specified."""
    fit: Fit | None = None
    with suppress(MissingPatternsError):  # such rows are fitted by expectation maximisation
        fit = summed(specification, rows, partial(_needs_sums_alone, specification))
    if fit is not None:
        fit = with_covariances(fit, rows, options.calibrated)
    if fit is not None and not rows.has_unlabeled:
        return fit
    return with_expectations(fit, specification, rows, options)


def _needs_sums_alone(specification: Specification, batch: Batch) -> bool:
    return not needs_em(specification, batch)


def summed(specification: Specification, rows: Batches, usable: Callable[[Batch], bool] | None = None) -> Fit | None:
    """Statistics of the labeled rows for all candidates, summed in one pass; None if a batch is not usable."""
    shared = SharedCollection([specification])
    total = rows.total(shared.summarise, usable)
    return None if total is None else Fit.of_collection(specification, shared, total)


def with_covariances(fit: Fit, rows: Batches, calibrated: bool = False) -> Fit:
    """The fit with the covariances, and the strength of their prior, that its rows choose; calibrated if wanted."""
    specification, choices, calibration = choose_covariances(fit.specification, fit.statistics, rows.sample, calibrated)
    return replace(fit, specification=specification, choices=(*fit.choices, *choices), calibration=calibration)


def with_expectations(fit: Fit | None, specification: Specification, rows: Batches, options: FitOptions) -> Fit:
    """The fit by expectation maximisation over rows, with unlabeled ones if they get a weight above 0.

    `fit` is that of the labeled rows by sums; None if they need expectation maximisation too.
    """
    specification, choices = (specification, ()) if fit is None else (fit.specification, fit.choices)
    counts = rows.total(attrgetter("counts"))
    assert counts is not None
    total = specification.with_declared(JointStatistics(counts, ())).counts
    unlabeled, held_out = None, None
    if rows.has_unlabeled:
        some = rows.sample
        drawn = labeled_counts(some, total.classes) if rows.sampled else total
        unlabeled, held_out = unlabeled_rows_weight(specification, some, drawn, options.em, options.calibrated)
    weight = 0.0 if unlabeled is None else unlabeled.weight
    if fit is not None and weight == 0.0:
        return replace(fit, unlabeled=unlabeled)
    found: JointStatistics | None = None
    for less in () if unlabeled is None else unlabeled.path[:-1]:
        em = replace(options.em, unlabeled_weight=less)
        with trying():
            found, _ = fit_by_em(specification, rows, total.classes, em, found)
    em = replace(options.em, unlabeled_weight=weight)
    statistics, history = fit_by_em(specification, rows, total.classes, em, found)
    statistics = specification.with_declared(statistics).with_rows_of(total)
    fit = Fit(specification, statistics, choices, history, held_out, unlabeled)
    if held_out is None and options.calibrated:
        with suppress(NoDensityError):  # a family of the user without leave-one-out
            return with_calibration(fit, rows)
    return fit


def with_calibration(fit: Fit, rows: Batches) -> Fit:
    """The fit with class probabilities calibrated by leave-one-out evidence of its rows."""
    return replace(fit, calibration=calibrate(fit.specification, fit.statistics, rows.sample))


def fit_by_sums(specification: Specification, rows: Batches) -> Fit:
    """The fit of labeled rows: statistics summed, and covariances chosen."""
    fit = summed(specification, rows)
    assert fit is not None
    return with_covariances(fit, rows)
