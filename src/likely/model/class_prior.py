"""Class priors: class proportions, posterior under a Dirichlet, uniform or given; and prior shift."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from likely.errors import InputError, NotConvergedWarning, check_choice, check_number, listed, warn
from likely.families.estimation import Estimation, check_belongs
from likely.families.priors import Dirichlet
from likely.numerics.arrays import all_same
from likely.numerics.special import EPS, log_gamma_ratio
from likely.statistics.counts import Counts
from likely.typing import AnyArray, Array

ClassPrior = Any  # None, "uniform", a sequence, a mapping {class: probability}, or a Dirichlet


def declared_classes(class_prior: ClassPrior) -> list[Any]:
    """Classes that a prior names, with or without rows."""
    named = class_prior.alpha if isinstance(class_prior, Dirichlet) else as_mapping(class_prior)
    return list(named) if isinstance(named, Mapping) else []


def as_mapping(given: Any) -> Any:
    """A series with an index as a mapping; anything else as it is."""
    if hasattr(given, "index") and hasattr(given, "items") and not isinstance(given, Mapping):
        return dict(given.items())
    return given


def given_prior(class_prior: ClassPrior, classes: AnyArray) -> Array:
    """A prior given by the user: "uniform", a sequence in the order of the classes, or a mapping."""
    class_prior = as_mapping(class_prior)
    if isinstance(class_prior, str):
        check_choice("class_prior", class_prior, ("uniform",))
        return np.full(len(classes), 1.0 / len(classes))
    if isinstance(class_prior, Mapping):
        check_names_classes("class_prior must have one probability", class_prior, classes)
        return _normalised(numbers("class_prior", [class_prior[label] for label in classes.tolist()]))
    try:
        prior = np.asarray(class_prior).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise InputError(
            f"class_prior={class_prior!r} is not a class prior. Use 'uniform', probabilities in the order of the "
            "classes, a mapping {class: probability}, or a Dirichlet."
        ) from None
    if prior.shape != (len(classes),):
        raise InputError(
            f"class_prior has shape {prior.shape}, but there are {len(classes)} classes: {listed(classes.tolist())}."
        )
    return _normalised(prior)


def check_names_classes(needs: str, given: Mapping[Any, Any], classes: AnyArray) -> None:
    """Raise where the keys of an option are not the classes."""
    labels = classes.tolist()
    missing = [label for label in labels if label not in given]
    unknown = [label for label in given if label not in labels]
    if missing or unknown:
        wrong = [f"it lacks {listed(missing)}"] if missing else []
        wrong += [f"{listed(unknown)} {'is' if len(unknown) == 1 else 'are'} unknown"] if unknown else []
        raise InputError(f"{needs} for each of the classes {listed(labels)}: {', and '.join(wrong)}.")


def numbers(name: str, values: Any) -> Array:
    """Values as floats; an error names the option."""
    try:
        array = np.asarray(values)
        return array.astype(np.float64, casting="unsafe" if array.dtype.kind == "O" else "same_kind")
    except (TypeError, ValueError):
        raise InputError(f"{name}={values!r} must be finite real numbers.") from None


def _normalised(prior: Array) -> Array:
    if not (np.all(np.isfinite(prior)) and np.all(prior >= 0.0)):
        raise InputError(f"class_prior has entries that are not probabilities: {prior.tolist()}.")
    if abs(prior.sum() - 1.0) > 1e-6:
        raise InputError(f"class_prior sums to {prior.sum():.10g}, not to 1. Divide it by its sum.")
    return np.asarray(prior / prior.sum())


def estimate_prior(class_prior: ClassPrior, counts: Counts, estimation: Estimation) -> Array:
    """The class prior: class proportions (mle), their posterior mode (map) or mean (bayes), or as given."""
    check_belongs(
        estimation,
        (Estimation.MAP, Estimation.BAYES),
        "class_prior=Dirichlet(...)",
        isinstance(class_prior, Dirichlet),
        "maximum likelihood has no prior",
    )
    _check_known(class_prior, counts)
    dirichlet = dirichlet_of(class_prior, estimation)
    if dirichlet is None:
        return given_prior(class_prior, counts.classes)
    if estimation == Estimation.MLE:
        return np.asarray(counts.weight / counts.weight.sum())
    return dirichlet.mode(counts) if estimation == Estimation.MAP else dirichlet.mean(counts)


def dirichlet_of(class_prior: ClassPrior, estimation: Estimation) -> Dirichlet | None:
    """The prior of class proportions that are estimated; None if the class prior is given."""
    if class_prior is None:
        return Dirichlet(2.0 if estimation == Estimation.MAP else 0.5)
    return class_prior if isinstance(class_prior, Dirichlet) else None


def _check_known(class_prior: ClassPrior, counts: Counts) -> None:
    """Raise where a mapping lacks classes of y: it may have classes without rows, one of which may be a typo."""
    named = as_mapping(class_prior)
    if not isinstance(named, Mapping):
        return
    known = counts.classes[counts.rows > 0].tolist()
    missing = [label for label in known if label not in named]
    if missing:
        strange = [label for label in named if label not in known]
        more = f", and {listed(strange)} {'is' if len(strange) == 1 else 'are'} not in y" if strange else ""
        raise InputError(
            f"class_prior must name every class once; {listed(missing)} is missing{more}. The classes in y are "
            f"{listed(known)}."
        )


def leave_one_out_log_prior(
    class_prior: ClassPrior, counts: Counts, estimation: Estimation
) -> Callable[[AnyArray, Array], Array]:
    """A function from codes and weights of rows to the leave-one-out log class prior, (classes, n)."""
    prior = estimate_prior(class_prior, counts, estimation)
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    dirichlet = dirichlet_of(class_prior, estimation)
    if dirichlet is None:
        return lambda codes, _: np.repeat(log_prior[:, None], len(codes), axis=1)
    pseudo_counts = np.zeros(len(prior))
    if estimation != Estimation.MLE:
        pseudo_counts = dirichlet.weights(counts.classes) - (1.0 if estimation == Estimation.MAP else 0.0)
    mass = counts.weight + pseudo_counts
    total = mass.sum()
    with np.errstate(divide="ignore"):
        logs = np.log(mass)[:, None]

    def without(codes: AnyArray, weights: Array) -> Array:
        if len(codes) > len(mass) and all_same(weights):  # computed once for each class
            return np.take(each(np.arange(len(mass)), weights[: len(mass)]), codes, axis=1)
        return each(codes, weights)

    def each(codes: AnyArray, weights: Array) -> Array:
        before = mass[codes]
        left, rest = before - weights, total - weights
        left = np.where(left <= 8.0 * EPS * before, 0.0, left)
        rest = np.log(np.where(rest > 8.0 * EPS * total, rest, total))
        found = logs - rest
        with np.errstate(divide="ignore"):
            found[codes, np.arange(len(codes))] = np.log(left) - rest
        return found

    return without


@dataclass(frozen=True, slots=True, eq=False)
class PriorShift:
    """Class prior estimated from unlabeled rows, and a likelihood-ratio test of prior shift.

    Attributes
    ----------
    prior : ndarray of shape (n_classes,)
        Estimated class prior.
    statistic : float
        Twice the gain in log-likelihood over the prior of the fitted model. Without a shift it is about χ² with
        n_classes − 1 degrees of freedom.
    p_value : float
        Probability of a larger statistic without a shift.
    iterations : int
        Number of EM iterations.

    See Also
    --------
    GenerativeClassifier.adapt_prior : Sets `prior_shift_` to this object.
    """

    prior: Array
    statistic: float
    p_value: float
    iterations: int


def estimate_shift(log_posterior: Array, prior: Array, max_iter: int, tol: float) -> PriorShift:
    """The maximum-likelihood class prior of unlabeled rows by EM, from their posteriors under another prior."""
    check_number("max_iter", max_iter, 1, whole=True)
    check_number("tol", tol, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = log_posterior - np.where(prior > 0.0, np.log(prior), 0.0)
    ratio[:, prior == 0.0] = -np.inf
    top = ratio.max(axis=1, keepdims=True)
    density = np.exp(ratio - top)  # p(x | class), up to a factor for each row
    shifted, before = prior.copy(), float(np.log(density @ prior).sum())
    last, done = before, 0
    while done < max_iter:
        done += 1
        joint = density * shifted
        total = joint.sum(axis=1, keepdims=True)
        shifted = (joint / total).mean(axis=0)
        now = float(np.log(density @ shifted).sum())
        if now - last <= tol * (1.0 + abs(now)):
            break
        last = now
    else:
        warn(
            f"The class prior did not converge in {max_iter} iterations. Increase max_iter or tol.",
            NotConvergedWarning,
        )
    statistic = max(2.0 * (now - before), 0.0)
    degrees = max(int(np.count_nonzero(prior)) - 1, 1)
    return PriorShift(shifted, statistic, float(scipy.special.chdtrc(degrees, statistic)), done)


def label_evidence(class_prior: ClassPrior, counts: Counts) -> float:
    """log p(labels) in their order, with the class prior integrated out, or as given."""
    dirichlet = dirichlet_of(class_prior, Estimation.BAYES)
    if dirichlet is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(estimate_prior(class_prior, counts, Estimation.BAYES))
            return float(np.where(counts.weight > 0.0, counts.weight * logs, 0.0).sum())
    alpha = dirichlet.weights(counts.classes)
    mass = log_gamma_ratio(alpha.sum(keepdims=True), counts.weight.sum(keepdims=True))
    return float(log_gamma_ratio(alpha, counts.weight).sum() - mass.sum())
