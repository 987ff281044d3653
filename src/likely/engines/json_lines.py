"""JSON lines through DuckDB: types come from all lines."""

from __future__ import annotations

import glob
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from likely.data.names import double_quoted
from likely.engines.base import Stream
from likely.engines.cells import (
    FIRST_ROWS,
    LARGE,
    TEXT,
    TIMES,
    TOO_LARGE,
    ColumnType,
    declared_types,
    examined,
    first_other,
    marker_notes,
    unexpected,
)
from likely.engines.duck import batches, connect, set_variables
from likely.engines.files import DataFile, FileSet, check_complete, decompressed, unchanged
from likely.errors import SourceError, listed

INTEGER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
NUMBER = re.compile(r"DOUBLE|FLOAT|DECIMAL.*")
READER = """FROM read_json(getvariable('files'), format='newline_delimited', hive_partitioning=false, {0},
compression=getvariable('compression'))"""
FIND = READER.format(
    f"sample_size=-1, maximum_sample_files={2**31 - 1}, union_by_name=true, map_inference_threshold=-1"
)
KEYS = """SELECT DISTINCT unnest(json_keys(json)) AS key FROM read_json_objects(getvariable('files'),
format='newline_delimited', compression=getvariable('compression')) ORDER BY key"""
DECLARED = READER.format("columns=getvariable('columns')")


