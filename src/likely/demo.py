"""The main job on real data: Palmer penguins, told apart by what was written down of them. ``make demo`` prints it."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.csv
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.metrics import confusion_matrix, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from likely import (
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    QuadraticDiscriminant,
    SoftmaxRegression,
    compare,
    cross_validate,
    load,
)
from likely.errors import SeparationError
from likely.model.boundary import LinearBoundary

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.str_]
Index = npt.NDArray[np.intp]

COLUMNS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
LABELS = ("island", "sex", "year")
FOLDS = StratifiedKFold(n_splits=10, shuffle=True, random_state=0)

# Chinstraps are ringed for a study, the others go free. A ring on another bird is a nuisance, a Chinstrap let go is a
# loss, and a look by the expert settles the question.
COSTS = {
    "Adelie": {"release": 0.0, "ring": 4.0},
    "Chinstrap": {"release": 10.0, "ring": 0.0},
    "Gentoo": {"release": 0.0, "ring": 4.0},
}
EXPERT = 0.5


@dataclass(frozen=True, slots=True)
class Birds:
    """Measurements, (birds, 4), with the species and the island of each bird."""

    X: Array
    y: Labels
    island: Labels
    incomplete: int

    @property
    def species(self) -> list[str]:
        return sorted(set(self.y.tolist()))

    def measures(self, i: int) -> str:
        bill, depth, flipper, mass = self.X[i]
        return f"Bill {bill:.1f} × {depth:.1f} mm, flipper {flipper:.0f} mm, {mass:.0f} g"


@dataclass(frozen=True, slots=True)
class Table:
    """All columns of all birds, with their missing cells, and the species."""

    X: Any  # an Arrow table
    y: Labels

    @property
    def measurements(self) -> Array:
        """(birds, 4), NaN where one is missing."""
        return np.column_stack([self.X[name].to_numpy().astype(np.float64) for name in COLUMNS])

    @property
    def measured(self) -> Index:
        """The birds with all four measurements."""
        return np.flatnonzero(~np.isnan(self.measurements).any(axis=1))

    @property
    def objects(self) -> npt.NDArray[np.object_]:
        """The same as an array, measurements first."""
        labels = np.array([self.X[name].to_pylist() for name in LABELS], dtype=object).T
        return np.hstack([self.measurements.astype(object), labels])

    def named(self, i: int) -> str:
        return f"{self.y[i]} of {self.X['island'][i]}"

    def without(self, i: int, *hidden: str) -> Any:
        """One bird with some of its cells hidden."""
        (cells,) = self.X.slice(i, 1).to_pylist()
        return pyarrow.Table.from_pylist([cells | dict.fromkeys(hidden)], schema=self.X.schema)


def load_table() -> Table:
    """The penguins that ship with the package."""
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    with (files("likely") / "datasets" / "penguins.csv").open("rb") as lines:
        rows = pyarrow.csv.read_csv(lines, convert_options=options)
    return Table(rows.drop_columns(["species"]), np.array(rows["species"].to_pylist()))


def load_birds() -> Birds:
    """The measurements of the birds that have all four."""
    table = load_table()
    known = table.measured
    island = np.array(table.X["island"].to_pylist())
    return Birds(table.measurements[known], table.y[known], island[known], len(table.y) - len(known))


def heading(title: str) -> None:
    print(f"\n{title}\n{'─' * len(title)}\n")


def take(X: Any, index: Index) -> Any:
    """Rows of an array or of an Arrow table."""
    return X[index] if isinstance(X, np.ndarray) else X.take(index)


def out_of_fold(estimator: Any, X: Any, y: Labels, usable: Index | None = None) -> Array:
    """Posteriors of every bird, from a model that has not seen it, and that learns from usable birds only."""
    posterior = np.empty((len(y), len(set(y.tolist()))))
    for known, new in FOLDS.split(y, y):
        mine = known if usable is None else np.intersect1d(known, usable)
        posterior[new] = estimator.fit(take(X, mine), y[mine]).predict_proba(take(X, new))
    return posterior


def scores(posterior: Array, y: Labels, species: list[str]) -> tuple[float, float]:
    """Accuracy and log-loss."""
    right = np.array(species)[posterior.argmax(axis=1)] == y
    return float(right.mean()), float(log_loss(y, posterior, labels=species))


def print_scores(posteriors: Mapping[str, Array], y: Labels) -> None:
    print(f"{'':<45}accuracy   log-loss")
    for name, posterior in posteriors.items():
        accuracy, loss = scores(posterior, y, sorted(set(y.tolist())))
        print(f"{name:<45}{accuracy:>8.4f}{loss:>11.4f}")


def show_fit(birds: Birds) -> None:
    """What was fitted."""
    heading("What was fitted")
    named = pyarrow.table(dict(zip(COLUMNS, birds.X.T, strict=True)))
    print(GenerativeClassifier().fit(named, birds.y).summary())
    print(f"\n{len(birds.y)} birds with all four measurements; {birds.incomplete} more have gaps, and come in below.")


def show_validation(birds: Birds) -> None:
    """Accuracy and log-loss over cross-validation, beside scikit-learn's on the same folds."""
    heading("Ten-fold cross-validation, the same folds for everyone")
    contestants: dict[str, Any] = {
        "likely   GenerativeClassifier()": GenerativeClassifier(),
        "likely   GenerativeClassifier(Gaussian())": GenerativeClassifier(Gaussian()),
        "likely   LinearDiscriminant()": LinearDiscriminant(),
        "sklearn  LinearDiscriminantAnalysis()": LinearDiscriminantAnalysis(),
        "likely   QuadraticDiscriminant()": QuadraticDiscriminant(),
        "sklearn  QuadraticDiscriminantAnalysis()": QuadraticDiscriminantAnalysis(),
        'likely   QuadraticDiscriminant("diagonal")': QuadraticDiscriminant("diagonal"),
        "sklearn  GaussianNB()": GaussianNB(),
    }
    posteriors = {name: out_of_fold(estimator, birds.X, birds.y) for name, estimator in contestants.items()}
    print_scores(posteriors, birds.y)
    ours, theirs = list(posteriors.values())[2:4]
    print(
        "\nThe first two integrate means and covariances out (estimation='bayes'); the first one chooses anew in\n"
        "every fold between one covariance for all species, and one for each, which the second one always\n"
        "has. The pairs below them are maximum likelihood, and say the same as\n"
        f"scikit-learn: the linear posteriors differ by at most {np.abs(ours - theirs).max():.0e}."
    )


