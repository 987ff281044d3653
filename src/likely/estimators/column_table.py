"""`columns_`: a table of what each column of the input became in a model, why, and the option that changes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from likely.choice.column_record import IGNORED, SET_ASIDE, ColumnDecision, ColumnRecord
from likely.data.reading import Reading
from likely.families.base import Family
from likely.families.log_normal import LogNormal
from likely.families.point_mass import PointMass
from likely.model.plans import column_index
from likely.model.rendering import to_frame
from likely.model.specification import Specification

CHOSEN = "chosen by leave-one-out log-density"
DECLARED = "declared in families"


def column_table(
    record: ColumnRecord, reading: Reading | None, decisions: Mapping[str, ColumnDecision], library: str | None
) -> Any:
    """The table of decisions as a frame of a library."""
    return to_frame(record.table(reading, decisions), library)


def family_decisions(
    specification: Specification, declared: Any, chooses: bool, ignored: Collection[str] = ()
) -> dict[str, ColumnDecision]:
    """What each column of a model with these families became; `declared` is the option `families`.

    `chooses` is whether the estimator has this option, `ignored` are columns without any variation.
    """
    families = specification.families
    compared = {name for choice in specification.choices if choice.log_density for name in choice.columns}
    given = _declared_columns(declared, specification.names)
    found = {}
    for key, family in families.items():
        names = key if isinstance(key, tuple) else (key,)
        for name in names:
            reason = DECLARED if name in given else CHOSEN if name in compared else ""
            change = f"families={{{name!r}: None}}" if chooses else ""
            if family is None or name in ignored:
                found[name] = ColumnDecision(SET_ASIDE, IGNORED if family is None and name in given else "")
                continue
            others = sum(other not in ignored for other in names) - 1
            joint = f", joint with {others} {'other' if others == 1 else 'others'}" if others else ""
            found[name] = ColumnDecision(f"{_family_name(family, name)}{joint}", reason, change)
    return found


def _family_name(family: Family, column: str) -> str:
    """The family of a column; in a joint block of x and log x that of the column alone."""
    if isinstance(family, LogNormal) and family.log is not None:
        return "LogNormal" if column in family.log else "Gaussian"
    if isinstance(family, PointMass) and family.family is not None:
        return f"PointMass at {family.value:g}, else {type(family.family).__name__}"
    return type(family).__name__


def _declared_columns(declared: Any, names: tuple[str, ...]) -> Collection[str]:
    """The columns that `families` names: all, if it is one family."""
    if isinstance(declared, Family):
        return names
    keys = declared if isinstance(declared, Mapping) else {}
    flat = [name for key in keys for name in (key if isinstance(key, tuple) else (key,))]
    return {names[column_index(name, names)] for name in flat if str(name) in names or not isinstance(name, str)}


def columns(X: Any, y: Any = None, families: Any = None, types: Any = None, normalize: bool = False) -> Any:
    """Show what each column of a table would become in a model, without a fit.

    Parameters
    ----------
    X : array-like, frame or scan of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or str, default=None
        Class labels, or the name of the column of X that has them. None treats all rows as one class.
    families : Family or dict of column(s) to Family, default=None
        Families of columns, as in `GenerativeClassifier`.
    types : mapping of column to {'number', 'text', 'category', 'date'}, default=None
        How columns are read, where their values should not decide.
    normalize : bool, default=False
        Whether categories that differ in blanks at their ends or in case only are the same.

    Returns
    -------
    frame
        One row for each column of X, in its order, with `column`, `type`, `missing` and `distinct` (numbers of missing
        values and of distinct values), `decision`, `reason` and `change`, the option that decides otherwise. The
        decision begins with the name of a family, 'expanded to', 'set aside' or 'target'. It is that of
        `GenerativeClassifier`, whose `columns_` is the same table. Of a source with more than 20,000 rows the numbers
        are those of a sample.

    See Also
    --------
    GenerativeClassifier.columns_ : The same of a fitted model.

    Examples
    --------
    >>> import likely
    >>> X = {"id": ["a1", "b7", "c3"], "price": ["$1,200", "$90", "$310"], "kind": ["u", "v", "u"]}
    >>> likely.columns([dict(zip(X, row)) for row in zip(*X.values())]).to_pandas()["decision"].tolist()
    ['Categorical', 'Gaussian', 'Categorical']
    """
    import numpy as np

    from likely.data.frames import whole_frame
    from likely.data.parts import n_rows
    from likely.data.sources import in_memory, is_source
    from likely.estimators.classifiers import GenerativeClassifier

    model = GenerativeClassifier(families, types=types, normalize=normalize)
    model._check_options()
    if y is None:
        X = in_memory(X) if is_source(X) else whole_frame(X)
        y = np.zeros(n_rows(X), dtype=np.int64)
    return model._columns_of(model._batches(X, y, None, model._table, allow_unlabeled=True))
