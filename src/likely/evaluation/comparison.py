"""Generative against discriminative: learning curves of models that learn from the same rows.

Ng and Jordan (2001): with few rows the generative model of a pair tends to be ahead, with many the discriminative one,
which assumes less; where the curves cross depends on the table.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state, get_tags

from likely.data.batches import Batches, is_source
from likely.data.table import Table
from likely.data.validation import read_table
from likely.discriminative.hybrid import HybridClassifier
from likely.discriminative.softmax import SoftmaxRegression
from likely.errors import InputError, listed
from likely.estimators.classifiers import GenerativeClassifier
from likely.estimators.generative import GenerativeModel
from likely.evaluation.learning_curves import Comparison, Point, Score, verdicts
from likely.evaluation.preparation import (
    FilledCells,
    PlainFeatures,
    delete_cells,
    holes,
    label_columns,
    plain_table,
    take_rows,
)
from likely.families import Gaussian
from likely.numerics.progress import progress
from likely.numerics.special import EPS
from likely.typing import AnyArray, Array

POINTS = 8  # sizes, where none are given


def compare(
    X: Any,
    y: Any,
    models: Any = None,
    sizes: Any = None,
    missing: Any = (0.0,),
    labelled: Any = (1.0,),
    repeats: int = 10,
    test: float = 0.2,
    random_state: Any = None,
) -> Comparison:
    """Learning curves of log-loss and error: models that learn from the same rows, judged by the same others.

    Parameters
    ----------
    X, y : a table in memory and its labels, as `fit` takes them.
    models : a mapping from names to classifiers with `predict_proba`, the one that the others are compared with first.
        None is `default_models`: a generative model, and softmax regression on the same columns.
    sizes : numbers of training rows. None is eight of them, in equal ratios, from two rows a class to all that are not
        held out.
    missing : shares of all cells to delete at random, in training and test rows alike.
    labelled : of the training rows, shares (up to 1) or numbers (above 1) that keep their label, each class at least
        one. Generative models and hybrids of this library learn from the others too, without labels; any other model
        does without them.
    repeats : how often rows are drawn anew.
    test : the share of each class that is held out to judge by.
    random_state : a seed, for the same numbers again. Models without one of their own get one too.

    In every repeat each class is split at random, and training rows come in an order in which any first n of them have
    the classes in their shares, each at least once: smaller training sets are parts of larger ones (`splits`).
    """
    if is_source(X):
        raise InputError("compare needs the rows in memory, and X comes in chunks.")
    whole = Batches(X, y, None, read_table, "compare").first
    counts, codes = whole.counts, np.asarray(whole.codes)
    _check_classes(counts.rows, counts.classes)
    held = int(_held_out(counts.rows, _test_share(test)).sum())
    if not isinstance(repeats, Integral) or isinstance(repeats, bool) or repeats < 1:
        raise InputError(f"repeats={repeats!r} is not a positive whole number.")
    grid = Grid(_sizes(sizes, len(counts.classes), len(codes) - held), _missing(missing), _labelled(labelled))
    named = default_models(whole.table) if models is None else _named(models)
    trials = Trials(plain_table(whole.X, whole.table), whole.table, counts.classes, codes)
    draws = splits(codes, float(test), int(repeats), random_state)
    runners = [trials.runner(name, model, draws[0], max(grid.missing)) for name, model in named.items()]
    points = trials.run(runners, draws, grid)
    notes = tuple(note for runner in runners for note in runner.notes(points, grid.labelled))
    names = tuple(named)
    return Comparison(
        names, grid.sizes, grid.missing, grid.labelled, len(draws), held, points, verdicts(names, points), notes
    )


def default_models(table: Table) -> dict[str, Any]:
    """A generative and a discriminative model whose log-odds are linear in the same features.

    The generative one has a Gaussian with one covariance for all columns of numbers, and tables of frequencies for the
    others, under a weak prior; the discriminative one is softmax regression with its default penalty, on numbers in
    deviations from their mean and a column for each label. Of sparse rows each takes the columns as they are.
    """
    if table.is_sparse:
        return {"generative": GenerativeClassifier(), "discriminative": SoftmaxRegression()}
    numbers = tuple(name for name, kind in zip(table.names, table.kinds, strict=True) if kind == "number")
    families = {numbers: Gaussian(shared=True)} if numbers else None
    return {
        "generative": GenerativeClassifier(families),
        "discriminative": SoftmaxRegression(basis=PlainFeatures(label_columns(table))),
    }


# ------------------------------------------------------------------------------------------------------------- drawing
@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows to learn from, in an order whose every beginning holds the classes in their shares, and rows to judge by."""

    order: AnyArray
    test: AnyArray
    cells: np.random.SeedSequence
    seed: int  # of models that have none of their own

    def chances(self, rows: int, width: int) -> AnyArray:
        """A number from 0 to 1 for every cell: those below a share are deleted, and more where the share is larger."""
        return np.random.default_rng(self.cells).random((rows, width), dtype=np.float32)


