"""Models as SQL: one SELECT statement in the dialect of DuckDB, SQLite or PostgreSQL.

Steps of the program with a name are columns of common table expressions, one for each level of dependence. All of them
are MATERIALIZED: databases that put the text of one into the next compute shared steps again and again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from likely.data.reading import ColumnReading
from likely.errors import check_choice
from likely.export.categories import category_type
from likely.export.dates import date_part
from likely.export.names import checked_names, kept_names, table_name
from likely.export.program import INPUTS, Program, Step
from likely.export.quoting import comment_text, quoted_name, quoted_text, sql_label
from likely.export.scorer import Input, Scorer, too_wide
from likely.export.text import Writer

DIALECTS = ("duckdb", "sqlite", "postgres")
WIDEST = 1500  # columns of a common table expression; PostgreSQL allows 1,600, and SQLite 2,000
ROUND = 300  # named steps that are computed before those of the next inputs


def to_sql(scorer: Scorer, table: Any, dialect: str, keep: Iterable[str], prefix: str) -> str:
    """The statement that scores the rows of a table."""
    check_choice("dialect", dialect, DIALECTS)
    kept = kept_names(keep)
    outputs = checked_names(scorer, dialect, kept, prefix)
    writer = SQLWriter(scorer, dialect)
    inputs = scorer.program.inputs()
    base = [f"{_column(name)} AS k{i}" for i, name in enumerate(kept)]
    base += [f"{writer.input(scorer.inputs[j])} AS i{j}" for j in inputs]
    base = base or ["1 AS k0"]  # a model without any evidence reads no column
    source = table_name(table)
    stem = _stem(source)
    parts = [f"{stem}0 AS MATERIALIZED (SELECT {', '.join(base)} FROM {source} AS r)"]
    carried = [f"k{i}" for i in range(len(kept))]
    for level, columns in enumerate(_levels(writer, carried), start=1):
        parts.append(f"{stem}{level} AS MATERIALIZED (SELECT {', '.join(columns)} FROM {stem}{level - 1})")
    results = [f"k{i} AS {quoted_name(name)}" for i, name in enumerate(kept)]
    values = [writer.predicted(), *(writer.reference(p) for p in scorer.probabilities)]
    results += [f"{writer.valid(value)} AS {quoted_name(name)}" for value, name in zip(values, outputs, strict=True)]
    return (
        _comment(scorer) + "WITH\n" + ",\n".join(parts) + f"\nSELECT {', '.join(results)}\nFROM {stem}{len(parts) - 1}"
    )


def _comment(scorer: Scorer) -> str:
    """A comment on unseen categories, with the number of known ones in each column that is read; else no text."""
    columns = [scorer.inputs[j] for j in scorer.program.inputs()]
    known = [f'"{comment_text(each.name)}": {len(each.vocabulary)}' for each in columns if each.vocabulary is not None]
    text = [f'"{comment_text(each.name)}"' for each in columns if each.source is not None and each.source.numbers]
    numbers = f"/* Columns of numbers, which were text in training: {', '.join(text)} */\n" if text else ""
    if not known:
        return numbers
    effect = "give NULL in all results" if scorer.refuses_unseen else "count as missing values"
    shown = ",\n   ".join(known)
    return (
        f"{numbers}/* Categories that did not occur in training {effect}. Number of known categories:\n   {shown} */\n"
    )


def _column(name: str) -> str:
    """A column of the table. Its name is qualified: SQLite reads the quoted name of an absent column as text."""
    return f"r.{quoted_name(name)}"


def _stem(source: str) -> str:
    """The beginning of the names of common table expressions, which the table does not have."""
    stem = "step"
    while stem in source.lower():
        stem += "_"
    return stem


def _levels(writer: SQLWriter, carried: list[str]) -> list[list[str]]:
    """The columns of each common table expression after the first: those carried on, and new ones.

    Where these are too many, the steps of one class follow those of the class before it, and else the steps of a few
    inputs those of the inputs before them, of which only partial sums are carried on.
    """
    program = writer.program
    columns = _scheduled(writer, carried, [0] * len(program.steps))
    if _width(columns) > WIDEST:
        columns = _scheduled(writer, carried, _owners(program))
    if _width(columns) > WIDEST:
        writer.named |= program.partial_sums()
        columns = _scheduled(writer, carried, _rounds(program, writer.named))
    if _width(columns) > WIDEST:
        raise too_wide(_width(columns), WIDEST)
    return columns


def _width(levels: list[list[str]]) -> int:
    """The number of columns of the widest level."""
    return max(map(len, levels), default=0)


def _scheduled(writer: SQLWriter, carried: list[str], owner: list[int]) -> list[list[str]]:
    """The columns of each level; the steps of one owner follow those of the owner before it."""
    program, named = writer.program, writer.named
    needs = [_needs(program, named, step) for step in range(len(program.steps))]
    level: dict[int, int] = {}
    finished: dict[int, int] = defaultdict(int)  # the last level of each owner
    for step in sorted(named, key=lambda i: (owner[i], i)):
        earlier = max((finished[k] for k in range(owner[step])), default=0)
        level[step] = max([earlier, *(level[i] for i in needs[step] if i in level)], default=0) + 1
        finished[owner[step]] = max(finished[owner[step]], level[step])
    last = max(level.values(), default=0)
    until: dict[int, int] = defaultdict(int)  # the last level that reads a column
    for step in named:
        for i in needs[step]:
            until[i] = max(until[i], level[step])
    for output in writer.results():
        until[output] = last + 1
    columns = []
    for current in range(1, last + 1):
        live = [i for i in until if until[i] > current and level.get(i, 0) < current]
        new = [i for i in sorted(named) if level[i] == current]
        old = dict.fromkeys(map(writer.column, sorted(live)))  # a number and whether it is missing are one column
        columns.append([*carried, *old, *(f"{writer.text(i)} AS v{i}" for i in new)])
    return columns


def _needs(program: Program, named: set[int], step: int) -> set[int]:
    """The columns that the text of a step reads: named steps, and inputs."""
    found: set[int] = set()
    stack = list(program.steps[step].operands)
    while stack:
        i = stack.pop()
        if i in named or program.steps[i].operation in INPUTS:
            found.add(i)
        else:
            stack.extend(program.steps[i].operands)
    return found


def _owners(program: Program) -> list[int]:
    """The first output that needs each step."""
    owner = [len(program.outputs)] * len(program.steps)
    for place, output in enumerate(program.outputs):
        stack = [output]
        while stack:
            i = stack.pop()
            if owner[i] > place:
                owner[i] = place
                stack.extend(program.steps[i].operands)
    return owner


def _rounds(program: Program, named: set[int]) -> list[int]:
    """Rounds of a few hundred named steps, in the order of the inputs that they need."""
    last = program.last_inputs()
    rounds = [0] * len(program.steps)
    for place, step in enumerate(sorted(named, key=lambda i: (last[i], i))):
        rounds[step] = place // ROUND
    return rounds


class SQLWriter(Writer):
    """Steps as SQL expressions."""

    def __init__(self, scorer: Scorer, dialect: str) -> None:
        functions = {"log": "ln", **{name: name for name in ("exp", "sin", "cos", "floor")}}
        greatest = "max" if dialect == "sqlite" else "greatest"
        infix = {"equal": " = ", "and": " AND ", "or": " OR "}
        super().__init__(scorer.program, infix, {**functions, "maximum": greatest})
        self.scorer, self.dialect = scorer, dialect

    @property
    def double(self) -> str:
        return {"duckdb": "DOUBLE", "sqlite": "REAL", "postgres": "double precision"}[self.dialect]

    def number(self, value: float) -> str:
        text = super().number(value)
        return f"{text}::float8" if self.dialect == "postgres" else text  # else PostgreSQL reads an exact decimal

    def input(self, column: Input) -> str:
        """A column of the table as a number, NULL where it is missing, or as the code of its category."""
        if column.source is not None and column.part:
            return self._part(column.source, column)
        name = _column(column.name)
        if column.vocabulary is not None:
            return self._code(name, column)
        if self.dialect == "sqlite":  # which casts text to 0: it makes the row invalid, as an infinite number does
            return f"CASE WHEN typeof({name}) IN ('text', 'blob') THEN 9e999 ELSE CAST({name} AS REAL) END"
        return f"NULLIF({self._double(name, column.is_flag)}, CAST('NaN' AS {self.double}))"

    def _part(self, source: ColumnReading, column: Input) -> str:
        """A part of a date as a number, or as the code of its category: years may be categories."""
        value = date_part(self.dialect, _column(source.name), column.part, source.date_kind)
        if column.vocabulary is None:
            return value
        words = enumerate(column.vocabulary, 1)
        cases = " ".join(f"WHEN {value} = {self.number(word)} THEN {i}" for i, word in words)
        return f"CASE WHEN {value} IS NULL THEN NULL {cases} ELSE 0 END"

    def _double(self, name: str, is_flag: bool) -> str:
        """A column as a double; a flag may be a boolean, which PostgreSQL does not cast to numbers."""
        if self.dialect != "postgres" or not is_flag:
            return f"CAST({name} AS {self.double})"
        text = f"CAST({name} AS text)"
        return f"CAST(CASE {text} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {text} END AS {self.double})"

    def _code(self, name: str, column: Input) -> str:
        """The code of a category: NULL where it is missing, and 0 where it is unknown."""
        assert column.vocabulary is not None
        kind, words, known = category_type(column.name, column.vocabulary), list(enumerate(column.vocabulary, 1)), name
        text = {
            "duckdb": f"CAST({name} AS VARCHAR) COLLATE C",
            "sqlite": f"CAST({name} AS TEXT) COLLATE BINARY",
            "postgres": f'CAST({name} AS text) COLLATE "C"',
        }[self.dialect]
        if kind == "number":
            value = self._double(name, is_flag=not {0, 1}.isdisjoint(column.vocabulary))
            cases = [f"WHEN {value} = {self.number(word)} THEN {i}" for i, word in words]
            if self.dialect == "sqlite":  # which casts text to 0
                cases.insert(0, f"WHEN typeof({name}) IN ('text', 'blob') THEN 0")
            else:
                known = f"NULLIF({value}, CAST('NaN' AS {self.double}))"
        elif kind == "boolean":
            forms = {True: "('true', 't', '1', '1.0')", False: "('false', 'f', '0', '0.0')"}
            cases = [f"WHEN lower({text}) IN {forms[word]} THEN {i}" for i, word in words]
        else:
            cases = [f"WHEN {self._text_of(word, name, text)} = {quoted_text(word)} THEN {i}" for i, word in words]
        return f"CASE WHEN {known} IS NULL THEN NULL {' '.join(cases)} ELSE 0 END"

    def _text_of(self, word: str, name: str, text: str) -> str:
        """The text to compare with a category: a cast of PostgreSQL removes blanks at the end of CHAR(n)."""
        padded = self.dialect == "postgres" and word.endswith(" ")
        return f'concat({name}) COLLATE "C"' if padded else text

    def column(self, step: int) -> str:
        """The column of a named step or of an input."""
        found = self.program.steps[step]
        return f"v{step}" if step in self.named else f"i{found.value}"

    def leaf(self, step: Step) -> str:
        if step.operation == "number":
            return f"i{step.value}"
        if step.operation == "missing":
            return f"(i{step.value} IS NULL)"
        return f"COALESCE(i{step.value}, 0)"

    def special(self, step: Step, texts: list[str]) -> str:
        name, x = step.operation, texts[0]
        if name == "not":
            return f"(NOT {x})"
        if name == "where":
            return f"CASE WHEN {x} THEN {texts[1]} ELSE {texts[2]} END"
        if name == "pick":
            cases = [f"WHEN {i} THEN {self.number(value)}" for i, value in enumerate(step.value)]
            return f"CASE {x} {' '.join(cases)} END"
        if name == "cell":
            return self._cell(x, step.value)
        assert name == "log1p"  # log(u)·x/(u − 1) with u = 1 + x, in which the rounding errors of u cancel
        one = self.number(1.0)
        u = f"({one} + {x})"
        return f"CASE WHEN {u} = {one} THEN {x} ELSE ln({u}) * ({x} / ({u} - {one})) END"

    def operation(self, step: Step, texts: list[str]) -> str:
        if step.operation == "square" and self.dialect == "postgres":  # which raises an error where squares underflow
            (x,) = texts
            underflows = f"{x} < {self.number(1e-150)} AND {x} > {self.number(-1e-150)}"
            return f"CASE WHEN {underflows} THEN {self.number(0.0)} ELSE {x} * {x} END"
        return super().operation(step, texts)

    def _cell(self, x: str, edges: tuple[float, ...]) -> str:
        if not edges:
            return "0"
        reached = ["<"] * (len(edges) - 1) + ["<=" if len(edges) > 1 else "<"]  # the last edge is in the last cell
        cases = [
            f"WHEN {x} {sign} {self.number(edge)} THEN {i}"
            for i, (sign, edge) in enumerate(zip(reached, edges, strict=True))
        ]
        return f"CASE {' '.join(cases)} ELSE {len(edges)} END"

    def results(self) -> list[int]:
        """The columns that the last SELECT reads."""
        found = {*self.scorer.scores, self.scorer.largest, *self.scorer.probabilities, self.scorer.invalid}
        return [i for i in found if i in self.named]

    def predicted(self) -> str:
        """The label of the first class with the largest score."""
        top = self.reference(self.scorer.largest)
        pairs = zip(self.scorer.scores, self.scorer.classes, strict=True)
        cases = [
            f"WHEN {self.reference(score)} = {top} THEN {sql_label(label, self.dialect)}" for score, label in pairs
        ]
        return f"CASE {' '.join(cases)} END"

    def valid(self, value: str) -> str:
        """A result, and NULL for an invalid row."""
        return f"CASE WHEN {self.reference(self.scorer.invalid)} THEN NULL ELSE {value} END"
