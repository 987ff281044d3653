"""Paths, globs and directories: which files they stand for, and what is wrong with them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from likely import NaiveBayes, scan
from likely.engines.files import find_files
from likely.errors import CellError, SourceError
from tests.unit.engines.tables import mixed_table, read, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.csv", "b.csv", "sub/c.csv", ".hidden.csv", "_temporary/d.csv", "notes.md"):
        path = tmp_path / "rows" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"name,x\n{path.stem},1\n")
    return tmp_path / "rows"


def names(path: Any, format: str | None = None) -> list[str]:
    return [Path(file.path).name for file in find_files(path, format).files]


def test_paths_globs_directories_and_lists(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(folder) == ["a.csv", "b.csv", "c.csv"]
    assert names(str(folder / "*.csv")) == ["a.csv", "b.csv"]
    assert names(str(folder / "**" / "c.csv")) == ["c.csv"]
    assert names([folder / "b.csv", str(folder / "a.csv")]) == ["b.csv", "a.csv"]
    monkeypatch.chdir(folder)
    assert names("a.csv") == names("*a.csv") == ["a.csv"]
    assert read(scan("."))["name"].tolist() == ["a", "b", "c"]
    monkeypatch.setenv("HOME", str(folder))
    assert names("~/b.csv") == ["b.csv"]


def test_a_file_whose_name_looks_like_a_glob_is_that_file(folder: Path) -> None:
    (folder / "[a]*.csv").write_text("name,x\nodd,2\n")
    assert read(scan(folder / "[a]*.csv"))["name"].tolist() == ["odd"]


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.jsonl", "rows.feather", "rows.db"])
def test_any_names_of_directories_and_files(tmp_path: Path, name: str) -> None:
    odd = tmp_path / 'it\'s; drop table "x" -- {a,b} [k=v] *?#%20' / f"k='v'; {name}"
    odd.parent.mkdir()
    write(mixed_table(10), odd)
    rows = scan(odd, table="rows" if name.endswith("db") else None)
    assert rows.columns == tuple(mixed_table(10).columns)
    assert read(rows)["count"].tolist() == mixed_table(10)["count"].tolist()


@pytest.mark.parametrize("name", ["rows.csv", "rows.feather", "rows.parquet"])
def test_errors_say_which_file_their_row_numbers_are_counted_in(tmp_path: Path, name: str) -> None:
    frame = mixed_table(60)
    frame.loc[47, "size"] = np.inf
    for i in range(3):
        write(frame[20 * i : 20 * i + 20], tmp_path / f"{i}{name}")
    with pytest.raises(CellError, match=r"'size', row (7|47): inf") as error:
        NaiveBayes().fit(scan(tmp_path), "label")
    notes = getattr(error.value, "__notes__", [])
    expected = [f"Rows are counted from the first row of {str(tmp_path / f'2{name}')!r}."]
    assert (error.value.row, notes) == ((47, []) if name == "rows.parquet" else (7, expected))


def test_an_error_in_one_of_several_files_names_it(tmp_path: Path) -> None:
    for i in range(12):
        (tmp_path / f"{i:02}.csv").write_text("x,y\n1,2\n" if i != 5 else "x,y\n1,2\nseven,3\n")
    with pytest.raises(SourceError, match=r"05.csv', line 3, column 'x': 'seven' is not a number"):
        list(scan(tmp_path, types={"x": "number"}).compute(lambda i, part: list(part.chunks())))


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("rows/a.cvs", "'.*a.cvs' does not exist. Did you mean 'a.csv'"),
        ("rows/nothing/a.csv", "Neither does the directory '.*nothing'"),
        ("rows/*.parquet", r"No file matches '.*\*.parquet'. '.*rows' has: .*'a.csv'"),
        ("nowhere/*.parquet", "No file matches.*'nowhere' does not exist|No file matches.*there are: 'rows'"),
        ("rows/notes.md", "The format of '.*notes.md' is not known. Pass format="),
        ([], "names no file"),
        ("https://example.org/rows.csv", "remote address.*connection="),
        ("s3://bucket/rows/*.parquet", "remote address.*connection="),
    ],
)
def test_files_that_are_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch, path: Any, problem: str) -> None:
    monkeypatch.chdir(folder.parent)
    with pytest.raises(SourceError, match=problem):
        scan(path)


def test_a_directory_has_files_of_one_format(folder: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), folder / "z.parquet")
    with pytest.raises(SourceError, match=r"several formats: '.*a.csv' is csv and '.*z.parquet' is parquet.*format="):
        scan(folder)
    with pytest.raises(SourceError, match=r"^2 paths from '.*a.csv' on have files of several formats"):
        scan([folder / "a.csv", folder / "z.parquet"])
    assert names(folder, "parquet") == ["z.parquet"]
    (tmp_path / "none").mkdir()
    with pytest.raises(SourceError, match="has no files ending in"):
        scan(tmp_path / "none")
    with pytest.raises(SourceError, match="has no files of the format 'arrow'"):
        scan(folder / "sub", format="arrow")


@pytest.mark.parametrize(
    ("name", "content", "format", "problem"),
    [
        ("x.csv", b"PAR1....", None, "is read as csv, but its content is parquet"),
        ("x.parquet", b"a,b\n1,2\n", None, "is read as parquet, but its content is text"),
        ("x.dat", b"a,b\n1,2\n", "parquet", "is read as parquet, but its content is text"),
        ("x.csv", b"PK\x03\x04......", None, "is a zip archive, such as a spreadsheet"),
        ("x.xlsx", b"PK\x03\x04......", None, "The format of '.*x.xlsx' is not known"),
        ("x.sqlite", b"a,b\n1,2\n", None, "is read as sqlite, but its content is text"),
        ("x.csv", b"", None, "is empty: 0 bytes"),
        ("x.arrow", b"ARROW1", None, "is not a complete Arrow file"),
    ],
)
def test_a_format_that_the_content_contradicts(
    tmp_path: Path, name: str, content: bytes, format: str | None, problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=problem):
        scan(tmp_path / name, format=format)


PATTERNS = ("rows", "rows/*/c.csv", "rows/*/*.csv", "rows/**/c.csv", "**/*.csv", "*/sub/c.csv", "**", "r*/s[tu]b/*")
READ_AS_ANOTHER_USER = """
import json, os, sys
from likely.engines.files import find_files
from likely.errors import SourceError

