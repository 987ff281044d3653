"""Conjugate priors as pseudo-data: Dirichlet, gamma, beta, and pseudo-rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from likely.errors import InputError, NoEvidenceError, NotEstimableError, listed
from likely.families.estimation import Estimation
from likely.numerics.special import log_gamma_ratio
from likely.statistics.counts import Counts
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array


def real_array(prior: str, name: str, value: Any) -> Array:
    """Real numbers, or an error that names the prior and its parameter."""
    try:
        return np.asarray(value).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise InputError(f"{prior}({name}={value!r}): must be numbers.") from None


def real_scalar(prior: str, name: str, value: Any) -> float:
    array = real_array(prior, name, value)
    if array.ndim:
        raise InputError(f"{prior}({name}={value!r}): must be one number.")
    return float(array)


class Dirichlet(BaseEstimator):
    """Dirichlet prior on the class shares: `alpha`, for every class or a mapping {class: alpha}.

    `alpha` acts as that many rows seen of each class before any data. Under ``"bayes"`` the shares are
    the posterior mean (n_k + α_k) / (n + Σα), under ``"map"`` the posterior mode
    (n_k + α_k − 1) / (n + Σα − K).
    """

    def __init__(self, alpha: float | Mapping[Any, float] = 1.0) -> None:
        self.alpha = alpha

    def weights(self, classes: AnyArray) -> Array:
        """α of each class."""
        if isinstance(self.alpha, Mapping):
            missing = [label for label in classes.tolist() if label not in self.alpha]
            if missing:
                raise InputError(f"Dirichlet(alpha=...) says nothing of class {listed(missing)}.")
            alpha = real_array("Dirichlet", "alpha", [self.alpha[label] for label in classes.tolist()])
        else:
            alpha = np.full(len(classes), real_scalar("Dirichlet", "alpha", self.alpha))
        if not (np.all(np.isfinite(alpha)) and np.all(alpha > 0.0)):
            raise InputError(f"Dirichlet(alpha={self.alpha!r}): alpha must be positive and finite.")
        return alpha

    def mean(self, counts: Counts) -> Array:
        """Posterior mean of the shares."""
        total = counts.weight + self.weights(counts.classes)
        return np.asarray(total / total.sum())

    def mode(self, counts: Counts) -> Array:
        """Posterior mode of the shares."""
        total = counts.weight + self.weights(counts.classes) - 1.0
        if np.any(total < 0.0) or total.sum() <= 0.0:
            short = counts.classes[total < 0.0] if np.any(total < 0.0) else counts.classes
            raise NotEstimableError(
                f"The Dirichlet posterior has no mode inside the simplex: class {listed(short)} has too few rows "
                f"for alpha={self.alpha!r}. Use alpha >= 1, or estimation='bayes'."
            )
        return np.asarray(total / total.sum())


def check_prior(prior: Any, kind: type, estimation: Estimation) -> None:
    """Raise unless a family's prior is None, or of the right kind under an estimation that has priors."""
    if prior is None:
        return
    if not isinstance(prior, kind):
        raise InputError(f"prior={prior!r} is not a {kind.__name__}.")
    if estimation == Estimation.MLE:
        raise InputError(
            "prior belongs to estimation='map' or estimation='bayes', not to estimation='mle': "
            "maximum likelihood has no prior."
        )


def smoothing_of(smoothing: Any, prior: Any, estimation: Estimation) -> float:
    """Pseudo-observations of every value: as given, from a `Dirichlet`, or the default of the estimation."""
    if smoothing is not None and prior is not None:
        raise InputError(f"smoothing={smoothing!r} and prior={prior!r} say the same thing: give one of them.")
    check_prior(prior, Dirichlet, estimation)
    if prior is not None:
        alpha = _positive("Dirichlet", "alpha", prior.alpha)
        if estimation == Estimation.MAP and alpha < 1.0:
            raise InputError(f"Dirichlet(alpha={alpha:g}) has no mode where counts are 0. Use alpha >= 1, or 'bayes'.")
        return alpha - 1.0 if estimation == Estimation.MAP else alpha
    if smoothing is None:
        return estimation.default_smoothing
    number = real_scalar("smoothing", "smoothing", smoothing) if not isinstance(smoothing, bool) else -1.0
    if not (np.isfinite(number) and number >= 0.0) or (number == 0.0 and estimation == Estimation.BAYES):
        raise InputError(f"smoothing={smoothing!r} must be a finite number, not negative (and above 0 under 'bayes').")
    return number


