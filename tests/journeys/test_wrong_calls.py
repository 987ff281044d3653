"""Wrong calls: every one raises an error of the library, with words that name the problem and the remedy."""

# mypy: disable-error-code="arg-type, dict-item"

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import likely
from likely import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    EvidenceClassifier,
    Exponential,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    Imputer,
    LinearDiscriminant,
    MixtureModel,
    NaiveBayes,
    NormalInverseWishart,
    Poisson,
    QuadraticDiscriminant,
    Regularized,
    SoftmaxRegression,
    VonMises,
    compare,
    cross_validate,
    select,
)
from likely.errors import InputError, LikelyError, NotEstimableError

A = np.random.default_rng(0).normal(size=(40, 3))
Y = np.array(["cat", "dog"] * 20)
F = pd.DataFrame(A, columns=["a", "b", "c"])
WITH_Y = F.assign(y=Y)
TEXT = F.assign(c=["u", "v"] * 20)
STORED = F.assign(c=F["c"].astype(str))  # numbers as text
DATES = F.assign(c=pd.date_range("2026-01-01", periods=40))
INCOMPLETE = A.copy()
INCOMPLETE[3, 1] = np.nan
UNLABELED = np.array([None if i % 4 == 0 else label for i, label in enumerate(Y.tolist())], dtype=object)
WORDS = scipy.sparse.csr_array(np.abs(np.round(A, 1)))
NB = NaiveBayes().fit(F, Y)
GC = GenerativeClassifier().fit(A, Y)
LD = LinearDiscriminant().fit(A, Y)
EM = NaiveBayes().fit(F, UNLABELED)
SR = SoftmaxRegression().fit(F, Y)
EV = EvidenceClassifier(["columns"]).fit(F, Y)
GR = GenerativeRegressor().fit(F, A[:, 0])
MM = MixtureModel(2, random_state=0).fit(A)
HY = HybridClassifier(blend=0.5).fit(A, Y)
IM = Imputer().fit(INCOMPLETE)


