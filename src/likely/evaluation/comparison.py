"""Learning curves of generative and discriminative models that are fitted to the same rows.

Ng and Jordan (2001): with few rows the generative model of a pair tends to have the lower loss, with many rows the
discriminative one, which assumes less. Where the curves cross depends on the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from likely.data.batches import Batches
from likely.data.frames import whole_frame
from likely.data.source_rows import RowSample
from likely.data.table import Table
from likely.data.validation import read_table
from likely.discriminative.softmax import SoftmaxRegression
from likely.errors import InputError, check_number, listed
from likely.estimators.classifiers import GenerativeClassifier
from likely.evaluation.folds import FoldOptions, groups_apart, kept_together, refuse_unlabeled
from likely.evaluation.learning_curves import Comparison, verdicts
from likely.evaluation.preparation import NumericFeatures, categorical_columns, plain_table
from likely.evaluation.refitting import estimator_type
from likely.evaluation.trials import Grid, Trials, draws
from likely.families import Gaussian
from likely.model.rendering import frame_library
from likely.numerics.options import known_options
from likely.typing import AnyArray, GroupsLike, LabelsLike, NumbersLike, RandomStateLike, TableLike

DEFAULT_SIZES = 8  # number of training set sizes where none are given


@known_options
def compare(
    X: TableLike,
    y: LabelsLike,
    models: Mapping[str, ClassifierMixin] | None = None,
    sizes: NumbersLike | None = None,
    missing: NumbersLike = (0.0,),
    labeled: NumbersLike = (1.0,),
    repeats: int = 10,
    test: float = 0.2,
    random_state: RandomStateLike | None = None,
    groups: GroupsLike | None = None,
    copies: str = "auto",
) -> Comparison:
    """Compute learning curves of several classifiers on the same rows.

    In every repeat the rows of each class are split at random into training and test rows. All models are fitted to the
    same training rows and scored on the same test rows. Training sets are nested and stratified: a smaller one is a
    subset of a larger one, with the class proportions of the table and at least one row of each class.

    Parameters
    ----------
    X : array-like, sparse matrix, frame or source of shape (n_samples, n_features)
        Rows: in memory, or an object with a method `chunks()`. Of a source with more than 20,000 rows, a sample of
        20,000 rows is used, drawn at random in one pass.
    y : array-like of shape (n_samples,) or str
        Class labels, or the name of the column of X that has them.
    models : dict of str to classifier, default=None
        Classifiers with `predict_proba`, of this library or any other. The first is compared with each of the others.
        None is a generative model with linear log-odds, and softmax regression on the same columns.
    sizes : int or iterable of int, default=None
        Numbers of training rows. None is eight sizes in equal ratios, from two rows per class to all training rows.
    missing : float or iterable of float, default=(0.0,)
        Proportions of values to delete at random, in training and test rows.
    labeled : float or iterable of float, default=(1.0,)
        Proportions (up to 1) or numbers (above 1) of training rows that keep their label, at least one per class.
        Generative models and hybrids of this library are fitted to the unlabeled rows too; other models ignore them.
    repeats : int, default=10
        Number of random splits.
    test : float, default=0.2
        Proportion of the rows of each class that is held out for scoring.
    random_state : int or RandomState, default=None
        Seed of the splits, the deletions, and of models whose `random_state` is None.
    groups : array-like of shape (n_samples,) or str, default=None
        Group of each row, or the name of the column of X that has it, as in `cross_validate`: the rows of a group are
        either training rows or test rows.
    copies : {'auto', 'together', 'apart'}, default='auto'
        Whether equal rows are either training rows or test rows, as in `cross_validate`.

    Returns
    -------
    Comparison
        `points`, the scores of each model at each size; `baseline`, those of the class proportions; `verdicts`, which
        model is better where; `to_frame()` gives a table, `plot()` draws the curves and `str()` renders them as text.

    See Also
    --------
    select : Ranks generative models on all rows.
    cross_validate : Held-out scores of one model.

    Notes
    -----
    For a model that does not support missing values, they are imputed by column means and most frequent categories of
    the training rows. The notes of the result name such models.

    References
    ----------
    A. Y. Ng and M. I. Jordan (2001), On discriminative vs. generative classifiers: a comparison of logistic regression
    and naive Bayes, Advances in Neural Information Processing Systems 14.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import LinearDiscriminant, SoftmaxRegression, compare
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"linear discriminant": LinearDiscriminant(estimation="bayes"), "softmax": SoftmaxRegression()}
    >>> result = compare(X, y, models, sizes=[12, 120], repeats=3, random_state=0)
    >>> [(point.model, point.size) for point in result.points]
    [('linear discriminant', 12), ('softmax', 12), ('linear discriminant', 120), ('softmax', 120)]
    """
    rows = RowSample.of(X, y, None)
    if groups is not None and rows.is_part:
        raise InputError("groups needs the rows in memory. Pass some of the rows as a frame.")
    rows_of_user, groups = groups_apart(whole_frame(rows.X), groups)
    whole = Batches(rows_of_user, rows.y, None, read_table, "compare").first
    counts, codes = whole.counts, np.asarray(whole.codes)
    _check_classes(counts.rows, counts.classes)
    if not isinstance(test, Real) or isinstance(test, bool) or not 0.0 < float(test) < 1.0:
        raise InputError(f"test={test!r} is not a proportion between 0 and 1.")
    check_number("repeats", repeats, 1, whole=True)
    kept, copied = kept_together(FoldOptions(2, None, groups, copies), whole.X, codes)
    splits = draws(codes, float(test), int(repeats), random_state, kept)
    held = max(len(draw.test) for draw in splits)
    grid = _grid(sizes, missing, labeled, len(counts.classes), len(codes) - held)
    named = default_models(whole.table) if models is None else _named(models)
    refuse_unlabeled(whole, named, "compare")
    trials = Trials(plain_table(whole.X, whole.table), whole.table, counts.classes, codes)
    runners = [trials.runner(name, model, splits[0], max(grid.missing)) for name, model in named.items()]
    points = trials.run(runners, splits, grid)
    notes = tuple(note for runner in runners for note in runner.notes(points, grid.labeled))
    names, baseline = tuple(named), trials.baseline(splits, grid)
    judged = len(splits), held, points, verdicts(names, points), (*rows.notes(), *copied, *notes), baseline
    return Comparison(names, grid.sizes, grid.missing, grid.labeled, *judged, frame_library(whole.X))


def default_models(table: Table) -> dict[str, Any]:
    """A generative and a discriminative model whose log-odds are linear in the same features.

    The generative model has a Gaussian with pooled covariance for the numeric columns and categorical distributions for
    the others, under a weak prior. The discriminative model is softmax regression with its default penalty, on
    standardized numeric columns and one-hot encoded categories. Sparse columns are used as they are.
    """
    if table.is_sparse:
        return {"generative": GenerativeClassifier(), "discriminative": SoftmaxRegression()}
    numeric = tuple(name for name, kind in zip(table.names, table.kinds, strict=True) if kind == "number")
    families = {numeric: Gaussian(shared=True)} if numeric else None
    return {
        "generative": GenerativeClassifier(families),
        "discriminative": SoftmaxRegression(basis=NumericFeatures(categorical_columns(table))),
    }


def _check_classes(counts: AnyArray, classes: AnyArray) -> None:
    if len(classes) < 2:
        raise InputError(f"y has one class, {listed(classes)}; a comparison needs at least two.")
    few = [label for label, count in zip(classes.tolist(), counts.tolist(), strict=True) if count < 2]
    if few:
        many = len(few) > 1
        raise InputError(
            f"{'Classes' if many else 'Class'} {listed(few)} {'have' if many else 'has'} one row, but each class needs "
            "a training row and a test row. Drop or merge such classes."
        )


def _numbers(name: str, values: Any, accepted: Callable[[Any], bool], what: str) -> list[Any]:
    """One number, or several, as a list; an error for numbers that are not `what` is needed."""
    found = [values] if isinstance(values, Real) else values
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise InputError(f"{name}={values!r} is neither a number nor an iterable of numbers.")
    found = list(found)
    if not found:
        raise InputError(f"{name} is empty.")
    if not all(isinstance(value, Real) and not isinstance(value, bool) for value in found):
        raise InputError(f"{name}={values!r} are not all numbers.")
    for value in found:
        if not accepted(value):
            raise InputError(f"{name}: {value!r} is {what}.")
    return list(dict.fromkeys(found))


def _grid(sizes: Any, missing: Any, labeled: Any, classes: int, available: int) -> Grid:
    """Numbers of training rows, the smallest first; proportions of missing values; proportions or numbers of labels."""
    if sizes is None:
        least = min(2 * classes, available)
        sizes = {round(size) for size in np.geomspace(least, available, DEFAULT_SIZES).tolist()}
    sizes = _numbers(
        "sizes",
        sizes,
        lambda size: float(size).is_integer() and classes <= size <= available,
        f"not a whole number from {classes}, the number of classes, to {available}, the number of training rows. "
        "Decrease test for larger training sets",
    )
    missing = _numbers("missing", missing, lambda part: 0.0 <= part < 1.0, "not a proportion, at least 0 and below 1")
    labeled = _numbers(
        "labeled",
        labeled,
        lambda part: 0.0 < part <= 1.0 or (part > 1.0 and float(part).is_integer()),
        "neither a proportion above 0, at most 1, nor a number of rows above 1",
    )
    return Grid(tuple(sorted(map(int, sizes))), tuple(map(float, missing)), tuple(map(float, labeled)))


def _named(models: Any) -> dict[str, Any]:
    """Models by name."""
    if not isinstance(models, Mapping):
        raise InputError("models must be a mapping from names to classifiers, such as {'lda': LinearDiscriminant()}.")
    if not models:
        raise InputError("models is empty.")
    for name, model in models.items():
        kind = estimator_type(model, f"models[{name!r}]")
        if kind != "classifier":
            remedy = "Use cross_validate for regressors." if kind == "regressor" else "Use a classifier."
            raise InputError(f"models[{name!r}] = {model!r} is not a classifier. {remedy}")
        if not hasattr(model, "predict_proba"):
            raise InputError(
                f"models[{name!r}] = {model!r} has no predict_proba, which the log-loss needs. Wrap it in "
                "sklearn.calibration.CalibratedClassifierCV."
            )
    named = {str(name): model for name, model in models.items()}
    if len(named) < len(models):
        raise InputError(f"models: the names {listed(models)} are not all different as text.")
    return named
