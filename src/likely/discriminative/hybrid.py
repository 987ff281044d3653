"""Hybrid classifier between generative and discriminative: two sets of parameters, coupled by a penalty.

A generative model p(x, class | θ) has log-odds B(θ) that are linear in features φ of x; softmax regression has free
coefficients B of the same form. The hybrid (Lasserre, Bishop and Minka 2006) maximises over both

    Σ over labeled rows of log p(class | x, B) + Σ over all rows of log p(x | θ) + log p(θ)
        − κ/2·Σ over all rows of ‖(B − B(θ))·φ‖²

For κ → ∞ both coincide and the objective is the likelihood of the generative model; for κ = 0, B is softmax regression.

For a given θ, B is softmax regression with a Gaussian prior centred at B(θ). In θ the objective is increased as in EM:
the sums of the features in each class are weighted by responsibilities, plus the pull of B(θ) towards B.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from likely.data.batches import Batch, Batches, UnlabeledRows, is_source
from likely.data.columns import matched, remember_columns, without_targets
from likely.data.frames import whole_frame
from likely.data.row_hash import content_hashes
from likely.data.table import Table
from likely.data.validation import read_table
from likely.discriminative.features import Features
from likely.discriminative.linear_classifier import LinearClassifier
from likely.discriminative.tied_objective import HybridSolution, TiedObjective
from likely.errors import InputError, NotConvergedWarning, NotEstimableError, check_choice, check_number, trying, warn
from likely.estimators.classifiers import GenerativeClassifier
from likely.estimators.family_mapping import FamilyMapping
from likely.families.estimation import Estimation
from likely.model.persistence import register
from likely.numerics.progress import progress
from likely.numerics.threads import single_threaded_blas_for
from likely.typing import ClassPriorLike, FamiliesLike, LabelsLike, RandomStateLike, TableLike, WeightsLike

BLENDS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
FOLD_TOL = 1e-4  # of the objective per row in cross-validation, at least


@register
class HybridClassifier(FamilyMapping, LinearClassifier):
    """Interpolation between a generative classifier and softmax regression with the same form of log-odds.

    Generative models need fewer rows and use unlabeled rows; discriminative models assume less. The hybrid fits both
    sets of parameters together, coupled by a penalty on their difference, and chooses its strength by cross-validation.

    Parameters
    ----------
    families : Family or dict of column(s) to Family, default=None
        Family of each column, as in `GenerativeClassifier`, restricted to those with linear log-odds: `Gaussian` with
        shared=True, `Bernoulli`, `Categorical`, `Poisson`, `Geometric`, `NegativeBinomial`, `Exponential` and
        `Multinomial`. None chooses by column type.
    blend : float or 'auto', default='auto'
        Position between the generative model (0) and softmax regression (1). The standard deviation of the difference
        between the log-odds of both is (blend / (1 − blend))². 'auto' minimizes the cross-validated log-loss.
    penalty : float, default=1.0
        L2 penalty of softmax regression. It is scaled by σ² / (1 + σ²), with σ = (blend / (1 − blend))².
    class_prior : {'uniform'}, array-like of shape (n_classes,), dict or Dirichlet, default=None
        Class prior of the generative model. None estimates it from the class proportions.
    estimation : {'map', 'mle'}, default='map'
        Estimation of the generative parameters.
    folds : int, default=5
        Number of cross-validation folds for blend='auto'.
    unlabeled : object, default=None
        A label that marks rows without a label, in addition to None and NaN. Such rows are used in fitting.
    unlabeled_weight : float or 'auto', default='auto'
        Weight of unlabeled rows. 0 ignores them. 'auto' chooses among 0, 0.01, 0.03, 0.1, 0.3 and 1 by the
        cross-validated log-loss of labeled rows under the generative model; see `generative_.unlabeled_weight_`.
    max_iter : int, default=200
        Maximum number of iterations.
    tol : float, default=1e-6
        The iteration stops when the objective changes by less than `tol` per row.
    random_state : int or RandomState, default=0
        Seed of the cross-validation folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the features, which are the numeric columns and indicators of categories.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts.
    blend_ : float
        The blend that was used.
    blend_path_ : tuple of (float, float)
        Each blend that was tried, with its cross-validated log-loss; empty unless blend='auto'.
    generative_ : GenerativeClassifier
        The generative model at the solution.
    odds_ : LogOdds
        Log-odds as a function of the features.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the iteration converged.
    path_ : tuple of float
        The objective after each iteration.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X is a frame whose column names are text.

    See Also
    --------
    GenerativeClassifier : The generative end.
    SoftmaxRegression : The discriminative end.

    References
    ----------
    J. A. Lasserre, C. M. Bishop and T. P. Minka (2006), Principled hybrids of generative and discriminative models,
    CVPR.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import Gaussian, HybridClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HybridClassifier(Gaussian(shared=True), blend=0.5).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> round(model.score(X, y), 3)
    0.96
    """

    generative_: GenerativeClassifier

    def __init__(
        self,
        families: FamiliesLike | None = None,
        blend: float | str = "auto",
        penalty: float = 1.0,
        class_prior: ClassPriorLike | None = None,
        estimation: str = "map",
        folds: int = 5,
        unlabeled: object = None,
        unlabeled_weight: float | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: RandomStateLike | None = 0,
    ) -> None:
        self.families = families
        self.blend = blend
        self.penalty = penalty
        self.class_prior = class_prior
        self.estimation = estimation
        self.folds = folds
        self.unlabeled = unlabeled
        self.unlabeled_weight = unlabeled_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_options(self) -> None:
        if self.estimation == Estimation.BAYES:
            raise InputError("estimation='bayes' has no linear log-odds. Use 'map' or 'mle'.")
        check_choice("estimation", self.estimation, ("mle", "map"))
        blend: Any = self.blend
        fits = isinstance(blend, Real) and not isinstance(blend, bool) and 0.0 <= float(blend) <= 1.0
        if not fits and not (isinstance(blend, str) and blend == "auto"):
            raise InputError(f"blend={blend!r} is neither a number from 0 to 1 nor 'auto'.")
        check_number("penalty", self.penalty, 0.0)
        check_number("folds", self.folds, 2, whole=True)

    def fit(self, X: TableLike, y: LabelsLike, sample_weight: WeightsLike | None = None) -> Self:
        """Fit both sets of parameters to labeled and unlabeled rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Training rows, in memory, without missing values.
        y : array-like of shape (n_samples,) or str
            Class labels, or the name of the column of X that has them. None, NaN and the value of `unlabeled` mark rows
            without a label.
        sample_weight : array-like of shape (n_samples,), default=None
            Number of times that each row counts. None is 1 for all rows.

        Returns
        -------
        HybridClassifier
            The fitted estimator.
        """
        self._check_options()
        if is_source(X):
            raise InputError("X comes in chunks, but HybridClassifier needs all rows in memory.")
        name = type(self).__name__
        batch = Batches(X, y, sample_weight, read_table, name, allow_unlabeled=True, unlabeled=self.unlabeled).first
        batch = _in_canonical_order(batch)
        if len(batch.counts.classes) < 2:
            raise InputError(f"y has one class, {batch.counts.classes.tolist()[0]!r}; a classifier needs at least two.")
        generative = self._generative()
        generative._check_options()
        tried: tuple[tuple[float, float], ...] = ()
        with single_threaded_blas_for(batch.table.width):
            objective = TiedObjective.of(batch, generative, self.penalty)
            if self.blend == "auto":
                losses = self._blend_losses(batch, objective)
                tried, blend = tuple(zip(BLENDS, losses, strict=True)), BLENDS[int(np.argmin(losses))]
            else:
                blend = float(self.blend)
            found = objective.at(blend)
        remember_columns(self, batch.X, batch.targets)
        self.blend_path_, self.blend_ = tried, blend
        self.classes_, self._features = batch.counts.classes, objective.features
        self.odds_ = objective.log_odds(found.B)
        self.n_iter_, self.converged_, self.path_ = found.iterations, found.converged, found.path
        self.generative_ = GenerativeClassifier(**generative.get_params(deep=False))
        objective.set_generative(self.generative_, found, batch)
        if not found.converged:
            warn(_not_converged(found, self.tol), NotConvergedWarning)
        return self

    def _generative(self) -> GenerativeClassifier:
        return GenerativeClassifier(
            families=self.families,
            class_prior=self.class_prior,
            estimation=self.estimation,
            unlabeled=self.unlabeled,
            unlabeled_weight=self.unlabeled_weight,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _blend_losses(self, batch: Batch, whole: TiedObjective) -> list[float]:
        """Cross-validated log-loss of each blend. Folds divide the labeled rows; unlabeled rows are in all of them."""
        from sklearn.model_selection import StratifiedKFold  # deferred: `import likely` stays light

        generative = self._generative()
        if whole.unlabeled is not None:
            generative.unlabeled_weight = whole.unlabeled.weight
        counts = np.bincount(batch.codes if batch.weights is None else batch.codes[batch.weights > 0.0])
        folds = min(self.folds, int(counts.min()))
        if folds < 2:
            few = batch.counts.classes.tolist()[int(counts.argmin())]
            raise InputError(
                f"blend='auto' needs two labeled rows of each class, but {few!r} has one. Set blend to a number."
            )
        splitter = StratifiedKFold(folds, shuffle=True, random_state=check_random_state(self.random_state))
        weights = np.ones(len(batch.codes)) if batch.weights is None else batch.weights
        total = np.zeros(len(BLENDS))
        with progress("blends of folds", folds * len(BLENDS)) as step, trying():
            for train, test in splitter.split(np.zeros((len(batch.codes), 1)), batch.codes):
                part = replace(batch.take(train), unlabeled=batch.unlabeled)
                objective = TiedObjective.of(part, generative, self.penalty, whole)
                objective = replace(objective, tol=max(objective.tol, FOLD_TOL))
                rows = objective.features.table(batch.table.take(test))
                for i, blend in enumerate(BLENDS):
                    step()
                    try:
                        odds = objective.log_odds(objective.at(blend).B)
                    except NotEstimableError:  # this blend is never chosen
                        total[i] = np.inf
                        continue
                    scores = odds.scores(rows.numbers(None, sparse=True)(0, rows.rows))
                    true_class = scores[batch.codes[test], np.arange(len(test))]
                    total[i] += float(weights[test] @ (logsumexp(scores, axis=0) - true_class))
        return (total / weights.sum()).tolist()

    def _coefficient_names(self) -> tuple[str, ...]:
        return self._features.names

    def _read(self, X: Any, start: int = 0) -> Table:
        X = without_targets(self, whole_frame(X))
        return self._features.table(matched(self, X, read_table(X, start)), self.odds_.origin)

    def _content(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("_features", "blend_", "blend_path_", "path_")}
        return super()._content() | kept | {"generative": self.generative_._content()}

    def _restore(self, content: dict[str, Any]) -> Self:
        generative = content["generative"]["estimator"]
        if not (isinstance(content["_features"], Features) and isinstance(generative, GenerativeClassifier)):
            raise TypeError("features and a generative model are needed")
        self._features, self.generative_ = content["_features"], generative._restore(content["generative"])
        self.blend_, self.blend_path_, self.path_ = (content[name] for name in ("blend_", "blend_path_", "path_"))
        return super()._restore(content)


def _in_canonical_order(batch: Batch) -> Batch:
    """The same rows in an order that depends on their content alone, so that rounding errors do too."""
    order = np.lexsort((batch.row_weights, batch.codes, content_hashes(batch.table)))
    unlabeled = batch.unlabeled
    if unlabeled is not None:
        other = np.lexsort((unlabeled.row_weights, content_hashes(unlabeled.table)))
        weights = None if unlabeled.weights is None else unlabeled.weights[other]
        unlabeled = UnlabeledRows(unlabeled.table.take(other), weights)
    return replace(batch.take(order), unlabeled=unlabeled)


def _not_converged(found: HybridSolution, tol: float) -> str:
    """The warning of an iteration that did not converge."""
    change = ""
    if len(found.path) > 1:
        change = f" (last change of the objective {found.path[-1] - found.path[-2]:.2g}, tol={tol:g} per row)"
    return f"The hybrid did not converge in {found.iterations} iterations{change}. Increase max_iter or tol."
