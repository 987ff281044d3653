"""Expressions of the values of a row: scores as formulas that other systems (SQL, ONNX, JavaScript) can evaluate.

An expression is a tree of a few operations. Families build the log-density of a row from it, a second statement of the
formula next to the one in NumPy, and `likely.export` writes it in the language of another system.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.numerics.arrays import LARGEST_NUMBER
from likely.typing import Array

LOG_ZERO = -1e300  # the logarithm of a probability of 0: a finite number that no other term can make up for
IMPOSSIBLE = -1e299  # scores below it contain LOG_ZERO
LARGEST = float(np.finfo(np.float64).max)
FAR = 1e140  # standard deviations from the mean at which values are clamped: their squares are finite
LARGE_COUNT = 1e15  # larger counts are clamped: differences of x·log x would have no digits
MODERATE = frozenset({"log", "sin", "cos", "pick"})  # operations whose results are far from overflow and underflow
SHIFT = 8  # Stirling's series is evaluated at arguments of at least 8
SHIFTED_BELOW = 16.0
# Coefficients of 1/x, 1/x³, … in log Γ(x) − (x − ½)·log x + x − ½·log 2π.
STIRLING = (1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0)


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """An operation on other expressions: a number, or a condition, for each row.

    Operations on numbers: "add", "subtract", "multiply", "divide", "maximum", "square", "log", "log1p", "exp", "sin",
    "cos" and "floor"; "linear", Σ value_i·operand_i; "pick", the entry of the table `value` at the index that the
    operand is; "cell", the number of increasing edges `value` that an operand reaches. Conditions: "less",
    "less_equal", "equal", "and", "or", "not". "where" has a condition and two numbers. Leaves: "constant" (a number),
    "number" (the input with the index `value`), "missing" (whether it is missing) and "code" (of a categorical input:
    0 where it is missing or unknown, and else the place of the category, from 1 on).
    """

    operation: str
    operands: tuple[Expression, ...] = ()
    value: Any = None

    def __add__(self, other: Operand) -> Expression:
        return _binary("add", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return _binary("add", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return _binary("subtract", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return _binary("divide", other, self)

    def __neg__(self) -> Expression:
        return _binary("multiply", -1.0, self)

    def __lt__(self, other: Operand) -> Expression:
        return _binary("less", self, other)

    def __le__(self, other: Operand) -> Expression:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return _binary("less", other, self)

    def __ge__(self, other: Operand) -> Expression:
        return _binary("less_equal", other, self)

    def equals(self, other: Operand) -> Expression:
        """Whether two numbers are equal."""
        return _binary("equal", self, other)

    def __and__(self, other: Expression) -> Expression:
        return Expression("and", (self, other))

    def __or__(self, other: Expression) -> Expression:
        return Expression("or", (self, other))

    def __invert__(self) -> Expression:
        return Expression("not", (self,))


Operand = Expression | float

_FOLDED: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
}


def constant(value: float) -> Expression:
    """A number that is the same for all rows."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a constant of an expression")
    return Expression("constant", value=number)


def number(index: int) -> Expression:
    """The number of an input; missing values have no value."""
    return Expression("number", value=index)


def missing(index: int) -> Expression:
    """Whether the value of an input is missing."""
    return Expression("missing", value=index)


def code(index: int) -> Expression:
    """The code of a categorical input: 0 where it is missing or unknown, and then from 1 on."""
    return Expression("code", value=index)


def expression(value: Operand) -> Expression:
    """The expression itself, or that of a number."""
    return value if isinstance(value, Expression) else constant(value)


def _binary(operation: str, first: Operand, second: Operand) -> Expression:
    a, b = expression(first), expression(second)
    if a.operation == b.operation == "constant" and operation in _FOLDED:
        return constant(_FOLDED[operation](a.value, b.value))
    return Expression(operation, (a, b))


def square(x: Expression) -> Expression:
    """x²."""
    return Expression("square", (x,))


def log(x: Expression) -> Expression:
    """The natural logarithm."""
    return Expression("log", (x,))


def log1p(x: Expression) -> Expression:
    """log(1 + x), which keeps its digits where x is small."""
    return Expression("log1p", (x,))


