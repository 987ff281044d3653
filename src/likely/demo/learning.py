"""Updates, missing values, unlabeled rows, softmax regression, learning curves and regression."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from sklearn.metrics import confusion_matrix

from likely import (
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    MixtureModel,
    SoftmaxRegression,
    compare,
    cross_validate,
    load,
)
from likely.demo.penguins import COLUMNS, Birds, Table, heading, out_of_fold, scores
from likely.errors import SeparationError


def show_sums(birds: Birds) -> None:
    """Merging and forgetting by sums of statistics; leave-one-out and folds from one pass; files."""
    heading("Updating, merging and forgetting")
    whole = GenerativeClassifier(Gaussian(shared=True), calibration=None).fit(birds.X, birds.y)
    parts = []
    for name in np.unique(birds.island):
        here = birds.island == name
        parts.append(GenerativeClassifier(whole.families, calibration=None).fit(birds.X[here], birds.y[here]))
        print(f"{name:<12}{int(here.sum()):>5} birds of {' and '.join(parts[-1].classes_)}")
    merged: Any = sum(parts)
    difference = np.abs(merged.predict_proba(birds.X) - whole.predict_proba(birds.X)).max()
    print(f"\nThe sum of the three models differs from one fit on all birds by at most {difference:.0e}.")
    removed = birds.island == "Torgersen"
    remaining = copy.copy(merged).forget(birds.X[removed], birds.y[removed])
    again = GenerativeClassifier(whole.families, calibration=None).fit(birds.X[~removed], birds.y[~removed])
    difference = np.abs(remaining.predict_proba(birds.X) - again.predict_proba(birds.X)).max()
    print(f"After forgetting the birds of Torgersen it differs from a fit without them by at most {difference:.0e}.\n")
    codes = np.searchsorted(whole.classes_, birds.y)
    loo = whole.left_out_proba(birds.X, birds.y)[np.arange(len(codes)), codes]
    folds = cross_validate(whole, birds.X, birds.y)
    print(f"Leave-one-out log-loss, from one fit: {-np.log(loo).mean():.4f}")
    print(f"Ten-fold log-loss, from one pass:     {folds.log_loss.mean():.4f}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "penguins.likely"
        whole.save(path)
        same = np.array_equal(load(path).predict_proba(birds.X), whole.predict_proba(birds.X))
        size = f"{path.stat().st_size:,} bytes"
        print(f"\nSaved to {size} without pickle and loaded: the predictions are {'' if same else 'not '}identical.")


def show_missing(birds: Birds) -> None:
    """Unlabeled rows, missing values, no labels at all, and a shift of the class prior."""
    heading("Unlabeled rows, missing values, prior shift and novelty")
    family = Gaussian(shared=True)
    supervised, semi_supervised = np.mean([_few_labels(birds, family, seed) for seed in range(10)], axis=0)
    rng = np.random.default_rng(0)
    incomplete = birds.X.copy()
    incomplete[rng.random(incomplete.shape) < 0.3] = np.nan
    print("Three labeled birds per species, accuracy on all other birds, mean of ten draws:")
    print(f"    labeled birds only                          {supervised:.3f}")
    print(f"    with the unlabeled birds                    {semi_supervised:.3f}")
    folds = cross_validate(GenerativeClassifier(family), incomplete, birds.y)
    print(f"\nWith 30% of the measurements deleted, over ten folds: accuracy {1.0 - folds.error.mean():.3f}")
    mixture = MixtureModel(3, Gaussian(), random_state=0).fit(birds.X)
    table = confusion_matrix(np.searchsorted(birds.species, birds.y), mixture.predict(birds.X))
    agreement = table.max(axis=0).sum() / len(birds.y)
    print(f"Without labels, the components of a mixture agree with the species for {agreement:.3f} of the birds")
    rare = np.flatnonzero((birds.y != "Chinstrap") | (rng.random(len(birds.y)) < 0.15))
    shifted = GenerativeClassifier(family).fit(birds.X, birds.y).adapt_prior(birds.X[rare])
    place = list(birds.species).index("Chinstrap")
    print(
        f"\nAmong {len(rare)} birds of which {int((birds.y[rare] == 'Chinstrap').sum())} are Chinstraps, adapt_prior "
        f"estimates their proportion as {shifted.class_prior_[place]:.3f}\n(p-value of no change: "
        f"{shifted.prior_shift_.p_value:.1g})."
    )
    typical = shifted.typicality(np.vstack([birds.X[:1], [[80.0, 5.0, 300.0, 9000.0]]]))
    print(
        f"Typicality (p-value) of the first bird: {typical[0]:.2f}. Of one with a bill of 80 mm and 9 kg: "
        f"{typical[1]:.1g}."
    )


def _few_labels(birds: Birds, family: Gaussian, seed: int) -> tuple[float, float]:
    """Accuracies of a model fitted to three birds of each species, and of one fitted to the unlabeled birds too."""
    rng = np.random.default_rng(seed)
    few = np.concatenate([rng.choice(np.flatnonzero(birds.y == name), 3, replace=False) for name in birds.species])
    others = np.setdiff1d(np.arange(len(birds.y)), few)
    labels = np.full(len(birds.y), None, dtype=object)
    labels[few] = birds.y[few]
    supervised = GenerativeClassifier(family).fit(birds.X[few], birds.y[few])
    semi_supervised = GenerativeClassifier(family).fit(birds.X, labels)
    X, y = birds.X[others], birds.y[others]
    return supervised.score(X, y), semi_supervised.score(X, y)


def show_softmax(birds: Birds) -> None:
    """Softmax regression, separation, and a hybrid."""
    heading("Softmax regression and hybrids")
    table = pyarrow.table(dict(zip(COLUMNS, birds.X.T, strict=True)))
    print(SoftmaxRegression(penalty=0).fit(table.select(["flipper_length_mm", "body_mass_g"]), birds.y).summary())
    try:
        SoftmaxRegression(penalty=0).fit(table, birds.y)
    except SeparationError as error:
        print(
            f"\nWith all four measurements and no penalty the classes are separable:\n    {str(error).split('. ')[0]}."
        )
    print("\nTen folds, all measurements           accuracy   log-loss")
    for words, model in (
        ("SoftmaxRegression()", SoftmaxRegression()),
        ("GenerativeClassifier()", GenerativeClassifier()),
        ("HybridClassifier(blend=0.3)", HybridClassifier(Gaussian(shared=True), blend=0.3)),
    ):
        accuracy, loss = scores(out_of_fold(model, birds.X, birds.y), birds.y, list(birds.species))
        print(f"    {words:<34} {accuracy:>8.4f} {loss:>10.4f}")


def show_curves(birds: Birds) -> None:
    """Learning curves of a generative and a discriminative model."""
    heading("Learning curves: generative versus discriminative")
    print(compare(birds.X, birds.y, sizes=(6, 12, 30, 90, 270), repeats=10, random_state=0))


def show_regression(table: Table) -> None:
    """Body mass given the other measurements, with missing values and by category."""
    heading("Regression")
    weighed = np.random.default_rng(0).permutation(table.measured)
    X, mass = table.measurements[weighed, :3], table.measurements[weighed, 3]
    train, test = np.split(np.arange(len(mass)), 2)
    model = GenerativeRegressor().fit(X[train], mass[train])
    low, high = model.predict_interval(X[test], level=0.9).T
    inside = np.mean((low <= mass[test]) & (mass[test] <= high))
    print("Body mass given the other measurements, trained on half of the birds:")
    print(f"    R² on the other half                          {model.score(X[test], mass[test]):>8.3f}")
    print(f"    fraction inside the 90% interval              {inside:>8.3f}")
    named = table.X.select([*COLUMNS[:3], "island", "sex", "body_mass_g"]).take(weighed)
    for category in ("island", "sex"):
        columns = [*COLUMNS[:3], category]
        by_category = GenerativeRegressor(classes=category).fit(named.select(columns).take(train), mass[train])
        score = by_category.score(named.select(columns).take(test), mass[test])
        print(f"    R² with one regression per {category:<18} {score:>8.3f}")
    (bill, depth, flipper), known = X[test[0]], mass[test[0]]
    for words, row in (
        (f"bill {bill:.1f} × {depth:.1f} mm, flipper {flipper:.0f} mm", [bill, depth, flipper]),
        (f"flipper {flipper:.0f} mm, other values missing", [np.nan, np.nan, flipper]),
        ("all values missing", [np.nan, np.nan, np.nan]),
    ):
        mean, std = model.predict([row], return_std=True)
        print(f"    {words:<42} {mean[0]:>6.0f} ± {std[0]:.0f} g")
    print(f"Observed: {known:.0f} g.")
