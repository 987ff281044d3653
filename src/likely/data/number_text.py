"""Numbers as people write them in text: with thousands, decimal commas, currencies, percent signs, units, multipliers.

A column has one form. Text that looks like a number but is a code has none: digits with a leading zero, whole numbers
of eight digits or more that all have the same length (unless all end in 00, as amounts do) or of which some have more
than 15 digits, which float64 would change, and a plus sign before eight digits or more (telephone numbers). Dates,
times, versions, addresses, ranges and bounds such as '<5' are not numbers either, nor are digits that are not ASCII.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from likely.data.number_tokens import BLANKS, Affixes, Meaning, Tokens, finite, is_currency, meanings_of, unit_key
from likely.data.text_cells import filled, sequence, text_cells, text_weights
from likely.typing import AnyArray, Array

SEPARATORS = (  # decimal and thousands, the plain first
    (".", ""),
    (",", ""),
    (".", ","),
    (",", "."),
    (".", " "),
    (",", " "),
    (".", "'"),
    (",", "'"),
)
MOST_KEPT = 0.95  # proportion of the numbers from which the others, which are ambiguous, may be missing
MOST_AFFIXES = 1000  # distinct texts around the digits; numbers have few, free text has many
FEWEST_GROUPED = 20  # distinct texts such as '1,234' that decide together with whole numbers below 1000
_PLAIN = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
_LEADING_ZERO = r"^[-+]?0[0-9]+$"
_PHONE = r"^\+[0-9]{8,}$"


@dataclass(frozen=True, slots=True)
class NumberForm:
    """How the numbers of a text column are written.

    The unit may be absent: in a column of `$1,200`, `1,200` is the same number. All forms but `PLAIN`, which reads what
    `float` reads, have negative numbers in parentheses and the sign − (U+2212), also between currency and digits.
    """

    decimal: str = "."
    thousands: str = ""
    unit: str = ""  # "$", "EUR", "%", "months"
    multipliers: bool = False
    accounting: bool = False  # all that distinguishes a form from `PLAIN` is the signs
    example: str = field(default="", compare=False)

    def read(self, values: Sequence[Any]) -> Array:
        """The number of each cell, NaN where a text is not in this form; numbers are themselves."""
        cells = sequence(values)
        if isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf":
            return cells.astype(np.float64)
        cells, others = text_cells(cells)
        if self == PLAIN:
            numbers = _plain(cells)
        else:
            tokens = Tokens(cells)
            numbers = tokens.numbers(self.meanings(tokens), self.decimal, self.thousands)
        for row, value in others.items():
            numbers[row] = _number(value)
        return numbers

    def describe(self) -> str:
        """The form as text, by an example from the column where it is not `PLAIN`."""
        return f"numbers such as {self.example!r}" if self.example else "numbers"

    def meanings(self, tokens: Tokens) -> list[Meaning | None]:
        """What the text around the digits says, None if it does not fit the form."""
        key = unit_key(self.unit)
        return [self._meaning(affixes, key) for affixes in tokens.affixes]

    def _meaning(self, affixes: Affixes | None, key: str) -> Meaning | None:
        alone = not key or is_currency(self.unit)  # whether 3M is three million in this unit
        fitting = [
            meaning
            for meaning in meanings_of(affixes)
            if meaning.unit in ("", key)
            and (not meaning.exponent or (self.multipliers and (meaning.unit == key or alone)))
        ]
        return fitting[-1] if fitting else None


PLAIN = NumberForm()
CODES = ("as codes have", "as in telephone numbers")  # ends of the notes on codes


def number_form(values: Sequence[str], counts: AnyArray, least: float = 0.95) -> tuple[NumberForm | None, str]:
    """The form in which at least a proportion `least` of the rows are numbers, or None with a note.

    `values` are the distinct texts of a column, `counts` the rows that have each; blank texts count as missing. The
    form that reads most rows is taken. The note says why a column of apparent numbers has none: they are codes, or
    two forms read as many rows and differ in the numbers. With `least=0`, of columns that are declared to be numbers,
    codes are numbers.
    """
    cells, _ = text_cells(values)
    weights = text_weights(cells, counts)
    total = weights.sum()
    if not total:
        return None, ""
    form, note, numbers = PLAIN, "", _plain(cells)
    if weights[np.isfinite(numbers)].sum() < total:
        found, note, numbers = _best_form(Tokens(cells), weights, least * total, numbers)
        if found is None:
            return None, note
        form = found
    read = np.isfinite(numbers) & (weights > 0)
    if not read.any() or weights[read].sum() < least * total:
        return None, ""
    note = _code_note(cells, weights, read, form, (1 - least) * total) if least else ""
    if note:
        return None, note
    return (form if form == PLAIN else replace(form, example=_example(cells, weights, read, form))), ""


def _plain(cells: Any) -> Array:
    """The numbers that float() reads, without underscores, infinity and digits that are not ASCII."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(cells, pa.float64())
    except pa.ArrowInvalid:
        cells = pc.if_else(pc.match_substring_regex(cells, _PLAIN), cells, None)
        numbers = pc.cast(cells, pa.float64())
    return finite(np.asarray(numbers.fill_null(np.nan)))


