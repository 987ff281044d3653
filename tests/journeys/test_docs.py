"""What the documents say of names, signatures, rooms and files is so."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import likely

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
ROOMS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def resolve(path: str) -> Any:
    """What a dotted name stands for: a room and what is in it, or a public name of the library."""
    words = path.removeprefix("likely.").split(".")
    found: Any = likely
    for i, word in enumerate(words):
        if inspect.ismodule(found) and not hasattr(found, word):
            found = importlib.import_module(".".join(["likely", *words[: i + 1]]))
        else:
            found = getattr(found, word)
    return found


def quoted_names(page: str) -> list[str]:
    """Dotted names in code quotes, such as `numerics.whitener`."""
    return sorted(set(re.findall(r"`((?:\w+\.)+\w+)(?:\([^`]*\))?`", read(page))) - {"pyproject.toml"})


@pytest.mark.parametrize("page", ["docs/theory.md", "docs/options.md", "docs/families.md"])
def test_names_beside_formulas_exist(page: str) -> None:
    for name in quoted_names(page):
        if not name.endswith((".py", ".md")):
            assert resolve(name) is not None, name


def test_the_theory_page_names_more_than_forty_functions() -> None:
    assert len(quoted_names("docs/theory.md")) > 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_documents_point_to_exist(page: Path) -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8")):
        assert f"def {name}(" in source, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_documents_point_to_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), link
    for path in re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path


def test_signatures_in_the_options_are_those_of_the_code() -> None:
    stated = re.findall(r"^`(\w+)(\([^`]*\))`", read("docs/options.md"), re.MULTILINE)
    assert {name for name, _ in stated} == set(likely.__all__)
    for name, text in stated:
        call = ast.parse(f"{name}{text}", mode="eval").body
        assert isinstance(call, ast.Call)
        needed = {argument.id: inspect.Parameter.empty for argument in call.args if isinstance(argument, ast.Name)}
        defaults = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        parameters = inspect.signature(getattr(likely, name)).parameters
        assert needed | defaults == {key: parameter.default for key, parameter in parameters.items()}


def test_the_drawing_shows_the_rooms_that_the_import_linter_checks() -> None:
    drawn = re.findall(r"^\| `([\w/]+)` \|", read("ARCHITECTURE.md"), re.MULTILINE)
    layers = [*reversed(ROOMS[0]["layers"])]
    members = [f"families/{word.strip()}" for layer in reversed(ROOMS[1]["layers"]) for word in layer.split("|")]
    at = layers.index("families")
    assert drawn == [*layers[:at], *members, *layers[at + 1 :]]


def test_a_family_of_your_own_works() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", read("docs/families.md"), re.DOTALL | re.MULTILINE):
        exec(compile(block, "docs/families.md", "exec"), names)
    model, X = names["model"], names["X"]
    explained = model.explain(X)
    np.testing.assert_allclose(explained.evidence.sum(axis=2) + explained.offset, model.log_joint(X), rtol=1e-10)
    seen = ~np.isnan(X[:, 0])
    scale = np.sqrt(model.model_.blocks[0].conditionals.square[:, 0])
    expected = scipy.stats.rayleigh.logpdf(X[seen, :1], scale=scale)
    np.testing.assert_allclose(explained.evidence[seen, :, 0], expected, rtol=1e-10)
    assert not explained.evidence[~seen, :, 0].any()
    assert model.score(X, names["y"]) > 0.8
    assert "Rayleigh: 'x0'" in str(model.summary())
    drawn, labels = model.sample(2000, random_state=1)
    assert drawn[labels == "windy", 0].mean() == pytest.approx(8.0 * np.sqrt(np.pi / 2.0), rel=0.05)
    assert names["shifts"].predict([[23.5, np.nan], [12.0, 6.0]]).tolist() == ["night", "day"]
