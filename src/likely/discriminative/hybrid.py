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

from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Annotated, Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from likely.choice.column_record import ColumnDecision, ColumnRecord
from likely.data.batches import Batch, Batches, UnlabeledRows
from likely.data.columns import read_rows, remember_columns
from likely.data.content_folds import RowGroups
from likely.data.row_hash import content_hashes
from likely.data.sources import in_memory
from likely.data.table import FITTED_COMPLETE, Table
from likely.data.target_checks import warn_target
from likely.data.unseen import TrainingCategories
from likely.discriminative.features import Features
from likely.discriminative.linear_classifier import LinearClassifier
from likely.discriminative.tied_objective import HybridState, TiedObjective
from likely.errors import (
    InputError,
    NotConvergedWarning,
    NotEstimableError,
    check_choice,
    check_number,
    listed,
    trying,
    warn,
)
from likely.estimators import family_mapping
from likely.estimators.classifiers import GenerativeClassifier
from likely.families.estimation import Estimation
from likely.model.explanation import Explanation
from likely.model.persistence import register
from likely.numerics.progress import progress
from likely.numerics.shapes import Shape
from likely.numerics.threads import single_threaded_blas_for
from likely.numerics.ties import first_best
from likely.typing import (
    Array,
    ClassPriorLike,
    FamiliesLike,
    LabelsLike,
    RandomStateLike,
    TableLike,
    TypesLike,
    Vocabulary,
    WeightsLike,
)

BLENDS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
FOLD_TOL = 1e-4  # of the objective per row in cross-validation, at least


