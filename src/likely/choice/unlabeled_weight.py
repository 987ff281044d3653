"""The weight of unlabeled rows (semi-supervised learning), chosen by the cross-validated log-loss of labeled rows.

Unlabeled rows improve a model that describes them well, and harm one that does not. In every fold a model is fitted by
EM for each weight, from the smallest on, and each starts from the statistics of the one before. The smallest weight
whose log-loss is within one standard error of the least one is chosen. Models with text use unlabeled rows only if they
improve the log-loss by two standard errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from likely.data.batches import Batch, Batches
from likely.data.content_folds import RowGroups
from likely.data.row_hash import row_hashes
from likely.data.table import Table
from likely.errors import NotEstimableError, listed, trying
from likely.model.calibration import Calibration, learn_calibration
from likely.model.choices import UnlabeledWeight, WeightScore, difference_error
from likely.model.em import EMOptions, fit_by_em
from likely.model.specification import Specification
from likely.numerics.progress import progress
from likely.numerics.special import EPS
from likely.numerics.ties import ROUNDING, first_best
from likely.statistics.counts import Counts, positions
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array

WEIGHTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
FOLDS = 5  # at most
ROWS = 4_000  # labeled and unlabeled rows that the weights are compared on, at most
TOLERANCE = 1e-4  # of EM in cross-validation, at least
STANDARD_ERRORS = 2.0  # by which the log-loss has to improve before unlabeled rows are used in models of text


def unlabeled_rows_weight(
    specification: Specification, batches: Batches, counts: Counts, options: EMOptions, calibrated: bool
) -> tuple[UnlabeledWeight, Calibration | None]:
    """The weight of unlabeled rows: as given, or chosen by cross-validation; and the calibration of held-out rows.

    `counts` are those of the labeled rows, with all classes of the model. The log-losses are those of calibrated
    probabilities where the model is `calibrated` afterwards. Only models with text use this calibration: unlabeled
    documents have learnt from all labeled ones, so that their leave-one-out evidence is too certain.
    """
    rows = sum(batch.unlabeled.used_rows for batch in batches if batch.unlabeled is not None)
    if options.unlabeled_weight is not None:
        return UnlabeledWeight(options.unlabeled_weight, rows), None
    if not rows:
        return UnlabeledWeight(0.0, rows, note="all of them have sample_weight 0"), None
    labeled = LabeledSample.of(batches, counts, rows)
    few = labeled.class_sizes() < 2.0
    if few.any():
        names = listed(counts.classes[few].tolist())
        several = "classes" if np.count_nonzero(few) > 1 else "class"
        return UnlabeledWeight(0.0, rows, note=f"cross-validation needs two labeled rows of {several} {names}"), None
    losses, weights, calibrations = labeled.held_out_losses(specification, options, calibrated)
    text = any(plan.family._reads_text for plan in specification.plans)
    scores, chosen = compare_weights(losses, weights, text)
    return UnlabeledWeight(WEIGHTS[chosen], rows, scores), calibrations.get(chosen) if text else None


def compare_weights(losses: Array, weights: Array, text: bool = False) -> tuple[tuple[WeightScore, ...], int]:
    """The score of each weight of unlabeled rows, and the place of the one chosen.

    `losses` are those of held-out rows, (weights, rows), infinite where there was no model; `weights` are frequencies
    of the rows. The smallest weight within one standard error of the least loss is chosen; 0 where none has a score.
    In models of `text` it must also be better than 0 by more than STANDARD_ERRORS: there are more terms than labeled
    rows, and EM may move a class to another topic.
    """
    means = np.average(losses, axis=1, weights=weights)
    if not np.isfinite(means).any():
        return tuple(WeightScore(weight, None, 0.0) for weight in WEIGHTS), 0
    best = first_best(-means)
    errors = [
        difference_error(each, losses[best], weights) if np.isfinite(mean) else 0.0
        for each, mean in zip(losses, means, strict=True)
    ]
    rounding = ROUNDING * (1.0 + means[best])
    chosen = int(np.argmax(means - means[best] <= np.maximum(errors, rounding)))
    scores = tuple(
        WeightScore(weight, float(mean) if np.isfinite(mean) else None, error)
        for weight, mean, error in zip(WEIGHTS, means, errors, strict=True)
    )
    if text and np.isfinite(losses[[0, chosen]]).all():
        gain = float(np.average(losses[0] - losses[chosen], weights=weights))
        if gain <= STANDARD_ERRORS * difference_error(losses[0], losses[chosen], weights):
            chosen = 0
    return scores, chosen


@dataclass(frozen=True, slots=True, eq=False)
class LabeledSample:
    """Labeled rows that weights are compared on, with the unlabeled rows of the same batches."""

    batches: tuple[Batch, ...]
    counts: Counts
    rows: RowGroups  # of all batches

    @classmethod
    def of(cls, batches: Batches, counts: Counts, unlabeled_rows: int) -> LabeledSample:
        some = tuple(_sampled(batches, counts, unlabeled_rows))
        tables = [batch.table for batch in some if batch.table.rows]
        codes = np.concatenate([positions(counts.classes, batch.counts.classes)[batch.codes] for batch in some])
        weights = np.concatenate([batch.row_weights for batch in some])
        return cls(some, counts, RowGroups.of(tables, codes, weights))

    def class_sizes(self) -> Array:
        """Rows of each class."""
        return self.rows.class_sizes(len(self.counts.classes))

    def held_out_losses(
        self, specification: Specification, options: EMOptions, calibrated: bool
    ) -> tuple[Array, Array, dict[int, Calibration]]:
        """Log-losses of held-out rows of all folds for each weight, (weights, rows); their weights; calibrations."""
        folds = self.rows.held_out_weights(int(min(FOLDS, self.class_sizes().min())))
        found: list[Array] = []
        with progress("folds of unlabeled_weight", len(folds)) as step:
            for held_out in folds:
                found.append(self._log_posteriors(specification, options, held_out, calibrated))
                step()
        posteriors = np.concatenate(found, axis=2)
        weights = np.concatenate([held[held > 0.0] for held in folds])
        codes = np.concatenate([self.rows.codes[held > 0.0] for held in folds])
        losses = np.clip(-posteriors[:, codes, np.arange(len(codes))], 0.0, -np.log(EPS))
        losses[np.isnan(losses)] = np.inf  # no model
        calibrations: dict[int, Calibration] = {}
        if calibrated:
            classes, unobserved = self.counts.classes, np.zeros(len(codes), dtype=bool)
            prior = np.log(self.counts.weight / self.counts.weight.sum())[:, None]
            for i in np.flatnonzero(np.isfinite(losses).all(axis=1)):
                found_here = learn_calibration(classes, posteriors[i], prior, codes, weights, unobserved)
                losses[i], calibrations[int(i)] = found_here.losses, found_here.calibration
        return losses, weights, calibrations

    def _log_posteriors(
        self, specification: Specification, options: EMOptions, held_out: Array, uniform: bool
    ) -> Array:
        """log p(class | x) of the rows that are held out, (weights, classes, rows), for each weight of unlabeled rows.

        Under a `uniform` class prior it is the evidence log p(x | class) up to a constant of each row. NaN if there is
        no model.
        """
        training = self._with_weights(self.rows.weights - held_out)
        test = self._with_weights(held_out)
        posteriors = np.full((len(WEIGHTS), len(self.counts.classes), np.count_nonzero(held_out > 0.0)), np.nan)
        statistics: JointStatistics | None = None
        for i, weight in enumerate(WEIGHTS):
            some = replace(options, unlabeled_weight=weight, tol=max(options.tol, TOLERANCE))
            try:
                with trying():
                    statistics, _ = fit_by_em(specification, training, self.counts.classes, some, statistics)
                    model = specification.estimate(specification.with_declared(statistics))[0]
                    model = model.with_log_prior(np.zeros_like(model.log_prior)) if uniform else model
            except NotEstimableError:
                statistics = None
                continue
            found = [model.log_posterior(part.table) for part in test if part.table.rows]
            posteriors[i] = np.concatenate(found)[held_out > 0.0].T
        return posteriors

    def _with_weights(self, weights: Array) -> Batches:
        """The same rows with other weights."""
        parts, start = [], 0
        for batch in self.batches:
            mine = weights[start : start + len(batch.codes)]
            start += len(batch.codes)
            parts.append(replace(batch, weights=mine, counts=Counts.of(batch.counts.classes, batch.codes, mine)))
        return Batches.of(parts)


def _sampled(batches: Batches, counts: Counts, unlabeled_rows: int) -> Iterator[Batch]:
    """Rows drawn by hashes of their content, as many as there are to compare weights on.

    Unlabeled rows are weighted so that the ratio of their weight to that of labeled rows stays the same.
    """
    labeled, unlabeled = (min(1.0, ROWS / rows) for rows in (int(counts.rows.sum()), unlabeled_rows))
    for whole in batches:
        batch, free = whole, whole.unlabeled
        if free is not None and (labeled < 1.0 or unlabeled < 1.0):
            drawn = _drawn(free.table, np.zeros(free.table.rows), unlabeled)
            free = replace(free, table=free.table.take(drawn), weights=free.row_weights[drawn] * labeled / unlabeled)
        if batch.used is not None:
            batch = batch.take(batch.used)
        if labeled < 1.0 and batch.table.rows:
            batch = batch.take(_drawn(batch.table, batch.codes, labeled))
        yield replace(batch, unlabeled=free if free is not None and free.table.rows else None)


def _drawn(table: Table, codes: AnyArray, fraction: float) -> AnyArray:
    """The rows of a sample of about this fraction of all rows."""
    return np.flatnonzero(row_hashes(table, codes) * 2.0**-64 <= fraction)
