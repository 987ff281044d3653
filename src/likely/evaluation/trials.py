"""Repeated fits on random nested training sets, for learning curves.

In every repeat each class is split at random into training and test rows. Training rows are ordered so that any first n
of them have the class proportions of the table, and at least one row of each class: smaller training sets are subsets
of larger ones.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from likely.data.table import Table
from likely.discriminative.hybrid import HybridClassifier
from likely.errors import InputError
from likely.estimators.generative import is_generative_classifier
from likely.evaluation.group_folds import assign_groups
from likely.evaluation.learning_curves import Point, Score
from likely.evaluation.preparation import (
    SimpleImputation,
    categorical_columns,
    delete_values,
    missing_mask,
    take_rows,
)
from likely.evaluation.refitting import class_probabilities
from likely.evaluation.scoring import baseline_scores, score_fold, scores_of
from likely.numerics.progress import progress
from likely.numerics.random import seeded
from likely.typing import AnyArray, Array

BASELINE = "class proportions"
Trial = tuple[float, float, str | None]  # log-loss and error rate, NaN where the fit failed; and why it did


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Training rows of one repeat, in an order whose every beginning is stratified, and test rows."""

    order: AnyArray
    test: AnyArray
    deletion_seed: np.random.SeedSequence
    model_seed: int  # for models whose random_state is None

    def uniforms(self, rows: int, width: int) -> AnyArray:
        """A uniform number for every value: those below a proportion are deleted, so that deletions are nested."""
        return np.random.default_rng(self.deletion_seed).random((rows, width), dtype=np.float32)


def draws(
    codes: AnyArray, test: float, repeats: int, random_state: Any = None, groups: AnyArray | None = None
) -> list[Draw]:
    """Random splits of the rows, from the codes of their classes; the rows of a group are in the same part.

    Of the m rows of a class, in random order, the first are held out: test·m, rounded, at least 1 and at most m − 1.
    Of the others, row i has the position (i + u) / m, with u uniform for each class; the first row of a class comes
    before all positions. Training rows are sorted by position. With groups, the number of test rows of a class is near
    to this.
    """
    root = np.random.SeedSequence(int(seeded(random_state).randint(2**32, dtype=np.uint64)))
    return [_draw(codes, test, each, groups) for each in root.spawn(repeats)]


def _draw(codes: AnyArray, test: float, seed: np.random.SeedSequence, groups: AnyArray | None) -> Draw:
    row_seed, deletion_seed, model_seed = seed.spawn(3)
    rng = np.random.default_rng(row_seed)
    part = np.zeros(0) if groups is None else assign_groups(groups, codes, np.array([test, 1.0 - test]), rng)
    held, kept, positions = [], [], []
    for k in range(int(codes.max()) + 1):
        members = rng.permutation(np.flatnonzero(codes == k))
        count = int(held_out_counts(np.array([len(members)]), test)[0])
        if groups is not None:
            members = members[np.argsort(part[members], kind="stable")]  # those of the test part first
            count = int(np.count_nonzero(part[members] == 0))
        if not 0 < count < len(members):
            raise InputError(
                f"Class number {k} has {len(members)} rows in so few groups that it has none in the "
                f"{'test' if count == 0 else 'training'} part. Equal rows are in one part unless copies='apart'; "
                "change test, or drop or merge such classes."
            )
        position = (np.arange(len(members) - count) + rng.random()) / (len(members) - count)
        position[0] -= 1.0
        held.append(members[:count])
        kept.append(members[count:])
        positions.append(position)
    order = np.concatenate(kept)[np.argsort(np.concatenate(positions), kind="stable")]
    return Draw(order, np.concatenate(held), deletion_seed, int(np.random.default_rng(model_seed).integers(2**31 - 1)))


def held_out_counts(counts: AnyArray, test: float) -> AnyArray:
    """The number of test rows of each class."""
    return np.clip(np.floor(test * counts + 0.5).astype(np.int64), 1, counts - 1)


