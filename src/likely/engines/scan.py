"""`scan`: rows in files, databases and lazy frames, in place of a frame in memory."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likely.engines.arrow import ArrowFiles
from likely.engines.base import Scan
from likely.engines.cells import Notation
from likely.engines.csv import CsvFiles
from likely.engines.duck import Query, check_connection
from likely.engines.encodings import checked_encoding
from likely.engines.files import FORMATS, FileSet, find_files
from likely.engines.json_lines import JsonLines
from likely.engines.objects import scan_of
from likely.engines.parquet import ParquetFiles
from likely.engines.spool import standard_input
from likely.engines.sqlite import SqliteRows
from likely.errors import InputError, InputTypeError, check_choice, nearest

DATABASES = ("sqlite", "duckdb")
ELSEWHERE = {  # options of readers of other libraries, and what stands for them here
    **dict.fromkeys(("sep", "delimiter", "separator"), "The first line gives the delimiter: , ; tab or |."),
    **dict.fromkeys(("na_values", "null_values", "nulls", "keep_default_na"), "Pass missing=, a list of texts."),
    **dict.fromkeys(("dtype", "dtypes", "schema", "converters", "parse_dates"), "Pass types=, such as {'a': 'text'}."),
    **dict.fromkeys(("query",), "Pass sql=."),
    **dict.fromkeys(("conn", "con", "engine", "database"), "Pass connection=, or the database file as path."),
    **dict.fromkeys(("columns", "usecols"), "Pass sql=, such as \"select a, b from 'rows.csv'\"."),
    **dict.fromkeys(("nrows", "n_rows", "limit"), "Pass sql=, such as \"select * from 'rows.csv' limit 1000\"."),
    **dict.fromkeys(("header", "names", "has_header"), "Write the names of the columns in the first line."),
}


def scan(
    path: Any = None,
    *,
    sql: str | None = None,
    table: str | None = None,
    connection: Any = None,
    format: str | None = None,
    types: Mapping[str, str] | None = None,
    missing: Sequence[str] = ("",),
    encoding: str = "utf-8",
    decimal: str = ".",
    thousands: str | None = None,
    **unknown: Any,
) -> Scan:
    """Read rows from files, a database or a lazy frame while a model is fitted, in place of a frame in memory.

    Files are Parquet, CSV and JSON lines (also compressed by gzip or zstd), Arrow IPC (Feather), SQLite and DuckDB.
    The file names, headers and schemas are checked at once; the rows are read in every pass of a fit.

    Parameters
    ----------
    path : str, path, list of paths, or object, default=None
        A file, a glob such as ``"rows/*.parquet"``, a directory with files of one format (directories named
        ``key=value`` give columns), or "-" for the standard input. Or an object whose rows are elsewhere: a Polars
        LazyFrame, a relation of DuckDB, a dataset, scanner, reader or ParquetFile of Arrow, or an iterator of record
        batches.
    sql : str, default=None
        A query: on `connection`, on the SQLite or DuckDB file `path`, or on files that it names itself
        (``"select * from 'rows.parquet'"``).
    table : str, default=None
        A table of `connection`, or of the SQLite or DuckDB file `path`.
    connection : connection of duckdb or sqlite3, default=None
        It is used on the calling thread, its settings are not changed, and it is left open.
    format : {"parquet", "csv", "json", "arrow", "sqlite", "duckdb"}, default=None
        The format of the files; None for that of their names.
    types : dict of str to {"number", "text", "boolean", "timestamp"}, default=None
        Types of some columns of CSV files and JSON lines. Those of the others are found from all rows.
    missing : sequence of str, default=("",)
        Cells of CSV files that are missing values in every column. In columns of numbers, the cells NA, N/A, NaN,
        null, None, ?, - and . are missing values too; `notes` of the scan counts them.
    encoding : str, default="utf-8"
        The encoding of CSV files, such as "cp1252", "latin-1" or "utf-16". Files that are not in UTF-8 are copied to
        a temporary file in UTF-8.
    decimal : {".", ","}, default="."
        The decimal separator of numbers in CSV files.
    thousands : str, default=None
        The separator of thousands in numbers of CSV files, such as ".", "," or a space; None if there is none.
    **unknown : object
        Other options are an error that names the option of `scan` for the same purpose.

    Returns
    -------
    Scan
        The rows, for `fit` and the prediction methods of all estimators.

    Raises
    ------
    SourceError
        If a file, table or column does not exist, files have different columns, a query fails, or a file has changed
        since.

    See Also
    --------
    GenerativeClassifier.fit : Takes a scan in place of a frame.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from likely import scan
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("height,label\\n1.5,low\\nNA,high\\n")
    >>> rows = scan(path)
    >>> rows.columns
    ('height', 'label')
    >>> [table.to_pydict() for table in rows.chunks()]
    [{'height': [1.5, None], 'label': ['low', 'high']}]
    """
    if format is not None:
        check_choice("format", format, FORMATS)
    _check_combination(path, sql, table, connection)
    if unknown:
        raise _unknown(next(iter(unknown)))
    options = _checked(types, missing, encoding, decimal, thousands)
    found: FileSet | None = None
    rows: Scan | None
    if path is None or sql is not None or table is not None:
        found = None if path is None else find_files(path, format)
        rows = _database(found, sql, table, connection, options)
    elif isinstance(path, str) and path == "-":
        rows = standard_input(format, lambda found: _files(found, options))
    elif _is_path(path):
        found = find_files(path, format)
        rows = _files(found, options)
    else:
        options.refuse("an object")
        rows = scan_of(path)
        if rows is None:
            raise InputTypeError(
                f"path is of type {type(path).__name__}, which scan does not read. Pass a path, or pass frames and "
                "arrays to the estimator itself."
            )
    if found is not None:
        rows.paths = tuple(file.path for file in found.files)
    return rows


def _is_path(path: Any) -> bool:
    """Whether an argument is a path or a list of paths."""
    return isinstance(path, str | os.PathLike) or (
        isinstance(path, list | tuple) and all(isinstance(one, str | os.PathLike) for one in path)
    )


def _check_combination(path: Any, sql: Any, table: Any, connection: Any) -> None:
    """Raise where the arguments do not say what to read, or say it twice."""
    if sql is not None and not isinstance(sql, str):
        raise InputTypeError(f"sql={sql!r} must be text.")
    if table is not None and not isinstance(table, str):
        raise InputTypeError(f"table={table!r} must be text.")
    if sql is not None and table is not None:
        raise InputError("Both sql= and table= are given. Pass one of them.")
    if path is None and sql is None and table is None:
        what = "a path, sql= or table=" if connection is None else "sql= or table= with connection="
        raise InputError(f"Nothing to read: pass {what}.")
    if path is not None and connection is not None:
        raise InputError("Both path and connection= are given. Name the file in sql=, or leave out the connection.")
    if table is not None and path is None and connection is None:
        raise InputError(f"table={table!r} needs connection=, or the path of the database file.")


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How cells of CSV files are read, and of which only `types` is for JSON lines too."""

    types: Mapping[str, str] | None
    missing: tuple[str, ...]
    encoding: str
    notation: Notation

    def refuse(self, what: str, types: bool = True) -> None:
        """Raise where an option is given, which is not for what is read; `types` unless these may be given."""
        if types and self.types is not None:
            raise InputError(
                f"types= is for CSV files and JSON lines; {what} has types. Convert columns in sql= instead."
            )
        if self.missing != ("",):
            raise InputError(f"missing= is for CSV files; {what} has missing values of its own.")
        if self.encoding != "utf-8":
            raise InputError(f"encoding= is for CSV files, not for {what}. Leave it out.")
        if self.notation != Notation():
            raise InputError(f"decimal= and thousands= are for CSV files, not for {what}. Leave them out.")


