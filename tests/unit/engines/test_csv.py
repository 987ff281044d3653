"""CSV files: types of columns, missing values, and errors with file, line and column."""

from __future__ import annotations

import csv
import gc
import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from likely import EvidenceClassifier, Gaussian, GenerativeClassifier, NaiveBayes, SoftmaxRegression, scan
from likely.errors import InputError, SourceError
from tests.unit.engines.tables import gzipped, read

TYPES = ("int64", "double", "string", "bool", "timestamp[us]", "timestamp[us]", "string", "int64", "string")
BEYOND = 25_000  # rows beyond the sample that gives the types


def written(folder: Path, text: str, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def cells(path: Path, **options: Any) -> dict[str, list[Any]]:
    tables = list(scan(path, **options).chunks())
    assert len(tables) == 1
    return tables[0].to_pydict()


def kinds(path: Path, **options: Any) -> dict[str, str]:
    schema = next(scan(path, **options).chunks()).schema
    return {field.name: str(field.type) for field in schema}


@pytest.mark.parametrize("late", ["1.5", "-2e-3", "1e300", " 7 ", "NA", "?", "-"])
def test_a_late_cell_of_a_column_of_whole_numbers_is_never_rounded(tmp_path: Path, late: str) -> None:
    numbers = [str(i) for i in range(BEYOND)]
    path = written(tmp_path, "x,y\n" + "".join(f"{cell},a\n" for cell in [*numbers, late, "3"]))
    rows = scan(path, types={"x": "number"})
    expected = pd.read_csv(path, na_values=["?", "-"], skipinitialspace=True)["x"].astype(float)
    for _ in range(2):
        np.testing.assert_array_equal(read(rows)["x"], expected)
    assert rows.rows == BEYOND + 2
    if late in "NA?-":
        assert rows.notes == (f"Column 'x': 1 cell ({late!r}) read as missing.",)
        assert rows.notes[0] in repr(rows)


def test_cells_such_as_na_are_missing_in_columns_of_numbers_and_counted(tmp_path: Path) -> None:
    markers = ["NA", "N/A", "NaN", "null", "None", "?", "-", "."]
    text = "x,colour\n" + "".join(f"{cell},{cell}\n" for cell in ["1", *markers, "NA"]) + "2.5,red\n"
    path = written(tmp_path, text)
    found = cells(path)
    assert found["x"] == [1.0, *[None] * 9, 2.5]
    assert found["colour"] == ["1", *markers, "NA", "red"]
    assert len(scan(path).notes) == 1
    assert "Column 'x': 9 cells" in scan(path).notes[0]


def test_the_option_missing_holds_in_every_column(tmp_path: Path) -> None:
    path = written(tmp_path, 'x,t\n1,red\n-999,-999\n3,""\n')
    assert cells(path) == {"x": [1.0, -999.0, 3.0], "t": ["red", "-999", None]}
    assert cells(path, missing=["", "-999"]) == {"x": [1.0, None, 3.0], "t": ["red", None, None]}
    assert cells(path, missing=[]) == {"x": [1.0, -999.0, 3.0], "t": ["red", "-999", ""]}


def test_types_are_those_of_all_cells_of_a_column(tmp_path: Path) -> None:
    head = "whole,real,yes,flag,day,time,id,empty,mixed\n"
    body = (
        "1,1,yes,True,2020-01-31,2020-01-31 10:00:00,9007199254740993,,1\n"
        "2,.5,no,FALSE,2021-02-28,2020-01-31T11:30:00,12,,x\n"
    )
    path = written(tmp_path, head + body)
    assert kinds(path) == dict(zip(head.strip().split(","), TYPES, strict=True))
    assert cells(path)["id"] == ["9007199254740993", "12"]
    assert cells(path)["flag"] == [True, False]
    assert kinds(path, types={"whole": "text", "id": "number"}) | {"whole": "string", "id": "double"} == kinds(
        path, types={"whole": "text", "id": "number"}
    )


def test_times_with_an_offset_from_utc_keep_their_instant(tmp_path: Path) -> None:
    path = written(
        tmp_path, "t,u\n2020-01-01T00:00:00+02:00,2020-01-01 10:00Z\n2020-01-01 00:00:00Z,2020-01-01 10:00\n"
    )
    for types in (None, {"t": "timestamp"}):
        column = next(scan(path, types=types).chunks())
        assert column["t"].cast(pa.int64()).to_pylist() == [1577829600000000, 1577836800000000]
        assert column["u"].to_pylist() == ["2020-01-01 10:00Z", "2020-01-01 10:00"]


def test_spaces_around_cells_are_no_part_of_booleans_times_and_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, "flag,day,x,text\n true,2020-01-01 , 1,1\u00a0\nfalse , 2020-01-02,2 ,2\n")
    assert list(kinds(path).values()) == ["bool", "timestamp[us]", "int64", "string"]
    assert cells(path)["flag"] == [True, False]
    assert cells(path)["x"] == [1.0, 2.0]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_header_gives_the_delimiter_and_any_names(tmp_path: Path, delimiter: str) -> None:
    names = ['a "b"', "it's; c", "A", "a", "select"]
    frame = pd.DataFrame([[1.5, "x", 2.0, 3.0, "y"], [np.nan, "u\nv", 4.0, 5.0, "z"]], columns=names)
    path = tmp_path / "o'dd; {a,b} [1]*?.csv"
    frame.to_csv(path, index=False, sep=delimiter)
    rows = scan(path)
    assert rows.columns == tuple(names)
    pd.testing.assert_frame_equal(read(rows), frame.astype({"it's; c": object, "select": object}))


