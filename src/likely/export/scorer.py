"""The class probabilities of a joint model as a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.data.reading import ColumnReading, Reading
from likely.errors import ExportError, listed
from likely.export.program import Program, has_log_zero
from likely.families.supports import ZERO_ONE
from likely.model.block import Block
from likely.model.joint import JointModel
from likely.numerics.expressions import (
    IMPOSSIBLE,
    LARGEST,
    LOG_ZERO,
    Cell,
    Expression,
    all_of,
    any_of,
    code,
    constant,
    exp,
    finite,
    largest,
    missing,
    number,
    total,
    where,
)
from likely.typing import Array, Vocabulary

SMALLEST = -700.0  # differences of scores below it have a probability of 0: exp would underflow


@dataclass(frozen=True, slots=True)
class Input:
    """A column of the rows that are scored: numbers, or categories in the order of their codes."""

    name: str
    vocabulary: Vocabulary | None = None
    is_flag: bool = False  # numbers that may be stored as booleans
    is_offset: bool = False  # whole numbers beyond 2^53, from which the model subtracts an origin
    used: bool = True  # whether the model uses the column; the type of other columns is not known
    source: ColumnReading | None = None  # how the column of the rows is read that this one comes from
    part: str = ""  # of a date


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """The program that scores a row, and the steps of it that are results.

    Probabilities and the predicted class of an invalid row are null, or the class prior and its mode.
    """

    inputs: tuple[Input, ...]
    classes: tuple[Any, ...]
    program: Program
    scores: tuple[int, ...]  # of the classes
    largest: int  # the largest score
    probabilities: tuple[int, ...]  # of the classes
    invalid: int  # whether the row is invalid
    prior: tuple[float, ...]  # of the classes

    @property
    def refuses_unseen(self) -> bool:
        """Whether rows with categories that did not occur in training are invalid."""
        read = {step.value for step in self.program.steps if step.operation == "missing"}
        return any(self.inputs[j].vocabulary is not None for j in read)

    def read_by(self, reading: Reading) -> Scorer:
        """The scorer of rows whose columns are read in this way."""
        sources = [(column, part) for column in reading.columns for part in column.parts or ("",)]
        pairs = zip(self.inputs, sources, strict=True)
        return replace(self, inputs=tuple(replace(each, source=column, part=part) for each, (column, part) in pairs))

    def with_flags(self, names: frozenset[str]) -> Scorer:
        """The scorer of rows in which these columns may be stored as booleans too."""
        inputs = tuple(replace(each, is_flag=each.is_flag or each.name in names) for each in self.inputs)
        return replace(self, inputs=inputs)


def scorer_of(
    inputs: Sequence[Input],
    classes: Sequence[Any],
    scores: list[Expression],
    invalid: Sequence[Expression],
    log_prior: Array,
    evidence: Sequence[Expression] | None = None,
) -> Scorer:
    """The scorer of classes whose probabilities are the softmax of `scores`.

    A class is impossible where its evidence contains the logarithm of 0; where all are, probabilities are the prior.
    """
    if evidence is not None:
        scores = _with_impossible(scores, evidence, log_prior.tolist())
    top = largest(scores)
    away = [score - top for score in scores]
    odds = [where(each < SMALLEST, 0.0, exp(largest([each, constant(SMALLEST)]))) for each in away]
    norm = total(odds)
    wrong = ~finite(top, LARGEST)  # a score that is not a number
    condition = any_of(invalid)
    results = [*scores, top, *(each / norm for each in odds), wrong if condition is None else condition | wrong]
    program, k = Program.of(results), len(scores)
    steps = program.outputs
    found = steps[:k], steps[k], steps[k + 1 : -1], steps[-1]
    return Scorer(tuple(inputs), tuple(classes), program, *found, tuple(np.exp(log_prior).tolist()))


def _with_impossible(
    scores: list[Expression], evidence: Sequence[Expression], log_prior: Sequence[float]
) -> list[Expression]:
    """Scores that are the logarithm of 0 for impossible classes, and those of the prior where all classes are."""
    possible = [k for k, value in enumerate(log_prior) if value > -np.inf]
    prior = [max(float(value), LOG_ZERO) for value in log_prior]
    found = [score if k in possible else constant(LOG_ZERO) for k, score in enumerate(scores)]
    if not has_log_zero(Program.of(evidence)):
        return found
    impossible = {k: evidence[k] < IMPOSSIBLE for k in possible}
    nowhere = all_of(list(impossible.values()))
    return [where(nowhere, prior[k], where(impossible.get(k), LOG_ZERO, score)) for k, score in enumerate(found)]


def joint_scorer(
    model: JointModel, *, strict: bool = False, longest: int | None = None, widest: int | None = None
) -> Scorer:
    """The scorer of a joint model.

    If `strict`, rows with categories that did not occur in training are invalid. So are rows with missing values in a
    joint block for which these need more than `longest` steps. A factorisation of d columns has d²/4 values at a time,
    and an error is raised where these are more than `widest`.
    """
    if widest is not None:
        _check_width(model, widest)
    reader = _Reader(model, strict, longest)
    parts = [reader.scores(block) for block in model.blocks]
    evidence = [total([part[k] for part in parts]) for k in range(len(model.classes))]
    prior = model.log_prior - model.log_prior[np.argmax(model.log_prior > -np.inf)]
    scores = []
    for k, log_density in enumerate(evidence):
        score = log_density
        if model.calibration is not None:
            intercept = where(reader.unobserved(), 0.0, float(model.calibration.intercepts[k]))
            score = float(model.calibration.exponent) * score + intercept
        scores.append(score + (float(prior[k]) if prior[k] > -np.inf else 0.0))
    return scorer_of(reader.inputs(), model.classes.tolist(), scores, reader.invalid, model.log_prior, evidence)


def _within(steps: int | None, longest: int) -> bool:
    return steps is not None and steps <= longest


def _check_width(model: JointModel, widest: int) -> None:
    """Raise where a joint block is too wide, before its expressions are built, which takes minutes."""
    for block in model.blocks:
        parts = block.conditionals
        columns = parts.dimension - len(parts.ignored_columns())
        if parts.is_joint and columns**2 // 4 > widest:
            raise too_wide(columns**2 // 4, widest)


def too_wide(width: int, widest: int) -> ExportError:
    """The error for models that databases cannot compute."""
    return ExportError(
        f"The statement would need intermediate results of at least {width} columns, and databases allow about "
        f"{widest}. Use fewer columns or classes, independent columns (NaiveBayes), to_onnx or to_javascript."
    )


class _Reader:
    """The values of the blocks of a model, and the conditions under which a row is invalid or unobserved."""

    def __init__(self, model: JointModel, strict: bool, longest: int | None) -> None:
        self.model, self.strict, self.longest = model, strict, longest
        self.invalid: list[Expression] = []
        self._missing: list[Expression | None] = []  # of the columns that contribute to a density
        self._inputs: dict[int, Input] = {}

    def inputs(self) -> list[Input]:
        """The inputs, in the order of the columns of the model; those that no block reads are not used."""
        return [self._inputs.get(j, Input(name, used=False)) for j, name in enumerate(self.model.names)]

    def unobserved(self) -> Expression | None:
        """Whether a row has no value; None if every row has one."""
        known = [condition for condition in self._missing if condition is not None]
        return all_of(known) if len(known) == len(self._missing) else None

    def scores(self, block: Block) -> list[Expression]:
        """The scores of the classes by the columns of a block."""
        parts, columns = block.conditionals, block.index.tolist()
        shown = f"column{'s' if len(columns) > 1 else ''} {listed([self.model.names[j] for j in columns])}"
        if parts.vocabularies is not None:
            cells = self._categories(columns, parts.vocabularies, set(parts.ignored_columns().tolist()))
        else:
            cells = self._numbers(block)
        try:
            found = parts.expressions(cells)
        except ExportError as error:
            raise ExportError(f"The model cannot be exported: {shown}: {error}.") from None
        if found is None:
            raise ExportError(f"The model cannot be exported: {shown}: {parts.not_exported}")
        return found

    def _categories(self, columns: Sequence[int], vocabularies: Sequence[Vocabulary], ignored: set[int]) -> list[Cell]:
        cells = []
        for i, (j, words) in enumerate(zip(columns, vocabularies, strict=True)):
            self._inputs[j] = Input(self.model.names[j], words)
            unknown = code(j).equals(0.0)
            cells.append(Cell(code(j), unknown))
            if i not in ignored:
                self._missing.append(unknown)
            if self.strict:
                self.invalid.append(unknown & ~missing(j))
        return cells

    def _numbers(self, block: Block) -> list[Cell]:
        parts = block.conditionals
        extra = [] if block.extra is None else block.extra.tolist()
        unread = set(parts.ignored_columns().tolist())
        joint = self.longest is not None and not _within(parts.incomplete_steps, self.longest)
        offset = set(parts.offset_columns().tolist())
        declared = not block.observed or self.strict
        cells = []
        for i, j in enumerate([*block.index.tolist(), *extra]):
            is_flag = getattr(parts, "support", None) is ZERO_ONE
            self._inputs[j] = Input(self.model.names[j], is_flag=is_flag, is_offset=i in offset)
            raw, absent = number(j), missing(j)
            outside = ~parts.inside(i, raw)
            cells.append(Cell(raw, None if joint else absent | outside))
            if i in unread:
                continue
            if joint or parts.needs_values:
                self.invalid.append(absent | outside)
            else:
                self.invalid.append(~absent & (outside if declared else ~finite(raw)))
            accurate = parts.accurate(i, raw)
            if accurate is not None:
                self.invalid.append(~(absent | outside) & ~accurate)
            if i < parts.dimension:
                self._missing.append(cells[-1].missing)
        if parts.needs_values:
            self._missing.append(None)
        return cells