def show_confusion(birds: Birds, posterior: Array) -> None:
    """Out-of-fold predictions against the truth."""
    heading("Confusion of the out-of-fold predictions, GenerativeClassifier()")
    predicted = np.array(birds.species)[posterior.argmax(axis=1)]
    table = confusion_matrix(birds.y, predicted, labels=birds.species)
    print(f"{'':<12}" + "".join(f"{name:>12}" for name in birds.species) + "   (predicted)")
    for name, row in zip(birds.species, table, strict=True):
        print(f"{name:<12}" + "".join(f"{count:>12}" for count in row))
    print(f"\n{int(np.trace(table))} of {len(birds.y)} birds are right.")


def draw(birds: Birds, each: int, rng: np.random.Generator) -> tuple[Index, Index]:
    """So many birds of each species to learn from, and all the others."""
    picked = [rng.choice(np.flatnonzero(birds.y == name), each, replace=False) for name in birds.species]
    known = np.concatenate(picked)
    return known, np.setdiff1d(np.arange(len(birds.y)), known)


def few_birds(make: Callable[[], Any], birds: Birds, each: int, draws: int = 20) -> tuple[float, float] | None:
    """Mean accuracy and log-loss over random draws of few birds; None where there is no answer."""
    rng = np.random.default_rng(0)
    results = []
    for _ in range(draws):
        known, new = draw(birds, each, rng)
        try:
            model = make().fit(birds.X[known], birds.y[known])
        except np.linalg.LinAlgError:
            return None
        results.append(scores(model.predict_proba(birds.X[new]), birds.y[new], birds.species))
    accuracy, loss = np.mean(results, axis=0)
    return float(accuracy), float(loss)


