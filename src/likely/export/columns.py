"""Columns that an export cannot read as the model does: each check names the column and the remedy."""

from __future__ import annotations

from likely.errors import ExportError
from likely.export.scorer import Input, Scorer


def refuse_columns(scorer: Scorer, target: str) -> None:
    """Raise for the first column that the program reads and a target ("SQL", "ONNX", "JavaScript") cannot."""
    for j in scorer.program.inputs():
        _check_size(scorer.inputs[j], target)
        _check_reading(scorer.inputs[j], target)


def _check_size(column: Input, target: str) -> None:
    """Models subtract an origin from large whole numbers in integers, and exports would subtract it in doubles."""
    if column.is_offset:
        raise ExportError(
            f"Column {column.name!r} has whole numbers beyond 2**53, which {target} would read as doubles that do not "
            "distinguish them. Subtract a constant, such as the smallest value, from the column before the fit, or "
            "leave the column out."
        )


def _check_reading(column: Input, target: str) -> None:
    """Parts of dates, and categories whose text is changed, are computed by this library alone, or by databases."""
    source = column.source
    if source is None:
        return
    if source.parts and target == "JavaScript":
        raise ExportError(
            f"Column {source.name!r} has dates, and JavaScript modules do not compute their parts. Leave the column "
            "out, fit on numbers such as the month, or use to_sql or to_onnx."
        )
    if source.kind == "date" and not source.parts:
        raise ExportError(
            f"Column {source.name!r} has dates that are modelled as one number, which {target} does not compute. Fit "
            "on a column of numbers, or leave it out."
        )
    if source.normalized and column.vocabulary is not None:
        raise ExportError(
            f"Column {source.name!r} has categories without case and blanks (normalize=True), which {target} does "
            "not compute. Normalize the column before the fit, with normalize=False."
        )
