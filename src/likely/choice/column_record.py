"""What was found about the columns of the training rows, and the table that shows what each of them became."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likely.choice.column_types import ColumnProfile
from likely.choice.leaks import Leak, find_leaks, warn_of_leaks
from likely.data.batches import Batch
from likely.data.reading import ColumnReading, Reading
from likely.data.table import Table, features_of
from likely.errors import ColumnWarning, amount, warn
from likely.model.persistence import register

MOST_ROWS = 20_000  # in which distinct fractions are counted
SHOWN = 12  # columns set aside that a summary names
MOST_COLUMNS = 1_000  # of sparse rows that have a record
HEADER = ("column", "type", "missing", "distinct", "decision", "reason", "change")
IGNORED = "declared in families"
SET_ASIDE = "set aside"
TWO_WAYS = "numbers or dates that can be read in two ways, used as text"
DATE_TYPES = {"date": "date", "datetime": "date and time", "time": "time"}


@dataclass(frozen=True, slots=True)
class ColumnDecision:
    """What a column of the table became: the text of its family, or "set aside", and why."""

    decision: str
    reason: str = ""
    change: str = ""

    @property
    def is_set_aside(self) -> bool:
        return self.decision == SET_ASIDE


@register
@dataclass(frozen=True, slots=True)
class ColumnRecord:
    """Types and counts of the columns of the input, in its order, and remarks on some of them."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    missing: tuple[int, ...]
    distinct: tuple[int, ...]
    targets: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)  # why a column is set aside, or may be an identifier
    leaks: tuple[Leak, ...] = ()

    @classmethod
    def of(cls, batch: Batch, inputs: Sequence[str] | None = None, aside: Collection[str] = ()) -> ColumnRecord:
        """The record of the rows of a batch; `inputs` are all columns of the input, `aside` those set aside.

        It is empty for sparse rows of very many columns.
        """
        table = batch.table.whole
        if table.is_sparse and table.width > MOST_COLUMNS:
            return cls((), (), (), ())
        reading = table.reading or _plain(table)
        found, notes, place = {}, {}, 0
        for column in reading.columns:
            found[column.name] = _counted(table, place, column)
            if place < table.width and table.names[place] in aside:
                notes[column.name] = _why_aside(table, place, found[column.name][2])
            place += len(column.names)
        for name in map(str, batch.targets):
            found[name] = _counted_labels(batch)
        order = [name for name in (inputs or found) if name in found]
        order += [name for name in found if name not in order]
        types, missing, distinct = zip(*(found[name] for name in order), strict=True)
        targets = tuple(str(name) for name in batch.targets)
        return cls(tuple(order), types, missing, distinct, targets, notes)

    def constant(self, reading: Reading | None) -> set[str]:
        """The columns of the table without any variation."""
        names = {name for name, distinct in zip(self.names, self.distinct, strict=True) if distinct < 2}
        if reading is None:
            return names
        return {part for column in reading.columns for part in column.names if column.name in names}

    def examined(self, batch: Batch, used: Sequence[int]) -> ColumnRecord:
        """The same with what warnings report of the columns in use: leaks, and those that may be identifiers."""
        table = batch.table
        if not table.is_frame or not len(batch.codes):
            return self
        names = {} if table.reading is None else table.reading.input_names
        leaks = find_leaks(table, batch.codes, batch.counts.classes, batch.weights, used)
        warn_of_leaks(leaks)
        notes = {}
        kept = () if table.reading is None else table.reading.no_identifiers
        for j in (j for j in used if j not in kept):
            doubt = ColumnProfile.at(table.whole, j, None, frame=True).may_be_identifier
            if doubt:
                name = names.get(table.names[j], table.names[j])
                notes[name] = f"may be an identifier ({doubt})"
                warn(
                    f"Column {name!r} is used, and may identify rows ({doubt}). If it does, set it aside: "
                    f"families={{{name!r}: None}}.",
                    ColumnWarning,
                )
        return replace(self, notes={**self.notes, **notes}, leaks=tuple(leaks))

    def table(self, reading: Reading | None, decisions: Mapping[str, ColumnDecision]) -> dict[str, list[Any]]:
        """The columns of the table of decisions, from those on the columns that are modelled."""
        read = {} if reading is None else {column.name: column for column in reading.columns}
        rows = []
        for name, kind, missing, distinct in zip(self.names, self.types, self.missing, self.distinct, strict=True):
            found = (
                ColumnDecision("target") if name in self.targets else self._decision(name, read.get(name), decisions)
            )
            rows.append((name, kind, missing, distinct, found.decision, found.reason, found.change))
        return {title: [row[i] for row in rows] for i, title in enumerate(HEADER)}

    def _decision(
        self, name: str, reading: ColumnReading | None, decisions: Mapping[str, ColumnDecision]
    ) -> ColumnDecision:
        """What a column of the input became."""
        parts = (name,) if reading is None else reading.names
        leaks = [f"leak: {leak.message}" for leak in self.leaks if leak.column in parts]
        note = _joined(self.notes.get(name, ""), *leaks)
        used = [part for part in parts if not decisions[part].is_set_aside]
        if reading is not None and reading.parts and used:
            change = f"types={{{name!r}: 'text'}}"
            return ColumnDecision(f"expanded to {', '.join(used)}", _joined(_source(reading), note), change)
        found = decisions[parts[0]]
        if found.is_set_aside:
            note = _joined(note, TWO_WAYS if reading is not None and reading.doubtful else "")
            return _set_aside(name, found, note, self.distinct[self.names.index(name)])
        change = found.change
        if reading is not None and (reading.numbers is not None or reading.dates is not None):
            change = f"types={{{name!r}: 'text'}}"
        return ColumnDecision(found.decision, _joined(_source(reading), found.reason, note), change)


