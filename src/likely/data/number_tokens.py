"""The parts of a number in text: digits with separators, a sign, and a unit, a currency or a multiplier around them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from likely.data.text_cells import filled
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

_MARK = "\x1f"  # stands for the digits of a number
BLANKS = " \u00a0\u2007\u2009\u202f"
_DIGITS = rf"[.,]?[0-9][0-9.,]*(?:[{BLANKS}'’][0-9][0-9.,]*)*(?:[eE][-+]?[0-9]+)?"
_SIGNS = "-+−–"
_BEFORE = re.compile(rf"(\()?\s*([{_SIGNS}])?\s*([^{_SIGNS}()\s]+)?\s*([{_SIGNS}])?\s*(\()?\s*")
_AFTER = re.compile(r"\s*(\))?(\s*)([^()\s](?:[^()]*[^()\s])?)?\s*(\))?")
_UNIT = re.compile(r"(?:[^\W\d_]|[°µ″′\"'])(?:[^\W\d_]|[°µ²³/·^.\"'*])*")
_MULTIPLIED = re.compile(r"([^\W\d_]+?)\.?(?:\s+(\S+)|([^\w\s]|[A-Z]{3}))?")


class Affixes(NamedTuple):
    """What surrounds the digits of a number."""

    negative: bool
    accounting: bool  # a sign that float() does not read
    prefix: str
    suffix: str
    attached: bool  # no blank before the suffix


class Meaning(NamedTuple):
    """The unit of a number, the power of ten of its multiplier, and whether that is certain."""

    unit: str
    exponent: int
    certain: bool


class Tokens:
    """Texts in parts: their digits with separators, and what surrounds these, which few distinct texts share."""

    def __init__(self, cells: Any) -> None:
        import pyarrow.compute as pc

        self.cells = cells
        cells = pc.fill_null(pc.if_else(pc.match_substring_regex(cells, "[0-9]"), cells, None), "")
        dotted = r"^([^0-9]*(?:\pL|S/))\.\s*"  # 'Rs.500' is not half a rupee
        if pc.any(pc.match_substring_regex(cells, dotted)).as_py():
            cells = pc.replace_substring_regex(cells, dotted, r"\1 ")
        around = pc.replace_substring_regex(cells, _DIGITS, _MARK)
        around = pc.if_else(pc.equal(pc.count_substring(around, _MARK), 1), around, "").dictionary_encode()
        self.codes = np.asarray(around.indices)
        self._around: list[str] = around.dictionary.to_pylist()
        bodies = pc.replace_substring_regex(pc.replace_substring_regex(cells, "^[^0-9.,]+", ""), "[^0-9]+$", "")
        if not pc.all(pc.string_is_ascii(bodies)).as_py():
            bodies = pc.replace_substring_regex(bodies, f"[{BLANKS}]", " ")
            bodies = pc.replace_substring(bodies, "’", "'")
        self.bodies = bodies
        found = [mark for mark in ",. '" if pc.any(pc.match_substring(bodies, mark)).as_py()]
        self.separators = {"", *found}

    @cached_property
    def affixes(self) -> list[Affixes | None]:
        """What surrounds the digits, for each code; None if this is not a number."""
        return [_affixes(text) for text in self._around]

    def weights(self, counts: Array) -> Array:
        """The rows of each code."""
        return np.bincount(self.codes, counts, len(self._around)).astype(np.float64)

    def fitting(self, meanings: list[Meaning | None], decimal: str, thousands: str) -> AnyArray:
        """Which rows are numbers with these separators."""
        import pyarrow.compute as pc

        whole = "0|[1-9][0-9]*" + (f"|[1-9][0-9]{{0,2}}(?:[{thousands}][0-9]{{3}})+" if thousands else "")
        point = f"[{decimal}]"
        pattern = f"^(?:(?:{whole})(?:{point}[0-9]+)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?$"
        meant = np.array([meaning is not None for meaning in meanings], dtype=bool)
        return meant[self.codes] & filled(pc.match_substring_regex(self.bodies, pattern))

    def numbers(self, meanings: list[Meaning | None], decimal: str, thousands: str) -> Array:
        """±digits·10^exponent, NaN where the row is not a number with these separators."""
        import pyarrow as pa
        import pyarrow.compute as pc

        fitting = self.fitting(meanings, decimal, thousands)
        digits = self.bodies if fitting.all() else pc.if_else(pa.array(fitting), self.bodies, None)
        if thousands and thousands in self.separators:
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
        signs = np.array(
            [-1.0 if part is not None and part.negative else 1.0 for part in self.affixes], dtype=np.float64
        )
        return finite(np.asarray(pc.cast(digits, pa.float64()).fill_null(np.nan)) * signs[self.codes])


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


def finite(numbers: Array) -> Array:
    """The numbers with NaN instead of infinite ones."""
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _affixes(around: str) -> Affixes | None:
    """The sign, the prefix and the suffix of a number; None if the text says something else."""
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
    gap = before.endswith(tuple(BLANKS)) and not prefix
    accounting = bool(brackets) or signed in ("−", "–") or (bool(signed) and gap)
    return Affixes(bool(brackets) or signed in ("-", "−", "–"), accounting, prefix or "", suffix or "", not blank)


def meanings_of(affixes: Affixes | None) -> Iterator[Meaning]:
    """What the text around a number may say: a unit, or a multiplier with or without a unit."""
    if affixes is None:
        return
    unit = _unit(affixes.prefix, affixes.suffix)
    if unit is not None:
        yield Meaning(unit_key(unit), 0, True)
    match = _MULTIPLIED.fullmatch(affixes.suffix)
    if match is None:
        return
    name, spaced, joined = match.groups()
    exponent = MULTIPLIERS.get(name if len(name) == 1 or name == "MM" else name.casefold())
    unit = _unit(affixes.prefix, spaced or joined or "")
    if exponent and unit is not None:
        certain = name not in UNCERTAIN and (affixes.attached or len(name) > 1)
        yield Meaning(unit_key(unit), exponent, certain)


def _unit(prefix: str, suffix: str) -> str | None:
    """The unit of a number; None if it has none that is known before the number or can be one after it."""
    if prefix and not (prefix == "%" or is_currency(prefix)):
        return None
    if not suffix:
        return prefix
    if is_currency(suffix):
        return f"{prefix} {suffix}".strip()
    if prefix or suffix.casefold() in NOT_UNITS:
        return None
    return suffix if suffix in ("%", "‰") or (len(suffix) <= 20 and _UNIT.fullmatch(suffix)) else None


def is_currency(text: str) -> bool:
    """Whether a text is a currency, such as EUR, €, US$ or Rs, or two spellings of it: $ USD."""
    return bool(text) and all(_is_one_currency(part) for part in text.split())


def _is_one_currency(text: str) -> bool:
    name, letters = text.rstrip("."), text[:-1]
    if unicodedata.category(text[-1]) == "Sc":
        return len(letters) <= 3 and (not letters or (letters.isascii() and letters.isupper()))
    return name in CURRENCIES or name in NAMED_CURRENCIES