def rows(n: int = 2) -> Any:
    return ([1.0, 2.0, 3.0] for _ in range(n))


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    # X at predict
    "predict: a missing column": (lambda: NB.predict(F[["a", "b"]]), r"missing:\n- c\nAdd"),
    "predict: a renamed column": (lambda: NB.predict(F.rename(columns={"a": "z"})), r"- z\n.*- a\nRename"),
    "predict: one row as a series": (lambda: NB.predict(F.iloc[0]), r"series.*to_frame\(\)\.T"),
    "predict: one row of Polars as a series": (lambda: NB.predict(pl.Series([1.0, 2.0])), "series.*2D"),
    "predict: one row as an array": (lambda: GC.predict(A[0]), r"1D array.*reshape\(1, -1\)"),
    "predict: one row as a list": (lambda: GC.predict([1.0, 2.0, 3.0]), r"1D array.*reshape\(1, -1\)"),
    "predict: three dimensions": (lambda: GC.predict(A[:, :, None]), r"\(40, 3, 1\).*dim 3.*reshape"),
    "predict: a number": (lambda: GC.predict(3.0), "single value.*2D"),
    "predict: None": (lambda: GC.predict(None), "2D"),
    "predict: two columns too few": (lambda: GC.predict(A[:, :1]), "1 features.*3 features"),
    "predict: labels instead of rows": (lambda: GC.predict(Y), "1D array"),
    "predict: no rows": (lambda: GC.predict(A[:0]), "no rows"),
    "predict: text in a column of numbers": (lambda: GC.predict(TEXT.to_numpy()), "'x2', row 0: 'u' is not a number"),
    "predict: infinity": (lambda: GC.predict([[1.0, np.inf, 2.0]]), "row 0: inf"),
    "predict: a generator": (lambda: GC.predict(rows()), r"generator.*list\(X\)"),
    "predict: a path": (lambda: NB.predict("rows.csv"), "path.*likely.scan"),
    "predict: text where the fit had numbers": (
        lambda: NB.predict(TEXT),
        r"'c', row 0: 'u' is not a number\. The model was fitted to numbers in this column: correct the value[^:]*$",
    ),
    "predict: text for a regression": (
        lambda: GR.predict(TEXT),
        r"'c', row 0: 'u' is not a number\. The model was fitted to numbers",
    ),
    "predict: text for evidence": (
        lambda: EV.predict(TEXT),
        r"'c', row 0: 'u' is not a number\. The model was fitted to numbers",
    ),
    "predict: text for softmax": (
        lambda: SR.predict(TEXT),
        r"'c', row 0: 'u' is not a number\. The model was fitted to numbers in this column: correct .* drop the row\.$",
    ),
    "predict: a path as a text": (lambda: NB.predict("rows.csv"), r"likely\.scan\('rows\.csv'\), or read [^:]*$"),
    "predict: a dictionary of columns": (lambda: NB.predict({"a": [1.0], "b": [1.0]}), "DataFrame"),
    "predict: ragged rows": (lambda: GC.predict([[1.0, 2.0, 3.0], [1.0]]), "row 1 has 1 entry"),
    "predict: complex numbers": (lambda: GC.predict(A + 1j), "complex"),
    "predict: an unseen category as an error": (
        lambda: NaiveBayes(unseen="error").fit(TEXT, Y).predict(TEXT.assign(c="w")),
        "'c', row 0: 'w' was not seen.*unseen='missing'",
    ),
    "softmax: a missing column": (lambda: SR.predict(F[["a"]]), r"missing:\n- b"),
    "softmax: missing values": (lambda: SR.predict(F.mask(F > 2.0)), "missing"),
    "regression: a missing column": (lambda: GR.predict(F[["a"]]), r"missing:\n- b"),
    "regression: one row": (lambda: GR.predict(A[0]), "1D array"),
    "mixture: one row": (lambda: MM.predict(A[0]), "1D array"),
    "hybrid: one row": (lambda: HY.predict(A[0]), "1D array"),
    "imputer: one row": (lambda: IM.transform(A[0]), "1D array"),
    # X and y at fit
    "fit: X and y swapped": (lambda: NaiveBayes().fit(Y, A), "1D array"),
    "fit: y of two columns": (lambda: NaiveBayes().fit(A, A[:, :2]), r"\(40, 2\).*1d array.*column"),
    "fit: one-hot labels": (lambda: NaiveBayes().fit(A, np.eye(2)[np.arange(40) % 2]), "argmax"),
    "fit: continuous labels": (lambda: NaiveBayes().fit(A, A[:, 0]), "continuous.*GenerativeRegressor"),
    "fit: labels of a column of numbers": (lambda: NaiveBayes().fit(F, "a"), "continuous.*GenerativeRegressor"),
    "fit: too few labels": (lambda: NaiveBayes().fit(A, Y[:3]), "40 rows and y has 3"),
    "fit: no labels": (lambda: NaiveBayes().fit(A, [None] * 40), "MixtureModel"),
    "fit: y is None": (lambda: NaiveBayes().fit(A, None), "requires y"),
    "fit: a target that is no column": (lambda: NaiveBayes().fit(F, "species"), "'species'.*'a', 'b', 'c'"),
    "fit: a name beside an array": (lambda: NaiveBayes().fit(A, "y"), "not a data frame"),
    "fit: a path": (lambda: NaiveBayes().fit("rows.csv", "y"), "path.*likely.scan"),
    "fit: an open file": (lambda: NaiveBayes().fit(io.StringIO("a,b"), "y"), "open file.*likely.scan"),
    "fit: a dictionary of columns": (lambda: NaiveBayes().fit({"a": [1.0, 2.0], "y": ["u", "v"]}, "y"), "DataFrame"),
    "fit: a generator": (lambda: NaiveBayes().fit(rows(), "y"), "generator"),
    "fit: numbers as text to predict": (
        lambda: GenerativeRegressor().fit(STORED, "c"),
        r"'c' of y, row 0: '[\d.-]+' is a number stored as text.*X\['c'\]\.astype\(float\)",
    ),
    "fit: a Gaussian for text": (
        lambda: NaiveBayes({"c": Gaussian()}).fit(TEXT, Y),
        r"'c', row 0: 'u' is not a number\. Pass families=\{'c': Categorical\(\)\}.*None ignores the column",
    ),
    "fit: missing labels": (
        lambda: SoftmaxRegression().fit(F, UNLABELED),
        "row 0: the label is missing.*Drop the rows.*, or use GenerativeClassifier or NaiveBayes: their `fit`",
    ),
    "fit: durations": (lambda: NaiveBayes().fit(F.assign(c=pd.Timedelta(days=1)), Y), "'c' has durations.*seconds"),
    "fit: lists in cells": (lambda: NaiveBayes().fit(pl.DataFrame({"l": [[1.0]] * 40}), Y), "'l'"),
    "fit: tuples first in a column": (
        lambda: NaiveBayes().fit(pd.DataFrame({"o": [(1, 2), "a"] * 20}), Y),
        "'o', row 0.*tuple",
    ),
    "fit: tuples last in a column": (
        lambda: NaiveBayes().fit(pd.DataFrame({"o": ["a", (1, 2)] * 20}), Y),
        "'o', row 1.*tuple",
    ),
    "fit: negative weights": (lambda: NaiveBayes().fit(A, Y, sample_weight=-np.ones(40)), "sample_weight, row 0"),
    "fit: too few weights": (lambda: NaiveBayes().fit(A, Y, sample_weight=[1.0]), "sample_weight"),
    "fit: text for a Gaussian": (lambda: LinearDiscriminant().fit(TEXT, Y), "'c', row 0: 'u'.*Categorical"),
    "fit: text for softmax": (
        lambda: SoftmaxRegression().fit(TEXT, Y),
        "'c', row 0: 'u' is not a number.*basis=.*OneHotEncoder",
    ),
    "fit: text for a regression": (lambda: GenerativeRegressor().fit(TEXT, A[:, 0]), "'c'.*classes="),
    "fit: text to predict": (lambda: GenerativeRegressor().fit(F, Y), "'cat' is not a number.*GenerativeClassifier"),
    "fit: missing values for softmax": (lambda: SoftmaxRegression().fit(INCOMPLETE, Y), "row 3"),
    "fit: one class for softmax": (lambda: SoftmaxRegression().fit(A, ["a"] * 40), "one class"),
    "fit: sparse rows for a discriminant": (lambda: LinearDiscriminant().fit(WORDS, Y), "sparse.*toarray"),
    "fit: sparse rows for a regression": (lambda: GenerativeRegressor().fit(WORDS, A[:, 0]), "sparse.*toarray"),
    "fit: fractions as counts": (
        lambda: NaiveBayes(Poisson()).fit(WORDS, Y),
        "count.*all columns.*families=Multinomial",
    ),
    "fit: fractions as 0 and 1": (lambda: NaiveBayes(Bernoulli()).fit(WORDS, Y), "0 or 1.*all columns.*X > 0"),
    "fit: negative values for Gamma": (lambda: NaiveBayes(Gamma()).fit(A, Y), "row.*> 0"),
    "fit: values beyond 1 for Beta": (lambda: NaiveBayes(Beta()).fit(np.exp(A), Y), "between 0 and 1"),
    # options
    "families: a class": (lambda: NaiveBayes(Gaussian).fit(A, Y), r"Write families=Gaussian\(\)"),
    "families: a class for a column": (
        lambda: NaiveBayes({"a": Poisson}).fit(F, Y),
        r"Write families\['a'\]=Poisson\(\)",
    ),
    "families: text": (lambda: NaiveBayes("gaussian").fit(A, Y), r"'gaussian'.*Gaussian\(\)"),
    "families: an unknown column": (lambda: NaiveBayes({"z": Gaussian()}).fit(F, Y), "'z'.*'a', 'b', 'c'"),
    "families: overlapping blocks": (
        lambda: GenerativeClassifier({("a", "b"): Gaussian(), "b": Gaussian()}).fit(F, Y),
        r"column 'b', which is named by families\[\('a', 'b'\)\]",
    ),
    "families: a column twice": (lambda: GenerativeClassifier({("a", "a"): Gaussian()}).fit(F, Y), "'a'.*twice"),
    "families: an unknown covariance": (lambda: NaiveBayes(Gaussian("round")).fit(A, Y), "'round'.*'full'"),
    "families: an invalid period": (lambda: NaiveBayes(VonMises(period=-1)).fit(A, Y), "period"),
    "families: a prior of another family": (
        lambda: NaiveBayes(Gaussian(prior=Dirichlet(1.0))).fit(A, Y),
        "prior",
    ),
    "families: categories that are text": (
        lambda: NaiveBayes(Categorical(categories="abc")).fit(TEXT, Y),
        "categories",
    ),
    "families: an exposure that is no column": (lambda: NaiveBayes(Poisson(exposure="days")).fit(F, Y), "'days'"),
    "families: a negative rate prior": (lambda: NaiveBayes(Exponential()).fit(A, Y), ">= 0"),
    "class_prior: a typo": (
        lambda: NaiveBayes(class_prior={"cat": 0.5, "dgo": 0.5}).fit(A, Y),
        "'dog' is missing, and 'dgo' is not in y",
    ),
    "class_prior: a sum of 2": (lambda: NaiveBayes(class_prior=[1.0, 1.0]).fit(A, Y), "sums to 2"),
    "class_prior: a word": (lambda: NaiveBayes(class_prior="balanced").fit(A, Y), "'uniform'"),
    "class_prior: too many": (lambda: NaiveBayes(class_prior=[0.2, 0.3, 0.5]).fit(A, Y), "2 classes"),
    "with_prior: a typo": (lambda: NB.with_prior({"cat": 0.5, "dgo": 0.5}), "'dog' is missing, and 'dgo' is not in y"),
    "estimation: an unknown word": (lambda: NaiveBayes(estimation="ml").fit(A, Y), "'ml'.*'mle'"),
    "unseen: an unknown word": (lambda: NaiveBayes(unseen="ignore").fit(A, Y), "'ignore'.*'missing'"),
    "max_iter: zero": (lambda: NaiveBayes(max_iter=0).fit(A, Y), "max_iter=0"),
    "tol: not a number": (lambda: NaiveBayes(tol=np.nan).fit(A, Y), "tol=nan"),
    "shrinkage: beyond 1": (lambda: LinearDiscriminant(shrinkage=2.0).fit(A, Y), "shrinkage=2"),
    "shrinkage: a wrong mixture": (lambda: QuadraticDiscriminant(shrinkage=Regularized(pooling=2.0)).fit(A, Y), "pool"),
    "groups: no list of lists": (lambda: QuadraticDiscriminant(groups=["cat", "dog"]).fit(A, Y), "groups="),
    "prior under maximum likelihood": (
        lambda: LinearDiscriminant(prior=NormalInverseWishart()).fit(A, Y),
        "maximum likelihood has no prior",
    ),
    "n_components: beyond the classes": (lambda: LinearDiscriminant(n_components=5).fit(A, Y).transform(A), "n_comp"),
    "mixture: no components": (lambda: MixtureModel(0).fit(A), "n_components=0"),
    "mixture: more components than rows": (lambda: MixtureModel(9).fit(A[:3]), "component"),
    "mixture: a start of other rows": (lambda: MixtureModel(2, start=[0, 1]).fit(A), "start"),
    "regression: components and classes": (
        lambda: GenerativeRegressor(classes="c", components=2).fit(TEXT, A[:, 0]),
        "cannot be combined",
    ),
    "regression: an unknown column of classes": (lambda: GenerativeRegressor(classes="z").fit(F, A[:, 0]), "'z'"),
    "regression: an interval of 200%": (lambda: GR.predict_interval(F, level=2.0), "level=2"),
    "softmax: a negative penalty": (lambda: SoftmaxRegression(penalty=-1.0).fit(A, Y), "penalty"),
    "softmax: an unknown reference": (lambda: SoftmaxRegression(reference="cow").fit(A, Y), "'cow'"),
    "hybrid: a blend beyond 1": (lambda: HybridClassifier(blend=2.0).fit(A, Y), "blend"),
    "imputer: a regression": (lambda: Imputer(GenerativeRegressor()).fit(INCOMPLETE, A[:, 0]), "MixtureModel"),
    # other methods
    "partial_fit: unlabeled rows": (
        lambda: NaiveBayes().partial_fit(A, UNLABELED),
        "row 0: the label is missing.*Drop the rows without labels.*updates and `score` do not",
    ),
    "partial_fit: other columns": (lambda: NaiveBayes().fit(F, Y).partial_fit(F[["a"]], Y), r"missing:\n- b"),
    "partial_fit: an unexpected class": (lambda: NaiveBayes().partial_fit(A, Y, classes=["cat"]), "'dog'.*classes="),
    "partial_fit: after EM": (lambda: EM.partial_fit(F, Y), "partial_fit.*EM.*fit"),
    "partial_fit: labels of another type": (lambda: NaiveBayes().fit(A, Y).partial_fit(A, [0, 1] * 20), "types"),
    "forget: rows that were not fitted": (lambda: NaiveBayes().fit(A, Y).forget(A + 100.0, Y), "not among|not part"),
    "forget: an unknown class": (lambda: NaiveBayes().fit(A, Y).forget(A[:2], ["cow", "cow"]), "'cow'"),
    "drop_class: an unknown class": (lambda: NB.drop_class("cow"), "'cow' is not among"),
    "add: another kind of model": (lambda: NB + LD, "NaiveBayes and LinearDiscriminant"),
    "add: after EM": (lambda: EM + EM, "EM"),
    "left_out_proba: after EM": (lambda: EM.left_out_proba(F, Y), "left_out_proba.*EM.*cross_validate"),
    "left_out_proba: rows that were not fitted": (lambda: NB.left_out_proba(F + 50.0, Y), "not part of the fit"),
    "left_out_proba: more rows than were fitted": (
        lambda: NB.left_out_proba(pd.concat([F, F]), np.tile(Y, 2)),
        "not part of the fit",
    ),
    "left_out_proba: an unknown class": (lambda: NB.left_out_proba(F, ["cow"] * 40), "'cow'"),
    "score: an unknown column": (lambda: NB.score(F, "species"), "'species'"),
    "score: too few labels": (lambda: NB.score(F, Y[:3]), "40 rows and y has 3"),
    "sample: no rows": (lambda: NB.sample(0), "n_samples=0"),
    "sample: an unknown class": (lambda: NB.sample(3, label="cow"), "'cow' is not among"),
    "sample: an invalid seed": (lambda: NB.sample(3, random_state="seed"), "random_state='seed'"),
    "novelty: no samples": (lambda: NB.novelty(F, n_samples=0), "n_samples=0"),
    "novelty: an invalid seed": (lambda: NB.novelty(F, random_state=-1), "random_state=-1"),
    "boundary: an unknown class": (lambda: LD.boundary("cat", "cow"), "'cow'.*'cat', 'dog'"),
    "boundary: the same class twice": (lambda: LD.boundary("cat", "cat"), "'cat'"),
    "decide: a negative cost of rejection": (lambda: NB.decide(F, reject=-1.0), "reject=-1"),
    "decide: a cost that is no number": (lambda: NB.decide(F, reject=np.nan), "reject=nan"),
    "decide: losses that are missing": (
        lambda: NB.decide(F, loss=[[0.0, np.nan], [1.0, 0.0]]),
        "action .dog. under class .cat. .*nan",
    ),
    "decide: losses of another shape": (lambda: NB.decide(F, loss=[[0.0, 1.0]]), "loss"),
    "decide: losses of an unknown class": (lambda: NB.decide(F, loss={"cow": {"buy": 1.0}}), "loss"),
    "adapt_prior: no iterations": (lambda: NB.adapt_prior(F, max_iter=0), "max_iter=0"),
    "impute: labels of an unknown class": (lambda: NB.impute(F, ["cow"] * 40), "'cow'"),
    "impute: sparse rows": (lambda: GC.impute(WORDS), "sparse.*toarray"),
    "log_predictive: too many targets": (lambda: GR.log_predictive(F, A[:, :2]), "2 columns.*1"),
    "load: no model": (lambda: likely.load(__file__), "not a model file"),
    "cross_validate: one fold": (lambda: cross_validate(NaiveBayes(), A, Y, folds=1), "fold"),
    "cross_validate: a class": (lambda: cross_validate(NaiveBayes, A, Y), "not a generative model|instance|class"),
    "select: no rows": (lambda: select(A[:0], []), "no rows"),
    "compare: no models": (lambda: compare(A, Y, {}), "model"),
}