def _set_aside(name: str, found: ColumnDecision, note: str, distinct: int) -> ColumnDecision:
    """A column that is not used, with the reason."""
    if found.reason:
        note = found.reason
    elif distinct == 0:
        note = "no values"
    elif distinct == 1:
        note = "constant"
    change = "" if distinct < 2 else f"families={{{name!r}: Categorical()}}"
    if found.reason == IGNORED:
        change = f"remove {name!r} from families"
    return ColumnDecision(SET_ASIDE, note, found.change or change)


def column_lines(table: Mapping[str, list[Any]]) -> list[str]:
    """The table of decisions in a few lines: columns by decision, those set aside with the reason, and leaks."""
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    families: dict[tuple[str, int], list[tuple[str, bool]]] = {}
    lines, aside, leaks = [], [], []
    for row in rows:
        if row["decision"] == SET_ASIDE:
            aside.append(f"{row['column']!r} ({row['reason']})" if row["reason"] else repr(row["column"]))
            continue
        if "leak: " in row["reason"]:
            leaks.append(f"leak: {row['reason'].partition('leak: ')[2]}")
        if row["decision"].startswith("expanded to"):
            lines.append(f"{row['column']!r} {row['decision']}")
        elif row["decision"] != "target":
            family, joint, others = row["decision"].partition(", joint with ")
            by_log = bool(joint) and family == "LogNormal"  # a joint Gaussian of logarithms
            key = "Gaussian" if by_log else family, int(others.partition(" ")[0] or 0)
            families.setdefault(key, []).append((row["type"], by_log))
    counts = [_family_line(*key, columns) for key, columns in families.items()]
    more = [f"and {len(aside) - SHOWN} more"] if len(aside) > SHOWN + 1 else []
    shown = aside if not more else aside[:SHOWN]
    return [*counts, *lines, *([f"set aside: {', '.join([*shown, *more])}"] if aside else []), *leaks]


