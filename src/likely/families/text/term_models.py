"""Models of the terms of a document: evidence for each class, linear in the counts, and its leave-one-out form.

The evidence of a document x for class k is Σ_j x_j·w_kj + v_k. All models are estimated from sums over the documents of
each class, so that a document is left out by subtracting it from the sums of its class.

    ScaledTerms       log p_kj for x = log(1 + count), scaled to unit length: the default
    MultinomialTerms  log p_kj for counts
    ComplementTerms   −log of the probability of the term in all other classes
    BernoulliTerms    log p_kj − log(1 − p_kj) for the presence of a term, and v_k = Σ_j log(1 − p_kj)
    PoissonTerms      log rate_kj for counts, and v_k = −Σ_j rate_kj, times the length of the document as exposure

The last two are in `presence_models`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2

from likely.errors import NoDensityError
from likely.numerics.shapes import Shape
from likely.numerics.special import log_factorial
from likely.statistics.term_sums import TermSums, row_blocks
from likely.typing import AnyArray, Array, Codes, Index

LENGTH = 5.0  # factor of the evidence of documents of unit length, so that exponents are between 0.2 and 2
FEW_CLASSES = 64  # up to which searching all values for each class takes less time than sorting
ONCE = 1.0 + 1e-9  # largest count of a rare term
SMOOTHING = Shape(">=1e-12", "<=1e150")


@dataclass(frozen=True, slots=True, eq=False)
class CompactSums:
    """Sums of the terms that occur, (classes, terms + 1); the last column is that of rare or unknown terms."""

    values: Any
    place: Index  # the compact column of each column, unknown terms included
    weight: Array  # documents of each class
    columns: int  # columns of a vectorizer with fixed columns, otherwise the terms that occur
    knows_absent: bool  # whether columns without any count are terms: those of a vectorizer with fixed columns

    @classmethod
    def of(cls, sums: TermSums, merged: bool, fixed: bool) -> CompactSums:
        """Sums without empty columns; with all terms that occur once in one column if they are to be `merged`."""
        count = np.bincount(sums.raw.indices, sums.raw.data, minlength=sums.size)
        kept = np.flatnonzero(count > (ONCE if merged else 0.0))
        place = np.full(sums.size + 1, len(kept))
        place[kept] = np.arange(len(kept))
        values = (sums.values.data, place[sums.values.indices], sums.values.indptr)
        compact = scipy.sparse.csr_array(values, (len(sums.classes), len(kept) + 1), copy=True)
        compact.sum_duplicates()
        return cls(compact, place, sums.counts.weight, sums.size if fixed else len(kept), fixed)

    def reduced(self, weight: float) -> CompactSums:
        """The expected sums without documents of this weight, drawn at random from each class."""
        left = np.maximum(self.weight - weight, 0.0)
        factor = np.divide(left, self.weight, out=np.zeros(len(left)), where=self.weight > 0.0)
        return replace(self, values=scipy.sparse.csr_array(scipy.sparse.diags_array(factor) @ self.values), weight=left)

    @property
    def totals(self) -> Array:
        """Sums over all terms, (classes,)."""
        return np.asarray(self.values.sum(axis=1), dtype=np.float64)

    def read(self, rows: Any) -> Any:
        """Documents with compact columns, of which several may be the same."""
        values = rows.data.astype(np.float64, copy=False)
        return scipy.sparse.csr_array(
            (values, self.place[rows.indices], rows.indptr), (rows.shape[0], self.values.shape[1])
        )

    def of_class(self, rows: Any, codes: Codes) -> Array:
        """The sum of its class for each stored value of documents with compact columns."""
        found, owner = np.zeros(rows.nnz), np.repeat(codes, np.diff(rows.indptr))
        sums = np.zeros(self.values.shape[1])
        order = np.argsort(owner, kind="stable") if len(self.weight) > FEW_CLASSES else None
        for k in np.unique(codes):
            if order is None:
                at = np.flatnonzero(owner == k)
            else:
                at = order[slice(*np.searchsorted(owner, [k, k + 1], sorter=order))]
            part = slice(self.values.indptr[k], self.values.indptr[k + 1])
            sums[self.values.indices[part]] = self.values.data[part]
            found[at] = sums[rows.indices[at]]
            sums[self.values.indices[part]] = 0.0
        return found


@dataclass(frozen=True, slots=True, eq=False)
class LinearEvidence:
    """Coefficients of compact columns, (columns, classes), and constants of the classes."""

    compact: CompactSums
    table: Array
    constant: Array

    def scores(self, rows: Any) -> Array:
        """Evidence of documents for each class, (documents, classes)."""
        return np.asarray(self.compact.read(rows) @ self.table) + self.constant

    def coefficients(self, columns: Index) -> Array:
        """Coefficients of columns of the vocabulary, (columns, classes)."""
        return self.table[self.compact.place[columns]]


@dataclass(frozen=True)
class TermModel:
    """A model of the terms of documents, with its options."""

    merged: bool = False  # whether terms that occur once, and unknown ones, are one term

    learns_length: ClassVar[bool] = False  # whether the exponent may depend on the length of the document
    absence_counts: ClassVar[bool] = False  # whether a document without known terms has evidence

    @abstractmethod
    def describe(self) -> str:
        """The model and its options in a few words."""

    def transform(self, rows: Any) -> Any:
        """Documents as the model reads them; unknown terms have the value 0 unless the model uses them."""
        if self.merged:
            return rows
        unknown = rows.indices == rows.shape[1] - 1
        return with_values(rows, np.where(unknown, 0, rows.data)) if unknown.any() else rows

    @abstractmethod
    def estimate(self, compact: CompactSums) -> LinearEvidence:
        """Coefficients for each class."""

    @abstractmethod
    def leave_one_out(self, fitted: LinearEvidence, rows: Any, codes: Codes, weights: Array) -> Array:
        """Evidence of transformed documents, (documents, classes), with their weights removed from their class."""

    def balanced(self, fitted: LinearEvidence, rows: Any, codes: Codes, weights: Array) -> Array:
        """Leave-one-out evidence that calibration learns from, with as many documents less in all classes."""
        return self.leave_one_out(fitted, rows, codes, weights)

    def log_carrier(self, fitted: LinearEvidence, rows: Any) -> Array:
        """log p(x | class) − evidence, which is the same for all classes; an error where there is no density."""
        raise NoDensityError(
            "Scores of scaled, weighted or complement counts are not densities: predictions, explanations and "
            "leave-one-out are available. Use family=Multinomial(), Bernoulli() or Poisson(), with a vectorizer that "
            "counts."
        )


@dataclass(frozen=True)
class MultinomialTerms(TermModel):
    """Multinomial distribution of counts: p_kj = (c_kj + s)/(c_k + sV), the posterior mean."""

    smoothing: Annotated[float, SMOOTHING] = 1.0
    weighted: bool = False  # whether values are not counts

    learns_length: ClassVar[bool] = True
    factor: ClassVar[float] = 1.0  # of the evidence

    def describe(self) -> str:
        return f"multinomial, smoothing {self.smoothing:g}"

    def _pseudo_counts(self, compact: CompactSums) -> tuple[Array, float]:
        """Pseudo-counts of each compact column (0: it has no probability), and their sum."""
        pseudo = np.full(compact.values.shape[1], self.smoothing)
        if not compact.knows_absent:
            pseudo[-1] = 0.0
        return pseudo, self.smoothing * compact.columns

    def estimate(self, compact: CompactSums) -> LinearEvidence:
        """w_kj = log(1 + c_kj/b_j) + log B − log(c_k + B) = log(p_kj·B/b_j), with pseudo-counts b and B = Σb."""
        pseudo, total = self._pseudo_counts(compact)
        values = compact.values
        common = np.log(total) - np.log(compact.totals + total) if total > 0.0 else np.zeros(values.shape[0])
        table = np.tile(common, (values.shape[1], 1))
        owner = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        table[values.indices, owner] += np.log1p(values.data / pseudo[values.indices])
        table[pseudo == 0.0] = 0.0
        table *= self.factor
        return LinearEvidence(compact, table, np.zeros(values.shape[0]))

    def leave_one_out(self, fitted: LinearEvidence, rows: Any, codes: Codes, weights: Array) -> Array:
        """For its class k, a document has Σ_j x_j·log(1 + (c_kj − x_j)/b_j) + n·(log B − log(c_k − n + B)), n = Σx."""
        compact, every = fitted.compact, np.arange(len(codes))
        pseudo, total = self._pseudo_counts(compact)
        x = compact.read(rows)
        if self.merged:
            x = x.copy()  # its arrays are shared with the documents
            x.sum_duplicates()
        scores = np.asarray(x @ fitted.table)
        owner = np.repeat(every, np.diff(x.indptr))
        known = pseudo[x.indices] > 0.0
        value = np.where(known, x.data, 0.0)
        before = compact.of_class(x, codes)
        left = np.maximum(before - weights[owner] * value, 0.0)
        left[left <= 1e-12 * before] = 0.0
        logs = value * np.log1p(left / np.where(known, pseudo[x.indices], 1.0))
        n = np.bincount(owner, value, minlength=len(codes))
        mass = np.maximum(compact.totals[codes] - weights * n, 0.0) + total
        ratio = np.log(total) - np.log(mass) if total > 0.0 else np.zeros(len(codes))
        scores[every, codes] = self.factor * (np.bincount(owner, logs, minlength=len(codes)) + n * ratio)
        return scores

    def log_carrier(self, fitted: LinearEvidence, rows: Any) -> Array:
        """log n!/∏x_j! − n·log V: the evidence is relative to V equal probabilities."""
        if self.weighted:
            return super().log_carrier(fitted, rows)
        n = np.asarray(rows.sum(axis=1), dtype=np.float64)
        inside = np.asarray(with_values(rows, log_factorial(rows.data)).sum(axis=1), dtype=np.float64)
        return np.asarray(log_factorial(n) - inside - n * np.log(max(fitted.compact.columns, 1)))


@dataclass(frozen=True)
class ScaledTerms(MultinomialTerms):
    """Multinomial model of log(1 + count), scaled to documents of unit length.

    The pseudo-counts of a term are s·V times its proportion in all documents, so that a class with few documents has
    the proportions of all. Weighted counts are scaled only.
    """

    smoothing: Annotated[float, SMOOTHING] = 0.1

    learns_length: ClassVar[bool] = False
    factor: ClassVar[float] = LENGTH

    def describe(self) -> str:
        values = "weighted counts" if self.weighted else "log(1 + count)"
        rare = "; terms that occur once are one term" if self.merged else ""
        return f"{values} of unit length, multinomial, smoothing {self.smoothing:g}{rare}"

    def transform(self, rows: Any) -> Any:
        rows = super().transform(rows)
        values = rows.data.astype(np.float64) if self.weighted else np.log1p(rows.data)
        found = with_values(rows, values)
        inplace_csr_row_normalize_l2(found)
        return found

    def _pseudo_counts(self, compact: CompactSums) -> tuple[Array, float]:
        sums = np.bincount(compact.values.indices, compact.values.data, minlength=compact.values.shape[1])
        total = float(sums.sum())
        mass = float(self.smoothing) * np.count_nonzero(sums)
        return (sums * (mass / total), float(mass)) if total > 0.0 else (np.zeros(len(sums)), 0.0)

    def log_carrier(self, fitted: LinearEvidence, rows: Any) -> Array:
        return TermModel.log_carrier(self, fitted, rows)


@dataclass(frozen=True)
class ComplementTerms(TermModel):
    """Scores by the counts of all other classes (Rennie et al. 2003): −log((T_j − c_kj + s)/Σ_j(…)) for each term j."""

    smoothing: Annotated[float, SMOOTHING] = 1.0
    normalize: bool = False

    def describe(self) -> str:
        return f"complement scores, smoothing {self.smoothing:g}"

    def _others(self, compact: CompactSums) -> tuple[Array, Array]:
        """Counts in all other classes with pseudo-counts, (columns, classes), and their sums over all columns."""
        counts = compact.values.T.toarray()
        others = counts.sum(axis=1, keepdims=True) - counts + self.smoothing
        absent = compact.columns - (len(others) - 1)
        return others, others[:-1].sum(axis=0) + absent * self.smoothing

    def _log_sums(self, compact: CompactSums, others: Array, totals: Array) -> Array:
        """Σ_j log((T_j − c_kj + s)/Σ_j(…)) over all columns, (classes,): the normalizer of a class."""
        absent = compact.columns - (len(others) - 1)
        return np.asarray(np.log(others[:-1] / totals).sum(axis=0) + absent * np.log(self.smoothing / totals))

    def estimate(self, compact: CompactSums) -> LinearEvidence:
        others, totals = self._others(compact)
        scale = 1.0 / self._log_sums(compact, others, totals) if self.normalize else -np.ones(len(totals))
        table = np.log(others / totals) * scale
        if not compact.knows_absent:
            table[-1] = 0.0
        return LinearEvidence(compact, table, np.zeros(len(totals)))

    def leave_one_out(self, fitted: LinearEvidence, rows: Any, codes: Codes, weights: Array) -> Array:
        """A document of class y is removed from the scores of all classes but y, and from their normalizers."""
        compact = fitted.compact
        others, totals = self._others(compact)
        before, scale = self._log_sums(compact, others, totals), -np.ones(len(totals))
        x = compact.read(rows)
        scores = np.asarray(x @ fitted.table)
        known = x.indices < x.shape[1] - (0 if compact.knows_absent else 1)
        value = np.where(known, x.data, 0.0)
        n = np.bincount(np.repeat(np.arange(len(codes)), np.diff(x.indptr)), value, minlength=len(codes))
        for i in range(len(codes)):
            part = slice(x.indptr[i], x.indptr[i + 1])
            mine = others[x.indices[part]]
            logs = np.log(np.maximum(mine - weights[i] * value[part, None], self.smoothing))
            log_totals = np.log(totals - weights[i] * n[i])
            if self.normalize:
                after = before + (logs - np.log(mine)).sum(axis=0) - compact.columns * (log_totals - np.log(totals))
                scale = 1.0 / after
            kept = scores[i, codes[i]]
            scores[i] = value[part] @ (logs - log_totals) * scale
            scores[i, codes[i]] = kept
        return scores


def left_out(
    model: TermModel, fitted: LinearEvidence, values: Any, codes: Codes, weights: Array, balanced: bool = False
) -> Array:
    """Leave-one-out evidence of transformed documents, (documents, classes), some of them at a time."""
    found = np.empty((len(codes), fitted.table.shape[1]))
    evidence = model.balanced if balanced else model.leave_one_out
    for rows in row_blocks(values.indptr):
        found[rows] = evidence(fitted, values[rows], codes[rows], weights[rows])
    return found


def length_factors(rows: Any, exponent: float, mean_length: float) -> Array:
    """(n/m)^−γ for documents of length n; 1 for documents without terms."""
    if exponent == 0.0:
        return np.ones(rows.shape[0])
    n = np.asarray(rows.sum(axis=1), dtype=np.float64)
    return np.where(n > 0.0, n / mean_length, 1.0) ** -exponent


def unobserved(model: TermModel, rows: Any, documents: Sequence[str]) -> AnyArray:
    """Which transformed documents have no evidence: no known term, or no text but blanks where absent terms count."""
    if model.absence_counts:
        return np.fromiter((not each or each.isspace() for each in documents), dtype=bool, count=len(documents))
    known = (rows.indices < rows.shape[1] - 1) & (rows.data > 0)
    return np.asarray(np.diff(np.concatenate([[0], np.cumsum(known)])[rows.indptr]) == 0)


def with_values(rows: Any, values: Array) -> Any:
    """The same sparse rows with other stored values."""
    return scipy.sparse.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)
