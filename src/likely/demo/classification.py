"""Classification: fits, cross-validation, explanations, decisions, boundaries and samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.metrics import confusion_matrix
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from likely import Gaussian, GenerativeClassifier, LinearDiscriminant, NaiveBayes, QuadraticDiscriminant
from likely.demo.penguins import (
    COLUMNS,
    FOLDS,
    Array,
    Birds,
    Index,
    Labels,
    Table,
    heading,
    out_of_fold,
    print_scores,
    scores,
    take,
)
from likely.model.boundary import LinearBoundary

# Chinstraps are ringed for a study and the other species are released. Ringing another species is a nuisance,
# releasing a Chinstrap is a loss, and an expert can identify the bird at a fixed cost.
COSTS = {
    "Adelie": {"release": 0.0, "ring": 4.0},
    "Chinstrap": {"release": 10.0, "ring": 0.0},
    "Gentoo": {"release": 0.0, "ring": 4.0},
}
EXPERT = 0.5


def show_fit(birds: Birds) -> None:
    """Summary of a fitted model."""
    heading("The fitted model")
    named = pyarrow.table(dict(zip(COLUMNS, birds.X.T, strict=True)))
    print(GenerativeClassifier().fit(named, birds.y).summary())
    print(f"\n{len(birds.y)} birds have all four measurements. {birds.incomplete} more with missing values follow.")


def show_validation(birds: Birds) -> None:
    """Cross-validated accuracy and log-loss, with scikit-learn on the same folds."""
    heading("Ten-fold cross-validation on the same folds")
    models: dict[str, Any] = {
        "likely   GenerativeClassifier()": GenerativeClassifier(),
        "likely   GenerativeClassifier(Gaussian())": GenerativeClassifier(Gaussian()),
        "likely   LinearDiscriminant()": LinearDiscriminant(),
        "sklearn  LinearDiscriminantAnalysis()": LinearDiscriminantAnalysis(),
        "likely   QuadraticDiscriminant()": QuadraticDiscriminant(),
        "sklearn  QuadraticDiscriminantAnalysis()": QuadraticDiscriminantAnalysis(),
        'likely   QuadraticDiscriminant("diagonal")': QuadraticDiscriminant("diagonal"),
        "sklearn  GaussianNB()": GaussianNB(),
    }
    posteriors = {name: out_of_fold(estimator, birds.X, birds.y) for name, estimator in models.items()}
    print_scores(posteriors, birds.y)
    ours, theirs = list(posteriors.values())[2:4]
    print(
        "\nThe first two models integrate over means and covariances (estimation='bayes'). The first one chooses\n"
        "between a pooled covariance and one per species in every fold; the second one has one per species.\n"
        "The other models are maximum-likelihood estimates, and agree with scikit-learn: the posteriors of\n"
        f"linear discriminant analysis differ by at most {np.abs(ours - theirs).max():.0e}."
    )


def show_confusion(birds: Birds, posterior: Array) -> None:
    """Confusion matrix of the out-of-fold predictions."""
    heading("Confusion matrix, out-of-fold predictions of GenerativeClassifier()")
    predicted = np.array(birds.species)[posterior.argmax(axis=1)]
    table = confusion_matrix(birds.y, predicted, labels=birds.species)
    print(f"{'':<12}" + "".join(f"{name:>12}" for name in birds.species) + "   (predicted)")
    for name, row in zip(birds.species, table, strict=True):
        print(f"{name:<12}" + "".join(f"{count:>12}" for count in row))
    print(f"\n{int(np.trace(table))} of {len(birds.y)} birds are classified correctly.")


def draw(birds: Birds, each: int, rng: np.random.Generator) -> tuple[Index, Index]:
    """Row numbers of `each` birds per species for training, and of all other birds."""
    picked = [rng.choice(np.flatnonzero(birds.y == name), each, replace=False) for name in birds.species]
    train = np.concatenate(picked)
    return train, np.setdiff1d(np.arange(len(birds.y)), train)


def few_birds(make: Callable[[], Any], birds: Birds, each: int, draws: int = 20) -> tuple[float, float] | None:
    """Mean accuracy and log-loss over random training sets; None if a fit fails."""
    rng = np.random.default_rng(0)
    results = []
    for _ in range(draws):
        train, test = draw(birds, each, rng)
        try:
            model = make().fit(birds.X[train], birds.y[train])
        except np.linalg.LinAlgError:
            return None
        results.append(scores(model.predict_proba(birds.X[test]), birds.y[test], birds.species))
    accuracy, loss = np.mean(results, axis=0)
    return float(accuracy), float(loss)


def show_few_birds(birds: Birds) -> None:
    """Training sets with fewer birds per species than measurements."""
    heading("Few training birds (means of 20 random training sets, tested on all other birds)")
    models: dict[str, Callable[[], Any]] = {
        "likely   GenerativeClassifier()": GenerativeClassifier,
        "likely   GenerativeClassifier(Gaussian())": lambda: GenerativeClassifier(Gaussian()),
        "sklearn  LinearDiscriminantAnalysis()": LinearDiscriminantAnalysis,
        "sklearn  QuadraticDiscriminantAnalysis()": QuadraticDiscriminantAnalysis,
        "sklearn  GaussianNB()": GaussianNB,
    }
    print(f"{'':<45}{'3 per species':^22}{'6 per species':^22}".rstrip())
    print(f"{'':<45}{'accuracy   log-loss':^22}{'accuracy   log-loss':^22}".rstrip())
    for name, make in models.items():
        line = f"{name:<45}"
        for each in (3, 6):
            result = few_birds(make, birds, each)
            line += f"{'fit fails':^22}" if result is None else f"{result[0]:>8.3f}{result[1]:>11.2f}   "
        print(line.rstrip())
    print(
        "\nThree birds do not determine the covariance of four measurements. The default prior regularises it, and\n"
        "the Student t of the posterior predictive keeps the probabilities moderate."
    )


def imputed(estimator: Any) -> Any:
    """A scikit-learn pipeline: mean imputation of measurements, one-hot encoding of categories."""
    categories = OneHotEncoder(drop="first", sparse_output=False)
    return make_pipeline(make_column_transformer((SimpleImputer(), [0, 1, 2, 3]), (categories, [4, 5, 6])), estimator)


def show_table(table: Table) -> None:
    """A mixed table with missing values: default families, cross-validation, birds with missing values."""
    heading("The whole table: measurements, categories and missing values")
    chinstrap = int(np.argmax(table.y == "Chinstrap"))
    train = np.setdiff1d(table.measured, [chinstrap])
    model = GenerativeClassifier().fit(take(table.X, train), table.y[train])
    print(
        "GenerativeClassifier() chooses the family of each column by its type and values, and between several\n"
        "suitable families by their leave-one-out log-density:\n"
    )
    for block in model.summary().blocks:
        print(f"    {block.family}:\n        {', '.join(block.columns)}")
    missing = sum(column.null_count for column in table.X.columns)
    print(f"\nTen folds of all {len(table.y)} birds, with {missing} missing values:\n")
    models: dict[str, tuple[Any, Any, Index | None]] = {
        "likely   NaiveBayes()": (NaiveBayes(), table.X, None),
        "sklearn  GaussianNB(), measurements only": (
            make_pipeline(SimpleImputer(), GaussianNB()),
            table.measurements,
            None,
        ),
        "sklearn  GaussianNB(), one-hot": (imputed(GaussianNB()), table.objects, None),
        "likely   GenerativeClassifier()": (GenerativeClassifier(), table.X, table.measured),
        "sklearn  LinearDisc…Analysis(), one-hot": (imputed(LinearDiscriminantAnalysis()), table.objects, None),
    }
    print_scores({name: out_of_fold(model, X, table.y, usable) for name, (model, X, usable) in models.items()}, table.y)
    print(
        "\nThe scikit-learn pipelines impute missing measurements with means and one-hot encode the categories.\n"
        "likely uses the table as it is. The measurements are one joint Gaussian block, trained on all birds\n"
        "by EM; in prediction, missing values are integrated out:\n"
    )
    cases = {
        f"{table.named(chinstrap)}, no missing value": table.without(chinstrap),
        "    without its bill length": table.without(chinstrap, "bill_length_mm"),
        "    without any measurement": table.without(chinstrap, *COLUMNS),
    }
    for i in np.setdiff1d(np.arange(len(table.y)), table.measured).tolist():
        cases[f"{table.named(i)}, never measured"] = table.without(i)
    print(f"{'':<45}" + "".join(f"{name:>11}" for name in model.classes_))
    for name, bird in cases.items():
        print(f"{name:<45}" + "".join(f"{probability:>11.3f}" for probability in model.predict_proba(bird)[0]))


def most_uncertain(posterior: Array, count: int) -> Index:
    """The rows with the lowest maximum posterior."""
    return np.argsort(posterior.max(axis=1), kind="stable")[:count]


def contributions(model: GenerativeClassifier, x: Array) -> tuple[str, str, dict[str, float]]:
    """The two most probable species of a bird, and the contributions to the log-odds between them."""
    explanation = model.explain(x[None])
    second, first = np.argsort(model.predict_proba(x[None])[0])[-2:]
    terms = {"class prior": float(explanation.offset[0, first] - explanation.offset[0, second])}
    names = str(model.classes_[first]), str(model.classes_[second])
    terms |= dict(zip(COLUMNS, explanation.contrast(*names)[0].tolist(), strict=True))
    return *names, terms


def show_bird(birds: Birds, model: GenerativeClassifier, i: int) -> None:
    """The posterior of a bird and its explanation."""
    print(f"{birds.measures(i)}; island {birds.island[i]}, true species {birds.y[i]}")
    posterior = model.predict_proba(birds.X[[i]])[0]
    for name, probability in zip(birds.species, posterior, strict=True):
        print(f"    {name:<12}{probability:8.4f}  {'█' * round(40 * float(probability))}".rstrip())
    first, second, terms = contributions(model, birds.X[i])
    print(f"  Contributions to the log-odds of {first} against {second}:")
    for name, term in terms.items():
        print(f"    {name:<22}{term:+8.2f}")
    total = sum(terms.values())
    print(f"    {'sum':<22}{total:+8.2f}   odds {np.exp(total):,.3g} to 1\n")


def show_birds(birds: Birds, posterior: Array) -> None:
    """Explanations of the three least certain birds and a clear one, by a model trained on all others."""
    heading("Posteriors and explanations")
    print(
        "The three least certain birds and a clear one, predicted by a model trained on all other birds. The\n"
        "contributions do not depend on the order of the measurements, and their sum is exact.\n"
    )
    chosen = np.append(most_uncertain(posterior, 3), np.median(np.flatnonzero(birds.y == "Gentoo")).astype(np.intp))
    others = np.setdiff1d(np.arange(len(birds.y)), chosen)
    model = GenerativeClassifier().fit(birds.X[others], birds.y[others])
    for i in chosen.tolist():
        show_bird(birds, model, i)
    rare = {"Adelie": 0.6, "Chinstrap": 0.01, "Gentoo": 0.39}
    before, after = (m.predict_proba(birds.X[chosen[:1]])[0, 1] for m in (model, model.with_prior(rare)))
    print(
        f"If one bird in a hundred is a Chinstrap, the first bird is one with probability {after:.3f} instead of\n"
        f"{before:.3f}: with_prior(...) changes the class prior of the fitted model without refitting."
    )


def cost_of(actions: Labels, y: Labels, costs: Mapping[str, Mapping[str, float]]) -> float:
    """Total cost of the actions; the expert has a fixed cost."""
    return sum(EXPERT if action == "expert" else costs[name][action] for action, name in zip(actions, y, strict=True))


def show_decisions(birds: Birds, posterior: Array) -> None:
    """Actions with the least expected cost, with rejection to an expert."""
    heading("Decisions with costs")
    print(f"{'cost of':<12}{'release':>10}{'ring':>10}{'expert':>10}")
    for name, costs in COSTS.items():
        print(f"{name:<12}{costs['release']:>10g}{costs['ring']:>10g}{EXPERT:>10g}")
    actions = np.empty(len(birds.y), dtype="<U7")
    expected = 0.0
    for train, test in FOLDS.split(birds.X, birds.y):
        model = GenerativeClassifier().fit(birds.X[train], birds.y[train])
        decisions = model.decide(birds.X[test], loss=COSTS, reject=EXPERT, reject_label="expert")
        actions[test] = decisions.action
        expected += float(decisions.expected_loss.sum())
    print(f"\n{'decision':<12}{'release':>10}{'ring':>10}{'expert':>10}   (out of fold)")
    for name in birds.species:
        counts = [int(np.sum((birds.y == name) & (actions == action))) for action in ("release", "ring", "expert")]
        print(f"{name:<12}" + "".join(f"{count:>10}" for count in counts))
    naive = np.where(np.array(birds.species)[posterior.argmax(axis=1)] == "Chinstrap", "ring", "release")
    print(
        f"\nTotal cost: {cost_of(actions, birds.y, COSTS):g} ({expected:.1f} expected). "
        f"Acting on the most probable species costs {cost_of(naive, birds.y, COSTS):g}."
    )


def show_boundaries(birds: Birds) -> None:
    """Closed-form boundaries: linear with a pooled covariance, both kinds with grouped ones."""
    heading("Boundaries")
    model = LinearDiscriminant().fit(birds.X, birds.y)
    line = model.boundary("Adelie", "Chinstrap")
    assert isinstance(line, LinearBoundary), "a pooled covariance has linear boundaries"
    print("log p(Adelie | x) − log p(Chinstrap | x), pooled covariance:\n")
    for name, weight in zip(COLUMNS, line.w, strict=True):
        print(f"    {weight:+10.5f} · {name}")
    print(f"    {line.w0:+10.5f}")
    typical = birds.X[birds.y == "Adelie"].mean(axis=0)
    bill = -(line.w0 + typical[1:] @ line.w[1:]) / line.w[0]
    print(f"\nWith the other measurements of a mean Adelie, the boundary is at a bill length of {bill:.2f} mm.")
    grouped = QuadraticDiscriminant(groups=[["Adelie", "Chinstrap"]]).fit(birds.X, birds.y)
    print("If Adelie and Chinstrap share a covariance and Gentoo has a separate one:")
    for other in ("Chinstrap", "Gentoo"):
        print(f"    Adelie against {other:<12}{type(grouped.boundary('Adelie', other)).__name__}")


def show_samples(birds: Birds) -> None:
    """A sampled bird of each species, and the observed bird with the lowest density."""
    heading("Samples, and the bird with the lowest density")
    model = GenerativeClassifier().fit(birds.X, birds.y)
    print(f"{'':<12}{'bill length':>14}{'bill depth':>14}{'flipper length':>16}{'body mass':>12}{'log density':>14}")

    def show(name: str, x: Array) -> None:
        sizes = f"{x[0]:>14.1f}{x[1]:>14.1f}{x[2]:>16.1f}{x[3]:>12.0f}"
        print(f"{name:<12}{sizes}{model.log_density(x[None])[0]:>14.2f}")

    for seed, name in enumerate(birds.species):
        show(name, model.sample(1, label=name, random_state=seed)[0][0])
    show("observed", birds.X[int(np.argmin(model.log_density(birds.X)))])
    print("\nThe log density is log p(x), over all species.")