def _checked(types: Any, missing: Any, encoding: Any, decimal: Any, thousands: Any) -> TextOptions:
    """The options of text files. The columns of `types` are not known yet."""
    several = isinstance(missing, Collection) and not isinstance(missing, str)
    if not several or not all(isinstance(text, str) for text in missing):
        raise InputError(f"missing={missing!r} must be a list of texts, such as ['', 'NA'].")
    check_choice("decimal", decimal, (".", ","))
    if thousands is not None:
        if not isinstance(thousands, str) or len(thousands) != 1 or thousands.isalnum() or thousands in '+-"\r\n\t':
            raise InputError(f"thousands={thousands!r} must be one character, such as '.' or ',', or None.")
        if thousands == decimal:
            raise InputError(f"thousands={thousands!r} is also the decimal separator. Pass decimal= too.")
    return TextOptions(types, tuple(missing), checked_encoding(encoding), Notation(decimal, thousands))


def _unknown(name: str) -> InputTypeError:
    """The error on an option that `scan` does not have."""
    known = [option for option in inspect.signature(scan).parameters if option not in ("path", "unknown")]
    hint = ELSEWHERE.get(name) or nearest(name, known)
    return InputTypeError(f"scan has no option {name!r}. {hint}")


def _database(found: FileSet | None, sql: str | None, table: str | None, connection: Any, options: TextOptions) -> Scan:
    """A query or a table."""
    options.refuse("a database")
    if found is not None and (found.format not in DATABASES or len(found.files) > 1):
        raise InputError(
            f"Both a path and {'sql' if sql is not None else 'table'}= are given, and {found.description} is no "
            "database file. Name the file in sql=, or leave sql= and table= out."
        )
    file = None if found is None else found.files[0]
    library = found.format if found is not None else "duckdb" if connection is None else check_connection(connection)
    what = f"the query {sql!r}" if table is None else f"the table {table!r}"
    description = what if file is None else f"{what} of {file.path!r}"
    kind = SqliteRows if library.startswith("sqlite") else Query
    return kind(description, file, connection, sql, table)


def _files(found: FileSet, options: TextOptions) -> Scan:
    """The rows of files."""
    if found.format == "csv":
        return CsvFiles(found, options.types, options.missing, options.encoding, options.notation)
    if found.format == "json":
        options.refuse("a JSON file", types=False)
        return JsonLines(found, options.types)
    options.refuse(f"a file of the format {found.format!r}")
    if found.format in DATABASES:
        raise InputError(f"{found.description} is a database. Pass table= or sql=.")
    return ParquetFiles(found) if found.format == "parquet" else ArrowFiles(found)