def _positive(prior: str, name: str, value: Any) -> float:
    number = real_scalar(prior, name, value)
    if not (np.isfinite(number) and number > 0.0):
        raise InputError(f"{prior}({name}={value!r}): must be positive and finite.")
    return number


class GammaPrior(BaseEstimator):
    """Gamma prior of a rate, as pseudo-data: `events` seen during some `exposure`, before any rows.

    The rate is (events + those observed) / (exposure + that observed): the posterior mean under ``"bayes"``, where the
    prior is Gamma(events, exposure), and the posterior mode under ``"map"``, where it is Gamma(1 + events, exposure).
    Where `exposure` is None it is such that the prior rate is the overall rate of each column.
    """

    def __init__(self, events: float = 0.5, exposure: float | None = None) -> None:
        self.events = events
        self.exposure = exposure

    def counted(self, rate: Array) -> tuple[float, Array]:
        """Events and exposure for columns of these overall rates."""
        events = _positive("GammaPrior", "events", self.events)
        if self.exposure is not None:
            exposure = real_scalar("GammaPrior", "exposure", self.exposure)
            if not (np.isfinite(exposure) and exposure >= 0.0):
                raise InputError(f"GammaPrior(exposure={self.exposure!r}): must be a finite number, not negative.")
            return events, np.full_like(rate, exposure)
        return events, events / np.where(rate > 0.0, rate, 1.0)


def gamma_evidence(events: float, exposure: Array, more_events: Array, more_exposure: Array) -> Array:
    """log of bᵃ/Γ(a) · Γ(a + n)/(b + s)^(a + n): what a gamma prior of a rate makes of n events during s."""
    if np.any(exposure <= 0.0):
        raise NoEvidenceError("GammaPrior(exposure=0) is improper")
    after = events + more_events
    return np.asarray(
        log_gamma_ratio(np.full_like(after, events), more_events)
        + events * np.log(exposure)
        - after * np.log(exposure + more_exposure)
    )


class BetaPrior(BaseEstimator):
    """Beta prior of a probability, as pseudo-data: so many `successes` and `failures` before any rows.

    The probability is (successes + those observed) / all: the posterior mean under ``"bayes"``, where the prior is
    Beta(successes, failures), and the posterior mode under ``"map"``, where it is Beta(1 + successes, 1 + failures).
    """

    def __init__(self, successes: float = 0.5, failures: float = 0.5) -> None:
        self.successes = successes
        self.failures = failures

    def counted(self) -> tuple[float, float]:
        """Successes and failures."""
        return _positive("BetaPrior", "successes", self.successes), _positive("BetaPrior", "failures", self.failures)


class PseudoRows(BaseEstimator):
    """A prior for families without a closed conjugate one: typical rows that every class is thought to have had.

    Their sufficient statistics are the average of the whole table's, and they count for `weight` rows.
    """

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight

    def added(self, sums: Sums) -> tuple[Array, Array]:
        """Totals (functions, classes, d) and weights (classes, d) with the pseudo-rows among them."""
        rows = _positive("PseudoRows", "weight", self.weight)
        mass = sums.whole.column_weight.sum(axis=0)
        typical = sums.whole.totals.sum(axis=1) / np.where(mass > 0.0, mass, 1.0)
        return sums.totals + rows * typical[:, None], sums.column_weight + rows
