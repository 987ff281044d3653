"""The results that `tools.snapshot` keeps: the outputs of fitted models, and those of sources and evaluations."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy.sparse import csr_array
from sklearn.base import clone

import likely as ly
from tools.snapshot_cases import CASES, CROSS_VALIDATED, SELECTED, SHAPES, SOURCES, TABLES, Case

ROOT = Path(__file__).parents[1]
SHOWN_ROWS = 40  # that are predicted, at most
Results = Iterator[tuple[str, Any]]


class Data(NamedTuple):
    X: Any
    y: Any

    @property
    def rows(self) -> Any:
        """The rows that are predicted."""
        return self.X.iloc[:: -(-len(self.X) // SHOWN_ROWS)]

    def part(self, start: int, step: int) -> Data:
        return Data(self.X.iloc[start::step], self.y[start::step])


@cache
def read(name: str) -> Data:
    """A table; of "name?" three in four labels are missing, and "name!" has only the complete rows."""
    file, target, step, columns = TABLES[name.rstrip("?!")]
    folder = ROOT / "src/likely/datasets" if file == "penguins" else ROOT / "tests/data"
    frame = pd.read_csv(folder / f"{file}.csv", keep_default_na=False, na_values=[""])[::step]
    frame = (frame.dropna(subset=columns) if name.endswith("!") else frame).reset_index(drop=True)
    if file == "sms_spam":
        frame["words"] = frame["text"].str.split().str.len()
    y = frame.pop(target).to_numpy()
    if name.endswith("?"):
        y = np.where(np.arange(len(y)) % 4 == 0, y.astype(object), None)
    return Data(frame if columns is None else frame[columns], y)


def answer(model: Any, rows: Any) -> Any:
    return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows, return_std=True)


def with_holes(rows: Any) -> Any:
    """The rows with every fifth cell missing."""
    return rows.mask(np.add.outer(np.arange(len(rows)), 2 * np.arange(rows.shape[1])) % 5 == 0)


def added(model: Any, data: Data) -> Any:
    """The sum of two models of the same families or structures, fitted to one half of the rows each."""
    given = "families" in model.get_params(deep=False) and hasattr(model, "families_")
    first, second = (clone(model).set_params(**{"families": model.families_} if given else {}) for _ in range(2))
    first.fit(*data.part(0, 2))
    structure = {"structure_of": first} if isinstance(model, ly.EvidenceClassifier) else {}
    return answer(first + second.fit(*data.part(1, 2), **structure), data.rows)


def streamed(model: Any, data: Data) -> Any:
    """Four batches, of which the first need not have every class."""
    model = clone(model)
    for start in range(4):
        model.partial_fit(*data.part(start, 4), classes=np.unique(data.y))
    return answer(model, data.rows)


def loaded(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.likely")
        return ly.load(Path(folder) / "model.likely")


def explained(explanation: Any) -> Any:
    return explanation.evidence, explanation.offset, list(explanation.columns)


ATTRIBUTES = ["class_prior_", "coef_", "intercept_", "means_", "covariance_", "scalings_", "weights_", "families_"]
ATTRIBUTES += ["explained_variance_ratio_", "unlabeled_weight_", "lower_bound_", "n_components_", "blend_"]


def rounded(text: str) -> str:
    """A text with its numbers at six digits, on one line."""
    return re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.6g}", " ".join(text.split()))


def attributes(model: Any, data: Data) -> Any:
    found = {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    if "families_" in found:
        found["families_"] = [rounded(f"{columns}: {family}") for columns, family in found["families_"].items()]
    calibration = getattr(model, "calibration_", None)
    if calibration is not None:
        found |= {"exponent": calibration.exponent, "intercepts": calibration.intercepts}
    return found


def weighted(model: Any, data: Data) -> Any:
    return answer(clone(model).fit(*data, sample_weight=0.5 * (1 + np.arange(len(data.y)) % 4)), data.rows)


def decided(model: Any, data: Data) -> Any:
    loss = 1.0 + np.abs(np.subtract.outer(range(len(model.classes_)), range(len(model.classes_))))
    decisions = model.decide(data.rows, loss=loss * (1.0 - np.eye(len(loss))), reject=0.3)
    return decisions.action, decisions.best_action, decisions.expected_loss, decisions.rejected


def shifted(model: Any, data: Data) -> Any:
    prior = np.arange(1.0, 1.0 + len(model.classes_))
    return model.with_prior(prior / prior.sum()).predict_proba(data.rows), model.adapt_prior(data.X).class_prior_


OUTPUTS: dict[str, Callable[[Any, Data], Any]] = {
    "attributes": attributes,
    "predict": lambda model, data: model.predict(data.rows),
    "proba": lambda model, data: model.predict_proba(data.rows),
    "log_proba": lambda model, data: model.predict_log_proba(data.rows),
    "decision": lambda model, data: model.decision_function(data.rows),
    "decide": decided,
    "score": lambda model, data: model.score(*data),
    "weighted": weighted,
    "file": lambda model, data: answer(loaded(model), data.rows),
    "holes": lambda model, data: answer(model, with_holes(data.rows)),
    "joint": lambda model, data: model.log_joint(data.rows),
    "density": lambda model, data: (model.log_density(data.rows), model.log_density(data.rows, model.classes_[0])),
    "holes_joint": lambda model, data: model.log_joint(with_holes(data.rows)),
    "explain": lambda model, data: explained(model.explain(data.rows)),
    "sequential": lambda model, data: explained(model.explain(data.rows, method="sequential")),
    "by_view": lambda model, data: explained(model.explain(data.rows, by="view")),
    "left_out": lambda model, data: model.left_out_proba(*data),
    "typicality": lambda model, data: model.typicality(data.rows, n_samples=300, random_state=0),
    "novelty": lambda model, data: model.novelty(data.rows, n_samples=300, random_state=0),
    "impute": lambda model, data: model.impute(with_holes(data.rows)),
    "sample": lambda model, data: model.sample(20, random_state=0),
    "parameters": lambda model, data: model.parameters(),
    "prior": shifted,
    "partial_fit": lambda model, data: answer(
        clone(model).fit(*data.part(0, 2)).partial_fit(*data.part(1, 2)), data.rows
    ),
    "forget": lambda model, data: answer(deepcopy(model).forget(*data.part(0, 7)), data.rows),
    "sum": added,
    "drop_class": lambda model, data: answer(deepcopy(model).drop_class(model.classes_[-1]), data.rows),
    "reweigh": lambda model, data: answer(deepcopy(model).reweigh(*data.part(0, 2)), data.rows),
    "similar_rows": lambda model, data: model.similar_rows(data.rows, n=3),
    "top_terms": lambda model, data: model.top_terms(model.classes_[-1]),
    "next_term": lambda model, data: model.language_model(model.classes_[-1]).next_term("call"),
    "transform": lambda model, data: model.transform(data.rows),
    "boundary": lambda model, data: model.boundary(*model.classes_[:2])(data.rows.to_numpy()),
    "evidence": lambda model, data: model.log_evidence_,
    "stream": streamed,
    "interval": lambda model, data: model.predict_interval(data.rows, level=0.9),
    "predict_std": lambda model, data: model.predict(data.rows, return_std=True),
    "log_predictive": lambda model, data: model.log_predictive(*data),
    "criteria": lambda model, data: (model.bic(data.X), model.aic(data.X)),
}


def results(cases: Callable[[], Iterable[Case]]) -> Results:
    """The outputs of each case, by a model that is fitted to all labeled or unlabeled rows."""
    for case in cases():
        data = read(case.table)
        model = clone(case.model).fit(*data)
        for output in [each for each in OUTPUTS if each in case.outputs]:
            name = f"{case.table}-{case.name}/{output}"
            try:
                yield name, OUTPUTS[output](model, data)
            except Exception as error:
                error.add_note(f"in {name}")
                raise


class Chunks:
    """A source in Python: a method chunks()."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def chunks(self) -> Iterator[Any]:
        for start in range(0, len(self.frame), 100):
            yield self.frame[start : start + 100]