def show_few_birds(birds: Birds) -> None:
    """Where a prior helps: fewer birds than measurements."""
    heading("Learning from very few birds (means of 20 draws, tested on all the others)")
    contestants: dict[str, Callable[[], Any]] = {
        "likely   GenerativeClassifier()": GenerativeClassifier,
        "likely   GenerativeClassifier(Gaussian())": lambda: GenerativeClassifier(Gaussian()),
        "sklearn  LinearDiscriminantAnalysis()": LinearDiscriminantAnalysis,
        "sklearn  QuadraticDiscriminantAnalysis()": QuadraticDiscriminantAnalysis,
        "sklearn  GaussianNB()": GaussianNB,
    }
    print(f"{'':<45}{'3 of each species':^22}{'6 of each species':^22}".rstrip())
    print(f"{'':<45}{'accuracy   log-loss':^22}{'accuracy   log-loss':^22}".rstrip())
    for name, make in contestants.items():
        line = f"{name:<45}"
        for each in (3, 6):
            result = few_birds(make, birds, each)
            line += f"{'no answer':^22}" if result is None else f"{result[0]:>8.3f}{result[1]:>11.2f}   "
        print(line.rstrip())
    print(
        "\nThree birds do not determine a covariance of four measurements. The weak prior makes up for it, and\n"
        "the Student t that follows stays as unsure as it should be: that is what the log-loss rewards."
    )


def imputed(estimator: Any) -> Any:
    """scikit-learn's way with such a table: means for missing measurements, a column of 0 and 1 for every label."""
    labels = OneHotEncoder(drop="first", sparse_output=False)
    return make_pipeline(make_column_transformer((SimpleImputer(), [0, 1, 2, 3]), (labels, [4, 5, 6])), estimator)


def show_table(table: Table) -> None:
    """Labels and missing cells beside measurements: the families chosen, cross-validation, birds with gaps."""
    heading("Every column of every bird: measurements, labels and missing cells")
    chinstrap = int(np.argmax(table.y == "Chinstrap"))
    known = np.setdiff1d(table.measured, [chinstrap])
    model = GenerativeClassifier().fit(take(table.X, known), table.y[known])
    print(
        "GenerativeClassifier() chooses families by the types and values of the columns, and by the log-loss of\n"
        "rows left out where several may suit:\n"
    )
    for block in model.summary().blocks:
        print(f"    {block.family}:\n        {', '.join(block.columns)}")
    holes = sum(column.null_count for column in table.X.columns)
    print(f"\nTen folds of all {len(table.y)} birds, with {holes} cells missing:\n")
    contestants: dict[str, tuple[Any, Any, Index | None]] = {
        "likely   NaiveBayes()": (NaiveBayes(), table.X, None),
        "sklearn  GaussianNB(), measurements only": (
            make_pipeline(SimpleImputer(), GaussianNB()),
            table.measurements,
            None,
        ),
        "sklearn  GaussianNB(), one-hot labels": (imputed(GaussianNB()), table.objects, None),
        "likely   GenerativeClassifier()": (GenerativeClassifier(), table.X, table.measured),
        "sklearn  LinearDisc…Analysis(), one-hot": (imputed(LinearDiscriminantAnalysis()), table.objects, None),
    }
    print_scores(
        {name: out_of_fold(who, X, table.y, usable) for name, (who, X, usable) in contestants.items()}, table.y
    )
    print(
        "\nscikit-learn's have means for missing measurements, and a column of 0 and 1 for every label. likely's\n"
        "take the table as it is, gaps included. GenerativeClassifier() learns from the birds with all four\n"
        "measurements, so that these can vary together; of a bird with gaps it uses what is there:\n"
    )
    cases = {
        f"{table.named(chinstrap)}, every cell known": table.without(chinstrap),
        "    without its bill length": table.without(chinstrap, "bill_length_mm"),
        "    without any measurement": table.without(chinstrap, *COLUMNS),
    }
    for i in np.setdiff1d(np.arange(len(table.y)), table.measured).tolist():
        cases[f"{table.named(i)}, never measured"] = table.without(i)
    print(f"{'':<45}" + "".join(f"{name:>11}" for name in model.classes_))
    for name, bird in cases.items():
        print(f"{name:<45}" + "".join(f"{probability:>11.3f}" for probability in model.predict_proba(bird)[0]))


