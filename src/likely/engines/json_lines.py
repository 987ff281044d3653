"""JSON lines through DuckDB: types come from all lines, and numbers are doubles."""

from __future__ import annotations

import glob
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from likely.engines.base import Stream
from likely.engines.csv_types import MARKED, STORED, TOO_LARGE, check_types
from likely.engines.duck import batches, connect, quoted
from likely.engines.files import DataFile, FileSet
from likely.errors import SourceError, listed

WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
NUMBER = re.compile(r"DOUBLE|FLOAT|DECIMAL.*")
READER = """FROM read_json(getvariable('files'), format='newline_delimited', hive_partitioning=false, {0},
compression=getvariable('compression'))"""
FIND = READER.format(f"sample_size=-1, maximum_sample_files={2**31 - 1}, union_by_name=true")
DECLARED = READER.format("columns=getvariable('columns')")


class JsonLines(Stream):
    """The rows of JSON lines: one object on each line, whose keys are columns."""

    def __init__(self, found: FileSet, types: Mapping[str, str] | None) -> None:
        self.description, self._files = found.description, found.files
        packed = {file.compression for file in found.files}
        if len(packed) > 1:
            raise SourceError(f"{found.description} has files with different compressions: {listed(sorted(packed))}.")
        with self._connection() as connection:
            relation = connection.sql(f"SELECT * {FIND}")
            kinds = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
            declared = check_types(types, list(kinds))
            self._stored = {
                name: STORED[declared[name]] if name in declared else _stored(name, kind, found.description)
                for name, kind in kinds.items()
            }
            self._marked = self._profile(connection, {name: kinds[name] for name in kinds if name not in declared})
        super().__init__(found.description, list(kinds))

    def _profile(self, connection: Any, kinds: Mapping[str, str]) -> tuple[str, ...]:
        """Whole numbers beyond 2^53 stay text; columns of numbers and texts such as NA are numbers, and named here."""
        marked = []
        notes = []
        for name, kind in kinds.items():
            column = quoted(name)
            if WHOLE.fullmatch(kind):
                query = f"SELECT coalesce(max(abs({column}::DOUBLE)) >= {TOO_LARGE}, false) {FIND}"
                if connection.execute(query).fetchall()[0][0]:
                    self._stored[name] = "VARCHAR"
            elif kind == "JSON":
                cell = f"json_extract_string({column}, '$')"
                other = f"count(*) FILTER (NOT {MARKED.format(cell)} AND try_cast({cell} AS DOUBLE) IS NULL)"
                counts = f"SELECT {other}, count(*) FILTER ({MARKED.format(cell)}) {FIND}"
                others, markers = connection.execute(counts).fetchall()[0]
                if not others:
                    marked.append(name)
                    notes.append(f"Column {name!r}: {markers} cells such as NA are missing values.")
        self.notes = tuple(notes)
        return tuple(marked)

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
            raise SourceError(f"{where or self.description}: {text} Correct the line, or pass types=.") from error
        for file in self._files:
            file.check()


def _malformed_line(file: DataFile) -> str | None:
    """The file and the number of its first line that is no JSON: DuckDB reports the line after it."""
    import pyarrow as pa

    with pa.input_stream(file.path, compression=None if file.compression == "none" else file.compression) as raw:
        for i, line in enumerate(io.BufferedReader(raw)):
            try:
                json.loads(line or "null")
            except ValueError:
                if line.strip():
                    return f"{file.path!r}, line {i + 1}"
    return None


def _stored(name: str, kind: str, where: str) -> str:
    """The type that the cells of a column are read as."""
    if WHOLE.fullmatch(kind) or NUMBER.fullmatch(kind):
        return "DOUBLE"
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP")):
        raise SourceError(
            f"{where}: column {name!r} has lists or objects ({kind}), not single values. Unpack them in a query: "
            "scan(sql=\"select ... from read_json('...')\")."
        )
    return kind if kind in ("BOOLEAN", "DATE", "TIME") or kind.startswith("TIMESTAMP") else "VARCHAR"