def test_the_byte_order_mark_and_windows_line_ends_are_no_part_of_cells(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("\ufeffa,b\r\n1,x\r\n2,y\r\n".encode())
    assert cells(path) == {"a": [1.0, 2.0], "b": ["x", "y"]}


def test_files_with_the_same_columns_in_another_order_are_read_by_name(tmp_path: Path) -> None:
    written(tmp_path, "a,b\n1,x\n", "1.csv")
    gzipped(tmp_path / "2.csv.gz", "b;a\ny;2.5\n")
    rows = scan(tmp_path)
    assert read(rows).to_dict("list") == {"a": [1.0, 2.5], "b": ["x", "y"]}
    assert rows.rows == 2


def test_a_column_of_whole_numbers_gives_the_model_of_integers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.poisson(3.0, 400), "k": rng.integers(0, 2, 400), "label": ["a", "b"] * 200})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = GenerativeClassifier().fit(scan(tmp_path / "rows.csv"), "label")
    whole = GenerativeClassifier().fit(frame, "label")
    X = frame.drop(columns="label")
    assert {k: repr(v) for k, v in model.families_.items()} == {k: repr(v) for k, v in whole.families_.items()}
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("rows", [3, 130_000])
@pytest.mark.parametrize(
    ("first", "other", "late"),
    [
        ("1", "2.5", "oops"),
        ("NA", "3", "unknown"),
        ("true", "False", "yes"),
        ("2020-01-01", "2020-01-02 10:00", "epoch"),
        ("2020-01-01", "2020-01-02 10:00", "2020-01-03 10:00:00Z"),
        ("2020-01-01 10:00Z", "2020-01-01 10:00Z", "2020-01-01 10:00"),
    ],
)
def test_one_cell_of_another_type_makes_the_column_text_at_any_row(
    tmp_path: Path, first: str, other: str, late: str, rows: int
) -> None:
    found = []
    for place in (0, 1):  # the first row, or the last
        body = [first, *[other] * rows]
        body = [late, *body] if place == 0 else [*body, late]
        path = written(tmp_path, "x,y\n" + "".join(f"{cell},a\n" for cell in body))
        chunks = list(scan(path).chunks())
        assert {str(chunk.schema.field("x").type) for chunk in chunks} == {"string"}
        cells = pa.concat_tables(chunks)["x"].to_pylist()
        assert cells == body
        found.append(sorted(cells))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("kind", "cell", "late"),
    [
        ("number", "1", "oops"),
        ("number", "NA", "oops"),
        ("boolean", "true", "yes"),
        ("timestamp", "2020-01-01", "epoch"),
        ("timestamp", "2020-01-01", "2020-01-03 10:00:00Z"),
        ("timestamp", "2020-01-01 10:00Z", "2020-01-01 10:00"),
    ],
)
def test_a_late_cell_that_is_not_of_the_declared_type_is_an_error_with_its_line(
    tmp_path: Path, kind: str, cell: str, late: str
) -> None:
    path = written(tmp_path, "y,x\n" + f"a,{cell}\n" * BEYOND + f"b,{late}\n")
    place = rf"rows.csv', line {BEYOND + 2}, column 'x': '{late}' is not a {kind}.*declared in types="
    with pytest.raises(SourceError, match=place) as error:
        scan(path, types={"x": kind})
    assert "types={'x': 'text'}" in str(error.value)
    assert read(scan(path, types={"x": "text"}))["x"].iloc[-1] == late
    rows = read(scan(path, types={"x": kind}, missing=("", late)))
    assert rows["x"].isna().iloc[-1]