def most_uncertain(posterior: Array, count: int) -> Index:
    """The rows whose most probable class is least probable."""
    return np.argsort(posterior.max(axis=1), kind="stable")[:count]


def reasons(model: GenerativeClassifier, x: Array) -> tuple[str, str, dict[str, float]]:
    """The two most probable species of a bird, and the evidence for the first over the second."""
    explanation = model.explain(x[None])
    second, first = np.argsort(model.predict_proba(x[None])[0])[-2:]
    terms = {"class prior": float(explanation.offset[0, first] - explanation.offset[0, second])}
    evidence = explanation.evidence[0, first] - explanation.evidence[0, second]
    terms |= dict(zip(COLUMNS, evidence.tolist(), strict=True))
    return str(model.classes_[first]), str(model.classes_[second]), terms


def show_bird(birds: Birds, model: GenerativeClassifier, i: int) -> None:
    """A bird with its posterior, and why."""
    print(f"{birds.measures(i)}; found on {birds.island[i]}, in truth {birds.y[i]}")
    posterior = model.predict_proba(birds.X[[i]])[0]
    for name, probability in zip(birds.species, posterior, strict=True):
        print(f"    {name:<12}{probability:8.4f}  {'█' * round(40 * float(probability))}".rstrip())
    first, second, terms = reasons(model, birds.X[i])
    print(f"  Evidence for {first} over {second}, in log-odds:")
    for name, term in terms.items():
        print(f"    {name:<22}{term:+8.2f}")
    total = sum(terms.values())
    print(f"    {'sum':<22}{total:+8.2f}   so the odds are {np.exp(total):,.3g} to 1\n")


def show_birds(birds: Birds, posterior: Array) -> None:
    """The most uncertain birds and a clear one, judged by a model that has seen none of them."""
    heading("A few birds: how sure, and why")
    print(
        "The three least certain birds and one that is clear, judged by a model learnt from all the others.\n"
        "A measurement's term is its evidence given the measurements above it: exact, and they add up.\n"
    )
    chosen = np.append(most_uncertain(posterior, 3), np.median(np.flatnonzero(birds.y == "Gentoo")).astype(np.intp))
    others = np.setdiff1d(np.arange(len(birds.y)), chosen)
    model = GenerativeClassifier().fit(birds.X[others], birds.y[others])
    for i in chosen.tolist():
        show_bird(birds, model, i)
    rare = {"Adelie": 0.6, "Chinstrap": 0.01, "Gentoo": 0.39}
    before, after = (m.predict_proba(birds.X[chosen[:1]])[0, 1] for m in (model, model.with_prior(rare)))
    print(
        f"Where one bird in a hundred is a Chinstrap, the first of them is one with probability {after:.3f}, not\n"
        f"{before:.3f}: with_prior(...) changes the prior of the fitted model, and nothing is learnt again."
    )


def cost_of(actions: Labels, y: Labels, costs: Mapping[str, Mapping[str, float]]) -> float:
    """What the actions cost in the end; the expert always costs the same."""
    return sum(EXPERT if action == "expert" else costs[name][action] for action, name in zip(actions, y, strict=True))


