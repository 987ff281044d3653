"""Rows that can be read once, of a reader or the standard input: a temporary file keeps them for later passes."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from likely.engines.base import Scan, Stream, chunk_rows, pieces
from likely.engines.files import FileSet, find_files, library_errors
from likely.errors import InputTypeError, SourceError


def temporary_file(content: str) -> str:
    """The path of a new temporary file, whose name has a word on its content: errors show it."""
    descriptor, path = tempfile.mkstemp(prefix=f"likely-{content}-", suffix=".rows")
    os.close(descriptor)
    return path


def delete(path: str, sink: Any = None) -> None:
    """Close and delete a file: at the end of the life of its owner, or of the process."""
    if sink is not None:
        sink.close()
    Path(path).unlink(missing_ok=True)


class Spool(Stream):
    """The record batches of an iterator, which are written to a temporary file while the first pass reads them.

    A pass that ends early leaves the remaining batches in the iterator; the next one continues there. `chunks_once`
    writes no file, and leaves nothing for later passes.
    """

    _bound = "can be read once"

    def __init__(self, description: str, batches: Iterator[Any], schema: Any) -> None:
        super().__init__(description, schema.names)
        self._batches, self._schema, self._taken = batches, schema, 0
        self._path = ""
        self._sink: Any = None
        self._writer: Any = None  # of the temporary file; None before the first pass
        self._lost = ""  # why the rows cannot be read again; empty while they can
        self._lock = threading.Lock()

    def chunks_once(self) -> Iterator[Any]:
        """The rows without a temporary file, unless an earlier pass has made it."""
        with self._lock:
            if self._writer is not None:
                return self.chunks()
            self._check_left()
            self._lost = "a prediction has read the rows without a copy"
        return self._counted(self._remaining(chunk_rows(len(self.columns))))

    def _check_left(self) -> None:
        if self._lost:
            raise SourceError(
                f"{self.description} can be read once, and {self._lost}. Pass a new one, or write the rows to a file "
                "and pass a scan of it."
            )

    def _remaining(self, rows: int) -> Iterator[Any]:
        """The batches of the iterator, none of which are kept."""
        import pyarrow as pa

        while (batch := self._next()) is not None:
            yield from pieces(pa.Table.from_batches([batch]), rows)

    def _read(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa

        kept = self._kept()
        done = 0
        while True:
            with self._lock:
                self._check_left()
                if self._writer is None:
                    self._open()
                if done == self._taken and not self._keep(self._next()):
                    return
            done += 1
            yield from pieces(pa.Table.from_batches([next(kept)]), rows)

    def _open(self) -> None:
        """Create the temporary file."""
        import pyarrow as pa

        with self._storage_errors():
            self._path = temporary_file("reader")
            self._sink = pa.OSFile(self._path, "wb")
            weakref.finalize(self, delete, self._path, self._sink)
            self._writer = pa.ipc.new_stream(self._sink, self._schema)
            self._sink.flush()

    def _kept(self) -> Iterator[Any]:
        """The batches of the file, from the first on; it is opened when the first of them is needed."""
        import pyarrow as pa

        with pa.OSFile(self._path) as file, pa.ipc.open_stream(file) as stream:
            yield from stream

    def _next(self) -> Any:
        """The next batch of the iterator; None at the end."""
        try:
            with library_errors(f"{self.description} cannot be read"):
                batch = next(self._batches, None)
            self._check_schema(batch)
        except BaseException:
            self._lost = "reading it has failed"  # the iterator may be at its end now, before the last row
            raise
        self._taken += batch is not None
        return batch

    def _check_schema(self, batch: Any) -> None:
        """Raise where a batch has other columns than the first one."""
        if batch is not None and not batch.schema.equals(self._schema):
            raise SourceError(
                f"{self.description}: batch {self._taken} has the columns {dict(_types(batch.schema))}, and the first "
                f"has {dict(_types(self._schema))}."
            )

    def _keep(self, batch: Any) -> bool:
        """Write a batch to the temporary file; whether there was one."""
        if batch is not None:
            with self._storage_errors():
                self._writer.write_batch(batch)
                self._sink.flush()
        return batch is not None

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        """Errors of the temporary file as errors that name it."""
        try:
            yield
        except OSError as error:
            self._lost = "its rows could not be kept"
            where = repr(self._path) if self._path else "a temporary file"
            raise SourceError(
                f"{self.description} is kept in {where} for later passes, which failed: {error}. Set TMPDIR to a "
                "directory with enough space."
            ) from error


def _types(schema: Any) -> Iterator[tuple[str, str]]:
    return ((field.name, str(field.type)) for field in schema)


def spooled(description: str, batches: Iterator[Any], schema: Any = None) -> Spool:
    """Record batches or tables of an iterator, of the given schema or that of the first of them."""
    flat = _record_batches(description, batches)
    if schema is None:
        first = next(flat, None)
        if first is None:
            raise SourceError(f"{description} has no rows: it yields nothing.")
        flat, schema = chain([first], flat), first.schema
    return Spool(description, flat, schema)


def _record_batches(description: str, batches: Iterator[Any]) -> Iterator[Any]:
    for item in batches:
        if not type(item).__module__.startswith("pyarrow") or type(item).__name__ not in ("RecordBatch", "Table"):
            raise InputTypeError(
                f"{description} yields a {type(item).__name__}, not record batches or tables of Arrow. Pass an object "
                "with a method chunks() for other frames."
            )
        yield from item.to_batches() if type(item).__name__ == "Table" else (item,)


def standard_input(format: str | None, read: Callable[[FileSet], Scan]) -> Scan:
    """The rows of the standard input, in the given format or that of its first bytes."""
    path = temporary_file("standard-input")
    try:
        with Path(path).open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        scan = read(replace(find_files(path, format), description="the standard input"))
    except BaseException:
        Path(path).unlink()
        raise
    weakref.finalize(scan, delete, path)
    return scan
