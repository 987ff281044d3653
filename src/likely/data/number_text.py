"""Numbers as people write them in text: with thousands, decimal commas, currencies, percent signs, units, multipliers.

A column has one form. Text that looks like a number but is a code has none: digits with a leading zero, whole numbers
of eight digits or more that all have the same length, whole numbers of more than 15 digits, which float64 would change,
and a plus sign before eight digits or more (telephone numbers). Dates, times, versions, addresses, ranges and bounds
such as '<5' are not numbers either, nor are digits that are not ASCII.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from likely.data.text_cells import filled, given_counts, text_cells
from likely.typing import AnyArray, Array

_CODES = (  # ISO 4217, and the currencies that the euro replaced
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF "
    "CHF CLF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD "
    "HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD "
    "LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP "
    "PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND "
    "TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWL DEM FRF ITL ESP NLG "
    "ATS BEF FIM GRD IEP PTE "
)
CURRENCIES = frozenset(_CODES.split())
NAMED_CURRENCIES = frozenset({"Rs", "kr", "zł", "Kč", "Ft", "Fr", "RM", "Rp", "S/"})
SAME_CURRENCY = {"€": "EUR", "£": "GBP"}
MULTIPLIERS = {
    **dict.fromkeys(("k", "K", "thousand", "tsd"), 3),
    **dict.fromkeys(("m", "M", "MM", "mn", "mln", "mio", "million", "millions"), 6),
    **dict.fromkeys(("b", "B", "bn", "bln", "mrd", "billion", "billions"), 9),
    **dict.fromkeys(("t", "T", "tn", "trn", "trillion", "trillions"), 12),
}
# Letters that are units as well: metres, bits, tonnes.
UNCERTAIN = frozenset({"m", "MM", "b", "B", "t", "T"})
_OTHER_WORDS = (  # ordinals, times of day, months, an exponent without digits
    "th st nd rd am pm a.m. p.m. e jan feb mar apr may jun jul aug sep sept oct nov dec january february march "
    "april june july august september october november december "
)
NOT_UNITS = frozenset(_OTHER_WORDS.split())
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
FEWEST_GROUPED = 20  # distinct texts such as '1,234' that decide together with whole numbers below 1000

_MARK = "\x1f"  # stands for the digits of a number
_BLANKS = " \u00a0\u2007\u2009\u202f"
_DIGITS = rf"[.,]?[0-9][0-9.,]*(?:[{_BLANKS}'’][0-9][0-9.,]*)*(?:[eE][-+]?[0-9]+)?"
_PLAIN = r"^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"
_LEADING_ZERO = r"^[-+]?0[0-9]+$"
_PHONE = r"^\+[0-9]{8,}$"
_SIGNS = "-+−–"
_BEFORE = re.compile(rf"(\()?\s*([{_SIGNS}])?\s*([^{_SIGNS}()\s]+)?\s*([{_SIGNS}])?\s*(\()?\s*")
_AFTER = re.compile(r"\s*(\))?(\s*)([^()\s](?:[^()]*[^()\s])?)?\s*(\))?")
_UNIT = re.compile(r"(?:[^\W\d_]|[°µ″′\"'])(?:[^\W\d_]|[°µ²³/·^.\"'*])*")
_MULTIPLIED = re.compile(r"([^\W\d_]+?)\.?(?:\s+(\S+)|([^\w\s]|[A-Z]{3}))?")


class _Affixes(NamedTuple):
    """What surrounds the digits of a number."""

    negative: bool
    accounting: bool  # a sign that float() does not read
    prefix: str
    suffix: str
    attached: bool  # no blank before the suffix


class _Meaning(NamedTuple):
    """The unit of a number, the power of ten of its multiplier, and whether that is certain."""

    unit: str
    exponent: int
    certain: bool


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
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
            return values.astype(np.float64)
        cells, others = text_cells(values)
        if self == PLAIN:
            numbers = _plain(cells)
        else:
            tokens = _Tokens(cells)
            numbers = tokens.numbers(self.meanings(tokens), self.decimal, self.thousands)
        for row, value in others.items():
            numbers[row] = _number(value)
        return numbers

    def describe(self) -> str:
        """The form as text, by an example from the column where it is not `PLAIN`."""
        return f"numbers such as {self.example!r}" if self.example else "numbers"

    def meanings(self, tokens: _Tokens) -> list[_Meaning | None]:
        """What the text around the digits says, None where it does not fit the form."""
        key = unit_key(self.unit)
        return [self._meaning(affixes, key) for affixes in tokens.affixes]

    def _meaning(self, affixes: _Affixes | None, key: str) -> _Meaning | None:
        alone = self.multipliers and (not key or _is_currency(self.unit))  # whether 3M is three million in this unit
        fitting = [
            meaning
            for meaning in _meanings(affixes)
            if meaning.unit in ("", key)
            and (not meaning.exponent or (self.multipliers and (meaning.unit == key or alone)))
        ]
        return fitting[-1] if fitting else None


PLAIN = NumberForm()


def number_form(values: Sequence[str], counts: AnyArray, least: float = 0.95) -> tuple[NumberForm | None, str]:
    """The form in which at least a proportion `least` of the rows are numbers, or None with a note.

    `values` are the distinct texts of a column, `counts` the rows that have each; blank texts count as missing. The
    form that reads most rows is taken. The note says why a column of apparent numbers has none: they are codes, or
    two forms read as many rows and differ in the numbers.
    """
    cells, _ = text_cells(values)
    weights = given_counts(values, cells, counts)
    total = weights.sum()
    if not total:
        return None, ""
    form, note, numbers = PLAIN, "", _plain(cells)
    if weights[np.isfinite(numbers)].sum() < total:
        found, note, numbers = _best_form(_Tokens(cells), weights, least * total, numbers)
        if found is None:
            return None, note
        form = found
    read = np.isfinite(numbers) & (weights > 0)
    if weights[read].sum() < least * total:
        return None, ""
    note = _code_note(cells, weights, read, form, (1 - least) * total)
    if note:
        return None, note
    return (form if form == PLAIN else replace(form, example=_example(cells, weights, read, form))), ""


def unit_key(unit: str) -> str:
    """A unit without case, plural and full stop; a currency by its code. `mW` and `MW` differ."""
    if unit in SAME_CURRENCY or not unit[:1].isalpha() or unit in CURRENCIES:
        return SAME_CURRENCY.get(unit, unit)
    word = unit.rstrip(".")
    word = word.casefold() if len(word) > 3 or word[:1] not in "mM" else word[:1] + word[1:].casefold()
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word


class _Tokens:
    """Texts in parts: their digits with separators, and what surrounds these, which few distinct texts share."""

    def __init__(self, cells: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.cells = cells
        cells = pc.fill_null(pc.if_else(pc.match_substring_regex(cells, "[0-9]"), cells, None), "")
        dotted = r"^([^0-9]*(?:\pL|S/))\.\s*"  # 'Rs.500' is not half a rupee
        if pc.any(pc.match_substring_regex(cells, dotted)).as_py():
            cells = pc.replace_substring_regex(cells, dotted, r"\1 ")
        around = pc.replace_substring_regex(cells, _DIGITS, _MARK)
        around = pc.if_else(pc.equal(pc.count_substring(around, _MARK), 1), around, "").dictionary_encode()
        self.codes = np.asarray(around.indices)
        self._around = around.dictionary.to_pylist()
        self._parts: list[_Affixes | None] = []
        bodies = pc.replace_substring_regex(pc.replace_substring_regex(cells, "^[^0-9.,]+", ""), "[^0-9]+$", "")
        if not pc.all(pc.string_is_ascii(bodies)).as_py():
            bodies = pc.replace_substring_regex(bodies, f"[{_BLANKS}]", " ")
            bodies = pc.replace_substring(bodies, "’", "'")
        self.bodies = bodies
        self.separators = {
            character for character in ",. '" if pc.any(pc.match_substring(bodies, character)).as_py()
        } | {""}
        self._pa, self._pc = pa, pc

    @property
    def affixes(self) -> list[_Affixes | None]:
        """What surrounds the digits, for each code; None where this is no number."""
        if not self._parts:
            self._parts = [_affixes(text) for text in self._around]
        return self._parts

    def weights(self, counts: Array) -> Array:
        """The rows of each code."""
        return np.bincount(self.codes, counts, len(self._around)).astype(np.float64)

    def fitting(self, meanings: list[_Meaning | None], decimal: str, thousands: str) -> AnyArray:
        """Which rows are numbers with these separators."""
        whole = "0|[1-9][0-9]*" + (
            f"|[1-9][0-9]{{0,2}}(?:{thousands.replace('.', '[.]')}[0-9]{{3}})+" if thousands else ""
        )
        point = f"[{decimal}]"
        pattern = f"^(?:(?:{whole})(?:{point}[0-9]+)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?$"
        meant = np.array([meaning is not None for meaning in meanings])
        return meant[self.codes] & filled(self._pc.match_substring_regex(self.bodies, pattern))

    def numbers(self, meanings: list[_Meaning | None], decimal: str, thousands: str) -> Array:
        """±digits·10^exponent, NaN where the row is no number with these separators."""
        pa, pc = self._pa, self._pc
        fitting = self.fitting(meanings, decimal, thousands)
        digits = self.bodies if fitting.all() else pc.if_else(pa.array(fitting), self.bodies, None)
        if thousands in self.separators - {""}:
            digits = pc.replace_substring(digits, thousands, "")
        if decimal != ".":
            digits = pc.replace_substring(digits, decimal, ".")
        powers = [0 if meaning is None else meaning.exponent for meaning in meanings]
        if any(powers):  # as text, so that 1.005k is 1005
            powers_of_rows = pa.array([f"e{power}" if power else "" for power in powers], pa.large_string())
            digits = pc.binary_join_element_wise(
                digits, powers_of_rows.take(pa.array(self.codes)), pa.scalar("", pa.large_string())
            )
            digits = pc.if_else(pc.match_substring_regex(digits, "[eE].*e"), None, digits)
        signs = np.array([-1.0 if affixes is not None and affixes.negative else 1.0 for affixes in self.affixes])
        return _finite(np.asarray(pc.cast(digits, pa.float64()).fill_null(np.nan)) * signs[self.codes])


def _finite(numbers: Array) -> Array:
    """The numbers with NaN instead of infinite ones."""
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _plain(cells: Any) -> Array:
    """The numbers that float() reads, without underscores, infinity and digits that are not ASCII."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(cells, pa.float64())
    except pa.ArrowInvalid:
        cells = pc.if_else(pc.match_substring_regex(cells, _PLAIN), cells, None)
        numbers = pc.cast(cells, pa.float64())
    return _finite(np.asarray(numbers.fill_null(np.nan)))