def splits(codes: AnyArray, test: float, repeats: int, random_state: Any = None) -> list[Split]:
    """The draws of a comparison, from the codes of the labels.

    Of the m rows of a class, in random order, the first are held out: the rounded share of m, at least one, and at most
    m − 1. Of the others row i has the place (i + u) / m, where u is a number from 0 to 1 that the class draws, but for
    the first, which comes before all places. Training rows are sorted by their places.
    """
    root = np.random.SeedSequence(int(check_random_state(random_state).randint(2**32, dtype=np.uint64)))
    return [_split(codes, test, each) for each in root.spawn(repeats)]


def _split(codes: AnyArray, test: float, seed: np.random.SeedSequence) -> Split:
    rows, cells, own = seed.spawn(3)
    rng = np.random.default_rng(rows)
    held, kept, places = [], [], []
    for k in range(int(codes.max()) + 1):
        mine = rng.permutation(np.flatnonzero(codes == k))
        count = int(_held_out(np.array([len(mine)]), test)[0])
        place = (np.arange(len(mine) - count) + rng.random()) / (len(mine) - count)
        place[0] -= 1.0
        held.append(mine[:count])
        kept.append(mine[count:])
        places.append(place)
    order = np.concatenate(kept)[np.argsort(np.concatenate(places), kind="stable")]
    return Split(order, np.concatenate(held), cells, int(np.random.default_rng(own).integers(2**31 - 1)))


def _held_out(counts: AnyArray, test: float) -> AnyArray:
    """How many rows of each class are held out."""
    return np.clip(np.floor(test * counts + 0.5).astype(np.int64), 1, counts - 1)


def labels_kept(labelled: float, size: int, classes: int) -> int:
    """How many training rows keep their label: the first of them, at least one for each class."""
    wanted = int(labelled * size + 0.5) if labelled <= 1.0 else int(labelled)
    return min(max(wanted, classes), size)


# -------------------------------------------------------------------------------------------------------------- trials
@dataclass(frozen=True, slots=True)
class Grid:
    """What is tried: numbers of training rows, shares of deleted cells, and shares or numbers of labels."""

    sizes: tuple[int, ...]
    missing: tuple[float, ...]
    labelled: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.sizes) * len(self.missing) * len(self.labelled)


@dataclass(slots=True)
class Runner:
    """A model under its name, and what happened to it."""

    name: str
    model: Any
    fills: bool  # whether missing cells are filled before it sees them
    unlabelled: bool  # whether it learns from rows without labels
    filled: bool = False  # whether there were any
    warned: dict[str, tuple[int, str]] = field(default_factory=dict)

    def hear(self, caught: Iterable[warnings.WarningMessage]) -> None:
        """Remember warnings by their kind: how many, and what the first one said."""
        for each in caught:
            kind = each.category.__name__
            count, first = self.warned.get(kind, (0, " ".join(str(each.message).split())))
            self.warned[kind] = count + 1, first

    def notes(self, points: Sequence[Point], labelled: Sequence[float]) -> list[str]:
        """What has to be known about the numbers of this model."""
        told = []
        if self.filled:
            told.append("missing cells were filled with means and most frequent labels")
        if any(keep != 1.0 for keep in labelled):
            told.append("learnt from unlabelled rows too" if self.unlabelled else "learnt from labelled rows alone")
        mine = [point for point in points if point.model == self.name and point.failures]
        if mine:
            count = sum(point.failures for point in mine)
            sizes = sorted({point.size for point in mine})
            where = f"{sizes[0]} rows" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} rows"
            told.append(f"{count} fits failed, with {where}; the first: {mine[0].reason}")
        told += [f"{kind} × {count}; the first: {first}" for kind, (count, first) in sorted(self.warned.items())]
        return [f"{self.name}: {each}" for each in told]


