"""Evidence of the documents of a text column for each class, from estimated models of terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
import scipy.sparse

from likely.errors import InputError, NoDensityError
from likely.families.base import Conditionals
from likely.families.text.presence_models import BernoulliTerms
from likely.families.text.term_models import LinearEvidence, TermModel, length_factors, unobserved
from likely.families.text.vocabulary import Vocabulary
from likely.statistics.documents import Documents
from likely.statistics.term_sums import TermSums
from likely.typing import AnyArray, Array, Index


@dataclass(frozen=True, eq=False)
class TextConditionals(Conditionals):
    """Evidence t·n^−γ·Σ_j x_j·w_kj of documents with n terms. Documents without known terms have no evidence."""

    name: str
    vocabulary: Vocabulary
    sums: TermSums
    model: TermModel
    fitted: LinearEvidence
    exponent: float
    length_exponent: float

    reads_text: ClassVar[bool] = True
    tempered: ClassVar[bool] = True
    given: ClassVar[str | None] = "the length of a document"
    not_exported: ClassVar[str] = (
        "splitting text into terms has no expression. Set the text aside, with families={column: None}."
    )
    remedy: ClassVar[str] = "Set the text aside, with families={column: None}."

    @property
    def n_classes(self) -> int:
        return len(self.sums.classes)

    @property
    def dimension(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return 256 + self.n_classes

    @property
    def has_density(self) -> bool:
        try:
            self.model.log_carrier(self.fitted, scipy.sparse.csr_array((0, self.vocabulary.size + 1)))
        except NoDensityError:
            return False
        return True

    def counted(self, rows: Any) -> tuple[Any, AnyArray]:
        """Transformed counts of documents of a table, or of a sample (n, 1), and which of them have no evidence."""
        documents = rows if isinstance(rows, Documents) else rows[:, 0].tolist()
        values = self.model.transform(self.vocabulary.read(documents))
        return values, unobserved(self.model, values, documents)

    def without_evidence(self, rows: Any) -> AnyArray:
        return self.counted(rows)[1]

    def weighted(self, evidence: Array, values: Any, blank: AnyArray) -> Array:
        """Evidence (n, classes) with its exponent, (classes, n); 0 for documents without any."""
        factors = self.exponent * length_factors(values, self.length_exponent, 1.0)
        found = np.ascontiguousarray((evidence * factors[:, None]).T)
        found[:, blank] = 0.0
        return found

    def scores(self, rows: Any) -> Array:
        values, blank = self.counted(rows)
        return self.weighted(self.fitted.scores(values), values, blank)

    def log_density(self, rows: Any) -> Array:
        self._check_density()
        values, blank = self.counted(rows)
        found = self.fitted.scores(values) + self.model.log_carrier(self.fitted, values)[:, None]
        found[blank] = 0.0
        return np.ascontiguousarray(found.T)

    def _check_density(self) -> None:
        if not self.has_density:
            raise NoDensityError(
                f"Column {self.name!r}: the model of its text has no density. Use families={{{self.name!r}: "
                f"Text(family=Multinomial())}}, or families={{{self.name!r}: None}}, which sets the column aside."
            )

    def explain(self, rows: Any) -> Array:
        return self.scores(rows).T[:, :, None]

    def sample(self, label: int, n: int, rng: np.random.Generator) -> AnyArray:
        self._check_density()
        found = np.empty((n, 1), dtype=object)
        found[:, 0] = draw_documents(self.model, self.fitted, self.vocabulary, self.sums, np.full(n, label), rng)
        return found

    def marginal(self, columns: Index) -> NoReturn:
        raise NoDensityError(f"Column {self.name!r}: text has no marginal distributions.")

    def notes(self, names: Sequence[str]) -> list[str]:
        empty = self.sums.empty
        documents = "1 document without any term" if empty == 1 else f"{empty:,} documents without any term"
        return [f"{self.name}: {self.vocabulary.size:,} terms" + (f"; {documents}" if empty else "")]


def draw_documents(
    model: TermModel, fitted: LinearEvidence, vocabulary: Vocabulary, sums: TermSums, codes: AnyArray, rng: Any
) -> list[str]:
    """Documents of the classes with these codes: terms in random order, joined by blanks.

    A document has the mean number of terms of its class, at least one. A Bernoulli model draws which terms occur.
    """
    used = np.flatnonzero(np.bincount(sums.raw.indices, minlength=sums.size))
    if not len(used):
        raise InputError("No document has a term: nothing can be drawn.")
    names, coefficients, found = vocabulary.terms, fitted.coefficients(used), []
    for k in codes.tolist():
        if isinstance(model, BernoulliTerms):
            odds = np.exp(coefficients[:, k])
            drawn = np.flatnonzero(rng.uniform(size=len(used)) * (1.0 + odds) < odds)
        else:
            weights = np.exp(coefficients[:, k] - coefficients[:, k].max())
            mean = sums.raw[[k]].sum() / max(sums.counts.weight[k], 1e-300)
            drawn = rng.choice(len(used), size=max(int(np.rint(mean)), 1), p=weights / weights.sum())
        found.append(" ".join(names[used[j]] for j in rng.permutation(drawn)))
    return found
