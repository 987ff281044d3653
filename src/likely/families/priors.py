"""Conjugate priors, parametrised as pseudo-data: Dirichlet, gamma, beta, and pseudo-rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from likely.errors import InputError, NoEvidenceError, NotEstimableError, listed
from likely.families.estimation import ANY_PRIOR, UNOBSERVED, Estimation, require_maximum
from likely.numerics.options import NamedOptions
from likely.numerics.special import log_gamma_ratio
from likely.statistics.counts import Counts
from likely.statistics.sums import Sums
from likely.typing import AnyArray, Array, ConcentrationLike, SmoothingLike

IMPROPER = "the posterior under GammaPrior(exposure=0) is improper"


class Dirichlet(NamedOptions):
    """Dirichlet prior of probabilities, as pseudo-counts.

    `GenerativeClassifier` and its subclasses take it as a prior of the class probabilities; `Bernoulli`, `Categorical`
    and `Multinomial` as a prior of the probabilities of their values. With K values, counts n_k and n = Σn_k, the
    estimate under ``estimation="bayes"`` is the posterior mean (n_k + α_k) / (n + Σα), and under ``estimation="map"``
    the posterior mode (n_k + α_k − 1) / (n + Σα − K).

    Parameters
    ----------
    alpha : float or mapping of class to float, default=1.0
        Concentration, which counts as `alpha` rows of each class (or value) before any data. A mapping gives one
        number per class; families take a single number.

    See Also
    --------
    BetaPrior : The same for a single probability.

    Examples
    --------
    >>> from likely import Bernoulli, Dirichlet, GenerativeClassifier
    >>> X, y = [[0], [1], [1]], ["a", "b", "b"]
    >>> model = GenerativeClassifier(Bernoulli(), estimation="bayes", class_prior=Dirichlet(1.0)).fit(X, y)
    >>> model.class_prior_
    array([0.4, 0.6])
    """

    def __init__(self, alpha: ConcentrationLike = 1.0) -> None:
        self.alpha = alpha

    def weights(self, classes: AnyArray) -> Array:
        """Return the concentration of each class.

        Parameters
        ----------
        classes : array of shape (n_classes,)
            Class labels.

        Returns
        -------
        array of shape (n_classes,)
        """
        if isinstance(self.alpha, Mapping):
            missing = [label for label in classes.tolist() if label not in self.alpha]
            if missing:
                raise InputError(f"Dirichlet(alpha=...) has no alpha for class {listed(missing)}.")
            alpha = real_array("Dirichlet", "alpha", [self.alpha[label] for label in classes.tolist()])
        else:
            alpha = np.full(len(classes), real_scalar("Dirichlet", "alpha", self.alpha))
        if not (np.all(np.isfinite(alpha)) and np.all(alpha > 0.0)):
            raise InputError(f"Dirichlet(alpha={self.alpha!r}): alpha must be positive and finite.")
        return alpha

    def mean(self, counts: Counts) -> Array:
        """Return the posterior mean of the class probabilities.

        Parameters
        ----------
        counts : Counts
            Weight of the rows of each class.

        Returns
        -------
        array of shape (n_classes,)
        """
        total = counts.weight + self.weights(counts.classes)
        return np.asarray(total / total.sum())

    def mode(self, counts: Counts) -> Array:
        """Return the posterior mode of the class probabilities.

        Parameters
        ----------
        counts : Counts
            Weight of the rows of each class.

        Returns
        -------
        array of shape (n_classes,)
        """
        total = counts.weight + self.weights(counts.classes) - 1.0
        if np.any(total < 0.0) or total.sum() <= 0.0:
            short = counts.classes[total < 0.0] if np.any(total < 0.0) else counts.classes
            raise NotEstimableError(
                f"The Dirichlet posterior has no mode inside the simplex: class {listed(short)} has too few rows "
                f"for alpha={self.alpha!r}. Use alpha >= 1, or estimation='bayes'."
            )
        return np.asarray(total / total.sum())


class GammaPrior(NamedOptions):
    """Gamma prior of a rate, as pseudo-data: events observed during an exposure.

    The estimated rate is (prior events + observed events) / (prior exposure + observed exposure). Under
    ``estimation="bayes"`` that is the posterior mean, with the prior Gamma(events, exposure); under
    ``estimation="map"`` the posterior mode, with the prior Gamma(1 + events, exposure).

    Parameters
    ----------
    events : float, default=0.5
        Number of pseudo-events.
    exposure : float or None, default=None
        Exposure during which they were observed. None is the exposure for which the prior rate equals the overall
        rate of each column.

    See Also
    --------
    Poisson, Exponential, Gamma : The families that take this prior.

    Examples
    --------
    One event per two units of exposure, before any rows:

    >>> from likely import GammaPrior, GenerativeClassifier, Poisson
    >>> prior = GammaPrior(events=1.0, exposure=2.0)
    >>> model = GenerativeClassifier(Poisson(prior=prior), estimation="bayes")
    >>> model.fit([[0], [1], [4], [6]], ["low", "low", "high", "high"]).predict([[3]])
    array(['high'], dtype='<U4')
    """

    def __init__(self, events: float = 0.5, exposure: float | None = None) -> None:
        self.events = events
        self.exposure = exposure

    def counted(self, rate: Array) -> tuple[float, Array]:
        """Return the pseudo-events and the exposure of each column.

        Parameters
        ----------
        rate : array of shape (n_columns,)
            Overall rate of each column, which determines an `exposure` of None.

        Returns
        -------
        events : float
            Number of pseudo-events.
        exposure : array of shape (n_columns,)
            Their exposure.
        """
        events = _positive("GammaPrior", "events", self.events)
        if self.exposure is not None:
            exposure = real_scalar("GammaPrior", "exposure", self.exposure)
            if not (np.isfinite(exposure) and exposure >= 0.0):
                raise InputError(f"GammaPrior(exposure={self.exposure!r}): must be a finite number >= 0.")
            return events, np.full_like(rate, exposure)
        return events, events / np.where(rate > 0.0, rate, 1.0)


class BetaPrior(NamedOptions):
    """Beta prior of a probability, as pseudo-data: numbers of successes and failures.

    The estimated probability is (prior successes + observed successes) / (all successes and failures). Under
    ``estimation="bayes"`` that is the posterior mean, with the prior Beta(successes, failures); under
    ``estimation="map"`` the posterior mode, with the prior Beta(1 + successes, 1 + failures).

    Parameters
    ----------
    successes : float, default=0.5
        Number of pseudo-successes.
    failures : float, default=0.5
        Number of pseudo-failures.

    See Also
    --------
    Bernoulli, Geometric, NegativeBinomial : The families that take this prior.

    Examples
    --------
    >>> from likely import Bernoulli, BetaPrior, GenerativeClassifier
    >>> prior = BetaPrior(successes=1.0, failures=3.0)
    >>> model = GenerativeClassifier(Bernoulli(prior=prior), calibration=None)
    >>> model.fit([[0], [0], [1], [1]], ["a", "a", "b", "b"]).predict_proba([[1]]).round(2)
    array([[0.25, 0.75]])
    """

    def __init__(self, successes: float = 0.5, failures: float = 0.5) -> None:
        self.successes = successes
        self.failures = failures

    def counted(self) -> tuple[float, float]:
        """Return the numbers of pseudo-successes and pseudo-failures.

        Returns
        -------
        successes : float
            Number of pseudo-successes.
        failures : float
            Number of pseudo-failures.
        """
        return _positive("BetaPrior", "successes", self.successes), _positive("BetaPrior", "failures", self.failures)


class PseudoRows(NamedOptions):
    """Prior of families without a closed-form conjugate prior: average rows added to every class.

    The sufficient statistics of the pseudo-rows are the average of all training rows, so every class is shrunk
    towards the whole table.

    Parameters
    ----------
    weight : float, default=1.0
        Number of rows that the pseudo-rows count for in each class.

    See Also
    --------
    Beta, Gamma, VonMises : The families that take this prior.

    Examples
    --------
    >>> from likely import Beta, GenerativeClassifier, PseudoRows
    >>> model = GenerativeClassifier(Beta(PseudoRows(2.0)), estimation="map")
    >>> model.fit([[0.1], [0.2], [0.7], [0.9]], ["a", "a", "b", "b"]).predict([[0.3]])
    array(['a'], dtype='<U1')
    """

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight

    def added(self, sums: Sums) -> tuple[Array, Array]:
        """Return the sums of each class with the pseudo-rows added.

        Parameters
        ----------
        sums : Sums
            The sums of the training rows.

        Returns
        -------
        totals : array of shape (n_functions, n_classes, n_columns)
            Sums with the pseudo-rows.
        weight : array of shape (n_classes, n_columns)
            Weight of the rows with the pseudo-rows.
        """
        rows = _positive("PseudoRows", "weight", self.weight)
        weight = sums.whole.column_weight.sum(axis=0)
        average = sums.whole.totals.sum(axis=1) / np.where(weight > 0.0, weight, 1.0)
        return sums.totals + rows * average[:, None], sums.column_weight + rows


def real_array(prior: str, name: str, value: Any) -> Array:
    """A parameter as real numbers; an error names the prior and the parameter."""
    try:
        return np.asarray(value).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise InputError(f"{prior}({name}={value!r}): must be numbers.") from None


def real_scalar(prior: str, name: str, value: Any) -> float:
    """A parameter as one real number; an error names the prior and the parameter."""
    array = real_array(prior, name, value)
    if array.ndim:
        raise InputError(f"{prior}({name}={value!r}): must be one number.")
    return float(array)


def _positive(prior: str, name: str, value: Any) -> float:
    """A parameter as a positive number; an error names the prior and the parameter."""
    number = real_scalar(prior, name, value)
    if not (np.isfinite(number) and number > 0.0):
        raise InputError(f"{prior}({name}={value!r}): must be positive and finite.")
    return number


def check_prior(prior: object, kind: type, estimation: Estimation) -> None:
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


def check_single_prior(smoothing: SmoothingLike, prior: object) -> None:
    """Raise if both a smoothing and a prior are given."""
    if smoothing is not None and prior is not None:
        raise InputError(f"smoothing={smoothing!r} and prior={prior!r} set the same prior: give only one of them.")


def smoothing_of(smoothing: SmoothingLike, prior: object, estimation: Estimation) -> float:
    """Pseudo-counts of every value: as given, from a `Dirichlet`, or the default of the estimation."""
    check_single_prior(smoothing, prior)
    check_prior(prior, Dirichlet, estimation)
    if isinstance(prior, Dirichlet):
        alpha = _positive("Dirichlet", "alpha", prior.alpha)
        if estimation == Estimation.MAP and alpha < 1.0:
            raise InputError(
                f"Dirichlet(alpha={alpha:g}) has no posterior mode where counts are 0. "
                "Use alpha >= 1, or estimation='bayes'."
            )
        return alpha - 1.0 if estimation == Estimation.MAP else alpha
    if smoothing is None:
        return estimation.default_smoothing
    number = real_scalar("smoothing", "smoothing", smoothing) if not isinstance(smoothing, bool) else -1.0
    if not (np.isfinite(number) and number >= 0.0) or (number == 0.0 and estimation == Estimation.BAYES):
        raise InputError(f"smoothing={smoothing!r} must be a finite number >= 0, and > 0 under estimation='bayes'.")
    return number


def smoothing_remedy(smoothing: SmoothingLike, prior: object) -> str:
    """The remedy where classes without values have no estimate, because there are no pseudo-counts."""
    if prior is not None:
        return "Set alpha > 1, use estimation='bayes'"
    return ANY_PRIOR if smoothing is None else "Set smoothing > 0"


def is_improper(prior: object) -> bool:
    """Whether a prior is GammaPrior(exposure=0): classes without exposure of their own have no posterior."""
    return isinstance(prior, GammaPrior) and prior.exposure == 0.0


def require_proper(prior: object, exposure: Array, used: AnyArray, sums: Sums, names: Sequence[str]) -> None:
    """Raise for an improper prior if a class has no exposure of its own, (classes, d), in a column that is used."""
    if is_improper(prior):
        unobserved = sums.unobserved()
        for lacking, problem in ((unobserved, UNOBSERVED), (exposure <= 0.0, "has no exposure in")):
            require_maximum(used & lacking, sums.classes, names, problem, IMPROPER, "Set exposure > 0 in the prior")


def with_pseudo_data(
    data: tuple[Array, Array], prior: tuple[float, Array | float], estimation: Estimation
) -> tuple[Array, Array]:
    """Events and exposure, or successes and failures, with those of the prior unless under maximum likelihood.

    An exposure of 0 becomes 1: of ignored columns, as `require_proper` raises for others.
    """
    if estimation == Estimation.MLE:
        return data
    exposure = data[1] + prior[1]
    return data[0] + prior[0], np.where(exposure > 0.0, exposure, 1.0)


def with_pseudo_rows(prior: PseudoRows | None, sums: Sums, estimation: Estimation) -> tuple[Array, Array]:
    """Totals and weights of each class, with the pseudo-rows of the prior unless under maximum likelihood."""
    if estimation == Estimation.MLE:
        return sums.totals, sums.column_weight
    return (prior or PseudoRows()).added(sums)


def pseudo_row_sums(prior: PseudoRows | None, sums: Sums) -> tuple[Array, Array]:
    """The sums (functions, classes, d) and weights (classes, d) of the pseudo-rows alone; None is one row."""
    totals, weight = (prior or PseudoRows()).added(sums)
    return totals - sums.totals, weight - sums.column_weight


def gamma_evidence(events: float, exposure: Array, more_events: Array, more_exposure: Array) -> Array:
    """log of bᵃ/Γ(a) · Γ(a + n)/(b + s)^(a + n): the evidence of n events during s under Gamma(a, b)."""
    if np.any(exposure <= 0.0):
        raise NoEvidenceError("GammaPrior(exposure=0) is improper")
    after = events + more_events
    return np.asarray(
        log_gamma_ratio(np.full_like(after, events), more_events)
        + events * np.log(exposure)
        - after * np.log(exposure + more_exposure)
    )


def mean_inverse_rate(events: Array, exposure: Array) -> Array:
    """E[1/rate] = b/(a − 1) under Gamma(a, b), also E[(1 − p)/p] under Beta(a, b); b/a where it is infinite."""
    return np.asarray(exposure / np.where(events > 1.0, events - 1.0, events))
