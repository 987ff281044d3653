"""Bernoulli and Poisson models of the terms of a document, in which absent terms are evidence too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from likely.errors import NotEstimableError
from likely.families.priors import IMPROPER, GammaPrior
from likely.families.text.term_models import CompactSums, LinearEvidence, TermModel, with_values
from likely.numerics.special import log_factorial
from likely.typing import Array, Codes

TINY = 2.0**-53  # the least distance of probabilities from 1, in terms that cancel
SMALL = 1e-300  # stands for rates and counts of 0


@dataclass(frozen=True)
class BernoulliTerms(TermModel):
    """Presence or absence of each term: p_kj = (documents with the term + a)/(documents + a + b)."""

    ones: float = 1.0  # pseudo-documents with the term
    zeros: float = 1.0  # pseudo-documents without it

    absence_counts: ClassVar[bool] = True

    def describe(self) -> str:
        return f"Bernoulli, pseudo-documents {self.ones:g} with and {self.zeros:g} without a term"

    def transform(self, rows: Any) -> Any:
        rows = super().transform(rows)
        return with_values(rows, (rows.data > 0).astype(np.float64))

    def estimate(self, compact: CompactSums) -> LinearEvidence:
        """w_kj = log(c_kj + a) − log(n_k − c_kj + b), and v_k = Σ_j log(1 − p_kj)."""
        counts = compact.values.T.toarray()
        table = np.log(counts + self.ones) - np.log(np.maximum(compact.weight - counts, 0.0) + self.zeros)
        if not compact.knows_absent:
            table[-1] = 0.0
        return LinearEvidence(compact, table, self._absence(compact, counts, compact.weight))

    def _absence(self, compact: CompactSums, counts: Array, weight: Array) -> Array:
        """Σ_j log(1 − p_kj) over all terms, with these numbers of documents in the classes."""
        total = weight + self.ones + self.zeros
        present = np.minimum((counts[:-1] + self.ones) / total, 1.0 - TINY)
        absent = compact.columns - (len(counts) - 1)
        return np.asarray(np.log1p(-present).sum(axis=0) + absent * np.log1p(-self.ones / total))

    def leave_one_out(self, fitted: LinearEvidence, rows: Any, codes: Codes, weights: Array) -> Array:
        """For its class, a document has c_kj and n_k without it; v_k is corrected for the terms of the document."""
        compact = fitted.compact
        x, counts, every = compact.read(rows), compact.values.T.toarray(), np.arange(len(codes))
        scores = np.asarray(x @ fitted.table) + fitted.constant
        owner = np.repeat(every, np.diff(x.indptr))
        known = (x.indices < x.shape[1] - (0 if compact.knows_absent else 1)) & (x.data > 0.0)
        owner, column = owner[known], x.indices[known]
        before, removed = counts[column, codes[owner]], weights[owner]
        left, documents = np.maximum(before - removed, 0.0), np.maximum(compact.weight[codes] - weights, 0.0)
        total = documents[owner] + self.ones + self.zeros
        present = np.minimum((before + self.ones) / total, 1.0 - TINY)  # as in the sum over all terms
        terms = np.log((left + self.ones) / total) - np.log1p(-present)
        own = np.bincount(owner, terms, minlength=len(codes))
        for weight in np.unique(weights):
            absence = self._absence(compact, counts, np.maximum(compact.weight - weight, 0.0))
            own[weights == weight] += absence[codes[weights == weight]]
        scores[every, codes] = own
        return scores

    def balanced(self, fitted: LinearEvidence, rows: Any, codes: Codes, weights: Array) -> Array:
        """Leave-one-out evidence, where the other classes have one document less, too: an average one.

        Every absent term has the factor 1 − p_kj, which grows with n_k. With one document less in its own class alone,
        a document with thousands of absent terms would be evidence for any other class, however well the model fits.
        """
        found = self.leave_one_out(fitted, rows, codes, weights)
        every = np.arange(len(codes))
        own = found[every, codes]
        for weight in np.unique(weights):
            some = np.flatnonzero(weights == weight)
            found[some] = self.estimate(fitted.compact.reduced(weight)).scores(rows[some])
        found[every, codes] = own
        return found

    def log_carrier(self, fitted: LinearEvidence, rows: Any) -> Array:
        return np.zeros(rows.shape[0])


@dataclass(frozen=True)
class PoissonTerms(TermModel):
    """Counts of each term at a rate per document, or per term of the document where its length is the exposure."""

    events: float = 0.5
    prior_exposure: float | None = None
    exposed: bool = False  # whether the exposure is the length of the document

    absence_counts: ClassVar[bool] = True

    def describe(self) -> str:
        return f"Poisson{', exposure the length of the document' if self.exposed else ''}"

    def _rates(self, compact: CompactSums, exposure: Array) -> tuple[Array, Array, Array]:
        """Counts with pseudo-counts, (columns, classes), prior exposures, and numbers of terms of compact columns.

        The last column stands for terms without any count. They have a rate where the prior exposure is given;
        otherwise the prior rate is the overall rate, which is 0.
        """
        counts = compact.values.T.toarray()
        overall = counts.sum(axis=1) / max(float(exposure.sum()), SMALL)
        events, prior = GammaPrior(self.events, self.prior_exposure).counted(np.maximum(overall, SMALL))
        prior = np.broadcast_to(np.asarray(prior, dtype=np.float64), overall.shape)
        terms = np.ones(len(counts))
        rated = compact.knows_absent and self.prior_exposure is not None
        terms[-1] = compact.columns - (len(counts) - 1) if rated else 0.0
        return counts + events, prior, terms

    def _exposure(self, compact: CompactSums) -> Array:
        return compact.totals if self.exposed else compact.weight

    def estimate(self, compact: CompactSums) -> LinearEvidence:
        all_exposure = self._exposure(compact)
        counts, prior, terms = self._rates(compact, all_exposure)
        exposure = prior[:, None] + all_exposure
        if np.any(exposure <= 0.0):
            raise NotEstimableError(f"A class has no terms, so {IMPROPER}. Set exposure > 0 in the prior.")
        rates = counts / exposure
        table, total = np.log(rates), terms @ rates
        if self.exposed:
            table -= total
        if not terms[-1]:
            table[-1] = 0.0
        return LinearEvidence(compact, table, np.zeros(len(total)) if self.exposed else -total)

    def leave_one_out(self, fitted: LinearEvidence, rows: Any, codes: Codes, weights: Array) -> Array:
        """For its class, a document has counts and exposure without it, also in the sum of all rates.

        The prior is that of all documents.
        """
        compact = fitted.compact
        all_exposure = self._exposure(compact)
        counts, prior, terms = self._rates(compact, all_exposure)
        x = compact.read(rows)
        scores = np.asarray(x @ fitted.table) + fitted.constant
        for i, k in enumerate(codes):
            part = slice(x.indptr[i], x.indptr[i + 1])
            known = (terms[x.indices[part]] > 0.0) & (x.data[part] > 0.0)
            column, value = x.indices[part][known], x.data[part][known]
            length = float(value.sum()) if self.exposed else 1.0
            exposure = prior + max(all_exposure[k] - weights[i] * length, SMALL)
            left = counts[column, k] - weights[i] * value
            total = terms @ (counts[:, k] / exposure) - (weights[i] * value / exposure[column]).sum()
            scores[i, k] = value @ np.log(np.maximum(left, SMALL) / exposure[column]) - length * total
        return scores

    def log_carrier(self, fitted: LinearEvidence, rows: Any) -> Array:
        inside = np.asarray(with_values(rows, log_factorial(rows.data)).sum(axis=1), dtype=np.float64)
        if not self.exposed:
            return -inside
        n = np.asarray(rows.sum(axis=1), dtype=np.float64)
        return n * np.log(np.where(n > 0.0, n, 1.0)) - inside