class JsonLines(Stream):
    """The rows of JSON lines: one object on each line, whose keys are columns."""

    def __init__(self, found: FileSet, types: Mapping[str, str] | None) -> None:
        self.description, self._files = found.description, found.files
        packed = {file.compression for file in found.files}
        if len(packed) > 1:
            raise SourceError(f"{found.description} has files with different compressions: {listed(sorted(packed))}.")
        for file in found.files:
            check_complete(file)
        with self._connection() as connection:
            relation = connection.sql(f"SELECT * {FIND}")
            kinds = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
            self._check_keys(connection, list(kinds))
            declared = declared_types(types, list(kinds))
            self._types: dict[str, ColumnType] = {}  # of the columns that are read as text, and converted
            self._stored = {
                name: "VARCHAR" if name in declared else _stored(name, kind, found.description)
                for name, kind in kinds.items()
            }
            self._examine(connection, kinds, declared)
        super().__init__(found.description, list(kinds))

    def _check_keys(self, connection: Any, names: list[str]) -> None:
        """Raise where the columns that DuckDB finds are not the keys of the objects.

        DuckDB renames the second of two keys that differ only by case, a and A, to A_1, and takes objects without keys,
        or with an empty one, for a single column, json. Only such names need another pass, which lists the keys.
        """
        lower = {_lower(name) for name in names}
        renamed = any(_lower(name.rpartition("_")[0]) in lower for name in names)
        if not renamed and names != ["json"] and not any("\0" in name for name in names):
            return
        if (where := _line(self._files, _is_no_object)) is not None:
            raise SourceError(f"{where} is not JSON object. Write one object on each line.")
        known: dict[bytes, str] = {}
        for (key,) in connection.execute(KEYS).fetchall():
            if not key or "\0" in key:
                what = "an empty key" if not key else f"the key {key!r}, which has a NUL character"
                raise SourceError(f"{self.description} has {what}. Rename it.")
            if (other := known.setdefault(_lower(key), key)) != key:
                raise SourceError(
                    f"{self.description} has the keys {other!r} and {key!r}, which DuckDB takes for one column because "
                    "they differ only by case. Rename one of them, or write the rows as Parquet."
                )
        if not known:
            raise SourceError(f"{self.description} has no keys, and so no columns.")

    def _examine(
        self, connection: Any, kinds: Mapping[str, str], declared: Mapping[str, tuple[ColumnType, ...]]
    ) -> None:
        """Find the columns that are read as text: whole numbers beyond 2^53, which stay text, and others to convert.

        Columns of numbers and texts such as NA are numbers, those of ISO dates and times are timestamps. Cells that a
        declared type does not allow are an error.
        """
        other = {name: kind for name, kind in kinds.items() if name not in declared}
        numbers = [name for name, kind in other.items() if INTEGER.fullmatch(kind) or NUMBER.fullmatch(kind)]
        set_variables(connection, columns=self._stored)
        most = ", ".join(f"max(abs({double_quoted(name)}::DOUBLE))" for name in numbers)
        largest = connection.execute(f"SELECT {most} {DECLARED}").fetchone() if numbers else ()
        large = [name for name, value in zip(numbers, largest, strict=True) if value is not None and value >= TOO_LARGE]
        mixed = [name for name, kind in other.items() if kind == "JSON"]
        texts = [name for name, kind in other.items() if self._stored[name] == "VARCHAR" and kind != "JSON"]
        times = self._times(connection, texts)
        found = dict.fromkeys(large, LARGE) | dict.fromkeys(mixed, LARGE[1:]) | dict.fromkeys(times, TIMES)
        candidates = {**found, **declared}
        set_variables(connection, columns=self._stored | dict.fromkeys(candidates, "VARCHAR"))
        fitting, markers = examined(candidates, {name: name for name in kinds}, DECLARED, connection)
        for name, fit in fitting.items():
            if not fit and name in declared:
                _, text = first_other(declared[name][0], name, DECLARED, connection)
                where = _line(self._files, partial(_has_cell, name, text)) or self.description
                raise unexpected(where, name, text, declared[name][0], "correct the line")
            kind = fit[0] if fit else TEXT
            self._stored[name] = "DOUBLE" if name in large and kind.name == "number" else "VARCHAR"
            self._types[name] = replace(kind, markers=kind.name == "number" and name not in large)
        self.notes = marker_notes({name: found for name, found in markers.items() if self._types[name].markers})

    def _times(self, connection: Any, names: Sequence[str]) -> list[str]:
        """The columns of text whose first cells are ISO dates and times."""
        known = dict.fromkeys(names, TIMES)
        set_variables(connection, columns=self._stored)
        fitting, _ = examined(known, {name: name for name in names}, f"{DECLARED} LIMIT {FIRST_ROWS}", connection)
        return [name for name, fit in fitting.items() if fit]

    def _read(self, rows: int) -> Iterator[Any]:
        with self._connection() as connection:
            set_variables(connection, columns=self._stored)
            names = {name: double_quoted(name) for name in self.columns}
            cells = [f"{self._types.get(name, TEXT).expression(cell)} AS {cell}" for name, cell in names.items()]
            yield from batches(connection.sql(f"SELECT {', '.join(cells)} {DECLARED}"), rows)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection with the variables of `READER`, and errors that name file and line."""
        import duckdb
        import pyarrow as pa

        with unchanged(*self._files):
            try:
                with connect() as connection:
                    paths = [glob.escape(file.path) for file in self._files]
                    packing = self._files[0].compression.replace("none", "uncompressed")
                    set_variables(connection, files=paths, compression=packing)
                    yield connection
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                where = _line(self._files, _is_malformed) if "Malformed" in str(error) else None
                if where is not None and _line(self._files, _is_not_unicode) == where:
                    raise SourceError(f"{where} is not encoded in UTF-8, as JSON is. Convert the file.") from error
                if where is not None:
                    raise SourceError(f"{where}: malformed JSON. Correct the line.") from error
                text = re.split("Try (?:setting|auto-detecting)", str(error))[0].strip()
                end = "" if text.endswith(".") else "."
                raise SourceError(f"{self.description}: {text}{end} Correct the line, or pass types=.") from error


def _line(files: Sequence[DataFile], test: Callable[[bytes], bool]) -> str | None:
    """The file and the number of the first line that passes a test; blank lines do not count, None if none does."""
    for file in files:
        with decompressed(file) as raw:
            for i, line in enumerate(io.BufferedReader(raw)):
                if line.strip() and test(line):
                    return f"{file.path!r}, line {i + 1}"
    return None


def _is_malformed(line: bytes) -> bool:
    """Whether a line is not JSON: DuckDB reports the line after it."""
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


def _is_not_unicode(line: bytes) -> bool:
    """Whether a line is not encoded in UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return True
    return False


def _is_no_object(line: bytes) -> bool:
    """Whether a line is JSON, but neither an object nor null, which is a row of missing values."""
    return not _is_malformed(line) and not isinstance(json.loads(line), dict | None)


def _has_cell(name: str, cell: str, line: bytes) -> bool:
    """Whether the value of a key is a text, number or boolean that DuckDB reads as the given text."""
    found = json.loads(line, parse_int=str, parse_float=str)
    value = found.get(name) if isinstance(found, dict) else None
    return (str(value).lower() if isinstance(value, bool) else value) == cell


def _lower(name: str) -> bytes:
    """A name as DuckDB compares names, by the letters A to Z."""
    return name.encode().lower()


def _stored(name: str, kind: str, where: str) -> str:
    """The type that the cells of a column are read as."""
    if INTEGER.fullmatch(kind):
        return "BIGINT"
    if NUMBER.fullmatch(kind):
        return "DOUBLE"
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP")):
        raise SourceError(
            f"{where}: column {name!r} has lists or objects ({kind}), not single values. Unpack them in a query: "
            "scan(sql=\"select ... from read_json('...')\")."
        )
    return "BOOLEAN" if kind == "BOOLEAN" else "VARCHAR"  # DuckDB takes local dates, such as 31-01-2020, for dates