def _number(value: Any) -> float:
    """A cell that is not a text: a number is itself, all else is NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
        return np.nan
    try:
        return float(value)
    except (OverflowError, ValueError):  # 10**400, or a signalling NaN of decimal
        return np.nan


def _best_form(tokens: Tokens, weights: Array, needed: float, plain: Array) -> tuple[NumberForm | None, str, Array]:
    """The form that reads most rows and its numbers; None with a note where two forms differ in the numbers."""
    given = tokens.weights(weights)
    if len(given) > MOST_AFFIXES and np.partition(given, -MOST_AFFIXES)[-MOST_AFFIXES:].sum() < needed:
        return None, "", plain
    form = _form_of_unit(tokens, given)
    meanings = form.meanings(tokens)
    scores = {
        pair: weights[tokens.fitting(meanings, *pair)].sum() for pair in SEPARATORS if pair[1] in tokens.separators
    }
    most = max(scores.values())
    if weights[np.isfinite(plain)].sum() >= most:
        return PLAIN, "", plain
    if most < needed:
        return None, "", plain
    readings = {pair: tokens.numbers(meanings, *pair) for pair, score in scores.items() if score == most}
    pair, note = _separators(readings, tokens, weights, form.unit)
    if pair is None:
        pair = SEPARATORS[0]  # reads none of the ambiguous texts if they have commas
        if pair in readings or scores[pair] < max(needed, MOST_KEPT * most):
            return None, note, plain
        readings[pair] = tokens.numbers(meanings, *pair)
    accounting = any(
        affixes is not None and affixes.accounting and meaning is not None and count > 0
        for affixes, meaning, count in zip(tokens.affixes, meanings, given, strict=True)
    )
    return replace(form, decimal=pair[0], thousands=pair[1], accounting=accounting), "", readings[pair]


def _form_of_unit(tokens: Tokens, given: Array) -> NumberForm:
    """The unit of at least half of the numbers, with multipliers if some letters after the digits can be nothing else.

    In '5 m' and '12B' they are units, in '$5m' multipliers.
    """
    single, multiplied = (_with_unit(tokens, given, multipliers) for multipliers in (False, True))
    gained = _rows(multiplied, tokens, given) - _rows(single, tokens, given)
    certain = any(
        meaning is not None and meaning.exponent and meaning.certain and count
        for meaning, count in zip(multiplied.meanings(tokens), given, strict=True)
    )
    return multiplied if (certain and gained >= 0) or (is_currency(multiplied.unit) and gained > 0) else single


def _with_unit(tokens: Tokens, given: Array, multipliers: bool) -> NumberForm:
    """The form with the most frequent unit, without one if fewer than half of the numbers have it."""
    spellings: dict[str, dict[str, float]] = {}
    for affixes, count in zip(tokens.affixes, given.tolist(), strict=True):
        found = [meaning for meaning in meanings_of(affixes) if multipliers or not meaning.exponent]
        if affixes is not None and found and count:
            spelled = spellings.setdefault(found[-1].unit, {})
            text = affixes.prefix or affixes.suffix
            spelled[text] = spelled.get(text, 0.0) + count
    bare = sum(spellings.pop("", {}).values())
    key = max(spellings, key=lambda key: (sum(spellings[key].values()), key), default="")
    if not key or sum(spellings[key].values()) < bare:
        return NumberForm(multipliers=multipliers)
    return NumberForm(unit=_shown(key, spellings[key]), multipliers=multipliers)


def _rows(form: NumberForm, tokens: Tokens, given: Array) -> float:
    """The rows with text around the digits that fits a form."""
    return sum(
        count for meaning, count in zip(form.meanings(tokens), given.tolist(), strict=True) if meaning is not None
    )


def _shown(key: str, spelled: dict[str, float]) -> str:
    """The most frequent spelling of a unit, or its key where a multiplier is joined to it."""
    whole = {name: count for name, count in spelled.items() if unit_key(name) == key}
    return max(whole, key=lambda name: (whole[name], name)) if whole else key


def _separators(
    readings: dict[tuple[str, str], Array], tokens: Tokens, weights: Array, unit: str
) -> tuple[tuple[str, str] | None, str]:
    """The separators among those that read as many rows; None with a note if the numbers differ and nothing decides.

    '1.234' has a decimal point without a unit, and '$1,234' has thousands. Else many such texts next to whole numbers
    below 1000 and none above have thousands: with three decimals '900' would be '900,000'.
    """
    first, *others = readings
    rival = next((pair for pair in others if not np.array_equal(readings[first], readings[pair], equal_nan=True)), None)
    if rival is None:
        return first, ""
    one, two = readings[first], readings[rival]
    given = weights > 0
    read_by_one, read_by_two = np.isfinite(one) & given, np.isfinite(two) & given
    apart = [np.flatnonzero(rows) for rows in (read_by_one & ~read_by_two, read_by_two & ~read_by_one)]
    if len(apart[0]):  # and as many rows in the other
        texts = [tokens.cells[int(rows[np.argmax(weights[rows])])].as_py() for rows in apart]
        return None, f"{texts[0]!r} and {texts[1]!r} have different decimal separators"
    rows = np.flatnonzero((one != two) & read_by_one)
    marks = {mark for body in tokens.bodies.take(rows).to_pylist() for mark in ",." if mark in body}
    if marks == {"."} and unit in ("", "%"):
        return first, ""
    grouped = (",", ".") if marks == {"."} else (".", ",")
    if len(marks) == 1 and grouped in readings and (_many(tokens, rows) or (marks == {","} and is_currency(unit))):
        return grouped, ""
    row = int(rows[np.argmax(weights[rows])])
    larger, smaller = sorted((one[row], two[row]), key=abs, reverse=True)
    return None, f"{tokens.cells[row].as_py()!r} may be {larger:.15g} or {smaller:.15g}"


def _many(tokens: Tokens, rows: AnyArray) -> bool:
    """Whether texts such as '1,234' are many, next to whole numbers that are all below 1000."""
    import pyarrow.compute as pc

    below = pc.any(pc.match_substring_regex(tokens.bodies, "^[0-9]{1,3}$")).as_py()
    above = pc.any(pc.match_substring_regex(tokens.bodies, "^[0-9]{4,}$")).as_py()
    return len(rows) >= FEWEST_GROUPED and bool(below) and not above


def _code_note(cells: Any, weights: Array, read: AnyArray, form: NumberForm, spare: float) -> str:
    """Why texts of digits are codes, "" if they are numbers; `spare` rows may be telephone numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    zeros = filled(pc.match_substring_regex(cells, _LEADING_ZERO)) & (weights > 0)
    if zeros.any():
        return f"{cells[int(np.argmax(zeros))].as_py()!r} has a leading zero, as codes have"
    if form.unit or form.decimal != "." or form.thousands not in ("", " "):
        return ""
    if weights[filled(pc.match_substring_regex(cells, _PHONE))].sum() > spare:
        return "a plus sign before eight digits or more, as in telephone numbers"
    digits = pc.replace_substring_regex(cells.filter(pa.array(read)), rf"[{BLANKS}]", "")
    if (
        not pc.all(pc.match_substring_regex(digits, "^[0-9]{8,}$")).as_py()
        or pc.all(pc.ends_with(digits, "00")).as_py()
    ):
        return ""
    lengths = np.asarray(pc.utf8_length(digits))
    if lengths.min() == lengths.max():
        return f"all have {lengths[0]} digits, as codes have"
    return "some have more than 15 digits, as codes have" if lengths.max() > 15 else ""


def _example(cells: Any, weights: Array, read: AnyArray, form: NumberForm) -> str:
    """A text of the column that `float` does not read: with unit and separators, the most frequent one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = np.flatnonzero(read & ~filled(pc.match_substring_regex(cells, _PLAIN)))
    texts = cells.take(pa.array(rows))
    shows = np.zeros(len(rows))
    for part in filter(None, (form.unit, form.thousands, form.decimal)):
        shows += filled(pc.match_substring(texts, part))
    first = shows == shows.max()
    first &= weights[rows] == weights[rows][first].max()
    example: str = pc.min(texts.filter(pa.array(first))).as_py()
    return example
