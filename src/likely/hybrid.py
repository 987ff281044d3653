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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from likely.choice import Plan
from likely.classifiers import GenerativeClassifier
from likely.coordinates import Coordinates
from likely.design import LARGEST, Design, Part, check_cells, missing_cell
from likely.em import Course, held, log_prior, with_reference
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
from likely.families.gaussian import Gaussian
from likely.families.multinomial import MultinomialConditionals
from likely.frames import check_columns, remember_columns
from likely.joint import Block, JointModel
from likely.moments import Moments
from likely.newton import Around, Problem, descend, minimise
from likely.numerics import EPS, Array, Extrapolation
from likely.odds import LinearAnswers, LogOdds, odds_of
from likely.persistence import register
from likely.progress import progress
from likely.reading import read_table
from likely.softmax import class_precision, refuse_separation
from likely.sources import Batch, Batches, is_source
from likely.specification import Specification
from likely.statistics import CategoryCounts, JointStatistics, Sums
from likely.tables import Table
from likely.threads import calm_for

BLENDS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
HALVINGS = 30
LEAST = 1e-20  # blends below are 0: nothing tells them apart
LINEAR = "Gaussian(shared=True), Bernoulli, Categorical, Poisson, Geometric, NegativeBinomial, Exponential, Multinomial"


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
        if self.estimation == "bayes":
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
        batch = Batches(X, y, sample_weight, read_table, name, free=True, unlabeled=self.unlabeled).first
        if len(batch.counts.classes) < 2:
            raise InputError(
                f"y has one class, {batch.counts.classes.tolist()[0]!r}, and a classifier tells classes apart."
            )
        generative = self._generative()
        generative._check_options()
        tried: tuple[tuple[float, float], ...] = ()
        with calm_for(batch.table.width):
            tied = Tied.learnt(batch, generative, self)
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

    def _generative(self) -> LinearGenerative:
        return LinearGenerative(
            families=self.families,
            class_prior=self.class_prior,
            estimation=self.estimation,
            unlabeled=self.unlabeled,
            unlabeled_weight=self.unlabeled_weight,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _losses(self, batch: Batch, generative: LinearGenerative, whole: Tied) -> list[float]:
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
                part = replace(batch.take(train), free=batch.free)
                tied = Tied.learnt(part, generative, self, whole)
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


class LinearGenerative(GenerativeClassifier):
    """A generative classifier whose continuous columns share their covariance, whatever the rows would choose."""

    def _plans(self, batches: Batches) -> list[Plan]:
        plans = []
        for plan in super()._plans(batches):
            family = plan.family
            if plan.others and isinstance(family, Gaussian):
                family = Gaussian(family.covariance, shared=True)
            plans.append(replace(plan, family=family, others=()))
        return plans


# ------------------------------------------------------------------------------------------------------ features


@register
@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What log-odds are linear in: numbers as they are, and labels as one column for each category but the first.

    `columns` and `words` have an entry for each column of the table that is read; words are () where it holds numbers.
    """

    columns: tuple[int, ...]
    words: tuple[tuple[Any, ...], ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, model: JointModel) -> Features:
        """The features of a model, block after block; an error where its log-odds are not linear in any."""
        columns: list[int] = []
        words: list[tuple[Any, ...]] = []
        for block in model.blocks:
            known = block.conditionals.vocabularies
            if block.extra is not None or (known is None and _line(block) is None) or (known and not _is_plain(block)):
                names = [model.names[j] for j in block.index]
                raise InputError(
                    f"Column {listed(names)}: its family has no linear log-odds. Hint: a hybrid takes {LINEAR}; "
                    "transform the column, or use GenerativeClassifier."
                )
            columns += block.index.tolist()
            words += list(known) if known is not None else [()] * len(block.index)
        names = []
        for j, mine in zip(columns, words, strict=True):
            names += [f"{model.names[j]}={word}" for word in mine[1:]] if mine else [model.names[j]]
        return cls(tuple(columns), tuple(words), tuple(names))

    @property
    def plain(self) -> bool:
        """Whether they are the columns of the table, as it is."""
        return self.columns == tuple(range(len(self.columns))) and not any(self.words)

    def table(self, table: Table) -> Table:
        """The features of a table; it itself where it has nothing else."""
        if self.plain and len(self.columns) == table.width:
            check_cells(table)
            return table
        out, place = np.empty((table.rows, len(self.names))), 0
        for j, words in zip(self.columns, self.words, strict=True):
            if not words:
                read = table.numbers(np.array([j]), sparse=False)
                out[:, place] = np.concatenate([read(a, b)[:, 0] for a, b in _spans(table.rows)])
                place += 1
                continue
            strange = table.unseen(j, words)
            if strange is not None:
                raise InputError(
                    f"Column {table.names[j]!r}, row {strange[0]}: {strange[1]!r} was not seen in training: "
                    f"{listed(words)}."
                )
            codes = table.codes([j], [words])(0, table.rows)[:, 0]
            if (codes < 0).any():
                row = int(np.argmax(codes < 0))
                raise missing_cell(table.number(row), j, None, table.names[j])
            out[:, place : place + len(words) - 1] = codes[:, None] == np.arange(1, len(words))
            place += len(words) - 1
        made = read_table(out, table.start)
        made.names = list(self.names)
        check_cells(made)
        return made


def _spans(rows: int, step: int = 2**16) -> Iterator[tuple[int, int]]:
    return ((start, min(start + step, rows)) for start in range(0, rows, step))


def _is_plain(block: Block) -> bool:
    """Whether a block of labels has a table for each column."""
    return hasattr(block.conditionals, "tables") and hasattr(block.conditionals, "words")


def _line(block: Block) -> tuple[Array, Array, Array] | None:
    """Weights (classes, d), constants (classes,), and the centre (d,) they are about; None where there are none."""
    parts = block.conditionals
    if isinstance(parts, MultinomialConditionals):
        weights = parts.natural_parameters()
        return (weights, np.zeros(len(weights)), np.zeros(parts.dimension)) if np.all(np.isfinite(weights)) else None
    form = parts.quadratic()
    return None if form is None or form.square is not None else (form.linear, form.constant, form.centre)


# ------------------------------------------------------------------------------------------------------ both sets


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Both sets of parameters: the discriminative one, and the statistics that the generative one is estimated from."""

    B: Array
    statistics: JointStatistics
    path: tuple[float, ...]
    converged: bool

    @property
    def iterations(self) -> int:
        return len(self.path) - 1


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Parameters on the way: sums of the features in each class, and everything that follows from them."""

    sums: Array  # (classes, size)
    statistics: JointStatistics
    posterior: tuple[Array, ...]  # of all rows, by the generative set
    form: Array  # B(θ)
    apart: Array  # B − B(θ)
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class Tied:
    """Rows, the generative model that they have by themselves, and all that the tie between the two sets needs."""

    specification: Specification
    working: Specification  # with what is derived from the data held fixed
    statistics: JointStatistics
    course: Course | None
    labels: list[Any]
    features: Features
    tables: tuple[Table, ...]  # as the generative model reads them
    parts: tuple[Part, ...]  # their features; labelled rows come first
    design: Design  # of all rows
    gram: Array
    precision: Array
    penalty: float
    max_iter: int
    tol: float

    @classmethod
    def learnt(
        cls, batch: Batch, generative: LinearGenerative, options: HybridClassifier, whole: Tied | None = None
    ) -> Tied:
        """The generative model of these rows, and their features; where these are some rows, those of the whole."""
        batches = Batches.of((batch,))
        wanted = generative._wanted(batches) if whole is None else whole.specification
        _, specification, statistics, _, course = generative._collected(wanted, batches, complete=False)
        if whole is not None:
            pairs = zip(statistics.blocks, whole.statistics.blocks, strict=True)
            statistics = replace(statistics, blocks=tuple(_with_words(*pair) for pair in pairs))
        with trying():
            features = Features.of(specification.estimate(statistics)[0])
        size, classes = len(features.names), statistics.counts.classes
        if not size:
            raise InputError(
                "No column varies, so that there is nothing to learn. Hint: GenerativeClassifier has shares."
            )
        if size > LARGEST:
            raise InputError(f"There are {size} features, and a hybrid takes at most {LARGEST}.")
        if len(classes) > len(batch.counts.classes):
            raise InputError("A hybrid knows the classes in y alone, and class_prior declares more.")
        tables = [batch.table]
        parts = [Part(features.table(batch.table), batch.codes, batch.weights)]
        if batch.free is not None and options.unlabeled_weight > 0.0:
            weights = np.ones(batch.free.table.rows) if batch.free.weights is None else batch.free.weights
            tables.append(batch.free.table)
            nobody = np.zeros((batch.free.table.rows, len(classes)))
            parts.append(Part(features.table(batch.free.table), nobody, options.unlabeled_weight * weights))
        rows = sum(part.table.rows for part in parts)
        plain = Coordinates.plain(size)
        design = Design(lambda: iter(parts), rows, len(classes), size, True, None, plain, None)
        everyone, weight = design.totals()
        sparse = parts[0].table.is_sparse  # such rows have no origin but 0
        design = replace(design, origin=np.zeros(size) if sparse else everyone / weight)
        working = held(specification, statistics)
        precision = class_precision(classes, None)
        return cls(
            specification,
            working,
            statistics,
            course,
            classes.tolist(),
            features,
            tuple(tables),
            tuple(parts),
            design,
            design.gram(),
            precision,
            float(options.penalty),
            options.max_iter,
            options.tol,
        )

    def of(self, *parts: Part) -> Design:
        """The design of some rows."""
        return replace(self.design, parts=lambda: iter(parts), rows=sum(part.table.rows for part in parts))

    @property
    def total(self) -> float:
        return float(self.gram[-1, -1])

    def at(self, blend: float) -> Found:
        """Both sets of parameters at a blend."""
        if blend < LEAST:
            return self._generative()
        labelled = self.of(self.parts[0])
        free = blend**4 / (blend**4 + (1.0 - blend) ** 4)  # σ² / (1 + σ²)
        ridge = free * self.penalty * np.append(np.ones(self.design.width), 0.0)
        problem = Problem(labelled, labelled.sums(), self.precision, ridge)
        weights = self.parts[0].weights
        known = float(labelled.rows) if weights is None else float(weights.sum())
        if blend == 1.0:
            found = minimise(problem, known, 1e-12, 1000)
            if not self.penalty:
                refuse_separation(problem, found, problem.hessian(found.B), self.features.names, self.labels, known)
            return Found(found.B, self.statistics, found.path, found.converged)
        both = 0.5 if len(self.precision) == 1 else 1.0  # scores of two classes are ± half their difference
        return self._tied(problem, both * known / self.total * (1.0 - free) / free, known)

    def _generative(self) -> Found:
        with trying():
            model = self.specification.estimate(self.statistics)[0]
        path = (0.0,) if self.course is None else self.course.objective
        return Found(self.form(model), self.statistics, path, self.course is None or self.course.converged)

    def _tied(self, problem: Problem, tie: float, known: float) -> Found:
        """Rise along both sets of parameters, from those of the generative model on."""
        state, rested = self._state(self._started(), problem, tie, known, None), False
        path, least, share = [state.value], self.tol * self.total, 1.0
        heading = Extrapolation(_whitening(self.gram))
        while len(path) <= self.max_iter and not rested:
            pull = tie * self.precision @ state.apart @ self.gram
            step = self._responsible(state.posterior) + np.vstack([-pull.sum(axis=0), pull]) - state.sums
            ahead = heading.ahead(state.sums, state.sums + share * step)
            new = None if ahead is None else self._tried(ahead, problem, tie, known, state.apart)
            if new is None or new.value <= state.value + least:
                heading.forget()
                new, share = self._risen(state, step, share, problem, tie, known)
                rested = new is None or new.value <= state.value + least
            if new is not None:
                state = new
                path.append(state.value)
        return Found(state.form + state.apart, state.statistics, tuple(path), rested)

    def _risen(
        self, state: State, step: Array, share: float, problem: Problem, tie: float, known: float
    ) -> tuple[State | None, float]:
        """A state in the direction of a step whose objective is not lower, and what share of a step to try next.

        It begins with twice the share that is given; None where there is no such state but this one.
        """
        share = min(2.0 * share, 1.0)
        for _ in range(HALVINGS):
            new = self._tried(state.sums + share * step, problem, tie, known, state.apart)
            if new is not None and new.value >= state.value:
                return new, share
            share *= 0.5
        return None, share

    def _tried(self, sums: Array, problem: Problem, tie: float, known: float, apart: Array) -> State | None:
        """The state of these sums; None where no rows have such sums: nearer ones may."""
        try:
            return self._state(sums, problem, tie, known, apart)
        except (NotEstimableError, np.linalg.LinAlgError):
            return None

    def _started(self) -> Array:
        """The sums behind the generative model: labelled rows in their classes, others by responsibility."""
        with trying():
            model = self.specification.estimate(self.statistics)[0]
        parts = [self.parts[0]]
        for table, part in zip(self.tables[1:], self.parts[1:], strict=True):
            parts.append(replace(part, targets=model.joint_and_posterior(table)[1]))
        return self._all_classes(parts)

    def _responsible(self, posterior: Sequence[Array]) -> Array:
        """The sums of the features in each class, by responsibility."""
        return self._all_classes([replace(p, targets=r) for p, r in zip(self.parts, posterior, strict=True)])

    def _all_classes(self, parts: Sequence[Part]) -> Array:
        others = self.of(*parts).sums()
        return np.vstack([self.gram[-1] - others.sum(axis=0), others])

    def _state(self, sums: Array, problem: Problem, tie: float, known: float, apart: Array | None) -> State:
        """Everything that follows from sums of the features in each class, and the objective."""
        statistics = self.assembled(sums)
        with trying(), np.errstate(all="ignore"):
            model = self.working.estimate(with_reference(statistics, self.statistics))[0]
            form = self.form(model)
            if not np.all(np.isfinite(form)):
                raise NotEstimableError("no finite log-odds")
            value = log_prior(self.working, statistics, self.statistics, model)
            posterior = []
            for table, part in zip(self.tables, self.parts, strict=True):
                joint, shares = model.joint_and_posterior(table)
                weights = np.ones(len(joint)) if part.weights is None else part.weights
                value += float(weights @ logsumexp(joint, axis=1))
                posterior.append(shares)
        start = np.zeros_like(form) if apart is None else apart
        found = descend(Around(problem, form, tie * self.gram), start, None, known, 1e-12, 100)
        value -= found.value
        if not np.isfinite(value):
            raise NotEstimableError("no finite objective")
        return State(sums, statistics, tuple(posterior), form, found.B, value)

    def form(self, model: JointModel) -> Array:
        """The log-odds of a generative model in the features, about their origin: (classes − 1, size)."""
        size, place = self.design.width, 0
        origin = self.design.origin
        assert origin is not None
        out = np.zeros((len(model.classes), size + 1))
        out[:, -1] = model.log_prior
        for block in model.blocks:
            if block.conditionals.vocabularies is None:
                line = _line(block)
                if line is None:
                    raise NotEstimableError("no finite log-odds")
                mine = slice(place, place + block.conditionals.dimension)
                out[:, mine] = line[0]
                out[:, -1] += line[1] + line[0] @ (origin[mine] - line[2])
                place = mine.stop
                continue
            tables: Any = block.conditionals
            for table in tables.tables:
                mine = slice(place, place + table.shape[1] - 1)
                out[:, mine] = table[:, 1:] - table[:, :1]
                out[:, -1] += table[:, 0] + out[:, mine] @ origin[mine]
                place = mine.stop
        return out[1:] - out[:1]

    def assembled(self, sums: Array) -> JointStatistics:
        """The statistics of rows that have these sums of the features in each class, (classes, size)."""
        weight, place = sums[:, -1], 0
        blocks: list[Any] = []
        if not np.all(weight > 0.0):
            raise NotEstimableError("a class without rows")
        origin = self.design.origin
        assert origin is not None
        mean = sums[:, :-1] / weight[:, None] + origin
        for part in self.statistics.blocks:
            if isinstance(part, CategoryCounts):
                tables = []
                for table in part.weight:
                    others = mean[:, place : place + table.shape[1] - 1] * weight[:, None]
                    tables.append(np.column_stack([weight - others.sum(axis=1), others]))
                    place += table.shape[1] - 1
                if any(np.any(table < -1e-9 * weight.max()) for table in tables):
                    raise NotEstimableError("a negative count")
                blocks.append(replace(part, weight=tuple(np.maximum(table, 0.0) for table in tables)))
                continue
            mine = mean[:, place : place + part.dimension]
            place += part.dimension
            blocks.append(_moved(part, mine, weight) if isinstance(part, Moments) else _summed(part, mine, weight))
        return JointStatistics(replace(self.statistics.counts, weight=weight), tuple(blocks))

    def odds(self, B: Array) -> LogOdds:
        return odds_of(self.design, self.design.width, B, None)

    def settle(self, generative: GenerativeClassifier, found: Found, batch: Batch) -> None:
        """Let the generative set be the model of an estimator."""
        course = self.course
        if found.statistics is not self.statistics:
            course = Course(found.path, found.path[-1], found.iterations, found.converged)
        generative._begin(batch, self.specification, (), course)
        generative._learn(found.statistics)


def _whitening(gram: Array) -> Array:
    """A factor of the inverse of a Gram matrix, of the directions that it has: neither units nor origins matter."""
    size = np.sqrt(np.diagonal(gram))
    size = np.where(size > 0.0, size, 1.0)
    value, turn = np.linalg.eigh(gram / size / size[:, None])
    there = value > len(value) * EPS * 1e3
    return np.asarray((turn[:, there] / np.sqrt(value[there])) / size[:, None])


def _with_words(part: Any, like: Any) -> Any:
    """Counts with all categories that others have."""
    return part.align(part.classes, like.vocabularies) if isinstance(part, CategoryCounts) else part


def _moved(part: Moments, mean: Array, weight: Array) -> Moments:
    """Moments of the same rows, shared out among the classes in another way."""
    local = (mean - part.coordinates.origin) / part.coordinates.unit
    middle = weight @ local / weight.sum()
    before, after = part.mean - middle, local - middle
    if part.full:
        between = (before * part.weight[:, None]).T @ before - (after * weight[:, None]).T @ after
    else:
        between = part.weight @ before**2 - weight @ after**2
    scatter = part.scatter[0] + between
    if np.any((np.diagonal(scatter) if part.full else scatter) < 0.0):
        raise NotEstimableError("a negative variance")
    return replace(part, weight=weight, mean=local, scatter=scatter[None])


def _summed(part: Sums, mean: Array, weight: Array) -> Sums:
    """Sums of the same cells, shared out among the classes in another way; only the first function is looked at."""
    if np.any(mean < 0.0):
        raise NotEstimableError("a negative sum")
    totals = part.totals.sum(axis=1, keepdims=True) * (weight / weight.sum())[:, None]
    totals[0] = mean * weight[:, None]
    return replace(part, weight=weight, totals=totals)
