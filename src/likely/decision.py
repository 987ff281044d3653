"""Decisions from posteriors: losses, rejection, class priors, and exact boundaries between classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.special

from likely.counts import Counts
from likely.errors import InputError, NotConvergedWarning, check_choice, listed, warn
from likely.families.base import Quadratic, check_belongs
from likely.frames import is_frame
from likely.numerics import EPS, AnyArray, Array, all_same, log_gamma_ratio
from likely.priors import Dirichlet

# ------------------------------------------------------------------------------------- class priors

ClassPrior = Any  # None, "uniform", a sequence, a mapping {class: probability}, or a Dirichlet


def declared_classes(class_prior: ClassPrior) -> list[Any]:
    """Classes that a prior names, seen or not."""
    named = class_prior.alpha if isinstance(class_prior, Dirichlet) else as_mapping(class_prior)
    return list(named) if isinstance(named, Mapping) else []


def as_mapping(given: Any) -> Any:
    """A series with labels as a mapping; anything else as it is."""
    if hasattr(given, "index") and hasattr(given, "items") and not isinstance(given, Mapping):
        return dict(given.items())
    return given


def given_prior(class_prior: ClassPrior, classes: AnyArray) -> Array:
    """A prior that the user states: "uniform", a sequence in the order of the classes, or a mapping."""
    class_prior = as_mapping(class_prior)
    if isinstance(class_prior, str):
        check_choice("class_prior", class_prior, ("uniform",))
        return np.full(len(classes), 1.0 / len(classes))
    if isinstance(class_prior, Mapping):
        return _shares(_from_mapping(class_prior, classes), classes)
    try:
        shares = np.asarray(class_prior).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise InputError(
            f"class_prior={class_prior!r} is not a prior: give 'uniform', probabilities in the order of the "
            "classes, a mapping {class: probability}, or a Dirichlet."
        ) from None
    if shares.shape != (len(classes),):
        raise InputError(
            f"class_prior has shape {shares.shape}, but there are {len(classes)} classes: {listed(classes.tolist())}."
        )
    return _shares(shares, classes)


def _from_mapping(class_prior: Mapping[Any, float], classes: AnyArray) -> Array:
    labels = classes.tolist()
    missing = [label for label in labels if label not in class_prior]
    unknown = [label for label in class_prior if label not in labels]
    if missing or unknown:
        raise InputError(
            "class_prior must name every class once"
            + (f"; it lacks {listed(missing)}" if missing else "")
            + (f"; {listed(unknown)} is not among the classes {listed(labels)}" if unknown else "")
            + "."
        )
    return numbers("class_prior", [class_prior[label] for label in labels])


def numbers(name: str, values: Any) -> Array:
    """Real numbers, or an error that names the option."""
    try:
        array = np.asarray(values)
        return array.astype(np.float64, casting="unsafe" if array.dtype.kind == "O" else "same_kind")
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, finite and real: {values!r}.") from None


def _shares(shares: Array, classes: AnyArray) -> Array:
    if not (np.all(np.isfinite(shares)) and np.all(shares >= 0.0)):
        raise InputError(f"class_prior has entries that are no probabilities: {shares.tolist()}.")
    if abs(shares.sum() - 1.0) > 1e-6:
        raise InputError(f"class_prior sums to {shares.sum():.10g}, not to 1. Divide it by its sum.")
    return np.asarray(shares / shares.sum())


def estimate_prior(class_prior: ClassPrior, counts: Counts, estimation: str) -> Array:
    """Class prior as observed (mle), posterior mode (map) or mean (bayes), or as given."""
    check_belongs(
        estimation,
        ("map", "bayes"),
        "class_prior=Dirichlet(...)",
        isinstance(class_prior, Dirichlet),
        "maximum likelihood has no prior",
    )
    if class_prior is None or isinstance(class_prior, Dirichlet):
        if estimation == "mle":
            return np.asarray(counts.weight / counts.weight.sum())
        if estimation == "map":
            return (class_prior or Dirichlet(2.0)).mode(counts)
        return (class_prior or Dirichlet(0.5)).mean(counts)
    return given_prior(class_prior, counts.classes)


def left_out_log_prior(class_prior: ClassPrior, counts: Counts, estimation: str) -> Callable[[AnyArray, Array], Array]:
    """From the codes and weights of rows to the logarithms of class shares, (classes, n), without each of the rows."""
    shares = estimate_prior(class_prior, counts, estimation)
    with np.errstate(divide="ignore"):
        given = np.log(shares)
    if class_prior is not None and not isinstance(class_prior, Dirichlet):
        return lambda codes, _: np.repeat(given[:, None], len(codes), axis=1)
    more = np.zeros(len(shares))
    if estimation != "mle":
        prior = class_prior or Dirichlet(2.0 if estimation == "map" else 0.5)
        more = prior.weights(counts.classes) - (1.0 if estimation == "map" else 0.0)
    mass = counts.weight + more
    total = mass.sum()
    with np.errstate(divide="ignore"):
        logs = np.log(mass)[:, None]

    def without(codes: AnyArray, weights: Array) -> Array:
        if len(codes) > len(mass) and all_same(weights):  # found once for each class
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
    """Class shares estimated from rows without labels, and whether they are other than before.

    `statistic` is twice the gain in log-likelihood; without a shift it is about χ² with one degree less than there are
    classes, and `p_value` the probability of a larger one.
    """

    prior: Array
    statistic: float
    p_value: float
    iterations: int


def estimate_shift(log_posterior: Array, prior: Array, max_iter: int, tol: float) -> PriorShift:
    """Shares that make rows without labels most likely, given posteriors (rows, classes) under other shares."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = log_posterior - np.where(prior > 0.0, np.log(prior), 0.0)
    ratio[:, prior == 0.0] = -np.inf
    top = ratio.max(axis=1, keepdims=True)
    density = np.exp(ratio - top)  # p(x | class) up to a factor of the row
    shares, before = prior.copy(), float(np.log(density @ prior).sum())
    last, done = before, 0
    while done < max_iter:
        done += 1
        joint = density * shares
        total = joint.sum(axis=1, keepdims=True)
        shares = (joint / total).mean(axis=0)
        now = float(np.log(density @ shares).sum())
        if now - last <= tol * (1.0 + abs(now)):
            break
        last = now
    else:
        warn(f"The class shares have not come to rest after {max_iter} iterations.", NotConvergedWarning)
    statistic = max(2.0 * (now - before), 0.0)
    degrees = max(int(np.count_nonzero(prior)) - 1, 1)
    return PriorShift(shares, statistic, float(scipy.special.chdtrc(degrees, statistic)), done)