@register
class HybridClassifier(LinearClassifier):
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
        between the log-odds of both is (blend / (1 − blend))². 'auto' minimizes the cross-validated log-loss of classes
        with at least two labeled rows; where there is no such class it is 0.
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
    types : mapping of column to {'number', 'text', 'category', 'date'}, default=None
        How columns are read, where their values should not decide: as numbers, text as it stands, categories, or dates.
    normalize : bool, default=False
        Whether categories that differ in blanks at their ends or in case only are the same.

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
    blend_note_ : str
        The classes with one labeled row, which blends are not compared on; empty where there are none or blend is a
        number.
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

    generative_: Annotated[GenerativeClassifier, Shape()]
    _features: Annotated[Features, Shape("d")]

    _saved = (*LinearClassifier._saved, "_features", "blend_", "blend_path_", "blend_note_", "path_")

    _not_exported = "hybrids have no expression; export the generative classifier or SoftmaxRegression instead"

    get_params, set_params = family_mapping.get_params, family_mapping.set_params

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
        types: TypesLike | None = None,
        normalize: bool = False,
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
        self.types = types
        self.normalize = normalize

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.categorical = True
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
        X = in_memory(X, y, sample_weight)
        generative = self._generative()
        generative._periodic_dates = False  # whose log-odds are not linear
        generative._check_options()
        name, unlabeled = type(self).__name__, self.unlabeled
        batches = generative._training_rows(
            lambda read: Batches(X, y, sample_weight, read, name, allow_unlabeled=True, unlabeled=unlabeled)
        )
        batch = _in_canonical_order(batches.first)
        if len(batch.counts.classes) < 2:
            raise InputError(f"y has one class, {batch.counts.classes.tolist()[0]!r}; a classifier needs at least two.")
        warn_target(batch.counts)
        with single_threaded_blas_for(batch.table.width):
            objective = TiedObjective.of(batch, generative, self.penalty)
            chosen = self._choose_blend(batch, objective) if self.blend == "auto" else (float(self.blend), (), "")
            found = objective.at(chosen[0])
        remember_columns(self, batch.X, batch.targets, batch.table.reading)
        self.blend_, self.blend_path_, self.blend_note_ = chosen
        self.classes_, self._features = batch.counts.classes, objective.features
        self.odds_ = objective.log_odds(found.B)
        self._record = ColumnRecord.of(batch, batches.inputs, objective.fit.specification.set_aside)
        self.n_iter_, self.converged_, self.path_ = found.iterations, found.converged, found.path
        self.generative_ = GenerativeClassifier(**generative.get_params(deep=False))
        objective.set_generative(self.generative_, found, batch)
        if not found.converged:
            change = ""
            if len(found.path) > 1:
                last = found.path[-1] - found.path[-2]
                change = f" (last change of the objective {last:.2g}, tol={self.tol:g} per row)"
            message = f"The hybrid did not converge in {found.iterations} iterations{change}. Increase max_iter or tol."
            warn(message, NotConvergedWarning)
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
            types=self.types,
            normalize=self.normalize,
        )

    def _choose_blend(self, batch: Batch, whole: TiedObjective) -> tuple[float, tuple[tuple[float, float], ...], str]:
        """The blend of least cross-validated log-loss, the log-losses of all, and a note on rows that are not scored.

        The only row of a class is a training row in every fold.
        """
        batch = _distinct(batch)
        classes = batch.counts.classes
        groups = RowGroups.of([batch.table], batch.codes, batch.row_weights)
        sizes = groups.class_sizes(len(classes))
        scored = sizes >= 2.0
        if not scored.any():
            return 0.0, (), "No class has two labeled rows to compare blends on: the generative model was used."
        random = check_random_state(self.random_state)
        groups = replace(groups, keys=random.permutation(len(groups.keys))[groups.keys])
        held_out = groups.held_out_weights(min(self.folds, int(sizes[scored].min())))
        losses = self._blend_losses(batch, whole, [weights * scored[batch.codes] for weights in held_out])
        note = ""
        if not scored.all():
            names, several = listed(classes[~scored].tolist()), np.count_nonzero(~scored) > 1
            note = f"Blends were not compared on {'classes' if several else 'class'} {names}: one labeled row"
            note += " each." if several else "."
        return BLENDS[first_best(np.negative(losses))], tuple(zip(BLENDS, losses, strict=True)), note

    def _blend_losses(self, batch: Batch, whole: TiedObjective, held_out: list[Array]) -> list[float]:
        """Cross-validated log-loss of each blend, for the weights of the rows that each fold holds out.

        Folds divide the labeled rows; unlabeled rows are in all of them.
        """
        generative = self._generative()
        if whole.fit.unlabeled is not None:
            generative.unlabeled_weight = whole.fit.unlabeled.weight
        total = np.zeros(len(BLENDS))
        with progress("blends of folds", len(held_out) * len(BLENDS)) as step, trying():
            for weights in held_out:
                training, test = batch.row_weights - weights, np.flatnonzero(weights)
                part = replace(batch, weights=training).take(np.flatnonzero(training))
                objective = TiedObjective.of(replace(part, unlabeled=batch.unlabeled), generative, self.penalty, whole)
                objective = replace(objective, tol=max(objective.tol, FOLD_TOL))
                rows = objective.features.table(batch.table.take(test))
                start: HybridState | None = None
                for i, blend in enumerate(BLENDS):
                    step()
                    try:
                        found = objective.at(blend, start)
                    except NotEstimableError:  # this blend is never chosen
                        total[i], start = np.inf, None
                        continue
                    start = found.state
                    scores = objective.log_odds(found.B).scores(rows.numbers(None, sparse=True)(0, rows.rows))
                    true_class = scores[batch.codes[test], np.arange(len(test))]
                    total[i] += float(weights[test] @ (logsumexp(scores, axis=0) - true_class))
        return (total / np.sum(held_out)).tolist()

    def _coefficient_names(self) -> tuple[str, ...]:
        return self._features.names

    def _column_decisions(self) -> dict[str, ColumnDecision]:
        return self.generative_._column_decisions()

    def _read(self, X: Any, start: int = 0) -> Table:
        set_aside = self.generative_._inputs_set_aside
        table = read_rows(self, X, start, set_aside, set_aside)
        table.remedy = FITTED_COMPLETE
        return table

    def _vocabularies(self) -> Iterator[tuple[int, Vocabulary]]:
        return self.generative_._vocabularies()

    def _training_categories(self, column: int) -> TrainingCategories | None:
        return self.generative_._training_categories(column)

    def _over_scores(self, rows: Table, work: Callable[[int, int, Array], None]) -> None:
        super()._over_scores(self._features.table(rows, self.odds_.origin), work)

    def _explained(self, table: Table) -> Explanation:
        return super()._explained(self._features.table(table, self.odds_.origin))

    def _content(self) -> dict[str, Any]:
        return super()._content() | {"generative": self.generative_._content()}

    def _restore(self, content: dict[str, Any]) -> Self:
        self.generative_ = content["generative"]["estimator"]._restore(content["generative"])
        return super()._restore(content)

    def _valid(self) -> bool:
        width = self.n_features_in_ if self._reading is None else len(self._reading.inputs)
        return super()._valid() and max(self._features.columns, default=-1) < width


def _distinct(batch: Batch) -> Batch:
    """The labeled rows with positive weight, each once with the total weight of the rows equal to it."""
    rows = batch if batch.used is None else batch.take(batch.used)
    same = np.stack([rows.codes.astype(np.uint64), content_hashes(rows.table)])
    _, first, place = np.unique(same, axis=1, return_index=True, return_inverse=True)
    weights: Array = np.bincount(place.ravel(), rows.row_weights).astype(np.float64)
    return replace(rows.take(first), weights=weights, unlabeled=batch.unlabeled)


def _in_canonical_order(batch: Batch) -> Batch:
    """The same rows in an order that depends on their content alone, so that rounding errors do too."""
    order = np.lexsort((batch.row_weights, batch.codes, content_hashes(batch.table)))
    unlabeled = batch.unlabeled
    if unlabeled is not None:
        other = np.lexsort((unlabeled.row_weights, content_hashes(unlabeled.table)))
        weights = None if unlabeled.weights is None else unlabeled.weights[other]
        unlabeled = UnlabeledRows(unlabeled.table.take(other), weights)
    return replace(batch.take(order), unlabeled=unlabeled)