def show_decisions(birds: Birds, posterior: Array) -> None:
    """Actions of least expected cost, with the expert as a way out, beside the most probable species."""
    heading("A decision under costs")
    print(f"{'cost of':<12}{'release':>10}{'ring':>10}{'expert':>10}")
    for name, costs in COSTS.items():
        print(f"{name:<12}{costs['release']:>10g}{costs['ring']:>10g}{EXPERT:>10g}")
    actions = np.empty(len(birds.y), dtype="<U7")
    expected = 0.0
    for known, new in FOLDS.split(birds.X, birds.y):
        model = GenerativeClassifier().fit(birds.X[known], birds.y[known])
        decisions = model.decide(birds.X[new], loss=COSTS, reject=EXPERT)
        actions[new] = np.where(decisions.rejected, "expert", decisions.action)
        expected += float(decisions.expected_loss.sum())
    print(f"\n{'decided':<12}{'release':>10}{'ring':>10}{'expert':>10}   (every bird unseen)")
    for name in birds.species:
        counts = [int(np.sum((birds.y == name) & (actions == action))) for action in ("release", "ring", "expert")]
        print(f"{name:<12}" + "".join(f"{count:>10}" for count in counts))
    naive = np.where(np.array(birds.species)[posterior.argmax(axis=1)] == "Chinstrap", "ring", "release")
    print(
        f"\nCost in all: {cost_of(actions, birds.y, COSTS):g} ({expected:.1f} expected). "
        f"Acting on the most probable species costs {cost_of(naive, birds.y, COSTS):g}."
    )


def show_boundaries(birds: Birds) -> None:
    """Exact boundaries: linear under one covariance, linear and quadratic under grouped ones."""
    heading("Exact boundaries")
    model = LinearDiscriminant().fit(birds.X, birds.y)
    line = model.boundary("Adelie", "Chinstrap")
    assert isinstance(line, LinearBoundary), "one covariance makes linear boundaries"
    print("log p(Adelie | x) − log p(Chinstrap | x), one covariance for all species:\n")
    for name, weight in zip(COLUMNS, line.w, strict=True):
        print(f"    {weight:+10.5f} · {name}")
    print(f"    {line.w0:+10.5f}")
    typical = birds.X[birds.y == "Adelie"].mean(axis=0)
    bill = -(line.w0 + typical[1:] @ line.w[1:]) / line.w[0]
    print(f"\nWith the other measurements of a mean Adelie, they meet at a bill length of {bill:.2f} mm.")
    grouped = QuadraticDiscriminant(groups=[["Adelie", "Chinstrap"]]).fit(birds.X, birds.y)
    print("Where Adelie and Chinstrap share a covariance and Gentoo has its own:")
    for other in ("Chinstrap", "Gentoo"):
        print(f"    Adelie against {other:<12}{type(grouped.boundary('Adelie', other)).__name__}")


def show_samples(birds: Birds) -> None:
    """A bird of each species that never was, and the most unusual one that is."""
    heading("A sampled bird of each species, and the most unusual real one")
    model = GenerativeClassifier().fit(birds.X, birds.y)
    print(f"{'':<12}{'bill length':>14}{'bill depth':>14}{'flipper length':>16}{'body mass':>12}{'log density':>14}")

    def show(name: str, x: Array) -> None:
        sizes = f"{x[0]:>14.1f}{x[1]:>14.1f}{x[2]:>16.1f}{x[3]:>12.0f}"
        print(f"{name:<12}{sizes}{model.log_density(x[None])[0]:>14.2f}")

    for seed, name in enumerate(birds.species):
        show(name, model.sample(1, label=name, random_state=seed)[0][0])
    show("unusual", birds.X[int(np.argmin(model.log_density(birds.X)))])
    print("\nThe log density, log p(x), tells how ordinary a bird is, whatever its species.")


