"""Options and columns of models as text, and how those of two models differ: only like models are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from likely.data.ledger import Ledger
from likely.errors import InputError, listed
from likely.families.base import Family
from likely.model.specification import Specification

SHOWN = 3  # columns that an error names
PARTIAL_FIT = "Fit both models to the same columns, or add the rows of the second to the first by partial_fit"
LONGEST = 60  # characters of an option in an error
Block: TypeAlias = tuple[tuple[str, ...], Family | None]  # names of the columns, and their family


def check_ledger(estimator: Any, ledger: Ledger | None) -> None:
    """Raise where the option asks for a ledger of learnt rows, and the fitted model has none."""
    if estimator.ledger and ledger is None:
        raise InputError(
            f"{type(estimator).__name__} has ledger=True, but its rows were not recorded: it was fitted with "
            "ledger=False, or made from statistics. Fit it again, or set ledger=False."
        )


def check_alike(left: Any, right: Any, mine: Specification | None = None, yours: Specification | None = None) -> None:
    """Raise where the options of two models differ, or their columns or families, where these are specified."""
    different = _differences(left, right, mine, yours)
    if different:
        raise InputError(f"Models of different specification cannot be added: {'; '.join(different)}.")


def _differences(left: Any, right: Any, mine: Specification | None, yours: Specification | None) -> list[str]:
    """How the specifications of two models differ, as short texts; the last one ends with a remedy for families."""
    if type(left) is not type(right):
        return [f"{type(left).__name__} and {type(right).__name__}"]
    first, second = _options(left, mine), _options(right, yours)
    changed = [name for name in first if first[name] != second[name]]
    blocks = _column_blocks(mine), _column_blocks(yours)
    columns = [] if "columns" in changed else [name for name in blocks[0] if _unlike(blocks[0][name], blocks[1][name])]
    if columns and "families" in changed:
        changed.remove("families")  # the families of the columns show the difference
    if mine is not None and yours is not None and set(mine.names) != set(yours.names):
        remedy = "Fit both models with families=first.families_" if hasattr(left, "families") else PARTIAL_FIT
        return [f"columns {listed(sorted(set(mine.names) ^ set(yours.names)))} of one model only. {remedy}"]
    texts = [f"{name}: {_shortened(first[name])} and {_shortened(second[name])}" for name in changed]
    if columns:
        named = [f"{column!r}: {_family_names(*(each[column] for each in blocks))}" for column in columns[:SHOWN]]
        more = f" and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
        texts.append(f"families of {', '.join(named)}{more}. Fit both models with families=first.families_")
    return texts


def _options(model: Any, specification: Specification | None) -> dict[str, str]:
    """A model's options and columns as text."""
    texts = {name: plain_text(value) for name, value in model.get_params(deep=False).items()}
    return texts if specification is None else texts | {"columns": plain_text(list(specification.names))}


def _column_blocks(specification: Specification | None) -> dict[str, Block]:
    """The columns and the family of the block of each column; no columns and None if it is set aside."""
    if specification is None:
        return {}
    blocks: list[Block] = [(specification.columns(plan), plan.family) for plan in specification.plans]
    return dict.fromkeys(specification.names, ((), None)) | {name: block for block in blocks for name in block[0]}


def _unlike(mine: Block, yours: Block) -> bool:
    """Whether a column has different families, or is in a block with different columns."""
    return mine[0] != yours[0] or plain_text(mine[1]) != plain_text(yours[1])


def _family_names(mine: Block, yours: Block) -> str:
    """The families of a column in two models, with as few words as distinguish them."""
    writers: list[Callable[[tuple[str, ...], Family], str]] = [
        lambda columns, family: type(family).__name__,
        lambda columns, family: family.describe(),
        lambda columns, family: f"{type(family).__name__} of {len(columns)} column{'' if len(columns) == 1 else 's'}",
        lambda columns, family: f"{type(family).__name__} with {listed(columns, SHOWN)}",
        lambda columns, family: _shortened(plain_text(family)),
    ]
    names = [
        ["none" if block[1] is None else write(block[0], block[1]) for write in writers] for block in (mine, yours)
    ]
    pairs = list(zip(*names, strict=True))
    return " and ".join(next((pair for pair in pairs if pair[0] != pair[1]), pairs[-1]))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def plain_text(value: Any) -> str:
    """An option as text that differs for any two different options."""
    if isinstance(value, BaseEstimator):
        options = (f"{name}={plain_text(part)}" for name, part in value.get_params(deep=False).items())
        return f"{type(value).__name__}({', '.join(options)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{plain_text(key)}: {plain_text(part)}' for key, part in value.items()))}}}"
    if isinstance(value, np.ndarray | list | tuple):
        return f"[{', '.join(plain_text(part) for part in value)}]"
    return repr(value.item() if isinstance(value, np.generic) else value)
