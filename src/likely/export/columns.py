"""Columns that an export cannot read as the model does: each check names the column and the remedy."""

from __future__ import annotations

from likely.errors import ExportError
from likely.export.scorer import Input, Scorer


def refuse_columns(scorer: Scorer, target: str) -> None:
    """Raise for the first column that the program reads and a target ("SQL", "ONNX", "JavaScript") cannot."""
    for j in scorer.program.inputs():
        _check_size(scorer.inputs[j], target)


def _check_size(column: Input, target: str) -> None:
    """Models subtract an origin from large whole numbers in integers, and exports would subtract it in doubles."""
    if column.is_offset:
        raise ExportError(
            f"Column {column.name!r} has whole numbers beyond 2**53, which {target} would read as doubles that do not "
            "distinguish them. Subtract a constant, such as the smallest value, from the column before the fit, or "
            "leave the column out."
        )
