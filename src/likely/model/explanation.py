"""Contributions of the columns to the log-density of each class, and to the log-odds between classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np

from likely.errors import InputError, amount, check_number, listed
from likely.families.base import Conditionals
from likely.model.rendering import RenderedResult, TextTable, new_axes, number, short_names, to_frame
from likely.numerics.ties import tie_ranks
from likely.typing import AnyArray, Array

OFFSET = "(offset)"  # the name of the offset among the columns of tables and plots
SHOWN_CLASSES = 5  # of the first row when printed
SHOWN_COLUMNS = 12


def code_of(classes: AnyArray | list[Any], label: object) -> int:
    """The position of a class; an error that names the known classes if it is not one of them."""
    labels = classes if isinstance(classes, list) else classes.tolist()
    if isinstance(label, np.ndarray | list) or label not in labels:
        raise InputError(f"Class {label!r} is not among the classes {listed(labels)}.")
    return int(labels.index(label))


def two_codes(classes: AnyArray, first: object, second: object) -> tuple[int, int]:
    """The positions of two different classes."""
    a, b = code_of(classes, first), code_of(classes, second)
    if a == b:
        raise InputError(f"first and second are the same class, {first!r}. Name two classes of {listed(classes)}.")
    return a, b


@dataclass(frozen=True, slots=True, eq=False)
class LinearBlock:
    """Rows of a block in which the log-odds of some classes are linear."""

    columns: AnyArray
    rows: AnyArray
    conditionals: Conditionals


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation(RenderedResult):
    """Decomposition of the score of each class into contributions of the columns.

    The offset plus the evidence summed over the columns is log p(x, class), or for discriminative models log p(class |
    x), up to a constant common to all classes. Its softmax over the classes is `predict_proba`. Printing shows the
    first row as a table, in which each contribution is relative to its mean over the classes: the softmax of the sums
    is the same.

    Attributes
    ----------
    evidence : ndarray of shape (n_samples, n_classes, n_features)
        Contribution of each column to each class.
    offset : ndarray of shape (n_samples, n_classes)
        Terms that do not depend on a single column, such as the log class prior.
    columns : tuple of str
        Names of the columns.
    classes : ndarray of shape (n_classes,)
        The classes.

    See Also
    --------
    GenerativeClassifier.explain : Returns this object.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import LinearDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> explanation = LinearDiscriminant().fit(X, y).explain(X[[70]])
    >>> print(explanation)
    Row 0: contributions to the score of each class, minus their mean over the classes
    <BLANKLINE>
    column        2      1       0
    x0         0.43   0.31   -0.74
    x1         0.97   1.51   -2.48
    x2        11.35  11.47  -22.83
    x3         8.77   7.12  -15.89
    (offset)   0.00   0.00    0.00
    sum       21.52  20.41  -41.93
    """

    evidence: Array
    offset: Array
    columns: tuple[str, ...]
    classes: AnyArray
    _unattributed: Array | None = None  # the part of the offset that is evidence of no single column
    _linear: tuple[LinearBlock, ...] = ()
    _exponent: float = 1.0
    _library: str | None = None
    _parts_of_columns: tuple[Explanation, AnyArray] | None = None  # terms that were added up, and their columns

    def __repr__(self) -> str:
        return str(self)

    def scaled(self, exponent: float, intercepts: Array) -> Self:
        """Return the explanation of calibrated scores, exponent·log p(x | class) + log p(class) + intercept.

        Parameters
        ----------
        exponent : float
            Factor of the evidence, and of the terms of the offset that belong to no single column.
        intercepts : ndarray of shape (n_classes,) or (n_samples, n_classes)
            Added to the offset.

        Returns
        -------
        Explanation
        """
        offset = self.offset + intercepts
        rest = self._unattributed
        if rest is not None:
            offset, rest = offset + (exponent - 1.0) * rest, exponent * rest
        return replace(
            self,
            evidence=exponent * self.evidence,
            offset=offset,
            _unattributed=rest,
            _exponent=exponent * self._exponent,
        )

    def _total(self, row: int) -> Array:
        """The score of each class."""
        return np.asarray(self.offset[row] + self.evidence[row].sum(axis=1))

    def contrast(self, first: object, second: object) -> Array:
        """Compute the contributions of the columns to the log-odds of two classes.

        In a Gaussian block with one covariance for both classes, column j contributes w_j·(x_j − m_j) with the
        coefficients w = Σ⁻¹(μ_first − μ_second) of `coef_` and `boundary`, and the midpoint m of the two means.
        Elsewhere it is the difference of `evidence`.

        Parameters
        ----------
        first : object
            A class label.
        second : object
            Another class label.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Their sum over the columns, plus the difference of `offset`, is log p(first | x) − log p(second | x).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LinearDiscriminant().fit(X, y)
        >>> model.explain(X[[70]]).contrast(2, 1).round(2)
        array([[ 1.2 , -1.13, -0.82,  1.85]])
        """
        a, b = two_codes(self.classes, first, second)
        if self._parts_of_columns is not None:
            parts, places = self._parts_of_columns
            return _summed(parts.contrast(first, second), places, len(self.columns))
        with np.errstate(invalid="ignore"):
            terms = self.evidence[:, a] - self.evidence[:, b]
        terms[np.isneginf(self.evidence[:, a]) & np.isneginf(self.evidence[:, b])] = 0.0
        for block in self._linear:
            linear = block.conditionals.contrast(block.rows, a, b)
            if linear is not None:
                terms[:, block.columns] = self._exponent * linear
        return terms

    def top(self, row: int, n: int = 5, first: object = None, second: object = None) -> Any:
        """List the columns with the largest contributions to the log-odds of two classes.

        Parameters
        ----------
        row : int
            Position of the row.
        n : int, default=5
            Number of columns.
        first : object, default=None
            A class label. None is the most probable class of the row.
        second : object, default=None
            Another class label. None is the most probable one of the others.

        Returns
        -------
        frame
            Names of the columns in `column` and their contributions to log p(first | x) − log p(second | x) in
            `contribution`, the largest first, regardless of sign. With one class, the contributions to its log-density.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> LinearDiscriminant().fit(X, y).explain(X[[70]]).top(0, n=2)["column"].tolist()
        ['x3', 'x0']
        """
        check_number("n", n, 1, whole=True)
        _, terms, _ = self._compared(row, first, second)
        order = _largest(terms, n)
        return to_frame(
            {"column": [self.columns[j] for j in order], "contribution": terms[order].tolist()}, self._library
        )

    def _compared(self, row: int, first: object, second: object) -> tuple[str, Array, float]:
        """What contributions are about, those of the columns, and the offset, of one row."""
        row = self._checked(row)
        order = np.argsort(-self._total(row), kind="stable").tolist()
        a = order[0] if first is None else code_of(self.classes, first)
        others = [k for k in order if k != a]
        if not others:
            name = short_names(self.classes.tolist()[a : a + 1])[0]
            return f"log-density of {name}", self.evidence[row, a], float(self.offset[row, a])
        b = others[0] if second is None else code_of(self.classes, second)
        labels = self.classes.tolist()
        terms = self._of_row(row).contrast(labels[a], labels[b])[0]
        names = short_names([labels[a], labels[b]])
        title = f"log-odds of {names[0]} against {names[1]}"
        with np.errstate(invalid="ignore"):
            return title, terms, float(self.offset[row, a] - self.offset[row, b])

    def _of_row(self, row: int) -> Explanation:
        """The evidence of one row."""
        parts = self._parts_of_columns
        return replace(
            self,
            evidence=self.evidence[[row]],
            _linear=tuple(replace(block, rows=block.rows[[row]]) for block in self._linear),
            _parts_of_columns=None if parts is None else (parts[0]._of_row(row), parts[1]),
        )

    def merged(self, names: Mapping[str, str]) -> Explanation:
        """Return the explanation with the terms of several columns added up.

        Parameters
        ----------
        names : mapping
            Name of each column to that of the column that its terms are added to, such as 'when.month' to 'when'.

        Returns
        -------
        Explanation
        """
        columns = [names.get(name, name) for name in self.columns]
        entries = list(dict.fromkeys(columns))
        if len(entries) == len(columns):
            return self
        places = np.array([entries.index(name) for name in columns])
        evidence = _summed(self.evidence, places, len(entries))
        return replace(self, evidence=evidence, columns=tuple(entries), _linear=(), _parts_of_columns=(self, places))

    def _checked(self, row: int) -> int:
        rows = len(self.evidence)
        if not isinstance(row, Integral) or isinstance(row, bool) or not -rows <= row < rows:
            raise InputError(f"row={row!r} is not the position of a row: the explanation has {rows} rows.")
        return int(row) % rows

    def plot(self, row: int = 0, first: object = None, second: object = None, n: int = 10, ax: Any = None) -> Any:
        """Draw the largest contributions to the log-odds of two classes as bars.

        Parameters
        ----------
        row : int, default=0
            Position of the row.
        first : object, default=None
            A class label. None is the most probable class of the row.
        second : object, default=None
            Another class label. None is the most probable one of the others.
        n : int, default=10
            Number of columns; the sum of the others is one more bar.
        ax : matplotlib Axes, default=None
            Axes to draw in. None makes a new figure.

        Returns
        -------
        matplotlib Axes
            One bar for each column and one for the offset.

        Raises
        ------
        likely.errors.MissingExtraError
            If `ax` is None and matplotlib is not installed.
        """
        check_number("n", n, 1, whole=True)
        title, terms, offset = self._compared(row, first, second)
        order = _largest(terms, n)
        names, values = [self.columns[j] for j in order], terms[order].tolist()
        if len(order) < len(terms):
            names.append(amount(len(terms) - len(order), "other column", "other columns"))
            values.append(float(np.delete(terms, order).sum()))
        labels, values = [name.replace("$", r"\$") for name in short_names([*names, OFFSET])], [*values, offset]
        if ax is None:
            ax = new_axes(figsize=(4.5 + 0.09 * max(map(len, labels)), 1.2 + 0.3 * len(labels)))
        places = np.arange(len(labels))
        ax.barh(places, values, color=["C0" if value >= 0.0 else "C3" for value in values])
        ax.set_yticks(places, labels)
        ax.invert_yaxis()
        ax.axvline(0.0, color="0.3", linewidth=0.8)
        ax.set_xlabel("contribution")
        shown = f"Row {self._checked(row)}: {title}, {sum(values):+.2f}"
        ax.set_title(shown.replace("$", r"\$"), fontsize="medium")
        return ax

    def to_frame(self) -> Any:
        """Return all contributions as a tidy table.

        Returns
        -------
        frame
            One row for each row of X, class and column, with `row`, `class`, `column` and `contribution`. The offset is
            the column '(offset)', so that contributions sum to the score of the class. The frame is of the library of
            X; for arrays of pandas, or of pyarrow if pandas is not installed.
        """
        rows, classes, columns = self.evidence.shape
        terms = np.concatenate([self.evidence, self.offset[:, :, None]], axis=2)
        labels = self.classes.tolist()
        data = {
            "row": np.repeat(np.arange(rows), classes * (columns + 1)),
            "class": [label for label in labels for _ in range(columns + 1)] * rows,
            "column": [*self.columns, OFFSET] * (rows * classes),
            "contribution": terms.ravel(),
        }
        return to_frame(data, self._library)

    def _parts(self) -> list[str | TextTable]:
        rows, classes, columns = self.evidence.shape
        evidence, offset = _centred(self.evidence[0]), _centred(self.offset[0, :, None])[:, 0]
        order = np.argsort(-self._total(0), kind="stable")[:SHOWN_CLASSES]
        _, terms, _ = self._compared(0, None, None)
        shown = np.arange(columns) if columns <= SHOWN_COLUMNS else np.sort(_largest(terms, SHOWN_COLUMNS))
        names = short_names([*(self.columns[j] for j in shown), OFFSET])
        values = [*(evidence[order, j] for j in shown), offset[order]]
        lines = [[name, *(number(v, 2) for v in part)] for name, part in zip(names, values, strict=True)]
        if len(shown) < columns:
            rest = np.delete(evidence, shown, axis=1)[order].sum(axis=1)
            others = amount(columns - len(shown), "other column", "other columns")
            lines.insert(-1, [others, *(number(v, 2) for v in rest)])
        lines.append(["sum", *(number(v, 2) for v in (evidence.sum(axis=1) + offset)[order])])
        header = ["column", *short_names(self.classes[order].tolist())]
        more = [f"{rows - 1} more {'row' if rows == 2 else 'rows'}"] if rows > 1 else []
        left = classes - len(order)
        more += [f"{left} less probable {'class' if left == 1 else 'classes'}"] if left else []
        title = "Row 0: contributions to the score of each class"
        title += ", minus their mean over the classes" if classes > 1 else ""
        parts: list[str | TextTable] = [title, TextTable(header, lines)]
        return [*parts, f"Not shown: {' and '.join(more)}. to_frame() has all contributions."] if more else parts


def _summed(terms: Array, places: AnyArray, size: int) -> Array:
    """Terms, (..., parts), added up by their places, (..., size)."""
    total = np.zeros((*terms.shape[:-1], size))
    for j, place in enumerate(places.tolist()):
        total[..., place] += terms[..., j]
    return total


def _centred(values: Array) -> Array:
    """Values (classes, n) minus their mean over the classes, without −∞; those of one class as they are."""
    if len(values) == 1:
        return values
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0).sum(axis=0)
    return np.asarray(values - total / np.maximum(finite.sum(axis=0), 1))


def concatenated(parts: Sequence[Explanation], library: str | None) -> Explanation:
    """One explanation of the rows of several, whose frames are of this library."""
    if len(parts) == 1:
        return replace(parts[0], _library=library)
    rests = [part._unattributed for part in parts if part._unattributed is not None]
    linear = tuple(
        replace(blocks[0], rows=np.concatenate([block.rows for block in blocks]))
        for blocks in zip(*(part._linear for part in parts), strict=True)
    )
    return replace(
        parts[0],
        evidence=np.concatenate([part.evidence for part in parts]),
        offset=np.concatenate([part.offset for part in parts]),
        _unattributed=np.concatenate(rests) if rests else None,
        _linear=linear,
        _library=library,
    )


def _largest(terms: Array, n: int) -> AnyArray:
    """The positions of the n largest values, regardless of sign; of equal ones the first."""
    return np.argsort(tie_ranks(np.abs(terms)), kind="stable")[:n]