def show_sums(birds: Birds) -> None:
    """Learning, merging and forgetting are sums; leaving out is a difference."""
    heading("Learning is a sum")
    whole = GenerativeClassifier(Gaussian(shared=True)).fit(birds.X, birds.y)
    parts = []
    for name in np.unique(birds.island):
        here = birds.island == name
        parts.append(GenerativeClassifier(whole.families).fit(birds.X[here], birds.y[here]))
        print(f"{name:<12}{int(here.sum()):>5} birds of {' and '.join(parts[-1].classes_)}")
    merged: Any = sum(parts)
    apart = np.abs(merged.predict_proba(birds.X) - whole.predict_proba(birds.X)).max()
    print(f"\nThe three models added up differ from one fit of all birds by at most {apart:.0e}.")
    gone = birds.island == "Torgersen"
    left = copy.copy(merged).forget(birds.X[gone], birds.y[gone])
    again = GenerativeClassifier(whole.families).fit(birds.X[~gone], birds.y[~gone])
    apart = np.abs(left.predict_proba(birds.X) - again.predict_proba(birds.X)).max()
    print(f"Without the birds of Torgersen, forgotten, it differs from a fit without them by at most {apart:.0e}.\n")
    codes = np.searchsorted(whole.classes_, birds.y)
    own = whole.left_out_proba(birds.X, birds.y)[np.arange(len(codes)), codes]
    folds = cross_validate(whole, birds.X, birds.y)
    print(f"Log-loss with each bird left out, from one fit: {-np.log(own).mean():.4f}")
    print(f"Log-loss over ten folds, from one pass:         {folds.log_loss.mean():.4f}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "penguins.likely"
        whole.save(path)
        same = np.array_equal(load(path).predict_proba(birds.X), whole.predict_proba(birds.X))
        size = f"{path.stat().st_size:,} bytes"
        print(f"\nSaved, in {size} without pickle, and loaded: the answers are {'' if same else 'not '}the same.")


def show_missing(birds: Birds) -> None:
    """Rows without labels, rows without cells, no labels at all, and other shares."""
    heading("What is missing is made up for")
    rng = np.random.default_rng(0)
    few = np.concatenate([rng.choice(np.flatnonzero(birds.y == name), 3, replace=False) for name in birds.species])
    others = np.setdiff1d(np.arange(len(birds.y)), few)
    labels = np.full(len(birds.y), None, dtype=object)
    labels[few] = birds.y[few]
    family = Gaussian(shared=True)
    alone = GenerativeClassifier(family).fit(birds.X[few], birds.y[few])
    helped = GenerativeClassifier(family).fit(birds.X, labels)
    holed = birds.X.copy()
    holed[rng.random(holed.shape) < 0.3] = np.nan
    print("Species known of three birds each, the accuracy on all the others:")
    print(f"    the nine birds alone                        {alone.score(birds.X[others], birds.y[others]):.3f}")
    print(f"    and the measurements of the others          {helped.score(birds.X[others], birds.y[others]):.3f}")
    folds = cross_validate(GenerativeClassifier(family), holed, birds.y)
    print(f"\nWith three in ten measurements deleted, over ten folds: accuracy {1.0 - folds.error.mean():.3f}")
    mixture = MixtureModel(3, Gaussian(), random_state=0).fit(birds.X)
    table = confusion_matrix(np.searchsorted(birds.species, birds.y), mixture.predict(birds.X))
    share = table.max(axis=0).sum() / len(birds.y)
    print(f"Without any species, three groups agree with them for    {share:.3f} of the birds")
    rare = np.flatnonzero((birds.y != "Chinstrap") | (rng.random(len(birds.y)) < 0.15))
    shifted = GenerativeClassifier(family).fit(birds.X, birds.y).adapt_prior(birds.X[rare])
    place = list(birds.species).index("Chinstrap")
    print(
        f"\nAmong {len(rare)} birds of which {int((birds.y[rare] == 'Chinstrap').sum())} are Chinstraps, their share "
        f"is estimated, without labels, as {shifted.class_prior_[place]:.3f}\n(p-value of no change: "
        f"{shifted.prior_shift_.p_value:.1g})."
    )
    usual = shifted.novelty(np.vstack([birds.X[:1], [[80.0, 5.0, 300.0, 9000.0]]]))
    print(f"How usual is the first bird: {usual[0]:.2f}. And one with a bill of 80 mm and 9 kg: {usual[1]:.1g}.")


def show_twins(birds: Birds) -> None:
    """Softmax regression, and what lies between it and the discriminant."""
    heading("The discriminative twin")
    table = pyarrow.table(dict(zip(COLUMNS, birds.X.T, strict=True)))
    print(SoftmaxRegression(penalty=0).fit(table.select(["flipper_length_mm", "body_mass_g"]), birds.y).summary())
    try:
        SoftmaxRegression(penalty=0).fit(table, birds.y)
    except SeparationError as error:
        print(f"\nWithout a penalty all four measurements are too many:\n    {str(error).split('. ')[0]}.")
    print("\nTen folds, all measurements           accuracy   log-loss")
    for words, model in (
        ("SoftmaxRegression()", SoftmaxRegression()),
        ("GenerativeClassifier()", GenerativeClassifier()),
        ("HybridClassifier(blend=0.3)", HybridClassifier(Gaussian(shared=True), blend=0.3)),
    ):
        accuracy, loss = scores(out_of_fold(model, birds.X, birds.y), birds.y, list(birds.species))
        print(f"    {words:<34} {accuracy:>8.4f} {loss:>10.4f}")


def show_curves(birds: Birds) -> None:
    """Who needs fewer rows."""
    heading("Generative or discriminative: who needs fewer birds")
    print(compare(birds.X, birds.y, sizes=(6, 12, 30, 90, 270), repeats=10, random_state=0))


def show_regression(table: Table) -> None:
    """y is one more column: the mass of a bird, whatever else was written down."""
    heading("Regression is one more column")
    weighed = np.random.default_rng(0).permutation(table.measured)
    X, mass = table.measurements[weighed, :3], table.measurements[weighed, 3]
    train, test = np.split(np.arange(len(mass)), 2)
    model = GenerativeRegressor().fit(X[train], mass[train])
    low, high = model.predict_interval(X[test], level=0.9).T
    inside = np.mean((low <= mass[test]) & (mass[test] <= high))
    print("Body mass from the other measurements, learnt from half of the birds:")
    print(f"    R² on the others                              {model.score(X[test], mass[test]):>8.3f}")
    print(f"    of them within their 90% interval             {inside:>8.3f}")
    named = table.X.select([*COLUMNS[:3], "island", "sex", "body_mass_g"]).take(weighed)
    for label in ("island", "sex"):
        columns = [*COLUMNS[:3], label]
        by_label = GenerativeRegressor(classes=label).fit(named.select(columns).take(train), mass[train])
        score = by_label.score(named.select(columns).take(test), mass[test])
        print(f"    R² with a regression for each {label:<16} {score:>8.3f}")
    (bill, depth, flipper), known = X[test[0]], mass[test[0]]
    for words, row in (
        (f"bill {bill:.1f} × {depth:.1f} mm, flipper {flipper:.0f} mm", [bill, depth, flipper]),
        (f"flipper {flipper:.0f} mm, nothing else", [np.nan, np.nan, flipper]),
        ("nothing at all", [np.nan, np.nan, np.nan]),
    ):
        mean, deviation = model.predict([row], return_std=True)
        print(f"    {words:<42} {mean[0]:>6.0f} ± {deviation[0]:.0f} g")
    print(f"It weighed {known:.0f} g.")


def main() -> None:
    """Print the demonstration."""
    birds = load_birds()
    print("likely: three species of penguins, told apart by what was written down of them")
    show_fit(birds)
    show_validation(birds)
    posterior = out_of_fold(GenerativeClassifier(), birds.X, birds.y)
    show_confusion(birds, posterior)
    show_few_birds(birds)
    show_table(load_table())
    show_birds(birds, posterior)
    show_decisions(birds, posterior)
    show_boundaries(birds)
    show_samples(birds)
    show_sums(birds)
    show_missing(birds)
    show_twins(birds)
    show_curves(birds)
    show_regression(load_table())


if __name__ == "__main__":
    main()