def label_evidence(class_prior: ClassPrior, counts: Counts) -> float:
    """log p(labels) in their order, the class shares integrated out, or as given."""
    if class_prior is not None and not isinstance(class_prior, Dirichlet):
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(estimate_prior(class_prior, counts, "bayes"))
            return float(np.where(counts.weight > 0.0, counts.weight * logs, 0.0).sum())
    alpha = (class_prior or Dirichlet(0.5)).weights(counts.classes)
    mass = log_gamma_ratio(alpha.sum(keepdims=True), counts.weight.sum(keepdims=True))
    return float(log_gamma_ratio(alpha, counts.weight).sum() - mass.sum())


# ------------------------------------------------------------------------------------------- losses


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """What to do with each row.

    `action` is the action of least expected loss; `expected_loss` is its expected loss, or the cost of
    rejection where that is lower; `rejected` says where it is lower. There, `action` still names the best of
    the actions.
    """

    action: AnyArray
    expected_loss: Array
    rejected: AnyArray


def read_loss(loss: Any, classes: AnyArray) -> tuple[Array, AnyArray]:
    """Losses (classes, actions) and the labels of the actions.

    `loss` is None (0 for the right class, 1 for any other), an array classes × actions, a mapping
    {class: {action: cost}}, or a frame with actions as columns: its index, if it has one, names the classes, and its
    rows are the classes in their order if it has none.
    """
    size = len(classes)
    if loss is None:
        return 1.0 - np.eye(size), classes
    if hasattr(loss, "index") and hasattr(loss, "columns") and not isinstance(loss, Mapping):
        for kind, labels in (("class", list(loss.index)), ("action", list(loss.columns))):
            if len(set(labels)) < len(labels):
                raise InputError(f"loss names a {kind} twice: {listed(labels)}.")
        loss = {
            label: dict(zip(loss.columns, row, strict=True))
            for label, row in zip(loss.index, loss.to_numpy(), strict=True)
        }
    if isinstance(loss, Mapping):
        return _loss_from_mapping(loss, classes)
    named = None
    if is_frame(loss):
        frame = nw.from_native(loss, eager_only=True)
        loss, named = [frame.row(i) for i in range(len(frame))], frame.columns
    matrix = numbers("loss", loss)
    if matrix.ndim != 2 or matrix.shape[0] != size or matrix.shape[1] == 0:
        raise InputError(
            f"loss has shape {matrix.shape}; it needs one row for each of the {size} classes "
            f"{listed(classes.tolist())}."
        )
    if named is not None:
        return _checked_loss(matrix), _action_labels(named)
    actions = classes if matrix.shape[1] == size else np.arange(matrix.shape[1])
    return _checked_loss(matrix), actions


