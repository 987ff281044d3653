"""Parameters of families in a mapping from columns, such as `families__mass__shrinkage`, for searches of options.

Estimators with the option `families` have both functions as methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator

from likely.errors import InputError, listed
from likely.families.base import Family

PREFIX = "families__"


def get_params(self: Any, deep: bool = True) -> dict[str, Any]:
    """Get the parameters of the estimator.

    Parameters
    ----------
    deep : bool, default=True
        Whether to include the options of families. Those of a family in a mapping are named
        `families__<column>__<option>`; the columns of a joint block are joined by commas.

    Returns
    -------
    dict
        Names of parameters to their values.
    """
    found: dict[str, Any] = BaseEstimator.get_params(self, deep=deep)
    if not deep or not isinstance(self.families, Mapping):
        return found
    for key, family in self.families.items():
        name = PREFIX + _text(key)
        found[name] = family
        if isinstance(family, BaseEstimator):
            found |= {f"{name}__{option}": value for option, value in family.get_params(deep=True).items()}
    return found


def set_params(self: Any, **params: Any) -> Any:
    """Set parameters of the estimator.

    Parameters
    ----------
    **params : dict
        Names of parameters to their values, as in `get_params`.

    Returns
    -------
    estimator
        The estimator itself.
    """
    plain = {name: value for name, value in params.items() if not name.startswith(PREFIX)}
    nested = {name: value for name, value in params.items() if name.startswith(PREFIX)}
    BaseEstimator.set_params(self, **plain)
    if not isinstance(self.families, Mapping):
        BaseEstimator.set_params(self, **nested)
        return self
    for name, value in nested.items():
        _set_nested(self, name.removeprefix(PREFIX), value)
    return self


def _set_nested(self: Any, name: str, value: Any) -> None:
    """Set the family of a column, or one of its options; `name` is <column> or <column>__<option>."""
    keys = {_text(key): key for key in self.families}
    for text in sorted(keys, key=len, reverse=True):  # names of columns may contain underscores
        family = self.families[keys[text]]
        if name == text:
            self.families = {**self.families, keys[text]: value}
            return
        if name.startswith(f"{text}__") and isinstance(family, Family):
            family.set_params(**{name.removeprefix(f"{text}__"): value})
            return
    raise InputError(
        f"Invalid parameter {PREFIX + name!r} for estimator {type(self).__name__}: families has the columns "
        f"{listed(keys)}. Use {PREFIX}<column>__<option>."
    )


def _text(key: Any) -> str:
    """A column, or the columns of a joint block, as part of the name of a parameter."""
    return ",".join(map(str, key)) if isinstance(key, tuple) else str(key)