def log_relative(away: Expression, centre: float, far: Expression) -> Expression:
    """log(x/centre) for x = centre + away: `far`, log x − log centre, loses its digits near the centre."""
    near = (away < 0.5 * centre) & (away > -0.5 * centre)
    return where(near, log1p(where(near, away, 0.0) / centre), far)


def exp(x: Expression) -> Expression:
    """eˣ."""
    return Expression("exp", (x,))


def sin(x: Expression) -> Expression:
    """The sine of an angle in radians."""
    return Expression("sin", (x,))


def cos(x: Expression) -> Expression:
    """The cosine of an angle in radians."""
    return Expression("cos", (x,))


def floor(x: Expression) -> Expression:
    """The largest whole number that is at most x."""
    return Expression("floor", (x,))


def where(condition: Expression | None, then: Operand, other: Operand) -> Expression:
    """`then` where the condition holds, else `other`; None is a condition that never holds."""
    if condition is None:
        return expression(other)
    return Expression("where", (condition, expression(then), expression(other)))


def pick(index: Expression, table: Iterable[float]) -> Expression:
    """The entry of a table at an index from 0 on; −inf is the logarithm of 0."""
    return Expression("pick", (index,), tuple(log_number(value) for value in table))


def cell_of(x: Expression, edges: Iterable[float]) -> Expression:
    """The number of increasing edges that x reaches; one less where x is the last of several edges."""
    return Expression("cell", (x,), tuple(float(edge) for edge in edges))


def linear(coefficients: Iterable[float], terms: Sequence[Expression], offset: float = 0.0) -> Expression:
    """Σ c_i·x_i + offset; terms whose coefficient is 0 are left out."""
    used = [(float(c), x) for c, x in zip(coefficients, terms, strict=True) if c != 0.0]
    if not used:
        return constant(offset)
    total = Expression("linear", tuple(x for _, x in used), tuple(c for c, _ in used))
    return total + offset if offset != 0.0 else total


def total(terms: Sequence[Expression]) -> Expression:
    """The sum of expressions, by halves: its depth, and its rounding error, grow with the logarithm of their number."""
    return _by_halves(terms, "add") if terms else constant(0.0)


def largest(terms: Sequence[Expression]) -> Expression:
    """The largest of some numbers."""
    return _by_halves(terms, "maximum")


def any_of(conditions: Sequence[Expression]) -> Expression | None:
    """Whether one of the conditions holds; None without any."""
    return _by_halves(conditions, "or") if conditions else None


def all_of(conditions: Sequence[Expression]) -> Expression | None:
    """Whether all of the conditions hold; None without any."""
    return _by_halves(conditions, "and") if conditions else None