def _loss_from_mapping(loss: Mapping[Any, Any], classes: AnyArray) -> tuple[Array, AnyArray]:
    labels = classes.tolist()
    missing = [label for label in labels if label not in loss]
    unknown = [label for label in loss if label not in labels]
    if missing or unknown:
        wrong = [f"it lacks {listed(missing)}"] if missing else []
        wrong += [f"{listed(unknown)} {'is' if len(unknown) == 1 else 'are'} unknown"] if unknown else []
        raise InputError(f"loss must have one row for each of the classes {listed(labels)}: {', and '.join(wrong)}.")
    if not all(isinstance(loss[label], Mapping) for label in labels):
        raise InputError("loss must be a mapping {class: {action: cost}}.")
    actions = list(loss[labels[0]])
    for label in labels:
        if set(loss[label]) != set(actions):
            raise InputError(
                f"loss[{label!r}] has the actions {listed(loss[label])}, but loss[{labels[0]!r}] has {listed(actions)}."
            )
    matrix = numbers("loss", [[loss[label][action] for action in actions] for label in labels])
    if not actions:
        raise InputError("loss has no actions.")
    return _checked_loss(matrix), _action_labels(actions)


def _action_labels(actions: Sequence[Any]) -> AnyArray:
    """The labels of actions as an array that does not turn numbers into text."""
    array = np.array(actions)
    if array.dtype.kind in "US" and not all(isinstance(action, str) for action in actions):
        return np.array(actions, dtype=object)
    return array


def _checked_loss(matrix: Array) -> Array:
    if not np.all(np.isfinite(matrix)):
        raise InputError("loss has entries that are not finite.")
    return matrix


def decide(posterior: Array, classes: AnyArray, loss: Any, reject: float | None) -> Decisions:
    """The action of least expected loss for each row, or rejection where that costs less."""
    matrix, actions = read_loss(loss, classes)
    if reject is not None and not (np.ndim(reject) == 0 and np.isfinite(numbers("reject", reject))):
        raise InputError(f"reject={reject!r} is not a finite cost.")
    expected = posterior @ matrix
    best = expected.argmin(axis=1)
    lowest = expected[np.arange(len(best)), best]
    rejected = np.zeros(len(best), dtype=bool) if reject is None else lowest > float(reject)
    value = lowest if reject is None else np.where(rejected, float(reject), lowest)
    return Decisions(actions[best], value, rejected)


# --------------------------------------------------------------------------------------- boundaries


@dataclass(frozen=True, slots=True, eq=False)
class LinearBoundary:
    """log p(first | x) − log p(second | x) = w·x + w0.

    Kept about a centre near the class means, w·(x − centre) + level: far from 0 nothing large has to cancel.
    """

    first: Any
    second: Any
    w: Array
    level: float
    centre: Array

    @property
    def w0(self) -> float:
        """The log-odds at x = 0."""
        return float(self.level - self.w @ self.centre)

    def __call__(self, X: Any) -> Array:
        """Log-odds of the rows of X."""
        return np.asarray((np.asarray(X, dtype=np.float64) - self.centre) @ self.w + self.level)


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticBoundary:
    """log p(first | x) − log p(second | x) = xᵀ·A·x + b·x + c.

    Kept about a centre near the class means, zᵀ·A·z + slope·z + level with z = x − centre.
    """

    first: Any
    second: Any
    A: Array
    slope: Array
    level: float
    centre: Array

    @property
    def b(self) -> Array:
        """The gradient of the log-odds at x = 0."""
        return np.asarray(self.slope - 2.0 * self.A @ self.centre)

    @property
    def c(self) -> float:
        """The log-odds at x = 0."""
        return float(self.level - self.slope @ self.centre + self.centre @ self.A @ self.centre)

    def __call__(self, X: Any) -> Array:
        """Log-odds of the rows of X."""
        z = np.asarray(X, dtype=np.float64) - self.centre
        return np.asarray(np.einsum("nd,nd->n", z @ self.A, z) + z @ self.slope + self.level)


def boundary(form: Quadratic, classes: AnyArray, first: Any, second: Any) -> LinearBoundary | QuadraticBoundary:
    """The log-odds of two classes as a function of x; zero on the boundary between them."""
    labels = classes.tolist()
    unknown = [label for label in (first, second) if label not in labels]
    if unknown:
        raise InputError(f"Class {listed(unknown)} is not among the classes {listed(labels)}.")
    i, j = labels.index(first), labels.index(second)
    linear, constant = form.linear[i] - form.linear[j], float(form.constant[i] - form.constant[j])
    if form.square is None or np.array_equal(form.square[i], form.square[j]):
        return LinearBoundary(first, second, linear, constant, form.centre)
    return QuadraticBoundary(first, second, form.square[i] - form.square[j], linear, constant, form.centre)
