"""The model of terms that a family of the library declares for text."""

from __future__ import annotations

from typing import Any

from likely.errors import InputError
from likely.families.bernoulli import Bernoulli
from likely.families.estimation import Estimation
from likely.families.multinomial import Multinomial
from likely.families.poisson import Poisson
from likely.families.priors import GammaPrior
from likely.families.text.presence_models import BernoulliTerms, PoissonTerms
from likely.families.text.term_models import ComplementTerms, MultinomialTerms, ScaledTerms, TermModel

KINDS = (ScaledTerms, MultinomialTerms, ComplementTerms, BernoulliTerms, PoissonTerms)


def term_model(family: Any, weighted: bool) -> TermModel:
    """The model of terms that a family of the library declares; None is the default."""
    bayes = Estimation.BAYES
    if family is None:
        return ScaledTerms(weighted=weighted)
    if isinstance(family, Multinomial):
        family.check(bayes)
        s = family._pseudo_count(bayes)
        if family.complement:
            return ComplementTerms(smoothing=s, normalize=bool(family.normalize))
        return MultinomialTerms(smoothing=s, weighted=weighted)
    if isinstance(family, Bernoulli):
        return BernoulliTerms(False, *family._pseudo_counts(bayes))
    if isinstance(family, Poisson):
        family.check(bayes)
        if family.exposure is not None and not family._exposure_is_total:
            raise InputError(f"Poisson(exposure={family.exposure!r}): documents have no columns. Use 'row totals'.")
        if weighted:
            raise InputError("Poisson() needs counts, and the vectorizer gives weighted counts. Use CountVectorizer().")
        prior = family.prior or GammaPrior()
        return PoissonTerms(False, prior.events, prior.exposure, family.exposure is not None)
    raise InputError(
        f"family={family!r} is not supported for text. Use Multinomial(), Bernoulli() or Poisson(), or None."
    )