@pytest.mark.parametrize(
    "cell", ["31.01.2020", "01/31/2020", "31-01-2020", "2020/01/31", "Jan 2020", "31 January 2020", "10:00:00", "2020"]
)
def test_only_iso_dates_are_times_and_other_forms_stay_text(tmp_path: Path, cell: str) -> None:
    path = written(tmp_path, f"day,other\n{cell},1\n{cell},x\n")
    kind = "int64" if cell == "2020" else "string"
    assert kinds(path) == {"day": kind, "other": "string"}
    (tmp_path / "rows.jsonl").write_text(f'{{"day": "{cell}"}}\n' * 3)
    assert cells(tmp_path / "rows.jsonl") == {"day": [cell] * 3}


def test_codes_with_leading_zeros_stay_text(tmp_path: Path) -> None:
    path = written(tmp_path, "zip,y\n" + "02139,a\n10001,b\n02139,a\n60601,b\n" * 5)
    assert kinds(path) == {"zip": "string", "y": "string"}
    assert cells(path)["zip"][:2] == ["02139", "10001"]


def test_a_late_whole_number_beyond_the_doubles_makes_the_column_text(tmp_path: Path) -> None:
    path = written(tmp_path, "id,x\n" + "1,2\n" * BEYOND + "9007199254740993,3\n")
    assert kinds(path) == {"id": "string", "x": "int64"}
    assert read(scan(path))["id"].iloc[-1] == "9007199254740993"
    assert read(scan(path, types={"id": "number"}))["id"].iloc[-1] == 2.0**53


def test_codes_with_leading_zeros_and_signs(tmp_path: Path) -> None:
    text = "code,real,mark,sign,hex\n007,00.5,0012,+5,1_000\n12,1.5,NA,-3,2\n"
    path = written(tmp_path, text)
    assert list(kinds(path).values()) == ["string", "string", "string", "int64", "string"]
    assert cells(path)["code"] == ["007", "12"]
    assert cells(path)["sign"] == [5, -3]
    assert cells(path, types={"code": "number", "mark": "number"})["mark"] == [12.0, None]


LONG = 300_000  # rows of several blocks, which DuckDB reads on several threads


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("first", "other", "late", "problem"),
    [
        ("1,2", "3,4", "x,5", "column 'a': 'x' is not a number"),
        ("NA,2", "3,4", "x,5", "column 'a': 'x' is not a number"),
        ("true,2", "false,4", '"no, no",5', "column 'a': 'no, no' is not a boolean"),
        ("1,2", "3,4", "5,6,7", "has 4 cells, and the header has 3"),
        ("1,a", "3,b", "5,\udce9", "is not encoded in UTF-8"),
    ],
)
def test_lines_of_errors_count_blank_lines_and_line_breaks_in_quotes(
    tmp_path: Path, first: str, other: str, late: str, problem: str, end: str
) -> None:
    rows = LONG if first == "1,2" else BEYOND
    quoted = f'"one{end}two ""three"" four{end}five"'
    lines = ["a,b,t", f"{first},{quoted}", "", "", f"{other},{quoted}", *[f"{other},z"] * rows, f"{late},{quoted}"]
    text = end.join([*lines, f"{late},{quoted}", ""])
    content = text.encode("utf-8", "surrogateescape")
    for name, data in (("rows.csv", content), ("rows.csv.gz", gzip.compress(content, 1))):
        (tmp_path / name).write_bytes(data)
        types = {"a": problem.rpartition(" ")[2]} if "column" in problem else None
        with pytest.raises(SourceError, match=rf"{name}', line {rows + 10},? {problem}"):
            read(scan(tmp_path / name, types=types))


