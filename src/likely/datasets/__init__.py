"""Tables that ship with the package."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.resources import files
from typing import Any


def penguins() -> Any:
    """Return the Palmer penguins: 344 birds of three species, with 19 missing values.

    The columns are the species, the island, four measurements, the sex and the year. The table is in the public domain.

    Returns
    -------
    frame of shape (344, 8)
        A pandas DataFrame; a Polars DataFrame where pandas is not installed; a pyarrow Table where neither is.

    References
    ----------
    A. M. Horst, A. P. Hill and K. B. Gorman (2020), palmerpenguins: Palmer Archipelago (Antarctica) penguin data.

    Examples
    --------
    >>> from likely.datasets import penguins
    >>> X = penguins()
    >>> y = X.pop("species")
    >>> X.shape
    (344, 7)
    """
    with (files(__name__) / "penguins.csv").open("rb") as file:
        for library in ("pandas", "polars"):
            with suppress(ModuleNotFoundError):
                return import_module(library).read_csv(file)
        csv = import_module("pyarrow.csv")
        return csv.read_csv(file, convert_options=csv.ConvertOptions(strings_can_be_null=True))
