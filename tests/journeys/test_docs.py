"""The documentation is true of the code: examples, names, links, packages and Make targets."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

import likely
from likely.numerics.expressions import square
from tests.pages import PAGES, ROOT, run
from tests.unit.export.databases import select

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
GUIDE = [page for page in PAGES if page.parent == ROOT / "docs"]
RUN_ELSEWHERE = {"README.md", "generative-vs-discriminative.md"}  # test_readme, test_comparison_page
EXAMPLES = [
    page for page in PAGES if "```python" in page.read_text(encoding="utf-8") and page.name not in RUN_ELSEWHERE
]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def resolve(path: str) -> Any:
    """What a dotted name such as `likely.numerics.linalg.whitener` or `LinearDiscriminant.coef_` stands for."""
    words = path.removeprefix("likely.").split(".")
    found: Any = likely
    for i, word in enumerate(words):
        if inspect.ismodule(found) and not hasattr(found, word):
            found = importlib.import_module(".".join(["likely", *words[: i + 1]]))
        else:
            found = getattr(found, word)
    return found


def quoted(page: Path) -> list[str]:
    """Text in code quotes, outside of code blocks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return sorted(set(re.findall(r"`([^`\n]+)`", text)))


def dotted_names(page: Path) -> list[str]:
    """Quoted dotted names that start with the package or with a public name."""
    names = [re.sub(r"\(.*", "", text) for text in quoted(page)]
    return [
        name
        for name in names
        if re.fullmatch(r"(\w+\.)+\w+", name) and name.split(".")[0] in {"likely", *likely.__all__}
    ]


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.name)
def test_examples_run_and_print_what_the_page_shows(page: Path) -> None:
    for example in run(page)[0]:
        assert example.matches(), f"{page.name} shows\n{example.shown}\nand the example prints\n{example.printed}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_the_documentation_exist(page: Path) -> None:
    for name in dotted_names(page):
        assert resolve(name) is not None, name


def test_the_theory_page_names_more_than_forty_functions() -> None:
    assert len(dotted_names(ROOT / "docs" / "theory.md")) > 40


def test_expressions_on_a_fitted_model_in_the_theory_page_run() -> None:
    page = ROOT / "docs" / "theory.md"
    names = run(page)[1]
    expressions = [text for text in quoted(page) if text.startswith("model.")]
    assert len(expressions) > 10
    for expression in expressions:
        assert eval(expression, dict(names)) is not None, expression


def test_every_public_name_is_in_the_guide() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *GUIDE])
    assert [name for name in likely.__all__ if f"`{name}" not in text] == []


