"""Typicality and novelty of documents, given their number of terms: by documents drawn from the fitted mixture.

The p-value of a document x of n known terms is P(p(X | n) <= p(x | n)), with X drawn from the mixture of the classes
for documents of n terms. Given n, the terms of a class are independent draws with p_j ∝ exp(w_kj), and the class has
the probability p(k | n) ∝ π_k·exp(v_k)·(Σ_j exp(w_kj))^n, for multinomial and Poisson models. Sequences of terms are
drawn once: each prefix is a document of its length, with −Σ_j log x_j! = −Σ_i log(how often term i occurred so far).
Of documents with more than LONGEST terms, LONGEST are drawn at random: under the model, they are distributed as a
document of this length, so that the p-value remains valid. Bernoulli models draw documents directly, without a
condition on their length: absent terms have probabilities too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.families.text.presence_models import BernoulliTerms
from likely.families.text.term_models import with_values
from likely.model.typicality import TIE, Typicality
from likely.numerics.block_sizes import KEPT
from likely.numerics.special import log_factorial, log_sum_exp
from likely.text.fitting import TextFit
from likely.typing import Array, Index

ALL_DRAWS = 4_000  # documents that are drawn by default, over all classes
LEAST_DRAWS = 200  # from each class
LONGEST = 2_000  # terms of the sequences that are drawn


def text_typicality(fit: TextFit, rows: Any, n_samples: int | None, seed: int) -> Typicality:
    """Typicality and novelty of transformed documents; those without known terms have p-value 1."""
    rng = np.random.default_rng(seed)
    rows = _thinned(rows, rng)
    lengths = np.asarray(rows.sum(axis=1), dtype=np.intp)
    within = np.asarray(with_values(rows, log_factorial(rows.data)).sum(axis=1), dtype=np.float64)
    density = _mixture(fit, fit.evidence.scores(rows)) - within
    density += TIE * (1.0 + np.abs(density))
    n_samples = max(ALL_DRAWS // len(fit.sums.classes), LEAST_DRAWS) if n_samples is None else n_samples
    draws, bernoulli = _Draws.of(fit, n_samples, rng), isinstance(fit.model, BernoulliTerms)
    wanted = np.unique(lengths[lengths > 0])
    places = [np.flatnonzero(lengths == n) for n in wanted.tolist()]
    log_weights = draws.class_log_prior + wanted[:, None] * draws.log_totals
    if bernoulli:
        places, log_weights = [np.arange(len(lengths))], draws.class_log_prior[None, :]
    weights = np.exp(log_weights - log_weights.max(axis=1, initial=-np.inf, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    below, least = np.zeros(len(lengths)), np.full(len(lengths), np.inf)
    for k in range(len(fit.sums.classes)):
        drawn = np.sort(draws.presences(k) if bernoulli else draws.prefixes(k, wanted), axis=0)
        for i in np.flatnonzero(weights[:, k] > 0.0).tolist():
            mine = places[i]
            below[mine] += weights[i, k] * np.searchsorted(drawn[:, i], density[mine], side="right") / n_samples
            least[mine] = np.minimum(least[mine], drawn[0, i])
    found = Typicality(np.ones(len(lengths)), np.zeros(len(lengths)))
    for i, mine in enumerate(places):
        # a document counts as one of the draws, whose effective number is that of draws with unequal weights
        effective = n_samples / float(weights[i] @ weights[i])
        p_value = (effective * below[mine] + 1.0) / (effective + 1.0)
        found.p_value[mine] = p_value
        found.novelty[mine] = -np.log10(p_value) + np.maximum(least[mine] - density[mine], 0.0) / np.log(10.0)
    return found


def _thinned(rows: Any, rng: np.random.Generator) -> Any:
    """The same documents; of those with more than LONGEST terms, LONGEST that are drawn without replacement."""
    values = rows.data.astype(np.int64)
    for i in np.flatnonzero(np.asarray(rows.sum(axis=1)) > LONGEST).tolist():
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        values[part] = rng.multivariate_hypergeometric(values[part], LONGEST, method="marginals")
    return with_values(rows, values)


def _mixture(fit: TextFit, evidence: Array) -> Array:
    """log Σ_k π_k·exp(evidence) of documents, from (documents, classes)."""
    return np.asarray(log_sum_exp(np.ascontiguousarray((evidence + fit.log_prior).T)))


@dataclass(frozen=True, slots=True, eq=False)
class _Draws:
    """Documents of each class: coefficients of the terms, (terms, classes), and their probabilities."""

    fit: TextFit
    table: Array
    log_totals: Array  # log Σ_j exp(w_kj)
    n_samples: int
    rng: np.random.Generator

    @classmethod
    def of(cls, fit: TextFit, n_samples: int, rng: np.random.Generator) -> _Draws:
        used = np.arange(fit.sums.size)
        if not fit.evidence.compact.knows_absent:
            used = np.flatnonzero(np.bincount(fit.sums.raw.indices, minlength=fit.sums.size))
        table = fit.evidence.coefficients(used)
        return cls(fit, table, np.asarray(log_sum_exp(table)), n_samples, rng)

    @property
    def class_log_prior(self) -> Array:
        """log π_k, with the constant v_k of the class where the length of a document is not given otherwise."""
        bernoulli = isinstance(self.fit.model, BernoulliTerms)
        return self.fit.log_prior + (0.0 if bernoulli else self.fit.evidence.constant)

    def _batches(self, width: int) -> list[int]:
        """Numbers of documents to draw at a time, where each needs `width` numbers."""
        size = min(max(KEPT // max(width, 1), 1), self.n_samples)
        return [min(size, self.n_samples - start) for start in range(0, self.n_samples, size)]

    def prefixes(self, k: int, lengths: Index) -> Array:
        """log p(X), up to a constant of each length, of prefixes of sequences of a class, (draws, lengths)."""
        found, classes, start = np.empty((self.n_samples, len(lengths))), self.table.shape[1], 0
        longest = int(lengths.max(initial=0))
        sums = np.cumsum(np.exp(self.table[:, k] - self.log_totals[k]))
        for size in self._batches(longest * classes) if longest else ():
            terms = np.searchsorted(sums, self.rng.uniform(high=sums[-1], size=(size, longest)), side="right")
            logs = np.cumsum(self.table[terms], axis=1)[:, lengths - 1]
            evidence = logs.reshape(-1, classes) + self.fit.evidence.constant
            within = np.cumsum(np.log(_occurrences(terms)), axis=1)[:, lengths - 1]
            found[start : start + size] = _mixture(self.fit, evidence).reshape(size, -1) - within
            start += size
        return found

    def presences(self, k: int) -> Array:
        """log p(X) of documents of a class, (draws, 1), whose terms are drawn one by one."""
        found, start = np.empty((self.n_samples, 1)), 0
        p = 1.0 / (1.0 + np.exp(-self.table[:, k]))
        for size in self._batches(len(p)):
            x = (self.rng.uniform(size=(size, len(p))) < p).astype(np.float64)
            found[start : start + size, 0] = _mixture(self.fit, x @ self.table + self.fit.evidence.constant)
            start += size
        return found


def _occurrences(terms: Index) -> Index:
    """How often each term of a sequence has occurred up to its place, itself included, (sequences, places)."""
    order = np.argsort(terms, axis=1, kind="stable")
    ordered, place = np.take_along_axis(terms, order, axis=1), np.arange(terms.shape[1])
    begins = np.ones(terms.shape, dtype=bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    found = np.empty_like(terms)
    np.put_along_axis(found, order, place - first + 1, axis=1)
    return found
