"""Between generative and discriminative: two sets of parameters, tied to one another.

A generative model p(x, class) has log-odds that are linear in features of x, and softmax regression has such log-odds
of its own. The hybrid (Lasserre, Bishop and Minka 2006) learns both at once,

    Σ over labelled rows of log p(class | x, B) + Σ over all rows of log p(x | θ) + log p(θ)
        − κ/2·Σ over all rows of ‖(B − B(θ))·φ‖²

with B(θ) the log-odds of the generative model. Tied without end (κ → ∞) they are one, and what is maximised is the
likelihood of the generative model; not tied at all, B is that of softmax regression.

For a given θ, B is softmax regression with a Gaussian prior around B(θ). Along θ the objective rises as in expectation
maximisation: the sums of the features in each class have the responsibilities of all rows for weights, and what pulls
B(θ) toward B is added to them.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from likely.data.batches import Batch, Batches, is_source
from likely.data.frames import check_columns, remember_columns
from likely.data.table import Table
from likely.data.validation import read_table
from likely.discriminative.features import Features
from likely.discriminative.log_odds import LinearAnswers
from likely.discriminative.tied_objective import TiedObjective
from likely.errors import InputError, NotConvergedWarning, NotEstimableError, check_choice, check_number, trying, warn
from likely.estimators.classifiers import GenerativeClassifier
from likely.families.estimation import Estimation
from likely.model.persistence import register
from likely.numerics.progress import progress
from likely.numerics.threads import single_threaded_blas_for

BLENDS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)


@register
class HybridClassifier(LinearAnswers):
    """A generative and a discriminative classifier of the same linear form, tied to one another.

    Parameters
    ----------
    families : as in `GenerativeClassifier`, but those whose log-odds are linear: Gaussians that share their covariance,
        and Bernoulli, Categorical, Poisson, Geometric, NegativeBinomial, Exponential and Multinomial columns.
    blend : from 0, the generative model, to 1, softmax regression of the same features; or "auto", by the log-loss of
        cross-validation. σ = (blend / (1 − blend))² is the deviation that log-odds of the two may have from one
        another.
    penalty : of softmax regression, as there; it counts by σ² / (1 + σ²).
    class_prior, estimation : of the generative model; "map" or "mle".
    folds : how many, where the blend is sought.
    unlabeled : a label that stands for a missing one; None and NaN do in any case. Such rows are learnt from.
    unlabeled_weight : how much a row without a label counts.
    max_iter, tol : the iteration ends after so many steps, or where a step changes its objective by less than so much
        for each unit of the rows' weight.
    random_state : of the folds.
    """

    generative_: GenerativeClassifier

    def __init__(
        self,
        families: Any = None,
        blend: float | str = "auto",
        penalty: float = 1.0,
        class_prior: Any = None,
        estimation: str = "map",
        folds: int = 5,
        unlabeled: Any = None,
        unlabeled_weight: float = 1.0,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
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
            raise InputError("estimation='bayes': a predictive has no linear log-odds. Hint: 'map' or 'mle'.")
        check_choice("estimation", self.estimation, ("mle", "map"))
        blend: Any = self.blend
        fits = isinstance(blend, Real) and not isinstance(blend, bool) and 0.0 <= float(blend) <= 1.0
        if not fits and not (isinstance(blend, str) and blend == "auto"):
            raise InputError(f"blend={blend!r} is neither a number from 0 to 1 nor 'auto'.")
        check_number("penalty", self.penalty, 0.0)
        check_number("folds", self.folds, 2, whole=True)

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X with labels y, some of which may be missing."""
        self._check_options()
        if is_source(X):
            raise InputError("X comes in chunks, and a hybrid needs all rows at once. Hint: collect them.")
        name = type(self).__name__
        batch = Batches(X, y, sample_weight, read_table, name, allow_unlabeled=True, unlabeled=self.unlabeled).first
        if len(batch.counts.classes) < 2:
            raise InputError(
                f"y has one class, {batch.counts.classes.tolist()[0]!r}, and a classifier tells classes apart."
            )
        generative = self._generative()
        generative._check_options()
        tried: tuple[tuple[float, float], ...] = ()
        with single_threaded_blas_for(batch.table.width):
            tied = TiedObjective.learnt(batch, generative, self.penalty)
            if self.blend == "auto":
                losses = self._losses(batch, self._generative(), tied)
                tried, blend = tuple(zip(BLENDS, losses, strict=True)), BLENDS[int(np.argmin(losses))]
            else:
                blend = float(self.blend)
            found = tied.at(blend)
        remember_columns(self, batch.X)
        self.blend_path_, self.blend_ = tried, blend
        self.classes_, self.odds_, self._features = batch.counts.classes, tied.odds(found.B), tied.features
        self.n_iter_, self.converged_, self.path_ = found.iterations, found.converged, found.path
        self.generative_ = GenerativeClassifier(**generative.get_params(deep=False))
        tied.settle(self.generative_, found, batch)
        if not found.converged:
            warn(
                f"The hybrid has not come to rest after {found.iterations} steps. Hint: a larger max_iter, or tol.",
                NotConvergedWarning,
            )
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

    def _losses(self, batch: Batch, generative: GenerativeClassifier, whole: TiedObjective) -> list[float]:
        """The log-loss of every blend, over folds of the labelled rows; rows without a label are in all of them."""
        from sklearn.model_selection import StratifiedKFold  # it loads what nobody else needs

        counts = np.bincount(batch.codes if batch.weights is None else batch.codes[batch.weights > 0.0])
        folds = min(self.folds, int(counts.min()))
        if folds < 2:
            few = batch.counts.classes.tolist()[int(counts.argmin())]
            raise InputError(
                f"blend='auto' needs two labelled rows of each class, and {few!r} has one. Hint: blend=0.5."
            )
        splitter = StratifiedKFold(folds, shuffle=True, random_state=check_random_state(self.random_state))
        weights = np.ones(len(batch.codes)) if batch.weights is None else batch.weights
        total = np.zeros(len(BLENDS))
        with progress("blends of folds") as step, trying():
            for train, test in splitter.split(np.zeros((len(batch.codes), 1)), batch.codes):
                part = replace(batch.take(train), unlabeled=batch.unlabeled)
                tied = TiedObjective.learnt(part, generative, self.penalty, whole)
                rows = tied.features.table(batch.table.take(test))
                for i, blend in enumerate(BLENDS):
                    try:
                        odds = tied.odds(tied.at(blend).B)
                    except NotEstimableError:  # such a blend is not chosen
                        total[i] = np.inf
                        continue
                    scores = odds.scores(rows.numbers(None, sparse=True)(0, rows.rows))
                    own = scores[batch.codes[test], np.arange(len(test))]
                    total[i] += float(weights[test] @ (logsumexp(scores, axis=0) - own))
                    step()
        return (total / weights.sum()).tolist()

    # -- answers

    def _read(self, X: Any, start: int = 0) -> Table:
        table = read_table(X, start)
        check_columns(self, X)
        return self._features.table(table)

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