def test_errors_in_rows_with_very_long_cells_have_the_data_row(tmp_path: Path) -> None:
    long = "z" * 200_000
    path = written(tmp_path, f"a,t\ntrue,{long}\n" + "false,x\n" * BEYOND + "no,x\n")
    with pytest.raises(SourceError, match=rf"rows.csv', data row {BEYOND + 2}, column 'a': 'no' is not a boolean"):
        read(scan(path, types={"a": "boolean"}))


@pytest.mark.parametrize("rows", [1, BEYOND])
@pytest.mark.parametrize(("line", "count"), [("1,2,3", "3 cells"), ("1", "1 cell")])
def test_a_ragged_line_is_an_error_with_its_line(tmp_path: Path, rows: int, line: str, count: str) -> None:
    path = written(tmp_path, "x,y\n" + "1,2\n" * rows + f"{line}\n")
    with pytest.raises(SourceError, match=f"rows.csv', line {rows + 2} has {count}, and the header has 2"):
        read(scan(path))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "has no header"),
        ("1,2,3\n4,5,6\n", "has no header"),
        ("a,b,a\n1,2,3\n", "duplicate column names: 'a'"),
        ("\n1,2\n", "no names of columns"),
        ("a,b\nx,1\ny,2\r\nz,3\n", r"line 3 ends with '\\r\\n', and line 1 with '\\n'"),
        ('a,b\r\n"x\ny",1\r\nz,2\n', r"line 4 ends with '\\n', and line 1 with '\\r\\n'"),
        ('a,b\n1,"x\n2,y\n', "line 2: a quote is not closed"),
    ],
)
def test_a_file_without_proper_names_or_quotes_is_an_error(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SourceError, match=f"(?s){problem}"):
        scan(written(tmp_path, text))


def test_another_encoding_is_an_error_that_names_the_option(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(("a,b\n" + "1,e\n" * BEYOND + "1,été\n").encode("latin-1"))
    with pytest.raises(SourceError, match=rf"rows.csv', line {BEYOND + 2} is not encoded in UTF-8.*encoding='cp1252'"):
        read(scan(path))
    path.write_bytes("été,b\n1,2\n".encode("latin-1"))
    with pytest.raises(SourceError, match=r"UTF-8.*encoding='cp1252'"):
        scan(path)
    path.write_bytes("été,b\n1,2\n".encode("utf-16"))
    with pytest.raises(SourceError, match=r"UTF-8.*encoding='utf-16'"):
        scan(path)
    (tmp_path / "rows.jsonl").write_bytes('{"a": "e"}\n{"a": "é"}\n'.encode("latin-1"))
    with pytest.raises(SourceError, match="line 2 is not encoded in UTF-8, as JSON is"):
        scan(tmp_path / "rows.jsonl")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "UTF-8", "utf-8-sig", "mac-roman"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_in_any_encoding_are_read_as_in_utf_8(tmp_path: Path, encoding: str, end: str) -> None:
    lines = ["größe,wert", *["Garçon,1.5", '"zwei; ""Zeilen""",NA', '"a' + end + 'b",3'] * 200]
    (tmp_path / "rows.csv").write_bytes((end.join(lines) + end).encode(encoding))
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress((end.join(lines) + end).encode(encoding)))
    expected = ["Garçon", 'zwei; "Zeilen"', f"a{end}b"] * 200
    for name in ("rows.csv", "rows.csv.gz"):
        rows = scan(tmp_path / name, encoding=encoding)
        for each in (rows, pickle.loads(pickle.dumps(rows))):
            assert read(each)["größe"].tolist() == expected
            assert read(each)["wert"].sum() == 200 * 4.5
        assert rows.paths == (str(tmp_path / name),)