def sources_of(frame: Any, folder: Path) -> dict[str, Any]:
    """The same rows as files, chunks, a query and a lazy frame."""
    for part, rows in enumerate((frame[:200], frame[200:])):
        rows.to_parquet(folder / f"{part}.parquet", index=False)
    frame.to_csv(folder / "rows.csv", index=False)
    query = f"select * from '{folder}/*.parquet'"
    return {
        "parquet": ly.scan(folder / "*.parquet"),
        "csv": ly.scan(folder / "rows.csv"),
        "query": ly.scan(sql=query),
        "lazy": pl.scan_parquet(folder / "*.parquet"),
        "chunks": Chunks(frame),
    }


def sources() -> Results:
    """Fits to sources, predictions of them, and updates by them."""
    for table, model in SOURCES:
        data, mixture, folder = read(table), isinstance(model, ly.MixtureModel), tempfile.TemporaryDirectory()
        with folder:
            frame = data.X if mixture else data.X.assign(target=data.y)
            for kind, source in sources_of(frame, Path(folder.name)).items():
                name = f"{table}-{type(model).__name__}-{kind}"
                fitted = clone(model).fit(source, None if mixture else "target")
                yield f"{name}/fit", (answer(fitted, data.rows), answer(fitted, source))
                if hasattr(model, "forget") and not mixture:
                    yield f"{name}/partial_fit", answer(deepcopy(fitted).partial_fit(source, "target"), data.rows)
                    yield f"{name}/forget", answer(fitted.partial_fit(*data).forget(source, "target"), data.rows)
                if hasattr(model, "predict_to") and kind in {"parquet", "csv"}:
                    path = Path(folder.name) / "predicted.csv"
                    yield f"{name}/predict_to", (fitted.predict_to(source, path, keep=[]), pd.read_csv(path))