def labeled_rows(labeled: float, size: int, classes: int) -> int:
    """The number of training rows that keep their label: the first ones, at least one for each class."""
    wanted = int(labeled * size + 0.5) if labeled <= 1.0 else int(labeled)
    return min(max(wanted, classes), size)


@dataclass(frozen=True, slots=True)
class Grid:
    """Training set sizes, proportions of deleted values, and proportions or numbers of labels."""

    sizes: tuple[int, ...]
    missing: tuple[float, ...]
    labeled: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.sizes) * len(self.missing) * len(self.labeled)


@dataclass(slots=True)
class Runner:
    """A model, how its input is prepared, and the warnings of its fits."""

    name: str
    model: Any
    imputes: bool  # whether missing values are imputed before the model
    semi_supervised: bool  # whether the model learns from unlabeled rows
    imputed: bool = False  # whether there were any missing values
    warned: dict[str, tuple[int, str]] = field(default_factory=dict)

    def record(self, caught: Iterable[warnings.WarningMessage]) -> None:
        """Count warnings by category, and keep the first message of each."""
        for each in caught:
            kind = each.category.__name__
            count, first = self.warned.get(kind, (0, " ".join(str(each.message).split())))
            self.warned[kind] = count + 1, first

    def notes(self, points: Sequence[Point], labeled: Sequence[float]) -> list[str]:
        """Remarks on the scores of this model: imputation, unlabeled rows, failures and warnings."""
        notes = []
        if self.imputed:
            notes.append("missing values were imputed by column means and most frequent categories")
        if any(keep != 1.0 for keep in labeled):
            notes.append(
                "fitted to labeled and unlabeled rows" if self.semi_supervised else "fitted to labeled rows only"
            )
        failed = [point for point in points if point.model == self.name and point.failures]
        if failed:
            count = sum(point.failures for point in failed)
            sizes = sorted({point.size for point in failed})
            where = f"{sizes[0]} rows" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} rows"
            notes.append(f"{count} fits failed, with {where}; the first: {failed[0].reason}")
        notes += [f"{kind} × {count}; the first: {first}" for kind, (count, first) in sorted(self.warned.items())]
        return [f"{self.name}: {note}" for note in notes]


