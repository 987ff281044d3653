"""Choices for models of terms, by the leave-one-out log-loss of a sample of the documents.

The exponent of the evidence is t·(n/m)^−γ for a document of length n, where m is the mean length of the training
documents. Smoothing, γ, and whether rare terms are one term are those with the least calibrated leave-one-out log-loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from likely.data.row_hash import drawn_copies, text_hashes
from likely.families.text.declared import KINDS
from likely.families.text.term_models import (
    CompactSums,
    ScaledTerms,
    TermModel,
    left_out,
    length_factors,
    unobserved,
)
from likely.model.calibration import Calibration, learn_calibration, without_calibration
from likely.model.persistence import register
from likely.numerics.shapes import Shape
from likely.numerics.ties import first_best
from likely.statistics.term_sums import TermSums
from likely.typing import AnyArray, Array, Codes

SMOOTHING = (0.1, 1.0, 0.5, 0.01)  # the first one is the default without calibration
LENGTH_EXPONENTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
MOST_DOCUMENTS = 2000  # documents that choices and calibration are judged by, about

for _kind in KINDS:
    register(_kind)


@register
@dataclass(frozen=True, slots=True, eq=False)
class TermChoice:
    """A model of terms, the exponent γ of the document's length, and the calibration with both."""

    model: TermModel
    length_exponent: Annotated[float, Shape(">=0")]
    mean_length: Annotated[float, Shape(">0")]
    calibration: Calibration | None

    @property
    def key(self) -> tuple[Any, ...]:
        """What is chosen."""
        return self.model, self.length_exponent

    @property
    def loss(self) -> float:
        """Calibrated leave-one-out log-loss."""
        return np.inf if self.calibration is None else self.calibration.log_loss_after


def best_first(choices: Sequence[TermChoice]) -> tuple[TermChoice, ...]:
    """The choices, the one of least loss first: of several that differ by rounding, the first."""
    best = choices[first_best([-choice.loss for choice in choices])]
    return best, *(choice for choice in choices if choice is not best)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Training documents that choices are judged by: transformed counts, class codes and weights."""

    documents: Sequence[str]
    values: Any
    codes: Codes
    held_out: Array  # weight that leave-one-out removes: weights are frequencies, and one copy is held out
    weights: Array  # of the document in a mean over the sample

    @classmethod
    def of(cls, documents: Sequence[str], values: Any, codes: Codes, weights: Array | None) -> Self:
        """About MOST_DOCUMENTS documents, and at least one of each class."""
        mass = np.ones(len(documents)) if weights is None else weights
        drawn = drawn_documents(documents, codes, mass)
        used = np.flatnonzero(drawn)
        held_out = np.minimum(mass[used], 1.0)
        return cls(
            [documents[i] for i in used.tolist()], values[used], codes[used].astype(np.intp), held_out, drawn[used]
        )


def drawn_documents(documents: Sequence[str], codes: Codes, weights: Array) -> Array:
    """How often each document is drawn into a sample of about MOST_DOCUMENTS; all are if they weigh no more.

    The draw depends on text, class and weight alone. A class of which no document is drawn has one, with the weight
    that the class is expected to have in the sample.
    """
    total = float(weights.sum())
    if total <= MOST_DOCUMENTS:
        return weights
    fraction, hashes = MOST_DOCUMENTS / total, text_hashes(documents, codes)
    drawn = drawn_copies(hashes, weights, fraction)
    for k in np.setdiff1d(codes[weights > 0.0], codes[drawn > 0.0]).tolist():
        mine = np.flatnonzero((codes == k) & (weights > 0.0))
        drawn[mine[np.argmin(hashes[mine])]] = fraction * float(weights[mine].sum())
    return drawn


@dataclass(frozen=True, slots=True, eq=False)
class TermTrial:
    """Sums of training documents, and a sample of them that candidates are judged by."""

    sums: TermSums
    fixed: bool  # whether the vectorizer has fixed columns
    sample: Sample
    exponent: float | None = None  # t·n^−γ with this t, without intercepts; None learns t and intercepts

    def choices(
        self,
        model: TermModel,
        smoothing: float | None = None,
        merged: bool | None = None,
        length_exponent: float | None = None,
    ) -> tuple[TermChoice, ...]:
        """Candidates with their calibrations, the best one first; options that are not None are kept."""
        if isinstance(model, ScaledTerms):
            found = tuple(self._smoothings(model, smoothing, merged, length_exponent or 0.0))
        else:
            lengths = LENGTH_EXPONENTS if model.learns_length else LENGTH_EXPONENTS[:1]
            found = tuple(self._judged(model, lengths if length_exponent is None else (length_exponent,)))
        return best_first(found)

    def _smoothings(
        self, model: ScaledTerms, smoothing: float | None, merged: bool | None, length: float
    ) -> Iterator[TermChoice]:
        """The default model: whether rare terms are merged, and then its smoothing."""
        options = ((False,) if self.fixed else (False, True)) if merged is None else (merged,)
        values = SMOOTHING if smoothing is None else (smoothing,)
        tried: list[TermChoice] = []
        for each in options:
            start = tried[0].calibration if tried else None
            tried += self._judged(replace(model, merged=each, smoothing=values[0]), (length,), start)
        best = best_first(tried)[0]
        yield from tried
        for s in values[1:]:
            candidate = replace(model, merged=best.model.merged, smoothing=s)
            yield from self._judged(candidate, (length,), best.calibration)

    def _judged(
        self, model: TermModel, lengths: Sequence[float], start: Calibration | None = None
    ) -> Iterator[TermChoice]:
        """Calibrations of leave-one-out evidence for each exponent of the length."""
        sample = self.sample
        fitted = model.estimate(CompactSums.of(self.sums, model.merged, self.fixed))
        evidence = left_out(model, fitted, sample.values, sample.codes, sample.held_out, balanced=True)
        blank = unobserved(model, sample.values, sample.documents)
        mean = float(self.sums.values.sum() / self.sums.counts.weight.sum()) or 1.0
        for length in lengths:
            scaled = evidence * length_factors(sample.values, length, mean)[:, None]
            if self.exponent is not None:
                scaled *= self.exponent * mean**-length
            start = self._learnt(scaled, blank, start)
            yield TermChoice(model, length, mean, start)

    def _learnt(self, evidence: Array, blank: AnyArray, start: Calibration | None) -> Calibration:
        counts, sample = self.sums.counts, self.sample
        with np.errstate(divide="ignore"):
            prior = np.log(counts.weight / counts.weight.sum())[:, None]
        evidence[blank] = 0.0
        given = (counts.classes, np.ascontiguousarray(evidence.T), prior, sample.codes, sample.weights, blank)
        if self.exponent is not None:
            return without_calibration(*given).calibration
        return learn_calibration(*given, start).calibration
