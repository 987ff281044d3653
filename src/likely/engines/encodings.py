"""Text files in other encodings than UTF-8: a temporary copy in UTF-8, which DuckDB reads."""

from __future__ import annotations

import codecs
import threading
import weakref
from pathlib import Path
from typing import Any

from likely.engines.files import DataFile, decompressed, library_errors, readable
from likely.engines.spool import delete, temporary_file
from likely.errors import InputError, SourceError

BLOCK = 2**20  # bytes that are decoded at once
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def checked_encoding(encoding: Any) -> str:
    """The option `encoding` as Python names it; "utf-8" also with a byte order mark."""
    try:
        found = codecs.lookup(encoding)
        "".encode(found.name)  # codecs of bytes, such as base64, do not encode text
    except (LookupError, TypeError, ValueError):
        raise InputError(
            f"encoding={encoding!r} is not known. Pass the name of an encoding of Python, such as 'utf-8', 'cp1252' "
            "(Windows), 'latin-1' or 'utf-16'."
        ) from None
    return "utf-8" if found.name in ("utf-8", "utf-8-sig") else found.name


def other_encoding(head: bytes) -> str:
    """The remedy for a text that is not UTF-8, by its first bytes."""
    mark = next((name for mark, name in MARKS.items() if head.startswith(mark)), None)
    names = "'cp1252' (Windows) or 'latin-1'" if mark is None else repr(mark)
    return f"Pass its encoding to scan: encoding={names}."


class Utf8Copy:
    """A text file, and a temporary copy of it in UTF-8, which every process makes when it first reads the file."""

    def __init__(self, file: DataFile, encoding: str) -> None:
        self._file, self._encoding = file, encoding
        self._copy: DataFile | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"_file": self._file, "_encoding": self._encoding}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_file"], state["_encoding"])  # type: ignore[misc]

    def content(self) -> DataFile:
        """The copy."""
        with self._lock:
            if self._copy is None:
                path = temporary_file("utf-8")
                weakref.finalize(self, delete, path)
                self._write(path)
                stat = Path(path).stat()
                self._copy = DataFile(path, self._file.format, "none", stat.st_size, stat.st_mtime_ns)
            return self._copy

    def _write(self, path: str) -> None:
        """Decode the file block by block; line breaks stay as they are."""
        self._file.check()
        decoder = codecs.getincrementaldecoder(self._encoding)()
        lines = 1
        with (
            library_errors(f"{self._file.path!r} cannot be copied to {path!r} in UTF-8"),
            readable(self._file.path),
            decompressed(self._file) as stream,
            Path(path).open("wb") as copy,
        ):
            while True:
                block, state = stream.read(BLOCK), decoder.getstate()
                try:
                    text = decoder.decode(block, final=not block)
                except UnicodeDecodeError as error:
                    again = codecs.getincrementaldecoder(self._encoding)("replace")
                    again.setstate(state)
                    before = again.decode(block[: max(error.start - len(state[0]), 0)])
                    raise self._undecodable(lines + before.count("\n"), error) from None
                lines += text.count("\n")
                copy.write(text.encode("utf-8", "surrogatepass"))
                if not block:
                    return

    def _undecodable(self, line: int, error: UnicodeDecodeError) -> SourceError:
        found = error.object[error.start : error.end]
        return SourceError(
            f"{self._file.path!r}, line {line}: the bytes {found!r} are not {self._encoding} ({error.reason}). Pass "
            "another encoding=, or correct the line."
        )