class Trials:
    """A table and its classes, on which models are fitted to training rows and scored on test rows."""

    def __init__(self, X: Any, table: Table, classes: AnyArray, codes: AnyArray) -> None:
        self._X, self._classes, self._codes = X, classes, codes
        self._rows, self._width = table.rows, table.width
        self._categorical = categorical_columns(table)
        self._has_missing = bool(missing_mask(table).any()) if not table.is_sparse else False

    def with_missing(self, proportion: float, draw: Draw) -> Any:
        """The table with a proportion of its values deleted."""
        if not proportion:
            return self._X
        return delete_values(self._X, draw.uniforms(self._rows, self._width) < proportion)

    def runner(self, name: str, model: Any, draw: Draw, most: float) -> Runner:
        """A model, and whether missing values must be imputed for it."""
        allows = not (self._has_missing or most) or bool(get_tags(model).input_tags.allow_nan)
        supports = allows or self._fits_missing(model, draw, most)
        return Runner(name, model, not supports, is_generative_classifier(model) or isinstance(model, HybridClassifier))

    def _fits_missing(self, model: Any, draw: Draw, most: float) -> bool:
        """Whether a model can be fitted to rows with missing values, by trying it."""
        rows = self.with_missing(most, draw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self._posterior(model, rows, draw, draw.order, self._classes[self._codes[draw.order]])
            except (ValueError, TypeError):
                return False
        return True

    def run(self, runners: Sequence[Runner], draws: Sequence[Draw], grid: Grid) -> tuple[Point, ...]:
        """Every model in every repeat at every point of the grid; an error where none could ever be fitted."""
        found: dict[tuple[str, int, float, float], list[Trial]] = {}
        with progress("fits", len(draws) * len(grid) * len(runners)) as step:
            for draw, missing in itertools.product(draws, grid.missing):
                rows = self.with_missing(missing, draw)
                for labeled, size, runner in itertools.product(grid.labeled, grid.sizes, runners):
                    trial = self._trial(runner, rows, draw, size, labeled)
                    found.setdefault((runner.name, size, missing, labeled), []).append(trial)
                    step()
        points = tuple(self._point(*place, trials) for place, trials in found.items())
        if all(np.isnan(point.log_loss.mean) for point in points):
            first = {point.model: point.reason for point in reversed(points)}
            reasons = "; ".join(f"{name}: {reason}" for name, reason in first.items())
            raise InputError(f"No model could be fitted at any size. {reasons}")
        return points

    def baseline(self, draws: Sequence[Draw], grid: Grid) -> tuple[Point, ...]:
        """Scores of the class proportions of the labeled training rows, on the same test rows."""
        classes, points = len(self._classes), []
        for labeled, size in itertools.product(grid.labeled, grid.sizes):
            parts = ((draw.order[: labeled_rows(labeled, size, classes)], draw.test) for draw in draws)
            counts = ((np.bincount(self._codes[rows], minlength=classes) for rows in pair) for pair in parts)
            trials = [(*baseline_scores(*pair)[:2], None) for pair in counts]
            points.append(self._point(BASELINE, size, 0.0, labeled, trials))
        return tuple(points)

    def _point(self, name: str, size: int, missing: float, labeled: float, trials: Sequence[Trial]) -> Point:
        """The scores of a model at one point of the grid, from those of each repeat."""
        losses, errors, reasons = zip(*trials, strict=True)
        failed = [reason for reason in reasons if reason is not None]
        labels = labeled_rows(labeled, size, len(self._classes))
        scores = Score.of(losses), Score.of(errors)
        return Point(name, size, missing, labeled, labels, *scores, len(failed), failed[0] if failed else None)

    def _trial(self, runner: Runner, rows: Any, draw: Draw, size: int, labeled: float) -> Trial:
        """Fit a model to the first rows of a draw and score it on the test rows."""
        train, labels, codes = draw.order[:size], labeled_rows(labeled, size, len(self._classes)), self._codes
        y = self._classes[codes[train]]
        if labels < size and runner.semi_supervised:
            y = y.astype(object)
            y[labels:] = None
        elif labels < size:
            train, y = train[:labels], y[:labels]
        model = runner.model
        if runner.imputes and (self._has_missing or rows is not self._X):
            model, runner.imputed = self._with_imputation(model), True
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = scores_of(self._posterior(model, rows, draw, train, y), codes[draw.test])
                (loss, error, *_), _ = score_fold(found, codes[draw.test], None)
                trial: Trial = loss, error, None
            except (ValueError, ArithmeticError) as problem:
                trial = np.nan, np.nan, f"{type(problem).__name__}: {problem}"
        runner.record(caught)
        return trial

    def _with_imputation(self, model: Any) -> Any:
        """A pipeline that imputes missing values before the model."""
        from sklearn.pipeline import make_pipeline  # deferred: `import likely` stays light

        return make_pipeline(SimpleImputation(self._categorical), model)

    def _posterior(self, model: Any, rows: Any, draw: Draw, train: AnyArray, y: AnyArray) -> Array:
        """p(class | x) of the test rows, 0 for classes that are not in the training rows."""
        fitted = _seeded(clone(model), draw.model_seed).fit(take_rows(rows, train), y)
        return class_probabilities(fitted, take_rows(rows, draw.test), len(draw.test), self._classes)


def _seeded(model: Any, seed: int) -> Any:
    """The same model, with a seed for every random_state that is None."""
    unset = {
        name: seed
        for name, value in model.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    return model.set_params(**unset) if unset else model