def _by_halves(terms: Sequence[Expression], operation: str) -> Expression:
    while len(terms) > 1:
        pairs = [Expression(operation, (a, b)) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = [*pairs, terms[-1]] if len(terms) % 2 else pairs
    return terms[0]


def log_sum_exp(terms: Sequence[Expression]) -> Expression:
    """log Σ exp(x_i), relative to the largest; terms more than 700 below it are e⁻⁷⁰⁰ of it, and do not underflow."""
    top = largest(terms)
    return top + log(total([exp(largest([x - top, constant(-700.0)])) for x in terms]))


def log_gamma_ratio(a: float, x: Expression) -> Expression:
    """log Γ(a + x) − log Γ(a) for a > 0 and x >= 0, by the difference of two Stirling series of five terms.

    Where a is small, both are shifted by 8: Γ(a + x)/Γ(a) = Γ(a + 8 + x)/Γ(a + 8) / Π_i (1 + x/(a + i)).
    """
    shift = SHIFT if a < SHIFTED_BELOW else 0
    return total([x * (log(a + shift + x) - 1.0), *_stirling_terms(a, x, shift)])


def log_gamma_ratios(a: float, b: float, x: Expression) -> Expression:
    """log Γ(a + x)/Γ(a) − log Γ(b + x)/Γ(b), in which the large terms x·log(a + x) and x·log(b + x) are combined."""
    shift = SHIFT if min(a, b) < SHIFTED_BELOW else 0
    first, second = _stirling_terms(a, x, shift), _stirling_terms(b, x, shift)
    return total([-(x * log1p((b - a) / (a + shift + x))), *first]) - total(second)


def _stirling_terms(a: float, x: Expression, shift: int) -> list[Expression]:
    """The terms of log Γ(a + x)/Γ(a) but x·(log(a + shift + x) − 1)."""
    start = a + shift
    inverse = 1.0 / (start + x)
    terms = [(start - 0.5) * log1p(x / start), inverse * _series(square(inverse)), constant(-_stirling(start))]
    if shift:  # in products of four factors, which large counts do not make overflow
        steps = [1.0 + x / (a + i) for i in range(shift)]
        terms += [-log((s * t) * (u * v)) for s, t, u, v in (steps[:4], steps[4:])]
    return terms


def _series(inverse_square: Expression) -> Expression:
    """Σ c_i·(1/x²)ⁱ, by Horner's rule."""
    value: Expression = constant(STIRLING[-1])
    for coefficient in reversed(STIRLING[:-1]):
        value = coefficient + inverse_square * value
    return value


def _stirling(a: float) -> float:
    value = 0.0
    for coefficient in reversed(STIRLING):
        value = coefficient + value / (a * a)
    return value / a


def log_number(value: float) -> float:
    """A logarithm, with −1e300 for −inf."""
    return max(float(value), LOG_ZERO)


def times_log(x: Expression, coefficient: float) -> Expression:
    """x·log p for x >= 0 and a logarithm of a probability that may be 0: impossible where x > 0, else 0."""
    if coefficient > -np.inf:
        return x * coefficient
    return where(x > 0.0, LOG_ZERO, 0.0)


def bounded(x: Expression, largest: float, smallest: float = 0.0) -> Expression:
    """x within ±largest, and 0 where |x| < smallest: products of it then neither overflow nor underflow.

    PostgreSQL raises an error for both, and elsewhere an infinite term makes the score of a class NaN.
    """
    if x.operation in MODERATE or x.operation == "constant":
        return x
    top = min(float(largest), LARGEST)
    inner = where((x < smallest) & (x > -smallest), 0.0, x) if smallest > 0.0 else x
    return where(x > top, top, where(x < -top, -top, inner))


def with_coefficients(x: Expression, coefficients: Array) -> Expression:
    """x, bounded so that its products with any of these coefficients neither overflow nor underflow."""
    size = float(np.abs(coefficients[np.isfinite(coefficients)]).max(initial=0.0))
    return bounded(x, 1e280 / size, 1e-140 / size) if size > 0.0 else x


def in_units(x: Expression, unit: float) -> Expression:
    """x / unit without overflow and underflow, for x >= 0; limits are powers of ten, which classes share as steps."""
    power = 10.0 ** math.floor(math.log10(unit))
    return bounded(x, LARGEST * min(power, 1.0), 1e-290 * power) / unit


def finite(x: Expression, limit: float = LARGEST_NUMBER) -> Expression:
    """Whether a number is not infinite, and not beyond the limit of numbers that are read."""
    return (x <= limit) & (x >= -limit)


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A value of a row: its number, or the code of its category, and whether it is missing (None: it never is)."""

    value: Expression
    missing: Expression | None

    def known(self, term: Expression) -> Expression:
        """The term of an observed value, and 0 for a missing one."""
        return where(self.missing, 0.0, term)

    def filled(self, filler: float) -> Expression:
        """The value, and a filler where it is missing."""
        return where(self.missing, filler, self.value)


def bounded_cells(cells: Sequence[Cell], reach: Array, unit: Array) -> list[Cell]:
    """Cells within about 1e140 units (columns) of their reach: squares and products of their values are finite.

    The bound is the same for all columns, unless their units differ by factors beyond 1e20: rows that have one value,
    such as 1e200, in several columns keep their direction.
    """
    common = FAR * float(unit.min(initial=np.inf))
    with np.errstate(over="ignore"):
        tops = (np.abs(reach) + np.maximum(common, FAR * 1e-20 * unit)).tolist()
    pairs = zip(cells, tops, (unit / FAR).tolist(), strict=True)
    return [Cell(bounded(cell.value, top, low), cell.missing) for cell, top, low in pairs]


def relative_to_first(values: Array) -> Array:
    """Logarithms (classes, ...) less those of the first class, where all classes have finite ones.

    What classes have in common does not change their probabilities, but rounds them off.
    """
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(values).all(axis=0), values - values[0], values)
