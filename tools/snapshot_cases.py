"""The models of `tools.snapshot`: on which tables they are fitted, and which outputs of them are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import likely as ly

BILLS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
SUGAR = ["pregnant", "glucose", "pressure", "mass", "pedigree", "age"]
CREDIT = ["checking_status", "duration_months", "purpose", "credit_amount", "age", "existing_credits"]
# name: file, target, every so many rows are used, columns (None: all)
TABLES: dict[str, tuple[str, str, int, list[str] | None]] = {
    "penguins": ("penguins", "species", 1, None),
    "bills": ("penguins", "species", 1, BILLS),
    "iris": ("iris", "Species", 1, None),
    "wine": ("wine", "class", 1, None),
    "glass": ("glass", "Type", 1, None),
    "mass": ("penguins", "body_mass_g", 1, [*BILLS[:3], "sex"]),
    "flippers": ("penguins", "body_mass_g", 1, BILLS[:3]),
    "vowel": ("vowel-train", "y", 2, None),
    "pima": ("pima_missing", "diabetes", 2, None),
    "sugar": ("pima_missing", "diabetes", 2, SUGAR),
    "german": ("german_credit", "class", 3, None),
    "credit": ("german_credit", "class", 3, CREDIT),
    "votes": ("housevotes84", "Class", 1, None),
    "zoo": ("zoo", "type", 1, None),
    "animals": ("zoo", "type", 1, ["hair", "feathers", "eggs", "milk", "aquatic"]),
    "cells": ("breastcancer_wisconsin", "Class", 2, None),
    "sonar": ("sonar", "Class", 1, [f"V{j}" for j in range(9, 15)]),
    "digits": ("optdigits-train", "digit", 12, [f"px{i}{j}" for i in range(1, 7) for j in range(2, 6)]),
    "satellite": ("satellite", "classes", 10, None),
    "sms": ("sms_spam", "label", 9, ["text"]),
    "messages": ("sms_spam", "label", 9, ["text", "words"]),
}

POSTERIOR = {"attributes", "predict", "proba", "log_proba", "decision", "decide", "score", "weighted", "file"}
DENSITY = {"holes", "joint", "holes_joint", "density", "explain", "typicality", "novelty", "impute", "sample"}
DENSITY |= {"parameters", "prior"}
UPDATES = {"left_out", "partial_fit", "stream", "forget", "sum"}
JOINT = POSTERIOR | DENSITY | UPDATES
DROP = {"drop_class"}


class Case(NamedTuple):
    name: str
    table: str
    model: Any
    outputs: set[str] = JOINT


def gaussian() -> Iterator[Case]:
    """Every covariance, sharing, estimation and kind of shrinkage, complete and with missing values."""
    sharings: dict[str, Any] = {"own": False, "pooled": True, "groups": [["setosa", "versicolor"]]}
    kinds = product(("full", "diagonal", "spherical", "identity"), sharings, ("mle", "map", "bayes"))
    for covariance, sharing, estimation in kinds:
        family = ly.Gaussian(covariance, shared=sharings[sharing])
        outputs = JOINT | (DROP if sharing == "own" else set())
        outputs |= {"evidence"} if estimation == "bayes" else {"boundary"}
        name, calibration = f"{covariance}-{sharing}-{estimation}", None if sharing == "groups" else "auto"
        model = ly.GenerativeClassifier(family, estimation=estimation, calibration=calibration)
        yield Case(name, "iris", model, outputs | {"sequential"})
        if covariance == "full" and sharing != "groups":
            yield Case(name, "bills", model, outputs)
    shrinkages: dict[str, Any] = {"ledoit": "ledoit-wolf", "oas": "oas", "fixed": 0.3, "both": ly.Regularized(0.4, 0.2)}
    for (name, shrinkage), shared in product(shrinkages.items(), (False, True)):
        family = ly.Gaussian(shared=shared, shrinkage=shrinkage)
        yield Case(f"{name}-{shared}", "vowel", ly.GenerativeClassifier(family, estimation="mle"))
    reference = ly.NormalInverseWishart.reference()
    own = ly.NormalInverseWishart(mean_rows=0.5, degrees=20.0)
    for name, family in {
        "unbiased": ly.Gaussian(unbiased=True),
        "reference": ly.Gaussian(prior=reference),
        "prior": ly.Gaussian(prior=own),
    }.items():
        estimation = "mle" if name == "unbiased" else "bayes"
        yield Case(name, "wine", ly.GenerativeClassifier(family, estimation=estimation))
    outputs = (JOINT - UPDATES - {"weighted"}) | {"sequential"}
    for estimation, shared in (("mle", True), ("map", False), ("bayes", True)):
        model = ly.GenerativeClassifier(ly.Gaussian(components=2, shared=shared), estimation=estimation, max_iter=20)
        yield Case(f"two-{shared}-{estimation}", "iris", model, outputs)


def families() -> Iterator[Case]:
    """Every family on columns of its kind, under every estimation that it has."""
    every = ("mle", "map", "bayes")
    joint = JOINT | {"sequential"}
    conditional = joint - {"typicality", "novelty"}
    vector = conditional - {"holes", "holes_joint", "impute"}
    amounts = ["duration_months", "credit_amount", "age"]
    animals = tuple(TABLES["animals"][3] or ())
    declared: list[tuple[str, str, Any, tuple[str, ...], set[str]]] = [
        ("log-normal", "wine", ly.LogNormal(), every, joint),
        ("log-normal-full", "wine", ly.LogNormal(covariance="full", log=["alcohol", "proline"]), every, joint),
        ("gamma", "wine", ly.Gamma(), every, joint),
        ("gamma-shape", "wine", ly.Gamma(shape=2.0), every, joint),
        ("gamma-shared", "wine", ly.Gamma(shape="shared"), every, joint),
        ("exponential", "credit", dict.fromkeys(amounts, ly.Exponential()), every, joint),
        ("beta", "sonar", ly.Beta(), every, joint),
        ("von-mises", "credit", {"duration_months": ly.VonMises(12), "age": ly.VonMises(10)}, every, joint),
        ("poisson", "digits", ly.Poisson(), ("map", "bayes"), joint),
        ("poisson-exposure", "sugar", {"pregnant": ly.Poisson("age")}, every, conditional - {"sample", "impute"}),
        ("poisson-totals", "digits", ly.Poisson("row totals"), ("map", "bayes"), vector),
        ("negative-binomial", "digits", ly.NegativeBinomial(2.0), ("map", "bayes"), joint),
        ("geometric", "digits", ly.Geometric(), ("map", "bayes"), joint),
        ("multinomial", "digits", ly.Multinomial(), ("map", "bayes"), vector),
        ("complement", "digits", ly.Multinomial(smoothing=1.0, complement=True), ("mle",), POSTERIOR),
        ("bernoulli", "animals", ly.Bernoulli(), every, joint | DROP),
        ("categorical", "votes", ly.Categorical(), every, joint | DROP),
        ("categorical-table", "animals", {animals: ly.Categorical()}, every, joint | DROP),
        ("pairs", "votes", {("V1", "V2", "V3", "V4", "V5"): ly.Pairs()}, ("bayes",), joint),
        ("histogram", "wine", ly.Histogram(), ("bayes",), joint),
        (
            "point-mass",
            "glass",
            {"Ba": ly.PointMass(0.0, ly.Gamma()), "Fe": ly.PointMass(0.0, ly.LogNormal())},
            ("map", "bayes"),
            JOINT,
        ),
        ("poisson-prior", "digits", ly.Poisson(prior=ly.GammaPrior(2.0, 1.0)), ("map", "bayes"), joint),
        ("bernoulli-prior", "animals", ly.Bernoulli(prior=ly.BetaPrior(2.0, 1.5)), ("map", "bayes"), joint),
        ("categorical-prior", "votes", ly.Categorical(prior=ly.Dirichlet(2.0)), ("map", "bayes"), joint),
        ("beta-prior", "sonar", ly.Beta(prior=ly.PseudoRows(3.0)), ("bayes",), joint),
        ("text", "messages", {"text": ly.Text(family=ly.Multinomial(smoothing=1.0))}, ("bayes",), conditional),
        ("set-aside", "penguins", {"island": None, "sex": None}, ("bayes",), joint),
    ]
    for name, table, family, estimations, outputs in declared:
        for estimation in estimations:
            model = ly.GenerativeClassifier(family, estimation=estimation, class_prior=None)
            yield Case(f"{name}-{estimation}", table, model, outputs)
    naive: list[tuple[str, str, Any]] = [
        ("gaussian", "sugar", ly.Gaussian("diagonal")),
        ("poisson", "digits", ly.Poisson()),
        ("bernoulli", "zoo", {"hair": ly.Bernoulli(), "legs": ly.Categorical()}),
    ]
    for name, table, family in naive:
        yield Case(f"naive-{name}", table, ly.NaiveBayes(family, class_prior="uniform", calibration=None))


def defaults() -> Iterator[Case]:
    """The two classifiers without options, which choose families, covariances and calibration, on every table."""
    tables = [
        "penguins",
        "iris",
        "wine",
        "glass",
        "vowel",
        "pima",
        "german",
        "credit",
        "votes",
        "zoo",
        "cells",
        "sonar",
    ]
    for table, model in product([*tables, "digits", "satellite"], (ly.GenerativeClassifier(), ly.NaiveBayes())):
        yield Case(type(model).__name__, table, model, JOINT - {"weighted", "stream"})
    yield Case("plain", "credit", ly.NaiveBayes(calibration=None, unseen="error", class_prior=[0.4, 0.6]))
    scores = JOINT - {"joint", "holes_joint", "density", "typicality", "novelty", "sample"}
    yield Case("text", "sms", ly.GenerativeClassifier(), scores)
    yield Case("text", "messages", ly.NaiveBayes(), scores)


def discriminants() -> Iterator[Case]:
    for table, estimation in product(("iris", "wine", "bills!", "sugar"), ("mle", "map", "bayes")):
        linear = ly.LinearDiscriminant(estimation=estimation)
        yield Case(f"linear-{estimation}", table, linear, JOINT | {"transform"})
        yield Case(f"quadratic-{estimation}", table, ly.QuadraticDiscriminant(estimation=estimation), JOINT | DROP)
        yield Case(f"prototype-{estimation}", table, ly.NearestPrototype(estimation=estimation), JOINT)
    for name, model in {
        "diagonal": ly.LinearDiscriminant("diagonal", class_prior="uniform"),
        "ledoit": ly.LinearDiscriminant(shrinkage="ledoit-wolf", n_components=2),
        "groups": ly.QuadraticDiscriminant(groups=[[1, 2, 3], [4, 5]], unbiased=True),
        "regularized": ly.QuadraticDiscriminant(shrinkage=ly.Regularized(0.5, 0.1)),
        "spherical": ly.NearestPrototype("spherical"),
    }.items():
        yield Case(name, "vowel", model)


def unlabeled() -> Iterator[Case]:
    outputs = JOINT - UPDATES - {"score"}
    for table, model in product(("penguins", "iris", "credit", "votes"), (ly.GenerativeClassifier, ly.NaiveBayes)):
        yield Case(f"{model.__name__}-half", f"{table}?", model(unlabeled_weight=0.5), outputs)
    chosen = outputs - {"weighted"}
    yield Case("chosen", "iris?", ly.GenerativeClassifier(ly.Gaussian(shared=True)), chosen)
    yield Case("chosen", "credit?", ly.NaiveBayes(), chosen)
    yield Case("hybrid", "iris?", ly.HybridClassifier(blend=0.5), chosen & POSTERIOR)
    yield Case("text", "sms?", ly.TextClassifier(), chosen & POSTERIOR | {"prior"})


def mixture() -> Iterator[Case]:
    outputs = (JOINT - UPDATES - {"weighted"}) | {"criteria"}
    for name, table, model in [
        ("one", "penguins", ly.MixtureModel()),
        ("gaussian", "iris", ly.MixtureModel(3, ly.Gaussian(), random_state=0)),
        ("pooled", "bills", ly.MixtureModel(3, ly.Gaussian(shared=True), estimation="mle", random_state=1)),
        ("default", "credit", ly.MixtureModel(2, random_state=0)),
        ("categories", "votes", ly.MixtureModel(2, estimation="bayes", random_state=0)),
        ("counts", "digits", ly.MixtureModel(4, ly.Poisson(), n_init=1, random_state=0)),
        ("bic", "flippers!", ly.MixtureModel("bic", ly.Gaussian("diagonal"), n_init=1, random_state=0)),
    ]:
        yield Case(name, table, model, outputs)


def text() -> Iterator[Case]:
    scores = POSTERIOR | {"explain", "left_out", "prior", "partial_fit", "forget", "sum", "stream", "top_terms"} | DROP
    densities = scores | {"joint", "density", "typicality", "novelty", "sample"}
    characters = CountVectorizer(analyzer="char_wb", ngram_range=(2, 3))
    hashed = HashingVectorizer(n_features=2**10, alternate_sign=False, norm=None)
    plain: dict[str, Any] = {"calibration": None, "class_prior": "uniform"}
    for name, model, outputs in [
        ("default", ly.TextClassifier(), scores),
        ("pairs", ly.TextClassifier(order=2), scores | {"next_term"}),
        ("multinomial", ly.TextClassifier(family=ly.Multinomial(smoothing=1.0)), densities),
        ("plain", ly.TextClassifier(CountVectorizer(), ly.Multinomial(smoothing=0.5), **plain), densities),
        ("complement", ly.TextClassifier(family=ly.Multinomial(smoothing=1.0, complement=True)), scores),
        ("bernoulli", ly.TextClassifier(family=ly.Bernoulli(smoothing=1.0)), densities),
        ("poisson", ly.TextClassifier(family=ly.Poisson("row totals")), densities),
        ("characters", ly.TextClassifier(characters), scores),
        ("hashed", ly.TextClassifier(hashed), scores - {"top_terms"}),
        ("tf-idf", ly.TextClassifier(TfidfVectorizer()), scores - {"sum"}),
    ]:
        yield Case(name, "sms", model, outputs)


def regression() -> Iterator[Case]:
    outputs = {"attributes", "score", "weighted", "file", "parameters", "interval", "predict_std", "log_predictive"}
    for estimation in ("mle", "map", "bayes"):
        updates = {"partial_fit", "forget", "sum"}
        yield Case(estimation, "flippers!", ly.GenerativeRegressor(estimation=estimation), outputs | updates)
        yield Case(estimation, "flippers", ly.GenerativeRegressor(estimation=estimation), outputs - {"score"})
    yield Case("classes", "mass!", ly.GenerativeRegressor(classes="sex"), outputs)
    yield Case("pooled", "mass!", ly.GenerativeRegressor(classes="sex", shared=True), outputs)
    yield Case("components", "flippers!", ly.GenerativeRegressor(components=2, n_init=2, random_state=0), outputs)


def discriminative() -> Iterator[Case]:
    outputs = POSTERIOR | {"explain", "parameters"}
    for table in ("iris", "wine", "sugar!", "vowel"):
        yield Case("softmax", table, ly.SoftmaxRegression(), outputs)
        yield Case("softmax-bayes", table, ly.SoftmaxRegression(penalty=0.1, estimation="bayes"), outputs)
        yield Case("hybrid", table, ly.HybridClassifier(blend=0.5), outputs)
    yield Case("hybrid-chosen", "wine", ly.HybridClassifier(), outputs - {"weighted"})
    basis = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False))
    squares = ly.SoftmaxRegression(basis=basis, inference=True)
    yield Case("squares", "bills!", squares, outputs - {"file"})
    yield Case("hybrid-half", "votes!", ly.HybridClassifier(blend=0.5), outputs)
    yield Case("hybrid-counts", "digits", ly.HybridClassifier(ly.Poisson(), blend=0.3), outputs - {"weighted"})
    yield Case("hybrid-mixed", "credit!", ly.HybridClassifier(blend=0.5), outputs)


def evidence() -> Iterator[Case]:
    outputs = JOINT - {"parameters", "left_out", "stream"} | {"by_view", "reweigh", "similar_rows"}
    few = partial(ly.EvidenceClassifier, n_trees=10)
    for table in ("penguins", "sugar", "german", "votes"):
        yield Case("default", table, few(), outputs)
    yield Case("sample", "satellite", few(max_rows=300), outputs - {"sum"})
    yield Case("chosen", "iris", few(["columns", "pairs", ly.LinearDiscriminant()]), outputs - {"similar_rows"})
    yield Case("text", "messages", few(), POSTERIOR | {"explain", "by_view", "prior", "partial_fit", "forget", "sum"})


CASES: dict[str, Callable[[], Iterator[Case]]] = {
    each.__name__: each
    for each in (
        evidence,
        unlabeled,
        families,
        defaults,
        gaussian,
        mixture,
        discriminative,
        discriminants,
        text,
        regression,
    )
}
SOURCES: list[tuple[str, Any]] = [
    ("penguins", ly.GenerativeClassifier()),
    ("credit", ly.NaiveBayes()),
    ("iris", ly.LinearDiscriminant()),
    ("sugar", ly.QuadraticDiscriminant(estimation="bayes")),
    ("wine", ly.SoftmaxRegression()),
    ("bills!", ly.MixtureModel(3, ly.Gaussian(shared=True), n_init=1, random_state=0)),
    ("flippers!", ly.GenerativeRegressor()),
    ("bills!", ly.HybridClassifier(blend=0.5)),
    ("votes", ly.EvidenceClassifier(n_trees=5)),
    ("sms", ly.TextClassifier()),
]
WAYS = ["array", "float32", "objects", "list", "polars", "arrow"]
SHAPES: list[tuple[str, Any, list[str]]] = [
    ("iris", ly.GenerativeClassifier(), WAYS),
    ("iris", ly.LinearDiscriminant(), WAYS),
    ("sugar", ly.NaiveBayes(), WAYS),
    ("iris", ly.SoftmaxRegression(), WAYS),
    ("penguins", ly.GenerativeClassifier(), ["objects", "polars", "arrow", "categories"]),
    ("penguins", ly.EvidenceClassifier(n_trees=5), ["polars", "arrow", "categories"]),
    ("digits", ly.NaiveBayes(), ["array", "sparse"]),
    ("digits", ly.NaiveBayes(ly.Gaussian()), ["array", "sparse"]),
    ("digits", ly.NaiveBayes(ly.Multinomial()), ["array", "sparse"]),
    ("digits", ly.SoftmaxRegression(), ["array", "sparse"]),
]
CROSS_VALIDATED: list[tuple[str, Any]] = [
    ("penguins", ly.GenerativeClassifier()),
    ("german", ly.NaiveBayes()),
    ("glass", ly.GenerativeClassifier(ly.Histogram())),
    ("iris?", ly.GenerativeClassifier(ly.Gaussian(), unlabeled_weight=0.5)),
    ("wine", ly.QuadraticDiscriminant(shrinkage="ledoit-wolf")),
    ("vowel", ly.LinearDiscriminant()),
    ("iris", ly.SoftmaxRegression()),
    ("penguins", ly.EvidenceClassifier(n_trees=5)),
    ("sms", ly.TextClassifier()),
    ("flippers!", ly.GenerativeRegressor()),
    ("iris", make_pipeline(StandardScaler(), LogisticRegression(tol=1e-12))),
]
DISCRIMINANTS = {"linear": ly.LinearDiscriminant(), "quadratic": ly.QuadraticDiscriminant()}
SELECTED: list[tuple[str, str, dict[str, Any] | None]] = [
    ("iris", "log_loss", None),
    ("iris", "error", DISCRIMINANTS),
    ("wine", "log_likelihood", DISCRIMINANTS),
    ("wine", "bic", DISCRIMINANTS),
    ("vowel", "aic", DISCRIMINANTS),
    ("wine", "log_evidence", {"own": ly.GenerativeClassifier(ly.Gaussian()), "naive": ly.NaiveBayes(ly.Gaussian())}),
]
