"""Unlabeled documents (semi-supervised learning): EM with a weight that labeled documents choose by cross-validation.

Labeled documents have weight 1 and unlabeled ones the weight λ in the sums of the classes, divided among the classes
by their calibrated probabilities. For λ = 0.01, 0.03, 0.1, 0.3 and 1 in turn, EM continues from the result of the one
before. The smallest λ whose held-out log-loss is within one standard error of the least one is chosen, if that loss is
smaller than the one without unlabeled documents by more than two standard errors; otherwise λ is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from likely.choice.term_options import drawn_documents
from likely.choice.unlabeled_weight import WEIGHTS, compare_weights
from likely.data.row_hash import checksums
from likely.errors import listed
from likely.families.text.term_models import unobserved
from likely.model.calibration import Calibration, learn_calibration, without_calibration
from likely.model.choices import UnlabeledWeight
from likely.numerics.special import softmax_into
from likely.statistics.counts import Counts
from likely.statistics.term_sums import TermSums
from likely.text.fitting import TextFit
from likely.typing import AnyArray, Array, Codes

FOLDS = 5  # at most
TOLERANCE = 1e-4  # mean change of probabilities at which EM has converged


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """Documents with transformed counts, counts and weights."""

    texts: Sequence[str]
    values: Any
    raw: Any
    weights: Array
    blank: AnyArray

    @classmethod
    def of(cls, fit: TextFit, texts: Sequence[str], rows: Any, weights: Array | None) -> Documents:
        values, raw = fit.model.transform(rows), fit.vocabulary.counts(texts, rows)
        mass = np.ones(len(texts)) if weights is None else weights
        return cls(texts, values, raw, mass, unobserved(fit.model, values, texts))

    def take(self, rows: AnyArray) -> Documents:
        """Some of the documents."""
        texts = [self.texts[i] for i in rows.tolist()]
        return Documents(texts, self.values[rows], self.raw[rows], self.weights[rows], self.blank[rows])

    def sampled(self, codes: Codes) -> tuple[AnyArray, Documents]:
        """Some of the documents, by their texts and classes: their places, and these documents."""
        drawn = drawn_documents(self.texts, codes, self.weights)
        rows = np.flatnonzero(drawn)
        return rows, replace(self.take(rows), weights=drawn[rows])

    def sums(self, classes: AnyArray, codes: Codes) -> TermSums:
        """Sums of labeled documents."""
        return TermSums.of(classes, codes, self.weights, self.values, self.raw)

    def expected(self, classes: AnyArray, probability: Array, weight: float) -> TermSums:
        """Sums of unlabeled documents, divided among the classes by probabilities, (documents, classes)."""
        mass = probability * (weight * self.weights)[:, None]
        values, raw = (scipy.sparse.csr_array(np.asarray(part.T @ mass).T[:, :-1]) for part in (self.values, self.raw))
        counts = Counts(classes, np.zeros(len(classes), dtype=np.int64), mass.sum(axis=0))
        return TermSums(counts, values, raw)


def run_em(fit: TextFit, labeled: TermSums, unlabeled: Documents, weight: float, max_iter: int) -> TextFit:
    """EM from a fit: probabilities of unlabeled documents, and sums with them, in turn.

    It stops early, in cross-validation as in the fit: with few labeled documents, later iterations move classes to
    other topics.
    """
    last: Array | None = None
    for _ in range(max_iter):
        scores = fit.scores(unlabeled.values, unlabeled.blank)
        probability = np.empty(scores.shape[::-1])
        softmax_into(scores, probability)
        fit = replace(fit, sums=labeled + unlabeled.expected(labeled.classes, probability, weight))
        if last is not None and float(np.abs(probability - last).mean()) < TOLERANCE:
            break
        last = probability
    return fit


def with_unlabeled(
    fit: TextFit,
    labeled: Documents,
    codes: Codes,
    unlabeled: Documents,
    weight: float | None,
    max_iter: int,
) -> TextFit:
    """A fit of labeled documents with unlabeled ones, whose weight is chosen where it is None.

    Exponent and intercepts are learnt from held-out documents again: unlabeled documents have learnt from all labeled
    ones, so that no leave-one-out evidence is without them.
    """
    used = int(np.count_nonzero(unlabeled.weights))
    comparison = _Comparison.of(fit, labeled, codes, unlabeled, max_iter)
    if comparison.note:
        chosen = UnlabeledWeight(weight or 0.0, used, note=comparison.note if weight is None else "")
        calibrations: tuple[Calibration | None, ...] = (fit.calibration,)
    elif weight is not None:
        chosen, calibrations = UnlabeledWeight(weight, used), comparison.losses((weight,))[1]
    else:
        losses, calibrations = comparison.losses(WEIGHTS)
        scores, place = compare_weights(losses, comparison.labeled.weights, text=True)
        chosen, calibrations = UnlabeledWeight(WEIGHTS[place], used, scores), calibrations[place : place + 1]
    if chosen.weight > 0.0:
        sums = fit.sums
        for each in chosen.path:
            fit = run_em(fit, sums, unlabeled, each, max_iter)
        fit = replace(fit, choices=(replace(fit.chosen, calibration=calibrations[0]),))
    return replace(fit, unlabeled=chosen)


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """A sample of the documents; labeled ones are in the order of their folds."""

    fit: TextFit
    labeled: Documents
    codes: Codes
    unlabeled: Documents
    max_iter: int
    fold: AnyArray
    note: str  # why no weights are compared: a class has too few documents for two folds

    @classmethod
    def of(cls, fit: TextFit, labeled: Documents, codes: Codes, unlabeled: Documents, max_iter: int) -> _Comparison:
        """Unlabeled documents have as much weight, relative to labeled ones, as without sampling."""
        mass, free = labeled.weights.sum(), unlabeled.weights.sum()
        rows, labeled = labeled.sampled(codes)
        _, some = unlabeled.sampled(np.zeros(len(unlabeled.texts), dtype=np.intp))
        ratio = (labeled.weights.sum() / mass) / (some.weights.sum() / free) if free > 0.0 else 1.0
        codes, classes = codes[rows], fit.sums.classes
        sizes, note = np.bincount(codes, minlength=len(classes)), ""
        if sizes.min() < 2:
            note = f"cross-validation needs two labeled documents of class {listed(classes[sizes < 2])}"
        fold = np.arange(len(codes)) % max(min(FOLDS, int(sizes.min())), 1)
        order = np.lexsort((checksums(labeled.texts), codes))[np.argsort(fold, kind="stable")]
        some = replace(some, weights=ratio * some.weights)
        return cls(fit, labeled.take(order), codes[order], some, max_iter, np.sort(fold), note)

    def losses(self, weights: Sequence[float]) -> tuple[Array, tuple[Calibration | None, ...]]:
        """Log-losses of held-out documents, (weights, documents), and the calibration that each weight has."""
        folds = range(int(self.fold.max()) + 1)
        evidence = np.concatenate([np.array(list(self._held_out(number, weights))) for number in folds], axis=2)
        counts, labeled, calibrated = self.fit.sums.counts, self.labeled, self.fit.calibration is not None
        prior = np.log(counts.weight / counts.weight.sum())[:, None]
        learn = learn_calibration if calibrated else without_calibration
        found = [learn(counts.classes, each, prior, self.codes, labeled.weights, labeled.blank) for each in evidence]
        calibrations = tuple(each.calibration if calibrated else None for each in found)
        return np.array([each.losses for each in found]), calibrations

    def _held_out(self, number: int, weights: Sequence[float]) -> Iterator[Array]:
        """Evidence of the documents of a fold for each weight, (classes, documents)."""
        test, train = np.flatnonzero(self.fold == number), np.flatnonzero(self.fold != number)
        sums = self.labeled.take(train).sums(self.fit.sums.classes, self.codes[train])
        current, rows = replace(self.fit, sums=sums), self.labeled.values[test]
        for weight in weights:
            if weight > 0.0:
                current = run_em(current, sums, self.unlabeled, weight, self.max_iter)
            evidence = current.evidence.scores(rows) * current.length_factors(rows)[:, None]
            yield np.ascontiguousarray(evidence.T)