@dataclass(slots=True)
class _Tries:
    """The scores of one model at one place, repeat after repeat."""

    losses: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def point(self, name: str, size: int, missing: float, labelled: float, labels: int) -> Point:
        return Point(
            name,
            size,
            missing,
            labelled,
            labels,
            Score.of(self.losses),
            Score.of(self.errors),
            len(self.reasons),
            self.reasons[0] if self.reasons else None,
        )


class Trials:
    """A table and its labels, from which models learn parts and are judged by others."""

    def __init__(self, X: Any, table: Table, classes: AnyArray, codes: AnyArray) -> None:
        self._X, self._classes, self._codes = X, classes, codes
        self._rows, self._width = table.rows, table.width
        self._labels = label_columns(table)
        self._missing_rows = bool(holes(table).any()) if not table.is_sparse else False
        self._place = {label: code for code, label in enumerate(classes.tolist())}

    def without(self, share: float, draw: Split) -> Any:
        """The table without a share of its cells."""
        return self._X if not share else delete_cells(self._X, draw.chances(self._rows, self._width) < share)

    def runner(self, name: str, model: Any, draw: Split, most: float) -> Runner:
        """A model, after a look at whether it takes missing cells, if there will be any."""
        takes = not (self._missing_rows or most) or _allows_missing(model) or self._answers(model, draw, most)
        return Runner(name, model, not takes, isinstance(model, GenerativeModel | HybridClassifier))

    def _answers(self, model: Any, draw: Split, most: float) -> bool:
        """Whether a model has an answer where cells are missing."""
        rows = self.without(most, draw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # only whether there is an answer counts
            try:
                self._posterior(model, rows, draw, draw.order, self._classes[self._codes[draw.order]])
            except (ValueError, TypeError):
                return False
        return True

    def run(self, runners: Sequence[Runner], draws: Sequence[Split], grid: Grid) -> tuple[Point, ...]:
        """Every model in every draw at every place; an error where none could ever be fitted."""
        cells: dict[tuple[str, int, float, float], _Tries] = {}
        with progress("fits", len(draws) * len(grid) * len(runners)) as step:
            for draw, share in itertools.product(draws, grid.missing):
                rows = self.without(share, draw)
                for keep, size, runner in itertools.product(grid.labelled, grid.sizes, runners):
                    tries = cells.setdefault((runner.name, size, share, keep), _Tries())
                    self._attempt(runner, rows, draw, size, labels_kept(keep, size, len(self._classes)), tries)
                    step()
        points = tuple(
            tries.point(name, size, share, keep, labels_kept(keep, size, len(self._classes)))
            for (name, size, share, keep), tries in cells.items()
        )
        if all(np.isnan(point.log_loss.mean) for point in points):
            told = {point.model: point.reason for point in reversed(points)}
            reasons = "; ".join(f"{name}: {reason}" for name, reason in told.items())
            raise InputError(f"No model could be fitted at any size. {reasons}")
        return points

    def _attempt(self, runner: Runner, rows: Any, draw: Split, size: int, labels: int, tries: _Tries) -> None:
        """Fit a model to the first rows of a draw, and judge it; what cannot be fitted leaves its reason."""
        train = draw.order[:size]
        y = self._classes[self._codes[train]]
        if labels < size and runner.unlabelled:
            y = y.astype(object)
            y[labels:] = None
        elif labels < size:
            train, y = train[:labels], y[:labels]
        model = runner.model
        if runner.fills and (self._missing_rows or rows is not self._X):
            model, runner.filled = self._filling(model), True
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                loss, error = self._judged(self._posterior(model, rows, draw, train, y), draw.test)
            except (ValueError, ArithmeticError) as problem:
                loss, error = np.nan, np.nan
                tries.reasons.append(f"{type(problem).__name__}: {problem}")
        runner.hear(caught)
        tries.losses.append(loss)
        tries.errors.append(error)

    def _filling(self, model: Any) -> Any:
        """A model behind a transformer that fills missing cells."""
        from sklearn.pipeline import make_pipeline  # not loaded by `import likely`

        return make_pipeline(FilledCells(self._labels), model)

    def _posterior(self, model: Any, rows: Any, draw: Split, train: AnyArray, y: AnyArray) -> Array:
        """p(class | x) of the rows to judge by, 0 for classes that the model has not seen."""
        fitted = _seeded(clone(model), draw.seed).fit(take_rows(rows, train), y)
        answer = np.asarray(fitted.predict_proba(take_rows(rows, draw.test)), dtype=np.float64)
        if answer.shape != (len(draw.test), len(fitted.classes_)) or not np.isfinite(answer).all():
            raise InputError(f"{type(model).__name__}.predict_proba gave no probabilities for some rows.")
        posterior = np.zeros((len(draw.test), len(self._classes)))
        posterior[:, [self._place[label] for label in fitted.classes_.tolist()]] = answer
        return posterior

    def _judged(self, posterior: Array, test: AnyArray) -> tuple[float, float]:
        """Log-loss, within scikit-learn's bounds, and error."""
        codes = self._codes[test]
        right = posterior[np.arange(len(test)), codes]
        loss = -np.log(np.clip(right, EPS, 1.0 - EPS))
        return float(loss.mean()), float((posterior.argmax(axis=1) != codes).mean())


def _allows_missing(model: Any) -> bool:
    """Whether a model says that it takes missing cells."""
    return bool(get_tags(model).input_tags.allow_nan)


def _seeded(model: Any, seed: int) -> Any:
    """The same model, with a seed wherever it has a place for one and none in it."""
    free = {
        name: seed
        for name, value in model.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    return model.set_params(**free) if free else model


# -------------------------------------------------------------------------------------------------------------- checks
def _check_classes(counts: AnyArray, classes: AnyArray) -> None:
    if len(classes) < 2:
        raise InputError(f"y has one class, {listed(classes)}, and there is nothing to tell apart.")
    few = [label for label, count in zip(classes.tolist(), counts.tolist(), strict=True) if count < 2]
    if few:
        raise InputError(
            f"Class {listed(few)} has one row: each class needs one to learn from and one to judge by. Hint: leave out "
            "such classes, or put them together."
        )


def _test_share(test: Any) -> float:
    if not isinstance(test, Real) or isinstance(test, bool) or not 0.0 < float(test) < 1.0:
        raise InputError(f"test={test!r} is not a share between 0 and 1.")
    return float(test)


def _several(name: str, values: Any) -> list[Any]:
    """One number, or several."""
    found = [values] if isinstance(values, Real) else values
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise InputError(f"{name}={values!r} is neither a number nor numbers.")
    found = list(found)
    if not found:
        raise InputError(f"{name} is empty.")
    if not all(isinstance(value, Real) and not isinstance(value, bool) for value in found):
        raise InputError(f"{name}={values!r} are not all numbers.")
    return found


def _missing(values: Any) -> tuple[float, ...]:
    """Shares of cells."""
    found = _several("missing", values)
    for value in found:
        if not 0.0 <= value < 1.0:
            raise InputError(f"missing: {value!r} is not a share from 0 on and below 1.")
    return tuple(dict.fromkeys(map(float, found)))


def _labelled(values: Any) -> tuple[float, ...]:
    """Shares or numbers of labels."""
    found = _several("labelled", values)
    for value in found:
        if not (0.0 < value <= 1.0 or (value > 1.0 and float(value).is_integer())):
            raise InputError(f"labelled: {value!r} is neither a share above 0, up to 1, nor a number of rows above 1.")
    return tuple(dict.fromkeys(map(float, found)))


def _sizes(sizes: Any, classes: int, pool: int) -> tuple[int, ...]:
    """Numbers of training rows, the smallest first."""
    if sizes is None:
        low = min(2 * classes, pool)
        return tuple(sorted({round(size) for size in np.geomspace(low, pool, POINTS).tolist()}))
    found = _several("sizes", sizes)
    for size in found:
        if not float(size).is_integer() or not classes <= size <= pool:
            raise InputError(
                f"sizes: {size!r} is not a whole number from {classes}, the number of classes, to {pool}, the rows "
                "that are not held out. Hint: a smaller share in test leaves more."
            )
    return tuple(sorted({int(size) for size in found}))


def _named(models: Any) -> dict[str, Any]:
    """Models by their names."""
    if not isinstance(models, Mapping):
        raise InputError("models must be a mapping from names to classifiers, such as {'mine': LinearDiscriminant()}.")
    if not models:
        raise InputError("models has no model.")
    for name, model in models.items():
        if isinstance(model, type) or not hasattr(model, "get_params") or not is_classifier(model):
            raise InputError(f"models[{name!r}] = {model!r} is no classifier. Hint: an estimator, not a class.")
        if not hasattr(model, "predict_proba"):
            raise InputError(
                f"models[{name!r}] = {model!r} has no predict_proba, and the log-loss needs probabilities. Hint: "
                "scikit-learn's CalibratedClassifierCV gives it some."
            )
    named = {str(name): model for name, model in models.items()}
    if len(named) < len(models):
        raise InputError(f"models: {listed(models)} are not all different as text.")
    return named