def test_the_copy_of_a_file_in_another_encoding_is_deleted_with_the_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "copies"))
    (tmp_path / "copies").mkdir()
    path = tmp_path / "rows.csv"
    path.write_bytes("a,b\né,1\n".encode("cp1252"))
    rows = scan(path, encoding="cp1252")
    assert read(rows)["a"].tolist() == read(rows)["a"].tolist() == ["é"]
    assert len(list((tmp_path / "copies").iterdir())) == 1
    del rows
    gc.collect()
    assert not list((tmp_path / "copies").iterdir())


def test_errors_in_files_of_another_encoding_name_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n" + b"x,1\n" * 300_000 + b"\x81,2\n")
    with pytest.raises(SourceError, match=r"rows.csv', line 300002: the bytes b'\\x81' are not cp1252"):
        scan(path, encoding="cp1252")
    path.write_bytes("a,b\nx,1\n".encode("utf-16-be") + b"\xd8\x00\x00\n")
    with pytest.raises(SourceError, match=r"rows.csv', line 3: .* are not utf-16-be"):
        scan(path, encoding="utf-16-be")
    path.write_bytes("a,b\né,1\n1,2,3\n".encode("cp1252"))
    with pytest.raises(SourceError, match=r"rows.csv', line 3 has 3 cells"):
        scan(path, encoding="cp1252")
    path.write_bytes("a,b\né,1\né,x\n".encode("cp1252"))
    with pytest.raises(SourceError, match=r"rows.csv', line 3, column 'b': 'x' is not a number"):
        scan(path, encoding="cp1252", types={"b": "number"})


NOTATIONS = [
    ({"decimal": ","}, ";", ["1,5", "-2", "+,25", "3e2"], [1.5, -2.0, 0.25, 300.0]),
    (
        {"decimal": ",", "thousands": "."},
        ";",
        ["1.234.567,5", "12.000", "5", "-1.000,25"],
        [1234567.5, 12e3, 5, -1000.25],
    ),
    ({"thousands": ","}, ",", ["1,234.5", "12,000", "5", "0.5"], [1234.5, 12e3, 5, 0.5]),
    ({"decimal": ",", "thousands": " "}, "\t", ["1 234,5", "12 000 ", " 5", "NA"], [1234.5, 12e3, 5, None]),
    ({"thousands": "'"}, ",", ["1'234.5", "12'000", "5", "?"], [1234.5, 12e3, 5, None]),
    ({"thousands": "\u202f"}, "|", ["1\u202f234.5", "12\u202f000", "5", ""], [1234.5, 12e3, 5, None]),
]


@pytest.mark.parametrize(("options", "delimiter", "texts", "numbers"), NOTATIONS)
def test_numbers_with_another_decimal_separator_or_thousands_are_numbers(
    tmp_path: Path, options: dict[str, str], delimiter: str, texts: list[str], numbers: list[float | None]
) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([("a", "t"), *zip(texts, ["x"] * len(texts), strict=True)])
    assert cells(path, **options)["a"] == numbers
    assert cells(path, types={"a": "number"}, **options)["a"] == numbers
    assert cells(path, types={"a": "text"}, **options)["a"] == [text or None for text in texts]
    if "decimal" in options or "," in delimiter:
        frame = pd.read_csv(path, sep=delimiter, na_values="?", **options)
        if options.get("thousands") != " ":
            np.testing.assert_array_equal(np.array(numbers, dtype=float), frame["a"])


