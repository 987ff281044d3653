"""The comparison of two files of results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tools.snapshot import arrays, compare
from tools.snapshot_outputs import SECTIONS

NUMBERS = {"a/iris/proba": np.array([0.25, np.nan, np.inf]), "b/iris/predict": np.array(["x", "y"])}


def differences(folder: Path, changes: dict[str, np.ndarray], allowed: list[str]) -> int:
    np.savez(folder / "old.npz", **NUMBERS)  # type: ignore[arg-type]
    np.savez(folder / "new.npz", **(NUMBERS | changes))  # type: ignore[arg-type]
    return compare(folder / "old.npz", folder / "new.npz", 1e-9, allowed, ["a", "b"])


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("a/iris/proba", np.array([0.25 + 1e-8, np.nan, np.inf]), "8.0e-09"),
        ("a/iris/proba", np.array([0.25, 0.0, np.inf]), "inf"),
        ("a/iris/proba", np.array([0.25, np.nan]), "inf"),
        ("b/iris/predict", np.array(["x", "x"]), "inf"),
        ("b/iris/score", np.array(1.0), "additional"),
    ],
)
def test_arrays_that_differ_are_printed(
    name: str, value: np.ndarray, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert differences(tmp_path, {name: value}, []) == 1
    assert capsys.readouterr().out.split()[:2] == [text, name]
    assert differences(tmp_path, {name: value}, ["?/iris/*"]) == 0


def test_rounding_is_no_difference(tmp_path: Path) -> None:
    assert differences(tmp_path, {"a/iris/proba": np.array([0.25 + 1e-10, np.nan, np.inf])}, []) == 0


def test_results_become_arrays_of_numbers_and_text() -> None:
    frame = pd.DataFrame({"value": [1, 2], "label": ["x", None]})
    found = dict(arrays("fit", (frame, {"prior": [0.5, 0.5]}, None)))
    assert {name: each.tolist() for name, each in found.items()} == {
        "fit/0/columns": ["value", "label"],
        "fit/0/numbers": [[1.0, 2.0]],
        "fit/0/text": [["x", str(frame["label"][1])]],
        "fit/1/prior": [0.5, 0.5],
    }


def test_a_section_has_finite_results() -> None:
    found = dict(pair for name, value in SECTIONS["regression"]() for pair in arrays(name, value))
    assert len(found) > 100
    assert np.isfinite(found["flippers!-bayes/interval"]).all()