@pytest.mark.parametrize(
    "term",
    [
        *("Bayes' rule", "sigmoid", "softmax", "logit", "log-odds", "probit", "LDA", "QDA", "pooled covariance"),
        *("linear within a group", "spherical", "nearest prototype", "LwP", "Mahalanobis", "maximum likelihood", "MAP"),
        *("Dirichlet", "inverse-Wishart", "fully Bayesian", "naive Bayes", "Poisson", "$2^M$", "language model"),
        *("vocabulary", "next term", "exponential family", "natural parameters", "dispersion", "log-partition"),
        *("generalised linear model", "mixed table", "missing values", "semi-supervised", "unsupervised", "new class"),
        *("joint Gaussian", "basis functions", "Newton-Raphson", "IRLS", "learning curves", "hybrid", "Lasserre"),
        *("argmax", "0.5 rule", "loss matri", "shrinkage", "posterior surface", "red, green and blue", "sample"),
    ],
)
def test_the_terms_of_the_field_are_in_the_guide(term: str) -> None:
    assert any(term.lower() in page.read_text(encoding="utf-8").lower() for page in GUIDE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_documents_point_to_exist(page: Path) -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8")):
        assert f"def {name}(" in source, name


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_headings_that_documents_point_to_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link, anchor in re.findall(r"\]\(([^)#:]+)(?:#([^)]*))?\)", text):
        target = (page.parent / link).resolve()
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"
    for path in re.findall(r"`((?:src|tests|docs|benchmarks|tools)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path


def test_every_page_of_the_guide_is_linked_from_the_readme_and_from_getting_started() -> None:
    for page in GUIDE:
        assert f"(docs/{page.name})" in read("README.md"), page.name
        assert page.name == "getting-started.md" or f"({page.name})" in read("docs/getting-started.md"), page.name


def members(contract: int) -> list[str]:
    """The members of a contract of layers, from the top."""
    return [word.strip() for layer in CONTRACTS[contract]["layers"] for word in layer.split("|")]


def test_the_architecture_names_the_packages_in_the_order_that_the_import_linter_checks() -> None:
    assert CONTRACTS[0]["name"] == "Packages form layers"
    named = re.findall(r"^\| `(\w+)`", read("ARCHITECTURE.md"), re.MULTILINE)
    assert [name for name in named if name in members(0)] == members(0)


def test_modules_in_the_architecture_exist() -> None:
    for name in re.findall(r"`((?:\w+/)+\w*(?:\.py)?)`", read("ARCHITECTURE.md")):
        if not name.startswith(("src/", "tests/", "docs/", "benchmarks/", "tools/")):
            assert (ROOT / "src" / "likely" / name).exists(), name


def test_the_architecture_is_one_short_page_and_its_stages_fit_on_one_screen() -> None:
    text = read("ARCHITECTURE.md")
    assert len(text.splitlines()) <= 120
    stages = text[text.index("A fit:\n") : text.index("Families, covariances and calibration")]
    assert len(stages.splitlines()) <= 40


def test_make_help_lists_all_targets() -> None:
    targets = re.search(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE)
    assert targets is not None
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^ *make ([\w-]+)", shown, re.MULTILINE) == targets[1].split()


@pytest.mark.usefixtures("pure_models")
def test_a_new_family_works() -> None:
    names = run(ROOT / "docs" / "families.md")[1]
    X, y = names["X"], names["y"]
    model = likely.GenerativeClassifier({0: names["Rayleigh"](), 1: likely.Gaussian(shared=True)}).fit(X, y)
    explained, calibration = model.explain(X), model.calibration_
    exponent = 1.0 if calibration is None else calibration.exponent
    scores = explained.evidence.sum(axis=2) + explained.offset
    np.testing.assert_allclose(scipy.special.softmax(scores, axis=1), model.predict_proba(X), rtol=1e-10)
    observed = ~np.isnan(X[:, 0])
    density: Any = model.model_.blocks[0].conditionals
    scale = np.sqrt(density.square[:, 0])
    expected = scipy.stats.rayleigh.logpdf(X[observed, :1], scale=scale)
    np.testing.assert_allclose(explained.evidence[observed, :, 0], exponent * expected, rtol=1e-10)
    assert not explained.evidence[~observed, :, 0].any()
    assert model.score(X, y) > 0.8
    assert "Rayleigh: 'x0'" in str(model.summary())
    assert "square" in set(model.parameters()["parameter"])
    drawn, labels = model.sample(2000, random_state=1)
    assert drawn[labels == "windy", 0].mean() == pytest.approx(8.0 * np.sqrt(np.pi / 2.0), rel=0.05)


def test_the_predictive_of_the_new_family_is_the_integral_over_its_prior() -> None:
    names = run(ROOT / "docs" / "families.md")[1]
    density = names["model"].model_.blocks[0].conditionals
    for k, (a, b) in enumerate(zip(density.events[:, 0], density.exposure[:, 0], strict=True)):
        prior = scipy.stats.gamma(a, scale=1.0 / b)  # of 1/s²
        for x in (0.5, 4.0, 12.0):
            expected, _ = scipy.integrate.quad(
                lambda t, x=x, p=prior: scipy.stats.rayleigh.pdf(x, scale=t**-0.5) * p.pdf(t),
                *prior.interval(1 - 1e-13),
            )
            assert density.log_density(np.array([[x]]))[k, 0] == pytest.approx(np.log(expected), rel=1e-8)
    drawn = density.sample(1, 20_000, np.random.default_rng(0))[:, 0]
    assert (
        scipy.stats.kstest(
            drawn, lambda x: 1.0 - (1.0 + x * x / (2.0 * density.exposure[1, 0])) ** -density.events[1, 0]
        ).pvalue
        > 1e-3
    )


def test_the_mode_of_the_new_family_has_the_prior_of_the_page() -> None:
    names = run(ROOT / "docs" / "families.md")[1]
    family, x = names["PriorRayleigh"](likely.GammaPrior(3.0, 5.0)), np.array([1.0, 2.0, 4.0])
    model = likely.GenerativeClassifier(family, estimation="map").fit(x[:, None], [0, 0, 0])
    fitted: Any = model.model_.blocks[0].conditionals

    def log_posterior(rate: float) -> float:
        likelihood = scipy.stats.rayleigh.logpdf(x, scale=rate**-0.5).sum()
        return float(likelihood + scipy.stats.gamma.logpdf(rate, 1.0 + 3.0, scale=1.0 / 5.0))

    best = 1.0 / float(fitted.square[0, 0])
    assert log_posterior(best) > max(log_posterior(best * 0.999), log_posterior(best * 1.001))


@pytest.mark.parametrize("estimation", ["map", "bayes"])
def test_the_new_family_is_exported(estimation: str) -> None:
    names = run(ROOT / "docs" / "families.md")[1]
    assert "`return (square(x),)`" in read("docs/families.md")

    parent, plugged_in = names["BayesianRayleigh"], names["RayleighConditionals"]
    expressed: Any = type("Expressed", (plugged_in,), {"statistic_expressions": lambda self, x: (square(x),)})

    def estimate(self: Any, *arguments: Any) -> Any:
        found = parent.estimate(self, *arguments)
        if not isinstance(found, plugged_in):
            return found
        return expressed(found.informative, found.constant_value, found.square)

    exported: Any = type("Exported", (parent,), {"estimate": estimate})
    rows = pd.DataFrame(names["X"][::3], columns=["wind", "pressure"])
    model = likely.GenerativeClassifier({"wind": exported()}, estimation=estimation).fit(rows, names["y"][::3])
    result = select(model.to_sql("rows"), rows=rows).fetchall()
    np.testing.assert_allclose([row[-2:] for row in result], model.predict_proba(rows), rtol=0.0, atol=1e-12)


def test_the_new_family_refuses_to_forget_rows_that_were_never_there() -> None:
    names = run(ROOT / "docs" / "families.md")[1]
    X, y = np.array([*[1.0] * 10, 3.0, 5.0, 6.0, 7.0])[:, None], np.repeat([0, 1], [11, 3])
    model = likely.GenerativeClassifier(names["Rayleigh"](), estimation="mle").fit(X, y)
    with pytest.raises(likely.errors.InputError, match="were not part of the fit"):
        model.forget([[4.4]], [0])
    density: Any = model.forget([[3.0]], [0]).model_.blocks[0].conditionals
    assert density.square[0, 0] == pytest.approx(0.5)


def test_sums_of_a_family_in_another_order_are_an_error() -> None:
    names = run(ROOT / "docs" / "families.md")[1]
    turned = type("Turned", (names["Rayleigh"],), {"collected": lambda self, x: (x * x, x)})
    with pytest.raises(likely.errors.InputError, match="must return x and x² first"):
        likely.GenerativeClassifier(turned()).fit([[1.0], [2.0], [5.0], [6.0]], [0, 0, 1, 1])


def test_periodic_columns_wrap_around() -> None:
    names = run(ROOT / "docs" / "mixed-tables.md")[1]
    assert names["shifts"].predict([[23.5, np.nan], [12.0, 6.0]]).tolist() == ["night", "day"]


def test_a_fit_reads_chunks_as_often_as_the_page_on_updating_says() -> None:
    stated = read("docs/updating.md")
    assert "calls `chunks()` at most six times" in stated
    assert "Each text column adds three to five calls." in stated
    rng = np.random.default_rng(0)
    words = np.array(["win", "free", "call", "home", "money", "see", "you", "now"])
    classes = rng.integers(2, size=300)
    frame = pd.DataFrame({"x": rng.normal(size=300) + classes, "n": rng.poisson(3, 300), "c": rng.choice([*"ab"], 300)})
    text = frame.assign(body=[" ".join(rng.choice(words, 6)) for _ in range(300)])

    class Rows:
        def __init__(self, table: pd.DataFrame) -> None:
            self.table, self.calls = table, 0

        def chunks(self) -> Iterator[pd.DataFrame]:
            self.calls += 1
            yield self.table[:200]
            yield self.table[200:]

    for table, most in ((frame, 6), (text, 11)):
        rows = Rows(table)
        likely.GenerativeClassifier().fit(rows, classes)
        assert rows.calls <= most
