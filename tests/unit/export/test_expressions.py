"""Expressions, programs, and which models have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.special
from numpy.testing import assert_allclose
from sklearn.preprocessing import PolynomialFeatures

from likely import (
    Categorical,
    EvidenceClassifier,
    Gaussian,
    GenerativeClassifier,
    GenerativeRegressor,
    HybridClassifier,
    LinearDiscriminant,
    MixtureModel,
    Pairs,
    SoftmaxRegression,
    Text,
    TextClassifier,
)
from likely.errors import DependentColumnsWarning, ExportError, LikelyError
from likely.export.program import Program, Step
from likely.families.columns import NON_NEGATIVE, ColumnFamily, NaturalColumns, constant_value, varies
from likely.numerics.expressions import (
    Expression,
    constant,
    cos,
    linear,
    log_gamma_ratio,
    log_gamma_ratios,
    log_sum_exp,
    number,
    pick,
    square,
    total,
)
from tests.unit.export.arrays import evaluate
from tests.unit.export.databases import select

X = pd.DataFrame({"a": np.r_[0.0:1.0:15j, 2.0:3.0:15j], "b": np.arange(30.0) % 7})
Y = np.repeat(["low", "high"], 15)
COUNTS = np.array([0.0, 1.0, 2.0, 7.0, 30.0, 1e3, 1e6, 1e9])


def value_of(expression: Expression, *columns: Any) -> Any:
    values = {j: np.asarray(column, dtype=np.float64) for j, column in enumerate(columns)}
    (found,) = evaluate(Program.of([expression]), values, {}, len(columns[0]))
    return found


@pytest.mark.parametrize("a", [1e-3, 0.5, 1.0, 7.9, 8.0, 15.9, 16.0, 40.0, 1e5])
def test_ratios_of_gamma_functions_are_accurate(a: float) -> None:
    expected = scipy.special.gammaln(a + COUNTS) - scipy.special.gammaln(a)
    assert_allclose(
        value_of(log_gamma_ratio(a, number(0)), COUNTS), expected, rtol=1e-13, atol=1e-9 if a > 1e4 else 3e-13
    )


@pytest.mark.parametrize(("a", "b"), [(0.3, 4.0), (5.0, 5.5), (20.0, 90.0), (1e4, 2e4)])
def test_differences_of_ratios_of_gamma_functions_are_accurate(a: float, b: float) -> None:
    few = COUNTS[:5]
    expected = scipy.special.poch(a, few) / scipy.special.poch(b, few)
    assert_allclose(np.exp(value_of(log_gamma_ratios(a, b, number(0)), few)), expected, rtol=2e-12)
    # Γ(a + x)/Γ(b + x) → x^(a − b), in which x·log x would lose all digits
    x = np.array([1e14])
    limit = (a - b) * np.log(x) + scipy.special.gammaln(b) - scipy.special.gammaln(a)
    assert_allclose(value_of(log_gamma_ratios(a, b, number(0)), x), limit, rtol=1e-9, atol=1e-6)


def test_log_sum_exp_neither_overflows_nor_underflows() -> None:
    found = value_of(log_sum_exp([number(0), number(1)]), [1000.0, 0.0, -1e300], [1000.0, -1e300, -1e300])
    assert_allclose(found, [1000.0 + np.log(2.0), 0.0, -1e300], rtol=1e-15)


def test_equal_steps_occur_once_in_a_program() -> None:
    x = number(0)
    program = Program.of([square(x) + 1.0, square(number(0)) + 2.0])
    assert [step.operation for step in program.steps].count("square") == 1
    assert Step("number", (), 0) in program.steps
    assert {program.steps[i].operation for i in program.named()} == {"square", "add"}


def test_deep_expressions_do_not_recurse() -> None:
    x = number(0)
    for _ in range(20_000):
        x = x + 1.0
    assert value_of(x, [0.5]) == [20_000.5]


def test_operations_on_constants_are_constants() -> None:
    folded = constant(2.0) * 3.0 - 1.0 / constant(4.0)
    assert (folded.operation, folded.value) == ("constant", 5.75)
    assert linear([0.0, 0.0], [number(0), number(1)], 1.5).value == 1.5
    assert total([]).value == 0.0
    assert pick(number(0), [-np.inf, 0.0]).value == (-1e300, 0.0)
    with pytest.raises(ValueError, match="nan is not a constant"):
        constant(np.nan)


def test_cosines_are_cosines() -> None:
    assert_allclose(value_of(cos(number(0)), [0.0, 1.0, 5.0]), np.cos([0.0, 1.0, 5.0]), rtol=1e-15)


@dataclass(frozen=True, eq=False)
class WaitingConditionals(NaturalColumns):
    """A density of a user, without an expression."""

    rate: Any
    support: ClassVar[Any] = NON_NEGATIVE
    name: ClassVar[str] = "Waiting"

    def natural(self) -> Any:
        return (-self.rate,), -np.log(self.rate)

    def statistics(self, x: Any) -> Any:
        return (x,)

    def draw(self, label: int, n: int, rng: np.random.Generator) -> Any:
        return rng.exponential(1.0 / self.rate[label], (n, self.dimension))


class Waiting(ColumnFamily):
    """A family of a user."""

    support = NON_NEGATIVE

    def check(self, estimation: Any) -> None:
        pass

    @staticmethod
    def collected(x: Any) -> Any:
        return x, x * x

    def estimate(self, statistics: Any, estimation: Any, names: Any) -> Any:
        rate = (statistics.column_weight + 1.0) / (statistics.totals[0] + 1.0)
        return WaitingConditionals(varies(statistics), constant_value(statistics), rate)


class ExpressedConditionals(WaitingConditionals):
    """The same with an expression."""

    def statistic_expressions(self, x: Expression) -> tuple[Expression, ...]:
        return (x,)


class ExpressedWaiting(Waiting):
    """The family of those."""

    def estimate(self, statistics: Any, estimation: Any, names: Any) -> Any:
        parts = super().estimate(statistics, estimation, names)
        return ExpressedConditionals(parts.informative, parts.constant_value, parts.rate)


REFUSED: dict[str, tuple[Any, str]] = {
    "evidence": (EvidenceClassifier(n_trees=2), "EvidenceClassifier cannot be exported: trees"),
    "hybrid": (HybridClassifier(), "HybridClassifier cannot be exported: hybrids"),
    "components": (
        GenerativeClassifier({("a", "b"): Gaussian(components=2)}),
        r"columns 'a', 'b': a mixture within classes.*components=1",
    ),
    "user": (GenerativeClassifier({"a": Waiting(), "b": Waiting()}), "the family has no expression. Declare another"),
    "basis": (SoftmaxRegression(basis=PolynomialFeatures()), "the transformer has no expression"),
    "pairs": (GenerativeClassifier({("a", "b"): Pairs()}), r"Pairs has no expression\. Declare Categorical\(\)"),
    "table": (GenerativeClassifier({("a", "b"): Categorical()}), r"joint table .*\. Declare Categorical\(\)"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_models_without_expressions_are_refused_with_the_reason(name: str) -> None:
    model, reason = REFUSED[name]
    model.fit(X, Y)
    for write in (lambda: model.to_sql("rows"), model.to_onnx, model.to_javascript):
        with pytest.raises(ExportError, match=reason):
            write()


def test_other_estimators_are_refused_with_the_reason() -> None:
    text = TextClassifier().fit(["good day", "bad day"] * 5, ["p", "q"] * 5)
    mixture, regressor = MixtureModel(2).fit(X), GenerativeRegressor().fit(X[["a"]], X["b"])
    for model, reason in ((text, "text into terms"), (mixture, "not classes"), (regressor, "regressors")):
        with pytest.raises(LikelyError, match=reason):
            model.to_sql("rows")


def test_text_columns_are_refused_with_the_reason_and_the_remedy() -> None:
    frame = X.assign(t=["good day", "bad day now"] * 15)
    model = GenerativeClassifier({"t": Text(), "a": Gaussian("diagonal"), "b": Gaussian("diagonal")}).fit(frame, Y)
    with pytest.raises(ExportError, match=r"column 't': splitting text into terms .* families=\{column: None\}"):
        model.to_sql("rows")


def test_a_family_of_the_user_with_an_expression_is_exported() -> None:
    model = GenerativeClassifier({"a": ExpressedWaiting(), "b": ExpressedWaiting()}).fit(X, Y)
    result = select(model.to_sql("rows", keep=["a"]), rows=X).order("a").fetchall()
    assert_allclose([row[2:] for row in result], model.predict_proba(X.sort_values("a")), rtol=0.0, atol=1e-12)


def test_dependent_columns_are_refused_where_values_may_be_missing() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 60))
    frame = pd.DataFrame({"a": a, "b": b, "c": a + b})
    with pytest.warns(DependentColumnsWarning):
        model = LinearDiscriminant().fit(frame, np.arange(60) % 2)
    with pytest.raises(ExportError, match="linear combination of others"):
        model.to_sql("rows")
    assert len(model.to_onnx().graph.output) == 3