@pytest.mark.filterwarnings("ignore::likely.errors.LikelyWarning")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_raises_an_error_with_a_remedy(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(LikelyError) as caught:
        call()
    assert isinstance(caught.value, ValueError | TypeError)
    assert re.search(words, str(caught.value), re.DOTALL | re.IGNORECASE), str(caught.value)


@pytest.mark.parametrize(
    "estimator",
    [
        GenerativeClassifier,
        GenerativeRegressor,
        HybridClassifier,
        Imputer,
        LinearDiscriminant,
        MixtureModel,
        NaiveBayes,
        QuadraticDiscriminant,
        SoftmaxRegression,
    ],
)
def test_an_unknown_option_is_an_error_of_the_class_that_was_called(estimator: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{estimator.__name__}\.__init__\(\) got an unexpected .* 'colour'"):
        estimator(colour="red")


def test_there_are_a_hundred_of_them() -> None:
    assert len(WRONG) >= 100


def test_numbers_of_a_categorical_type_are_named_as_categories() -> None:
    X = pd.DataFrame({"x": pd.Series([1, 2, 1, 3]).astype("category")})
    with pytest.raises(InputError, match=r"row 0: 1 is a category, by the type of the column. Convert it: X\['x'\]"):
        LinearDiscriminant().fit(X, [0, 1, 0, 1])


def test_columns_without_any_value_are_named_where_the_likelihood_has_no_maximum() -> None:
    with pytest.raises(NotEstimableError, match=r"^'x': all values are missing"):
        LinearDiscriminant().fit(pd.DataFrame({"x": [np.nan] * 4}), [0, 1, 0, 1])
