"""Files of a path, a glob or a directory, their formats, and whether they change between passes."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likely.data.names import is_unicode
from likely.errors import SourceError, listed, nearest

SUFFIXES = {
    **dict.fromkeys((".parquet", ".pq", ".parq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), "csv"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "json"),
    **dict.fromkeys((".arrow", ".arrows", ".ipc", ".feather"), "arrow"),
    **dict.fromkeys((".sqlite", ".sqlite3"), "sqlite"),
    **dict.fromkeys((".duckdb", ".ddb"), "duckdb"),
}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
TEXT_FORMATS = ("csv", "json")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file as it was when the scan was made."""

    path: str
    format: str
    compression: str  # "none", "gzip" or "zstd"
    size: int
    modified: int  # nanoseconds

    def check(self) -> None:
        """Raise where the file is another one than when the scan was made."""
        with readable(self.path):
            now = Path(self.path).stat()
        if (now.st_size, now.st_mtime_ns) != (self.size, self.modified):
            raise SourceError(
                f"{self.path!r} has changed since the scan was made: {self.size} bytes then, {now.st_size} bytes now, "
                "or another time of modification. Call scan again once the file is complete."
            )


@dataclass(frozen=True, slots=True)
class FileSet:
    """The files of a path in their order; `root` is the fixed part of the path, which they lie below."""

    description: str
    files: tuple[DataFile, ...]
    root: str

    @property
    def format(self) -> str:
        """The format of all files."""
        return self.files[0].format


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Errors of the operating system as errors that name the file or directory."""
    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"{path!r} does not exist (any more).") from None
    except PermissionError as error:
        name = os.fspath(error.filename or path)
        what = "directory" if os.path.isdir(name) else "file"  # noqa: PTH112 - Path.is_dir may be denied, too
        raise SourceError(
            f"{name!r} cannot be read: permission denied. Change the permissions of the {what}."
        ) from None


@contextmanager
def unchanged(*files: DataFile | None) -> Iterator[None]:
    """Raise where a file is another one, before or after its rows are read, than when the scan was made."""
    given = [file for file in files if file is not None]
    for file in given:
        file.check()
    yield
    for file in given:
        file.check()


@contextmanager
def library_errors(problem: str, remedy: str = "", kinds: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Errors of Arrow, of the operating system and of other `kinds` as one: ``<problem>: <error>. <remedy>``."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, *kinds) as error:
        raise SourceError(f"{problem}: {str(error).strip().rstrip('.')}. {remedy}".rstrip()) from error


def decompressed(file: DataFile) -> Any:
    """A stream of the content of a file."""
    import pyarrow as pa

    return pa.input_stream(file.path, compression=None if file.compression == "none" else file.compression)


def check_complete(file: DataFile) -> None:
    """Raise where a compressed file is truncated, which DuckDB may read as a shorter one."""
    if file.compression == "none":
        return
    with library_errors(f"{file.path!r} is damaged or truncated", "Write it again."), decompressed(file) as stream:
        while stream.read(2**22):
            pass


def find_files(path: Any, format: str | None = None) -> FileSet:
    """The files of a path, a glob, a directory or a list of paths, all of one format."""
    given = list(path) if isinstance(path, list | tuple) else [path]
    if not given:
        raise SourceError("path=[] names no file.")
    texts = [os.path.expanduser(os.fspath(one)) for one in given]  # noqa: PTH111 - Path would change the text
    shown = repr(texts[0]) if len(texts) == 1 else f"{len(texts)} paths from {texts[0]!r} on"
    names: list[str] = []
    for text in texts:
        names += _expanded(text, format)
    _check_distinct(names)
    files = tuple(_described(name, format) for name in names)
    kinds: dict[str, DataFile] = {}
    for file in files:
        kinds.setdefault(file.format, file)
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        have = "has" if len(texts) == 1 else "have"
        raise SourceError(
            f"{shown} {have} files of several formats: {first.path!r} is {one} and {second.path!r} is {other}. Name "
            "the files of one format with a glob such as 'rows/*.parquet', or pass format=."
        )
    folders = [Path(name).absolute().parent for name in names]
    root = _root(texts[0]) if len(texts) == 1 else os.path.commonpath(folders)
    return FileSet(shown, files, root)


def _check_distinct(names: Sequence[str]) -> None:
    """Raise where several paths name one file, whose rows would count twice."""
    found: dict[str, str] = {}
    for name in names:
        real = os.path.realpath(name)
        if real in found:
            raise SourceError(f"{found[real]!r} and {name!r} are the same file. Name every file once.")
        found[real] = name


def _expanded(text: str, format: str | None) -> list[str]:
    """The files that a path stands for, in alphabetical order."""
    if REMOTE.match(text):
        raise SourceError(
            f"{text!r} is a remote address, which scan does not read by itself. Pass a DuckDB connection that can read "
            "it: scan(sql=\"select * from read_parquet('...')\", connection=connection)."
        )
    where = Path(text)
    with readable(text):
        if where.is_dir():
            return _in_directory(text, format)
        if where.exists():
            return [text]
    if glob.has_magic(text):
        _check_directories(text)
        found = []
        for name in sorted(glob.glob(text, recursive=True)):  # noqa: PTH207 - text
            with readable(name):
                found += [name] if stat.S_ISREG(Path(name).stat().st_mode) else []
        if not found:
            raise SourceError(f"No file matches {text!r}. {_around(_root(text))}")
        return found
    raise SourceError(f"{text!r} does not exist. {_missing(where)}")


def _check_directories(text: str) -> None:
    """Raise where a directory on the way of a glob cannot be searched, which `glob` takes for an empty one."""
    parts = Path(text).parts
    for i, part in enumerate(parts):
        above = str(Path(*parts[:i]))
        if not glob.has_magic(part) and not glob.has_magic(above):
            continue
        pattern = str(Path(above, "**")) if part == "**" else above
        for name in glob.glob(os.path.join(pattern, ""), recursive=True):  # noqa: PTH118, PTH207 - text
            with readable(name), suppress(FileNotFoundError, NotADirectoryError):
                if glob.has_magic(part):
                    os.scandir(name).close()
                else:
                    Path(name, part).stat()


def _in_directory(text: str, format: str | None) -> list[str]:
    """All data files below a directory; names that start with . or _ are not data, by convention."""

    def fail(error: OSError) -> None:
        raise error

    found = []
    for folder, folders, names in os.walk(text, onerror=fail):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        found += [os.path.join(folder, name) for name in names if name[0] not in "._"]  # noqa: PTH118 - text
    known = sorted(name for name in found if format is None or _by_name(name)[0] in (format, None))
    known = [name for name in known if _by_name(name)[0] is not None] or (known if format else [])
    if not known:
        wanted = f"files of the format {format!r}" if format else f"files ending in {', '.join(SUFFIXES)}"
        there = f"It has: {listed(sorted(found))}" if found else "It has no files at all"
        raise SourceError(f"The directory {text!r} has no {wanted}. {there}.")
    return known


def _missing(where: Path) -> str:
    """What to say of a path that does not exist."""
    if not where.parent.is_dir():
        return f"Neither does the directory {str(where.parent)!r}."
    return nearest(where.name, _entries(where.parent))


def _entries(folder: Path) -> list[str]:
    """The names in a directory."""
    with readable(str(folder)):
        return sorted(entry.name for entry in folder.iterdir())


def _around(root: str) -> str:
    """What lies in the fixed part of a glob."""
    if not Path(root).is_dir():
        return f"The directory {root!r} does not exist."
    names = _entries(Path(root))
    return f"{root!r} has: {listed(names)}." if names else f"{root!r} is empty."


def _root(text: str) -> str:
    """The directory that a path or the fixed part of a glob names."""
    fixed = Path(text)
    if not fixed.exists():
        while glob.has_magic(str(fixed)):
            fixed = fixed.parent
    return str(fixed.parent if fixed.is_file() else fixed)


def _by_name(name: str) -> tuple[str | None, str]:
    """The format and compression by the suffixes of a file."""
    path = Path(name.lower())
    compression = COMPRESSIONS.get(path.suffix, "none")
    return SUFFIXES.get(path.suffix if compression == "none" else Path(path.stem).suffix), compression


def _described(name: str, format: str | None) -> DataFile:
    """A file with its format, which its content must not contradict."""
    if not is_unicode(name):
        raise SourceError(f"The name of the file {name!r} is not encoded in UTF-8. Rename the file.")
    with readable(name):
        found = Path(name).stat()
        if not stat.S_ISREG(found.st_mode):  # opening a pipe waits for its writer, and it is read once
            raise SourceError(
                f"{name!r} is a pipe, socket or device, not a regular file. Pass scan('-', format=...) and redirect it "
                "to the standard input, or write the rows to a file."
            )
        with Path(name).open("rb") as file:
            head = file.read(16)
    if not head:
        raise SourceError(f"{name!r} is empty: 0 bytes.")
    content, compression = _by_content(head)
    wanted = format or _by_name(name)[0]
    if wanted is None and content in (None, "zip"):
        raise SourceError(f"The format of {name!r} is not known. Pass format=, one of {listed(FORMATS)}.")
    kind = wanted or content
    agrees = content == kind or (content is None and kind in TEXT_FORMATS)
    if not agrees or (kind == "json" and compression == "none" and head.lstrip()[:1] != b"{"):
        raise SourceError(_contradiction(name, str(kind), content, head))
    return DataFile(name, str(kind), compression, found.st_size, found.st_mtime_ns)


def _by_content(head: bytes) -> tuple[str | None, str]:
    """The format and compression by the first bytes; None for text, which csv and json lines both are."""
    if head.startswith(b"\x1f\x8b"):
        return None, "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return None, "zstd"
    starts: Sequence[tuple[bytes, str]] = (
        (b"PAR1", "parquet"),
        (b"ARROW1", "arrow"),
        (b"\xff\xff\xff\xff", "arrow"),
        (b"SQLite format 3\0", "sqlite"),
        (b"PK\x03\x04", "zip"),
    )
    found = next((name for start, name in starts if head.startswith(start)), None)
    return "duckdb" if head[8:12] == b"DUCK" else found, "none"


def _contradiction(name: str, wanted: str, content: str | None, head: bytes) -> str:
    if content == "zip":
        return f"{name!r} is a zip archive, such as a spreadsheet, not {wanted}. Save the table as CSV or Parquet."
    if wanted == "json" and content is None:
        start = "a JSON array" if head.lstrip()[:1] == b"[" else f"{head[:12]!r}"
        return f"{name!r} starts with {start}, not with a JSON object. Write one object on each line."
    actual = content or "text (csv or json)"
    return f"{name!r} is read as {wanted}, but its content is {actual}. Pass format=, or correct the name of the file."
