"""JSON lines through DuckDB: types come from all lines."""

from __future__ import annotations

import glob
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from likely.engines.base import Stream
from likely.engines.csv_types import KINDS, MARKED, TOO_LARGE, MarkerCounts, check_types
from likely.engines.duck import batches, connect, quoted
from likely.engines.files import DataFile, FileSet, check_complete, decompressed
from likely.errors import SourceError, listed

WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
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
            declared = check_types(types, list(kinds))
            self._stored = {
                name: KINDS[declared[name]] if name in declared else _stored(name, kind, found.description)
                for name, kind in kinds.items()
            }
            self._marked = self._profile(connection, {name: kinds[name] for name in kinds if name not in declared})
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

    def _profile(self, connection: Any, kinds: Mapping[str, str]) -> tuple[str, ...]:
        """Whole numbers beyond 2^53 stay text; columns of numbers and texts such as NA are numbers, and named here."""
        whole = [name for name, kind in kinds.items() if WHOLE.fullmatch(kind)]
        mixed = [name for name, kind in kinds.items() if kind == "JSON"]
        counts = [f"max(abs({quoted(name)}::DOUBLE))" for name in whole]
        for name in mixed:
            cell = f"json_extract_string({quoted(name)}, '$')"
            counts.append(f"count(*) FILTER (NOT {MARKED.format(cell)} AND try_cast({cell} AS DOUBLE) IS NULL)")
            counts.append(f"histogram(trim({cell})) FILTER ({MARKED.format(cell)})")
        if not counts:
            return ()
        connection.execute("SET VARIABLE columns = ?", [dict(kinds)])
        (found,) = connection.execute(f"SELECT {', '.join(counts)} {DECLARED}").fetchall()
        for name, largest in zip(whole, found[: len(whole)], strict=True):
            if largest is not None and largest >= TOO_LARGE:
                self._stored[name] = "VARCHAR"
        others, markers = found[len(whole) :: 2], found[len(whole) + 1 :: 2]
        numbers = {name: texts or {} for name, other, texts in zip(mixed, others, markers, strict=True) if not other}
        self.notes = MarkerCounts(numbers).notes()
        return tuple(numbers)

    def _read(self, rows: int) -> Iterator[Any]:
        with self._connection() as connection:
            connection.execute("SET VARIABLE columns = ?", [self._stored])
            cells = ", ".join(
                f"CASE WHEN {MARKED.format(quoted(name))} THEN NULL ELSE {quoted(name)}::DOUBLE END AS {quoted(name)}"
                if name in self._marked
                else quoted(name)
                for name in self.columns
            )
            yield from batches(connection.sql(f"SELECT {cells} {DECLARED}"), rows)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection with the variables of `READER`, and errors that name file and line."""
        import duckdb
        import pyarrow as pa

        for file in self._files:
            file.check()
        try:
            with connect() as connection:
                connection.execute("SET VARIABLE files = ?", [[glob.escape(file.path) for file in self._files]])
                compression = self._files[0].compression.replace("none", "uncompressed")
                connection.execute("SET VARIABLE compression = ?", [compression])
                yield connection
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            text = str(error).split("Try setting")[0].strip()
            where = next(filter(None, map(_malformed_line, self._files)), None) if "Malformed" in text else None
            end = "" if text.endswith(".") else "."
            raise SourceError(f"{where or self.description}: {text}{end} Correct the line, or pass types=.") from error
        for file in self._files:
            file.check()


def _malformed_line(file: DataFile) -> str | None:
    """The file and the number of its first line that is no JSON: DuckDB reports the line after it."""
    with decompressed(file) as raw:
        for i, line in enumerate(io.BufferedReader(raw)):
            try:
                json.loads(line or "null")
            except ValueError:
                if line.strip():
                    return f"{file.path!r}, line {i + 1}"
    return None


def _lower(name: str) -> bytes:
    """A name as DuckDB compares names, by the letters A to Z."""
    return name.encode().lower()


def _stored(name: str, kind: str, where: str) -> str:
    """The type that the cells of a column are read as."""
    if WHOLE.fullmatch(kind):
        return "BIGINT"
    if NUMBER.fullmatch(kind):
        return "DOUBLE"
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP")):
        raise SourceError(
            f"{where}: column {name!r} has lists or objects ({kind}), not single values. Unpack them in a query: "
            "scan(sql=\"select ... from read_json('...')\")."
        )
    return kind if kind in ("BOOLEAN", "DATE", "TIME") or kind.startswith("TIMESTAMP") else "VARCHAR"
