"""The methods of estimators that write a model for another system, and the reason where one cannot be written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.utils.validation import check_is_fitted

from likely.errors import ExportError
from likely.export import javascript, onnx_graph, sql
from likely.export.columns import refuse_columns
from likely.export.scorer import Scorer


def _scorer(estimator: Any, target: str, longest: int | None = None, widest: int | None = None) -> Scorer:
    """The program of the class probabilities for a target; an error where it cannot read a column.

    Joint blocks in which missing values need more than `longest` steps have complete rows only. Those that need more
    than `widest` values at a time are refused before they are written out.
    """
    check_is_fitted(estimator)
    if hasattr(estimator, "_not_exported"):
        raise ExportError(f"{type(estimator).__name__} cannot be exported: {estimator._not_exported}.")
    found: Scorer = estimator._scorer(longest, widest)
    reading = getattr(estimator, "_reading", None)
    found = found if reading is None else found.read_by(reading)
    refuse_columns(found, target)
    return found


def to_sql(
    self: Any,
    table: str | tuple[str, ...],
    *,
    dialect: str = "duckdb",
    keep: Iterable[str] = (),
    prefix: str = "",
) -> str:
    """Write the model as an SQL statement that predicts the rows of a table.

    The probabilities equal those of `predict_proba`. NULL and NaN are missing values, and so are categories that did
    not occur in training: a comment at the beginning of the statement says so. A row that `predict_proba` rejects
    with an error, such as one with a negative number where counts were declared, has NULL in all results; so have
    counts above 1e15 under ``estimation="bayes"``, exposures below 1e-300, and angles beyond 100,000 periods. Columns
    that do not change the prediction are not read.

    Parameters
    ----------
    table : str or tuple of str
        Name of the table, or of its schema and the table. It has the columns of the training rows, under their
        names; those of an array are x0, x1 and so on.
    dialect : {'duckdb', 'sqlite', 'postgres'}, default='duckdb'
        The database that runs the statement: DuckDB, SQLite 3.35 or later, with its mathematical functions, or
        PostgreSQL 12 or later.
    keep : iterable of str, default=()
        Columns of the table that the result has too, before the predictions.
    prefix : str, default=''
        Beginning of the names of the predictions, where `keep` has columns with their names.

    Returns
    -------
    str
        A SELECT statement, without a semicolon. Its columns are those of `keep`, `predicted`, and
        `probability_<label>` for each class.

    Raises
    ------
    likely.errors.ExportError
        For models without an expression, such as mixtures within classes, and for names that the database does not
        distinguish.

    See Also
    --------
    to_onnx : The model as an ONNX graph.
    to_javascript : The model as a JavaScript module.

    Examples
    --------
    >>> import duckdb
    >>> from likely import NaiveBayes
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(as_frame=True, return_X_y=True)
    >>> flowers = X.assign(id=range(150))
    >>> query = NaiveBayes().fit(X, y).to_sql("flowers", keep=["id"])
    >>> for row in duckdb.sql(query).order("id").limit(1).fetchall():
    ...     print([round(value, 3) for value in row])
    [0, 0, 1.0, 0.0, 0.0]
    """
    scorer = _scorer(self, "SQL", widest=sql.WIDEST).with_flags(self._frame.booleans)
    return sql.to_sql(scorer, table, dialect, keep, prefix)


def to_onnx(self: Any, *, dtype: str = "float64") -> Any:
    """Write the model as an ONNX graph, for ONNX Runtime and other engines.

    The graph computes in double precision, whatever the type of its inputs is. Where all columns are numbers and
    none is set aside, it has one input `X` of shape (rows, columns), with the columns of the training rows in their
    order. Else it has one input of shape (rows, 1) for each column that changes the prediction, under the name of
    the column: numbers for numbers and flags, and text for categories that are text.

    NaN is a missing value, and so is text that is not a category of the training rows, such as ''. The output
    `valid` is False for rows that the graph cannot score: rows that `predict_proba` rejects with an error, such as
    those with infinite numbers, and rows with missing values in columns with a joint density of more than about 20
    columns. Such rows have the class prior as their probabilities (those of `SoftmaxRegression`, which has none, are
    equal), and its mode as their label.

    Parameters
    ----------
    dtype : {'float64', 'float32'}, default='float64'
        Type of the numbers in the inputs and of the probabilities.

    Returns
    -------
    onnx.ModelProto
        The model, with the outputs `label`, of shape (rows,), `probabilities`, of shape (rows, classes), and
        `valid`, of shape (rows,). Write it to a file with ``onnx.save`` or ``SerializeToString``.

    Raises
    ------
    likely.errors.MissingExtraError
        If the package onnx is not installed.
    likely.errors.ExportError
        For models without an expression, such as mixtures within classes.

    See Also
    --------
    to_sql : The model as an SQL statement.
    to_javascript : The model as a JavaScript module.

    Examples
    --------
    >>> import onnxruntime
    >>> from likely import LinearDiscriminant
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> graph = LinearDiscriminant().fit(X, y).to_onnx()
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())
    >>> label, probabilities, valid = session.run(None, {"X": X[[0, 70]]})
    >>> label.tolist()
    [0, 2]
    >>> probabilities.round(3)
    array([[1.   , 0.   , 0.   ],
           [0.   , 0.249, 0.751]])
    """
    return onnx_graph.to_onnx(_scorer(self, "ONNX", longest=onnx_graph.LONGEST), dtype)


def to_javascript(self: Any) -> str:
    """Write the model as a JavaScript module, for browsers and servers.

    The module has no imports. It exports `classes`, the class labels, and the function ``predict(row)``. A row is
    an object of values by the names of the columns; those of an array are x0, x1 and so on. Missing values are
    null, undefined and NaN, as are absent columns and categories that did not occur in training.

    Returns
    -------
    str
        The text of an ES module. ``predict`` returns an object with `predicted`, a class label, and
        `probabilities`, an array in the order of `classes`. A row that `predict_proba` rejects with an error has
        null in both; a row that is not an object, and a value of another type than the training rows, such as text
        where a number is needed, raise a TypeError.

    Raises
    ------
    likely.errors.ExportError
        For models without an expression, such as mixtures within classes.

    See Also
    --------
    to_sql : The model as an SQL statement.
    to_onnx : The model as an ONNX graph.

    Examples
    --------
    >>> from likely import LinearDiscriminant
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> module = LinearDiscriminant().fit(X, y).to_javascript()
    >>> [line for line in module.splitlines() if line.startswith("export")]
    ['export const classes = [0, 1, 2];', 'export function predict(row) {']
    """
    return javascript.to_javascript(_scorer(self, "JavaScript"))
