"""Options that do not exist: an error names the nearest one, or the counterpart of a usual option of scikit-learn."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar

from sklearn.base import BaseEstimator

from likely.errors import InputTypeError, nearest

Options = ParamSpec("Options")
Result = TypeVar("Result")
BALANCED = "pass the weights of sklearn.utils.class_weight.compute_sample_weight('balanced', y) as sample_weight"
UNIFORM = (
    "changes the prior alone: class_weight multiplies the weights of rows, and so with sample_weight the sums and "
    f"standard errors of the model as well; for that, {BALANCED}"
)
WITH_PRIOR = (
    "model.with_prior('uniform') does what class_prior='uniform' does for generative classifiers: all classes are "
    "equally probable beforehand."
)
THREADS = (
    "Rows are computed on as many threads as there are processors, and on one thread inside the workers of joblib; "
    "LOKY_MAX_CPU_COUNT in the environment limits their number. EvidenceClassifier and cross_validate have n_jobs."
)
DETERMINISTIC = (
    "Nothing here is random: the same rows give the same model. cross_validate, sample and novelty have random_state."
)
COUNTERPARTS: dict[str, tuple[tuple[str, str], ...]] = {  # option: (an option that the object has or "", remedy)
    "class_weight": (
        ("class_prior", f"class_prior='uniform' makes all classes equally probable beforehand. It {UNIFORM}."),
        ("views", f"After the fit, {WITH_PRIOR} It {UNIFORM}."),
        ("penalty", f"Generative classifiers have class_prior='uniform'; here, {BALANCED}."),
    ),
    "priors": (
        (
            "class_prior",
            "Use class_prior: a mapping from classes to probabilities, 'uniform', or probabilities.",
        ),
        ("", "After the fit, model.with_prior({...}) sets the probabilities of the classes."),
    ),
    "fit_prior": (("class_prior", "Use class_prior='uniform' for fit_prior=False."),),
    "n_jobs": (("", THREADS),),
    "random_state": (("", DETERMINISTIC),),
    "var_smoothing": (
        ("prior", "Use prior=NormalInverseWishart(...), or estimation='bayes' or 'map', whose default prior is weak."),
        (
            "families",
            "The default prior keeps variances positive. Another one is families=Gaussian('diagonal', prior=...).",
        ),
    ),
    "alpha": (
        ("smoothing", "Use smoothing."),
        ("families", "Use smoothing of a family, such as families=Multinomial(smoothing=1.0)."),
        ("family", "Use smoothing of a family, such as family=Multinomial(smoothing=1.0)."),
        ("penalty", "Use penalty."),
    ),
    "solver": (
        ("penalty", "Newton's method is used."),
        ("", "Parameters follow from sums over the rows: there is no solver."),
    ),
    "store_covariance": (("shrinkage", "The fitted model always has covariance_."),),
    "reg_param": (("shrinkage", "Use shrinkage=Regularized(sphering=...), or a number."),),
    "covariance_estimator": (("shrinkage", "Use shrinkage, such as 'ledoit-wolf', 'oas' or a number."),),
    "C": (("penalty", "Use penalty, which is 1/C."),),
    "l1_ratio": (("penalty", "The penalty is quadratic; there is no lasso."),),
    "verbose": (("", "Passes over rows that take more than two seconds show their progress on a terminal."),),
    "warm_start": (("", "partial_fit adds rows to a fitted model."),),
    "categorical_features": (
        ("families", "Columns of text are categories. Others are with families={'column': Categorical()}."),
        ("", "Columns of text are categories."),
    ),
    "n_estimators": (("n_trees", "Use n_trees."),),
    "n_components": (("components", "Use components."), ("families", "Use families=Gaussian(components=...).")),
    "covariance_type": (("families", "Use families=Gaussian('full'), Gaussian('diagonal') or Gaussian('spherical')."),),
    "metric": (("covariance", "Use covariance='identity', 'diagonal' or 'full'."),),
    "shrink_threshold": (("shrinkage", "Use shrinkage."),),
    "scoring": (("by", "Use by='log_loss', 'error' or 'log_likelihood'."),),
    "cv": (("folds", "Use folds."), ("repeats", "Use repeats, the number of random splits, and test.")),
    "test_size": (("test", "Use test, the proportion of test rows."),),
    "train_sizes": (("sizes", "Use sizes, numbers of training rows."),),
    "return_train_score": (("", "Scores of training rows say little about new rows: only held-out rows are scored."),),
    "return_estimator": (("", "Use sklearn.model_selection.cross_validate, which accepts all estimators of likely."),),
}
for _alias, _option in (("cat_features", "categorical_features"), ("categorical_feature", "categorical_features")):
    COUNTERPARTS[_alias] = COUNTERPARTS[_option]


def known_options(function: Callable[Options, Result]) -> Callable[Options, Result]:
    """A function, or an `__init__`, whose unknown keywords are an error with a remedy."""
    parameters = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return function

    @functools.wraps(function)
    def checked(*args: Options.args, **options: Options.kwargs) -> Result:
        for name in options:
            if name not in parameters:
                called = function.__name__ if function.__name__ != "__init__" else f"{type(args[0]).__name__}.__init__"
                raise InputTypeError(
                    f"{called}() got an unexpected keyword argument {name!r}. {_remedy(name, [*parameters])}"
                )
        return function(*args, **options)

    return checked


def _remedy(name: str, options: Collection[str]) -> str:
    """The counterpart of an option that does not exist, or the options that resemble it."""
    for needed, remedy in COUNTERPARTS.get(name, ()):
        if not needed or needed in options:
            return remedy
    return nearest(name, [option for option in options if option != "self"])


def name_options(kind: Any) -> None:
    """Let a class raise errors with a remedy for unknown options; once for each `__init__`."""
    own = vars(kind).get("__init__")
    if own is not None and not hasattr(own, "__wrapped__"):
        kind.__init__ = known_options(own)


class NamedOptions(BaseEstimator):
    """Base of all objects with options: unknown ones are errors that name the nearest option or the counterpart."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        name_options(cls)