if os.geteuid() == 0:  # whom permissions do not bind
    os.setegid(65534)
    os.seteuid(65534)
results = []
for mode in (0o000, 0o400, 0o100):
    os.chmod("rows/sub", mode)
    for pattern in sys.argv[1:]:
        try:
            results.append((mode, pattern, [file.path for file in find_files(pattern).files]))
        except SourceError as error:
            results.append((mode, pattern, str(error)))
os.chmod("rows/sub", 0o755)
print(json.dumps(results))
"""


def test_a_directory_without_permission_is_an_error_that_names_it() -> None:
    with tempfile.TemporaryDirectory() as name:  # other users may not enter the directories of pytest
        sub = Path(name, "rows", "sub")
        sub.mkdir(parents=True)
        for file in (sub.parent / "a.csv", sub / "c.csv"):
            file.write_text("x\n1\n")
        for path in (Path(name), sub.parent, sub):
            path.chmod(0o755)
            os.chown(path, 65534 if os.geteuid() == 0 else -1, -1)
        command = [sys.executable, "-c", READ_AS_ANOTHER_USER, *PATTERNS]
        output = subprocess.run(command, cwd=name, capture_output=True, text=True, check=True).stdout
    found = json.loads(output)
    assert len(found) == 3 * len(PATTERNS)
    for mode, pattern, result in found:
        if mode == 0o100 and pattern in ("rows/*/c.csv", "*/sub/c.csv"):  # entered, not listed
            assert result == ["rows/sub/c.csv"]
        else:
            assert re.match(r"'rows/sub(/c\.csv|/)?' cannot be read: permission denied. Change the perm", result), (
                pattern
            )


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.jsonl", "rows.feather", "rows.db"])
def test_a_name_that_is_not_encoded_in_utf8_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / os.fsdecode(b"\xff" + name.encode())
    write(mixed_table(20), tmp_path / name).rename(path)
    with pytest.raises(SourceError, match=r"The name of the file .* is not encoded in UTF-8\. Rename"):
        scan(path, table="rows" if name.endswith("db") else None)


def test_dangling_links_are_an_error(folder: Path) -> None:
    (folder / "link.csv").symlink_to(folder / "nowhere.csv")
    for path in (folder, folder / "*.csv"):
        with pytest.raises(SourceError, match=r"link.csv' does not exist"):
            scan(path)


def test_a_file_without_permission_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, *args: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(SourceError, match=r"'.*a.csv' cannot be read: permission denied"):
        scan(folder / "a.csv")


def test_arrow_files_with_other_columns_or_types_are_errors(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(pa.table({"a": [1]}), str(tmp_path / "1.feather"))
    pyarrow.feather.write_feather(pa.table({"a": ["x"]}), str(tmp_path / "2.feather"))
    with pytest.raises(SourceError, match=r"Column 'a' is int64 in '.*1.feather' and string in '.*2.feather'"):
        scan(tmp_path)
    pyarrow.feather.write_feather(pa.table({"b": [1]}), str(tmp_path / "2.feather"))
    with pytest.raises(SourceError, match="different columns: 'a' only in"):
        scan(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
@pytest.mark.parametrize("given", ["pipe.csv", "pipe.parquet", "pipe", "", "/dev/null"])
def test_files_that_are_not_regular_are_refused_without_waiting(tmp_path: Path, given: str) -> None:
    (tmp_path / "folder").mkdir()
    name = Path(given).name or "rows.csv"
    os.mkfifo(tmp_path / "folder" / name)
    path = Path(given) if given.startswith("/") else tmp_path / "folder" / given
    with pytest.raises(SourceError, match=r"is a pipe, socket or device.*scan\('-', format="):
        scan(path, format=None if "." in name else "csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "folder" / name)
    with pytest.raises(SourceError, match="is a pipe"):
        scan(tmp_path / "link.csv")