def _family_line(family: str, others: int, columns: Sequence[tuple[str, bool]]) -> str:
    """The columns of a family by type, each joint with `others`: their types, and whether by the logarithm."""
    kinds, by_log = zip(*columns, strict=True)
    text = ", ".join(amount(kinds.count(kind), kind, _plural(kind)) for kind in dict.fromkeys(kinds))
    if not others:
        return f"{text} as {family}"
    blocks = len(columns) // (others + 1)
    name = f"one joint {family}" if blocks < 2 else f"{blocks} joint {family}s"
    return f"{text} as {name}" + (f", {sum(by_log)} by the logarithm" if any(by_log) else "")


def _plural(kind: str) -> str:
    return kind if kind.endswith("values") else "texts" if kind == "text" else f"{kind}s"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _source(reading: ColumnReading | None) -> str:
    """How the values of a column were read, where this is not obvious."""
    if reading is None:
        return ""
    what = "declared in types" if reading.declared else ""
    if reading.kind == "date" and reading.date_kind:
        what = _joined(what, {"datetime": "dates and times", "time": "times"}.get(reading.date_kind, "dates"))
    if reading.numbers is not None:
        form = reading.numbers
        signs = [f"unit {form.unit!r}"] if form.unit else []
        signs += [f"thousands {form.thousands!r}"] if form.thousands else []
        signs += [f"decimal {form.decimal!r}"] if form.decimal != "." else []
        what = _joined(what, " with ".join(["numbers in text", *([" and ".join(signs)] if signs else [])]))
    if reading.doubtful:
        what = _joined(what, TWO_WAYS)
    if reading.codes:
        what = _joined(what, "codes of digits, used as text")
    if reading.strays:
        what = _joined(what, f"{reading.strays:.1%} other text, read as missing")
    return what


def _plain(table: Table) -> Reading:
    """The reading of a table whose columns are used as they are."""
    return Reading(tuple(ColumnReading(name, "number") for name in table.names[: features_of(table)]))


def _counted(table: Table, place: int, reading: ColumnReading) -> tuple[str, int, int]:
    """The type of a column of the input, the number of its missing values, and of its distinct values."""
    if table.is_sparse:
        stored = table.column(place)
        return "number", 0, len(np.unique(stored)) + (len(stored) < table.rows)
    if table.kinds[place] == "category":
        (labels,) = table.categories([place])
        used = np.bincount(labels.part(0, table.rows) + 1, minlength=len(labels.vocabulary) + 1)
        distinct = int(np.count_nonzero(used[1:]))
        return ("text" if distinct else "no values"), int(used[0]), distinct
    values = table.column(place)
    missing = int(np.count_nonzero(np.isnan(values))) if values.dtype.kind == "f" else 0
    profile = ColumnProfile.at(table, place, None, table.is_frame)
    distinct = profile.different or _distinct(values)
    if missing == len(values):
        return "no values", missing, 0
    if reading.kind == "date":
        return DATE_TYPES.get(reading.date_kind, "date"), missing, distinct
    kind = "boolean" if table.kinds[place] == "boolean" else "whole number" if profile.whole else "number"
    return kind, missing, distinct


def _distinct(values: Any) -> int:
    """The number of distinct numbers, in at most this many rows, evenly spaced."""
    known = values[:: max(len(values) // MOST_ROWS, 1)]
    known = known[~np.isnan(known)] if known.dtype.kind == "f" else known
    return len(np.unique(known))


def _counted_labels(batch: Batch) -> tuple[str, int, int]:
    """The type of the labels, the number of unlabeled rows, and of classes."""
    classes = batch.counts.classes
    labels = classes.tolist()
    unlabeled = 0 if batch.unlabeled is None else batch.unlabeled.table.rows
    kind = "text"
    if labels and all(isinstance(label, bool) for label in labels):
        kind = "boolean"
    elif labels and all(isinstance(label, int | float) for label in labels):
        kind = "whole number" if all(float(label).is_integer() for label in labels) else "number"
    return kind, unlabeled, len(classes)


def _why_aside(table: Table, place: int, distinct: int) -> str:
    """Why a column that has no declared family is not used."""
    if distinct < 2:
        return ""
    return ColumnProfile.at(table, place, None, table.is_frame).identifier_reason or "free text"
