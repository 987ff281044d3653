"""Fitted estimators from given parameters: `from_parameters` of the generative classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from likely.data.columns import remember_schema
from likely.data.frames import FrameSchema
from likely.data.labels import encode_labels
from likely.errors import InputError, listed
from likely.estimators.generative import JointDensity
from likely.families.base import Family
from likely.families.estimation import Estimation
from likely.families.gaussian.family import Gaussian
from likely.families.given import GivenFamily, given_array
from likely.model.fit import Fit
from likely.model.plans import Plan, declared_plans
from likely.model.specification import Specification
from likely.statistics.counts import Counts
from likely.statistics.given import GivenStatistics
from likely.statistics.joint import JointStatistics
from likely.typing import AnyArray, Array, ClassPriorLike, LabelsLike

Model = TypeVar("Model", bound=JointDensity)


def from_parameters(
    cls: type[Model],
    class_prior: ClassPriorLike,
    means: Any = None,
    covariances: Any = None,
    *,
    families: Mapping[Any, Family] | None = None,
    parameters: Mapping[Any, Mapping[str, Any]] | None = None,
    classes: LabelsLike | None = None,
    columns: Sequence[str] | None = None,
) -> Model:
    """Make a fitted estimator from given parameters instead of rows.

    Probabilities, densities, explanations, boundaries, samples, decisions, exports and files follow from the
    parameters. The estimator has no training rows, so that updates and leave-one-out raise an error.

    Parameters
    ----------
    class_prior : {'uniform'}, array-like of shape (n_classes,) or dict
        Class probabilities: equal ones, in the order of `classes`, or a mapping {class: probability}.
    means : array-like of shape (n_classes, n_features), default=None
        Means of Gaussian classes.
    covariances : array-like, default=None
        Covariances of Gaussian classes: one for all classes, (n_features, n_features); one for each class, (n_classes,
        n_features, n_features); variances of independent columns, (n_classes, n_features); or one variance for each
        class, (n_classes,). A square array with as many rows as there are columns is one covariance for all classes.
    families : dict of column(s) to Family, default=None
        Families of columns, or of tuples of columns with a joint density, instead of Gaussian means.
    parameters : dict of column(s) to dict, default=None
        Parameters of each entry of `families` by their names, with one value for each class, or with the shape
        (n_classes, n_columns): "rate" of `Poisson` and `Exponential`; "probability" of `Bernoulli`, `Geometric`,
        `NegativeBinomial` and `Multinomial`; "shape" and "rate" of `Gamma`; "alpha" and "beta" of `Beta`; "direction"
        and "concentration" of `VonMises`; "mean" and "variance" (or "covariance") of `Gaussian`, and of the logarithm
        for `LogNormal`; "categories", and "probability" of shape (n_classes, n_categories), of `Categorical`;
        "probability" of the value of a `PointMass`, with the parameters of its other values.
    classes : array-like of shape (n_classes,), default=None
        Class labels, in the order of the parameters. None is 0, 1, ….
    columns : sequence of str, default=None
        Names of the columns. None is the names in `families`, or else x0, x1, ….

    Returns
    -------
    estimator
        A fitted estimator with estimation='mle'.

    See Also
    --------
    GenerativeClassifier.parameters : The parameters of a fitted model.

    Examples
    --------
    >>> from likely import GenerativeClassifier, Poisson
    >>> model = GenerativeClassifier.from_parameters([0.5, 0.5], [[0, 0], [2, 1]], [[1, 0.5], [0.5, 1]])
    >>> boundary = model.boundary(1, 0)
    >>> boundary.w.round(3), round(boundary.w0, 3)
    (array([2., 0.]), -2.0)
    >>> counts = GenerativeClassifier.from_parameters(
    ...     [0.7, 0.3], families={"visits": Poisson()}, parameters={"visits": {"rate": [2.0, 5.0]}}
    ... )
    >>> counts.predict_proba([{"visits": 4.0}]).round(3)
    array([[0.545, 0.455]])
    """
    labels, order = _classes(classes, class_prior, means, parameters)
    if means is not None or covariances is not None:
        if families is not None or parameters is not None:
            raise InputError("Pass means and covariances of Gaussian classes, or families and their parameters.")
        names, plans, options = _gaussians(means, covariances, order, columns)
    else:
        names, plans, options = _declared(families, parameters, order, columns)
    model = cls(families=options, class_prior=class_prior, estimation="mle")
    return _fitted(model, plans, names, labels, order, columns is not None or _named(families))


def gaussian_from_parameters(
    cls: type[Model],
    class_prior: ClassPriorLike,
    means: Any,
    covariances: Any,
    *,
    classes: LabelsLike | None = None,
    columns: Sequence[str] | None = None,
) -> Model:
    """Make a fitted estimator from given class means and covariances instead of rows.

    Probabilities, coefficients, boundaries, explanations, samples, exports and files follow from the parameters. The
    estimator has no training rows, so that updates and leave-one-out raise an error.

    Parameters
    ----------
    class_prior : {'uniform'}, array-like of shape (n_classes,) or dict
        Class probabilities: equal ones, in the order of `classes`, or a mapping {class: probability}.
    means : array-like of shape (n_classes, n_features)
        Class means.
    covariances : array-like of shape (n_features, n_features) or (n_classes, n_features, n_features)
        The covariance of all classes; for `QuadraticDiscriminant` the covariances of the classes.
    classes : array-like of shape (n_classes,), default=None
        Class labels, in the order of the means. None is 0, 1, ….
    columns : sequence of str, default=None
        Names of the columns. None is x0, x1, ….

    Returns
    -------
    estimator
        A fitted estimator with estimation='mle'.

    Examples
    --------
    >>> from likely import LinearDiscriminant
    >>> model = LinearDiscriminant.from_parameters([0.5, 0.5], [[0, 0], [2, 1]], [[1, 0.5], [0.5, 1]])
    >>> model.coef_.round(3), model.intercept_.round(3)
    (array([[2., 0.]]), array([-2.]))
    """
    labels, order = _classes(classes, class_prior, means, None)
    mean, spread = _means(means, order), given_array("covariances", covariances)
    d, model = mean.shape[1], cls(class_prior=class_prior, estimation="mle")
    family = model._family()
    wanted = (d, d) if family.shared is True else (len(order), d, d)
    if spread.shape != wanted:
        raise InputError(f"covariances has the shape {spread.shape}, and {cls.__name__} needs {wanted}.")
    values = {"mean": mean, "covariance": spread if len(wanted) == 2 else spread[order]}
    names = _names(columns, d)
    return _fitted(model, (Plan(None, GivenFamily(family, values)),), names, labels, order, columns is not None)


def _classes(classes: Any, class_prior: Any, means: Any, parameters: Any) -> tuple[AnyArray, AnyArray]:
    """Labels, sorted, and the place of each in the order of the parameters."""
    if classes is None:
        if isinstance(class_prior, Mapping):
            classes = list(class_prior)
        else:
            sizes = [np.shape(class_prior)] if not isinstance(class_prior, str) else []
            sizes += [np.shape(means)] if means is not None else []
            sizes += [np.shape(next(iter(each.values()))) for each in (parameters or {}).values() if len(each)]
            classes = list(range(max((shape[0] for shape in sizes if shape), default=0)))
    if not len(classes):
        raise InputError("The number of classes is not known. Pass classes=.")
    found = encode_labels(classes, len(classes), "from_parameters")
    if len(found.classes) != len(classes):
        raise InputError(f"classes={listed(list(classes))} has a label twice.")
    return found.classes, np.argsort(found.codes)


def _names(columns: Sequence[str] | None, width: int) -> tuple[str, ...]:
    names = tuple(f"x{j}" for j in range(width)) if columns is None else tuple(map(str, columns))
    if len(names) != width or len(set(names)) != width:
        raise InputError(f"columns={columns!r} must be {width} distinct names.")
    return names


def _named(families: Any) -> bool:
    """Whether columns are given by names."""
    return any(isinstance(name, str) for name in _columns_of(families))


def _columns_of(families: Any) -> list[Any]:
    if not isinstance(families, Mapping):
        return []
    return [name for key in families for name in (key if isinstance(key, tuple) else (key,))]


def _means(means: Any, order: AnyArray) -> Array:
    """Means of the sorted classes, (classes, d)."""
    mean = given_array("means", means)
    if mean.ndim != 2 or len(mean) != len(order):
        raise InputError(
            f"means has the shape {mean.shape}, and {len(order)} classes need ({len(order)}, number of columns)."
        )
    return np.asarray(mean[order])


def _gaussians(
    means: Any, covariances: Any, order: AnyArray, columns: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[Plan, ...], Any]:
    """Names, one block of Gaussians, and the option `families`."""
    if means is None or covariances is None:
        raise InputError("Gaussian classes need both means and covariances.")
    mean, spread = _means(means, order), given_array("covariances", covariances)
    (size, d), shape = mean.shape, spread.shape
    if shape not in {(d, d), (size, d, d), (size, d), (size,)}:
        raise InputError(
            f"covariances has the shape {shape}. {size} classes and {d} columns need ({d}, {d}) for all classes, "
            f"({size}, {d}, {d}) for each class, or variances ({size}, {d}) or ({size},)."
        )
    shared = shape == (d, d)
    kind = "full" if shared or spread.ndim == 3 else "diagonal" if spread.ndim == 2 else "spherical"
    family = Gaussian(kind if d > 1 else "diagonal", shared=shared)
    values = {"mean": mean, "covariance" if kind == "full" else "variance": spread if shared else spread[order]}
    return _names(columns, d), (Plan(None, GivenFamily(family, values), joint=d > 1),), family


def _declared(
    families: Any, parameters: Any, order: AnyArray, columns: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[Plan, ...], Any]:
    """Names, blocks and the option `families` of declared families with parameters."""
    if not isinstance(families, Mapping) or not isinstance(parameters, Mapping) or set(families) != set(parameters):
        raise InputError(
            "Pass means and covariances, or families and parameters: mappings with the same keys, such as "
            "families={'visits': Poisson()}, parameters={'visits': {'rate': [2.0, 5.0]}}."
        )
    used = _columns_of(families)
    if columns is None and not _named(families):
        names = _names(None, max(used) + 1 if used else 0)
    else:
        extra = [name for family in families.values() for name in family._extra_columns()]
        given = dict.fromkeys(map(str, (*used, *extra))) if columns is None else columns
        names = _names(tuple(given), len(given))
    plans = []
    for plan, key in zip(declared_plans(families, names), families, strict=True):
        values = {name: _permuted(plan.family, name, value, order) for name, value in parameters[key].items()}
        plans.append(Plan(plan.columns, GivenFamily(plan.family, values), plan.joint))
    return names, tuple(plans), dict(families)


def _permuted(family: Family, name: str, value: Any, order: AnyArray) -> Any:
    """A parameter with its classes sorted; categories and parameters of all classes are as they are."""
    if name == "categories":
        return list(value)
    array = given_array(name, value)
    pooled = array.ndim == 0 or (name == "covariance" and array.ndim == 2)
    if not pooled and len(array) != len(order):
        raise InputError(
            f"{type(family).__name__}: {name} has the shape {array.shape}, and there are {len(order)} classes."
        )
    return array if pooled else array[order]


def _fitted(
    model: Model,
    plans: tuple[Plan, ...],
    names: tuple[str, ...],
    labels: AnyArray,
    order: AnyArray,
    named: bool,
) -> Model:
    """The estimator with a fit that has no rows."""
    if not isinstance(model.class_prior, str | Mapping):
        prior = np.asarray(model.class_prior, dtype=object)
        if prior.shape == (len(order),):
            model.class_prior = prior[order].tolist()
    model._check_options()
    for plan in plans:
        plan.family.check(Estimation.MLE)
    counts = Counts(labels, np.zeros(len(labels), dtype=np.int64), np.zeros(len(labels)))
    widths = (len(names) if plan.columns is None else len(plan.columns) for plan in plans)
    specification = Specification(names, plans, model.class_prior, Estimation.MLE)
    fit = Fit(specification, JointStatistics(counts, tuple(GivenStatistics(labels, width) for width in widths)))
    estimates = fit.estimate()
    model._check_model(estimates[0])
    model._frame = FrameSchema(names) if named else FrameSchema()
    remember_schema(model, model._frame, len(names), ())
    return model._become(fit, estimates)