def large_sources() -> Results:
    """A source of more rows than are kept in memory: families and calibration are chosen on a sample."""
    X = read("satellite").X.iloc[:, :5]
    rng = np.random.default_rng(0)
    y = np.tile(read("satellite").y, 34)
    frame = pd.DataFrame(np.tile(X.to_numpy(), (34, 1)) + rng.normal(size=(34 * len(X), 5)).round(2), columns=X.columns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        frame.assign(target=y).to_parquet(path, index=False)
        for model in (ly.GenerativeClassifier(), ly.NaiveBayes(), ly.EvidenceClassifier(max_rows=2000, n_trees=5)):
            name = f"satellite-{type(model).__name__}"
            yield f"{name}/fit", OUTPUTS["attributes"](model.fit(ly.scan(path), "target"), Data(X, y))
            yield f"{name}/proba", model.predict_proba(frame[::500])
        yield (
            "satellite-GenerativeClassifier/cross_validate",
            validated(ly.cross_validate(ly.GenerativeClassifier(), ly.scan(path), "target", folds=3)),
        )


def inputs() -> Results:
    """Rows as arrays, sparse rows and frames of other libraries."""
    for table, model, shapes in SHAPES:
        data = read(table)
        for shape in shapes:
            X = AS[shape](data.X)
            fitted = clone(model).fit(X, data.y)
            family = model.get_params(deep=False).get("families")
            name = type(model).__name__ + (f"-{type(family).__name__}" if family is not None else "")
            yield f"{table}-{name}/{shape}", (answer(fitted, X)[::10], fitted.score(X, data.y))


def validated(result: Any) -> dict[str, Any]:
    """The public results of a cross-validation, of a classifier or of a regressor."""
    names = ("log_loss", "error", "brier", "log_likelihood", "confusion", "baseline_log_loss", "squared_error")
    return {name: getattr(result, name) for name in names if hasattr(result, name)}


def evaluation() -> Results:
    """Cross-validation, selection, comparison, reliability and imputation."""
    for table, model in CROSS_VALIDATED:
        result = ly.cross_validate(model, *read(table), folds=4)
        held_out = result.posterior if hasattr(result, "posterior") else result.prediction
        yield f"{table}-{type(model).__name__}/cross_validate", validated(result) | {"held_out": held_out[::5]}
    for table, criterion, candidates in SELECTED:
        ranking = ly.select(*read(table), candidates, by=criterion).ranking
        scores = [[getattr(each, criterion), each.difference] for each in ranking]
        yield f"{table}/select-{criterion}", ([each.name for each in ranking], scores)
    models = {"linear": ly.LinearDiscriminant(), "default": ly.NaiveBayes(), "softmax": ly.SoftmaxRegression()}
    curves = ly.compare(*read("iris"), models, sizes=[15, 60], repeats=3, random_state=0).to_frame()
    yield "iris/compare", curves[[name for name in curves if "label" not in name]]
    for label in (None, "pos"):
        yield (
            f"sugar/reliability-{label}",
            ly.NaiveBayes().fit(*read("sugar")).reliability(*read("sugar"), label).to_frame(),
        )
    for name, model in {"mixture": None, "classifier": ly.GenerativeClassifier(), "naive": ly.NaiveBayes()}.items():
        for table in ("penguins", "sugar"):
            yield f"{table}/imputer-{name}", ly.Imputer(model).fit(*read(table)).transform(with_holes(read(table).rows))


AS: dict[str, Callable[[Any], Any]] = {
    "array": lambda X: X.to_numpy(dtype=np.float64),
    "float32": lambda X: X.to_numpy(dtype=np.float32),
    "objects": lambda X: X.to_numpy(dtype=object),
    "list": lambda X: X.to_numpy().tolist(),
    "sparse": lambda X: csr_array(X.to_numpy(dtype=np.float64)),
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "categories": lambda X: X.astype(dict.fromkeys(X.select_dtypes(exclude="number"), "category")),
}
SECTIONS: dict[str, Callable[[], Results]] = {
    **{name: partial(results, cases) for name, cases in CASES.items()},
    **{each.__name__: each for each in (sources, large_sources, evaluation, inputs)},
}