def _number(value: Any) -> float:
    """A cell that is no text: a number is itself, all else is NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real | Decimal):
        return np.nan
    try:
        return float(value)
    except (OverflowError, ValueError):  # 10**400, or a signalling NaN of decimal
        return np.nan


@lru_cache(maxsize=1024)
def _affixes(around: str) -> _Affixes | None:
    """The sign, the prefix and the suffix of a number; None where the text says something else."""
    before, mark, after = around.partition(_MARK)
    first, last = _BEFORE.fullmatch(before), _AFTER.fullmatch(after)
    if not mark or first is None or last is None:
        return None
    outer, sign, prefix, inner_sign, inner = first.groups()
    closed, blank, suffix, closed_last = last.groups()
    opening, closing = [outer, inner], [closed, closed_last]
    brackets = opening.count("(")
    if brackets != closing.count(")") or brackets + bool(sign) + bool(inner_sign) > 1:
        return None
    signed = sign or inner_sign or ""
    gap = before.endswith(tuple(_BLANKS)) and not prefix
    accounting = bool(brackets) or signed in ("−", "–") or (bool(signed) and gap)
    return _Affixes(bool(brackets) or signed in ("-", "−", "–"), accounting, prefix or "", suffix or "", not blank)


def _meanings(affixes: _Affixes | None) -> Iterator[_Meaning]:
    """What the text around a number may say: a unit, or a multiplier with or without a unit."""
    if affixes is None:
        return
    unit = _unit(affixes.prefix, affixes.suffix)
    if unit is not None:
        yield _Meaning(unit_key(unit), 0, True)
    match = _MULTIPLIED.fullmatch(affixes.suffix)
    if match is None:
        return
    name, spaced, joined = match.groups()
    exponent = MULTIPLIERS.get(name if len(name) == 1 or name == "MM" else name.casefold())
    unit = _unit(affixes.prefix, spaced or joined or "")
    if exponent and unit is not None:
        certain = name not in UNCERTAIN and (affixes.attached or len(name) > 1)
        yield _Meaning(unit_key(unit), exponent, certain)


def _unit(prefix: str, suffix: str) -> str | None:
    """The unit of a number; None if it has none that is known before the number or can be one after it."""
    if prefix and not (prefix == "%" or _is_currency(prefix)):
        return None
    if not suffix:
        return prefix
    if _is_currency(suffix):
        return f"{prefix} {suffix}".strip()
    if prefix or suffix.casefold() in NOT_UNITS:
        return None
    return suffix if suffix in ("%", "‰") or (len(suffix) <= 20 and _UNIT.fullmatch(suffix)) else None


def _is_currency(text: str) -> bool:
    """Whether a text is a currency: EUR, €, US$ or Rs."""
    name = text.rstrip(".")
    return (
        name in CURRENCIES
        or name in NAMED_CURRENCIES
        or (
            len(text) <= 4
            and unicodedata.category(text[-1]) == "Sc"
            and (len(text) == 1 or (text[:-1].isascii() and text[:-1].isupper()))
        )
    )


def _best_form(tokens: _Tokens, weights: Array, needed: float, plain: Array) -> tuple[NumberForm | None, str, Array]:
    """The form that reads most rows and its numbers; None with a note where two forms differ in the numbers."""
    given = tokens.weights(weights)
    if len(given) > 1000 and np.partition(given, -1000)[-1000:].sum() < needed:
        return None, "", plain  # free text
    unit, meanings = _form_of_unit(tokens, given)
    pairs = [pair for pair in SEPARATORS if pair[1] in tokens.separators]
    scores = [weights[tokens.fitting(meanings, *pair)].sum() for pair in pairs]
    if weights[np.isfinite(plain)].sum() >= max(scores):
        return PLAIN, "", plain
    if max(scores) < needed:
        return None, "", plain
    readings = {
        pair: tokens.numbers(meanings, *pair) for pair, score in zip(pairs, scores, strict=True) if score == max(scores)
    }
    pair, note = _separators(readings, tokens, weights, unit.unit)
    if pair is None:
        if (".", "") not in readings and scores[0] >= needed:
            pair = (".", "")
            readings[pair] = tokens.numbers(meanings, *pair)
        else:
            return None, note, plain
    accounting = any(
        affixes is not None and affixes.accounting and meaning is not None and count > 0
        for affixes, meaning, count in zip(tokens.affixes, meanings, given, strict=True)
    )
    form = replace(unit, decimal=pair[0], thousands=pair[1], accounting=accounting)
    return form, "", readings[pair]


def _form_of_unit(tokens: _Tokens, given: Array) -> tuple[NumberForm, list[_Meaning | None]]:
    """The unit of at least half of the numbers, and whether letters after the digits are multipliers."""
    best, best_meanings, best_score = PLAIN, PLAIN.meanings(tokens), (-1.0, 0.0)
    for multipliers in (False, True):
        names: dict[str, dict[str, float]] = {}
        for affixes, count in zip(tokens.affixes, given.tolist(), strict=True):
            found = [meaning for meaning in _meanings(affixes) if multipliers or not meaning.exponent]
            if affixes is not None and found and count:
                shown = affixes.prefix or affixes.suffix
                spelled = names.setdefault(found[-1].unit, {})
                spelled[shown] = spelled.get(shown, 0.0) + count
        units = {key: sum(spelled.values()) for key, spelled in names.items()}
        key = max((key for key in units if key), key=lambda key: (units[key], key), default="")
        key = key if units.get(key, 0.0) >= units.get("", 0.0) else ""
        form = NumberForm(unit=_shown(key, names.get(key, {})), multipliers=multipliers)
        meanings = form.meanings(tokens)
        score = sum(count for meaning, count in zip(meanings, given.tolist(), strict=True) if meaning is not None)
        certain = any(
            meaning is not None and meaning.exponent and meaning.certain and count
            for meaning, count in zip(meanings, given.tolist(), strict=True)
        )
        if multipliers and not certain and not _is_currency(form.unit or "-"):
            continue  # '5 m' and '12B' are units
        rank = (score, 1.0 if certain else -1.0) if multipliers else (score, 0.0)
        if rank > best_score:
            best, best_meanings, best_score = form, meanings, rank
    return best, best_meanings


def _shown(key: str, spelled: dict[str, float]) -> str:
    """The most frequent spelling of a unit, or its key where a multiplier is joined to it."""
    whole = {name: count for name, count in spelled.items() if unit_key(name) == key}
    return max(whole, key=lambda name: (whole[name], name)) if whole else key


def _separators(
    readings: dict[tuple[str, str], Array], tokens: _Tokens, weights: Array, unit: str
) -> tuple[tuple[str, str] | None, str]:
    """The separators among those that read as many rows; None with a note if the numbers differ and nothing decides.

    '1.234' has a decimal point unless a unit follows or precedes. '1,234' is 1234 with a currency, and where many such
    texts occur beside whole numbers below 1000 and none above: with three decimals these would be '900,000'.
    """
    first, *others = readings
    rival = next((pair for pair in others if not np.array_equal(readings[first], readings[pair], equal_nan=True)), None)
    if rival is None:
        return first, ""
    differing = (readings[first] != readings[rival]) & (weights > 0)
    differing &= ~(np.isnan(readings[first]) & np.isnan(readings[rival]))
    rows = np.flatnonzero(differing)
    bodies = tokens.bodies.take(rows).to_pylist()
    if not any("," in body for body in bodies) and unit in ("", "%"):
        return first, ""
    grouped = next((pair for pair in readings if pair == (".", ",")), None)
    if grouped and not any("." in body for body in bodies) and (_is_currency(unit or "-") or _many(tokens, rows)):
        return grouped, ""
    row = rows[np.lexsort((rows, -weights[rows]))[0]]
    one, two = sorted((readings[first][row], readings[rival][row]), key=lambda number: -abs(number))
    return None, f"{tokens.cells[row].as_py()!r} may be {one:.15g} or {two:.15g}"


def _many(tokens: _Tokens, rows: AnyArray) -> bool:
    """Whether texts such as '1,234' are many, beside whole numbers that are all below 1000."""
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
    if form.unit or form.decimal != "." or form.thousands not in ("", " ", "'"):
        return ""
    shown = cells.filter(pa.array(read))
    phones = weights[filled(pc.match_substring_regex(cells, _PHONE))].sum()
    if phones > spare:
        return "a plus sign before eight digits or more, as in telephone numbers"
    digits = pc.replace_substring_regex(shown, rf"[-+−–{_BLANKS}'’]", "")
    if not pc.all(pc.match_substring_regex(digits, "^[0-9]{8,}$")).as_py():
        return ""
    lengths = np.asarray(pc.utf8_length(digits))
    if lengths.min() == lengths.max():
        return f"all have {lengths[0]} digits, as codes have"
    return "more than 15 digits, as codes have" if lengths.max() > 15 else ""


def _example(cells: Any, weights: Array, read: AnyArray, form: NumberForm) -> str:
    """A text of the column that shows the form: with its unit and separators, the most frequent one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = np.flatnonzero(read)
    texts = cells.take(pa.array(rows))
    shows = np.zeros(len(rows))
    for part in filter(None, (form.unit, form.thousands, form.decimal)):
        shows += filled(pc.match_substring(texts, part))
    first = shows == shows.max()
    first &= weights[rows] == weights[rows][first].max()
    return pc.min(texts.filter(pa.array(first))).as_py()