def test_columns_with_a_cell_in_another_notation_are_text(tmp_path: Path) -> None:
    path = written(tmp_path, "a;b;c;d;e\n1,5;1.234;007,5;12.34;1.000\n2.5;1,5;1;1.234;2.000\n")
    options = {"decimal": ",", "thousands": "."}
    assert kinds(path, **options) == {"a": "string", "b": "double", "c": "string", "d": "string", "e": "int64"}
    with pytest.raises(SourceError, match=r"line 2, column 'd': '12\.34' is not a number"):
        scan(path, types={"d": "number"}, **options)


def test_whole_numbers_and_single_columns_with_a_decimal_comma(tmp_path: Path) -> None:
    path = written(tmp_path, "a\n1,5\n2\n")
    with pytest.raises(SourceError, match="2 cells, and the header has 1"):
        scan(path)
    assert cells(path, decimal=",") == {"a": [1.5, 2.0]}


def test_files_with_different_headers_are_an_error_that_names_both(tmp_path: Path) -> None:
    written(tmp_path, "a,b\n1,2\n", "1.csv")
    written(tmp_path, "a,c\n1,2\n", "2.csv")
    with pytest.raises(
        SourceError, match=r"1.csv' and .*2.csv' have different columns: 'b' only in .*1.csv', 'c' only"
    ):
        scan(str(tmp_path / "*.csv"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"types": {"hieght": "number"}}, "no column 'hieght'. Did you mean 'height'"),
        ({"types": {"height": "int"}}, r"types\['height'\]='int' is not known. Known: 'number'"),
        ({"types": ["number"]}, "must be a dictionary"),
        ({"missing": "NA"}, "must be a list of texts"),
        ({"format": "xml"}, "format='xml' is not known"),
        ({"encoding": "utf-9"}, "encoding='utf-9' is not known.*'cp1252'"),
        ({"encoding": "base64"}, "encoding='base64' is not known"),
        ({"encoding": None}, "encoding=None is not known"),
        ({"decimal": ";"}, r"decimal=';' is not known. Known: '\.', ','"),
        ({"thousands": "000"}, "thousands='000' must be one character"),
        ({"thousands": "."}, r"thousands='\.' is also the decimal separator. Pass decimal="),
        ({"sep": ";"}, "scan has no option 'sep'. The first line gives the delimiter"),
        ({"na_values": "NA"}, "scan has no option 'na_values'. Pass missing="),
        ({"encodng": "utf-8"}, "scan has no option 'encodng'. Did you mean 'encoding'"),
    ],
)
def test_wrong_options_are_errors(tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    path = written(tmp_path, "height,label\n1,a\n")
    with pytest.raises(InputError, match=problem):
        scan(path, **options)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('"a, b";d\n1;x\n2;y\n', ("a, b", "d")),
        ('"n\nl",b\n1,x\n2,y\n', ("n\nl", "b")),
        ('"n\r\nl",b\r\n1,x\r\n2,y\r\n', ("n\r\nl", "b")),
        ('"say ""a,b""",c\n1,x\n2,y\n', ('say "a,b"', "c")),
    ],
)
def test_quoted_names_may_have_delimiters_and_line_breaks(tmp_path: Path, text: str, columns: tuple[str, ...]) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(text.encode())
    rows = scan(path)
    assert rows.columns == columns
    assert sum(len(chunk) for chunk in rows.chunks()) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"a"x,b\n1,x\n', "first line is malformed"),
        ('"a,b\n1,x\n', "a quote in the first line is not closed"),
        ('"n\nl",b\r\n1,x\r\n', "no row was found after the names of the columns"),
    ],
)
def test_headers_that_hide_rows_are_an_error(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(text.encode())
    with pytest.raises(SourceError, match=problem):
        read(scan(path))


@pytest.mark.parametrize("codec", ["zstd", "gzip"])
def test_truncated_compressed_files_are_an_error(tmp_path: Path, codec: str) -> None:
    content = "a\n" + "".join(f"{i}\n" for i in range(100_000))
    with pa.CompressedOutputStream(pa.OSFile(str(tmp_path / "whole"), "wb"), codec) as file:
        file.write(content.encode())
    packed = (tmp_path / "whole").read_bytes()
    path = tmp_path / ("rows.csv" + {"zstd": ".zst", "gzip": ".gz"}[codec])
    path.write_bytes(packed)
    assert sum(len(chunk) for chunk in scan(path).chunks()) == 100_000
    for size in (len(packed) // 2, len(packed) - 20):
        path.write_bytes(packed[:size])
        with pytest.raises(SourceError, match=r"rows\.csv"):
            sum(len(chunk) for chunk in scan(path).chunks())


def test_cells_such_as_na_may_be_in_one_of_several_files(tmp_path: Path) -> None:
    written(tmp_path, "a,y\n1,p\n2,q\n", "1.csv")
    written(tmp_path, "a,y\nNA,p\n?,q\n", "2.csv")
    rows = scan(tmp_path)
    assert read(rows)["a"].tolist()[:2] == [1.0, 2.0]
    assert rows.notes == ("Column 'a': 2 cells ('?', 'NA') read as missing.",)


def test_notes_count_the_cells_of_all_rows(tmp_path: Path) -> None:
    early, late = "1,NA,2\n" * 3 + "?,5,x\n", "3,NA,NA\n4, . ,y\n"
    path = written(tmp_path, "a,b,t\n" + early + "1,2,z\n" * BEYOND + late)
    rows = scan(path)
    total = ("Column 'a': 1 cell ('?') read as missing.", "Column 'b': 5 cells ('.', 'NA') read as missing.")
    assert rows.notes == total
    read(rows)
    assert pickle.loads(pickle.dumps(rows)).notes == total


def test_cells_such_as_na_are_counted_in_all_columns_and_files(tmp_path: Path) -> None:
    for i in range(10):
        written(tmp_path, "a,b,c\n" + f"1,{'NA' if i == 0 else 2},3\n" * 4, f"{i}.csv")
    written(tmp_path, "a,c,b\n" + "1,2,3\n" * BEYOND + "NA,1,-\nNA,1,?\n", "5.csv")
    rows = scan(tmp_path)
    total = ["Column 'a': 2 cells ('NA') read as missing.", "Column 'b': 6 cells ('-', '?', 'NA') read as missing."]
    assert list(rows.notes) == total
    assert list(rows.compute(lambda i, part: sum(len(chunk) for chunk in part.chunks())))[5] == BEYOND + 2


def test_a_file_of_missing_values_alone_has_the_types_of_the_others(tmp_path: Path) -> None:
    written(tmp_path, "a,t\nNA,u\n1,v\n", "1.csv")
    written(tmp_path, "a,t\n" + '"",\n' * BEYOND + "NA,\n", "2.csv")
    rows = scan(tmp_path)
    assert np.isnan(read(rows)["a"]).sum() == BEYOND + 2
    assert {str(chunk.schema.types) for chunk in rows.chunks()} == {"[DataType(int64), DataType(string)]"}
    assert rows.notes == ("Column 'a': 2 cells ('NA') read as missing.",)


def test_labels_that_are_whole_numbers_are_integers_as_in_pandas(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(12) / 3.0, "y": np.arange(12) % 2, "w": np.ones(12)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    for name in ("rows.csv", "rows.jsonl"):
        for model in (NaiveBayes(), SoftmaxRegression(), EvidenceClassifier(["columns"])):
            classes = model.fit(scan(tmp_path / name), "y", sample_weight="w").classes_
            assert classes.tolist() == [0, 1]
            assert classes.dtype.kind == "i"


def test_a_number_among_other_text_of_a_scan_is_stored_as_text(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,y\n67,p\n22,q\nunknown,p\n41,q\n")
    with pytest.raises(InputError, match=r"row 0: '67' is a number stored as text.*types=\{'a': 'number'\}"):
        NaiveBayes({"a": Gaussian()}).fit(scan(tmp_path / "rows.csv"), "y")
    with pytest.raises(SourceError, match="line 4, column 'a': 'unknown' is not a number"):
        NaiveBayes().fit(scan(tmp_path / "rows.csv", types={"a": "number"}), "y")
