"""Model files of text classifiers: vocabulary, sparse statistics and choices as plain values."""

from __future__ import annotations

from typing import Any

from likely.families.text.files import restored_sums, sums_content
from likely.numerics.shapes import check
from likely.text.fitting import TextFit


def fit_content(fit: TextFit) -> dict[str, Any]:
    """Vocabulary, statistics and choices as plain values."""
    return {
        **sums_content(fit.vocabulary, fit.sums),
        "choices": fit.choices,
        "prior": fit.prior,
        "bigrams": fit.bigrams,
        "unlabeled": fit.unlabeled,
        "column": fit.column,
        "library": fit.library,
    }


def restored_fit(content: dict[str, Any]) -> TextFit:
    """The fit in a model file, validated."""
    vocabulary, sums = restored_sums(content)
    more = (content.get(name) for name in ("prior", "bigrams", "unlabeled", "column", "library"))
    fit = TextFit(vocabulary, sums, content["choices"], *more)
    check(fit)
    return fit
