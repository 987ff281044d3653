"""Training rows of an `EvidenceClassifier`: equal rows merged, in the order of their content, and a sample of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from likely.data.batches import Batch
from likely.data.ledger import label_marks
from likely.data.row_hash import array_keys, category_marks, row_hashes, scrambled
from likely.errors import InputError, listed
from likely.evidence.encoding import Encoding
from likely.evidence.rows import DistinctRows, EncodedRows, TrainingRows
from likely.typing import AnyArray, Array, Codes

LEAST_OF_CLASS = 100  # rows of each class in a sample, if there are this many
ROWS_AT_A_TIME = 20_000  # that are encoded and counted together, at most
NUMBERS_AT_A_TIME = 2**22  # of these rows, at most


def distinct_rows(batch: Batch, columns: AnyArray, classes: AnyArray | None = None) -> DistinctRows:
    """The labeled rows of a batch, which are equal if these columns are; rows without weight are dropped.

    `classes` are those of the model, if known.
    """
    used = np.flatnonzero(batch.row_weights > 0.0)
    codes, known = batch.codes[used], batch.counts.classes
    if classes is not None:
        codes, known = _known_codes(known, classes)[codes], classes
    hashes = row_hashes(batch.table.take(used), label_marks(known)[codes], columns)
    keys, first, place, copies = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    weights = np.bincount(place, batch.row_weights[used], minlength=len(keys)).astype(np.float64)
    rows = used[first]
    return DistinctRows(batch.table.take(rows), known, codes[first], weights, keys, rows, copies)


def encoded(rows: DistinctRows, encoding: Encoding) -> TrainingRows:
    """The same rows, encoded, in the order by which they are drawn.

    No unit of a column and no label changes it: it follows the normal scores and codes of values. Rows that have the
    same ones, as two values between neighbouring knots may have, are in the order of their standardised numbers.
    """
    coded = encoding.encode(rows.rows)
    draws = _draws(coded, encoding)
    found = TrainingRows(coded, rows.classes, rows.codes, rows.weights, rows.keys, rows.positions, rows.copies, draws)
    totals = np.nan_to_num(coded.numbers).sum(axis=1)
    return found.take(np.lexsort((rows.keys, found.class_ranks[rows.codes], totals, draws)))


def _draws(rows: EncodedRows, encoding: Encoding) -> AnyArray:
    """A pseudo-random number for each row by its normal scores, categories and texts."""
    categorical, names = encoding.categorical, encoding.names
    scores = rows.normal_scores.astype(np.float32).astype(np.float64)  # without their rounding
    values = np.hstack([scores, rows.cells[:, categorical].astype(np.float64)])
    marked = [names[j] for j in (*encoding.numeric.tolist(), *categorical.tolist())]
    found = array_keys(values, np.zeros(len(rows), dtype=np.intp), marked)
    for j in encoding.texts.tolist():
        found = scrambled(found + category_marks(rows.table, j))
    return found


def encoded_parts(rows: DistinctRows, encoding: Encoding) -> Iterator[TrainingRows]:
    """The same rows, encoded some thousand at a time."""
    size = rows_at_a_time(rows.rows.width)
    for start in range(0, len(rows), size):
        yield encoded(rows.take(np.arange(start, min(start + size, len(rows)))), encoding)


def rows_at_a_time(numbers: int) -> int:
    """How many rows to work on together, where each needs `numbers` numbers."""
    return int(np.clip(NUMBERS_AT_A_TIME // max(numbers, 1), 100, ROWS_AT_A_TIME))


def _known_codes(found: AnyArray, classes: AnyArray) -> AnyArray:
    """The positions of labels among the classes of a model; an error where there is none."""
    place = {label: code for code, label in enumerate(classes.tolist())}
    unknown = [label for label in found.tolist() if label not in place]
    if unknown:
        raise InputError(
            f"y has the label {listed(unknown)}, which is not among the classes of the fit: "
            f"{listed(classes.tolist())}. Structures and weights are those of the fit: fit again on all rows, or use "
            "GenerativeClassifier, whose partial_fit adds new classes."
        )
    return np.array([place[label] for label in found.tolist()], dtype=np.intp)


def proportional_sample(codes: Codes, classes: int, most: int) -> AnyArray:
    """Positions of at most about `most` of the rows: the first of each class.

    Classes are drawn in proportion, but at least a hundred rows of each, as far as these are half of the sample.
    """
    if len(codes) <= most:
        return np.arange(len(codes))
    least = min(LEAST_OF_CLASS, most // (2 * classes))
    quota = np.maximum(np.ceil(np.bincount(codes, minlength=classes) * (most / len(codes))), least)
    return smallest_of_classes(codes, np.arange(len(codes)), quota)


def smallest_of_classes(codes: Codes, ranks: AnyArray, quotas: AnyArray) -> AnyArray:
    """Positions of the rows with the smallest ranks of each class, up to its quota, in the order of the ranks."""
    order = np.lexsort((ranks, codes))
    counts = np.bincount(codes, minlength=len(quotas))
    before = np.cumsum(counts) - counts
    kept = order[np.arange(len(order)) - before[codes[order]] < quotas[codes[order]]]
    return np.asarray(kept[np.argsort(ranks[kept])])


def _folds(rows: TrainingRows) -> tuple[int, int]:
    """The number of folds, and of those that are used."""
    total = float(rows.weights.sum())
    return (10, 10) if total < 150.0 else (5, 5) if total < 600.0 else (3, 3) if total < 1500.0 else (5, 1)


def tested_weights(rows: TrainingRows, fold: AnyArray) -> Array:
    """The weights of the rows of a fold in its loss: of rows that are in every fold, the part of this one."""
    folds, _ = _folds(rows)
    weights = rows.weights[fold]
    return np.where(weights >= folds, weights / folds, weights)


def nested_folds(rows: TrainingRows) -> list[AnyArray]:
    """Positions of the rows of each fold that is held out to choose the penalty of the weights.

    Ten folds below 150 rows, five below 600, three below 1,500, and else one fifth of the rows once. Classes are
    distributed over the folds one after another, so that a rare class does not determine the number of folds. Rows with
    as many copies as there are folds are in every fold.
    """
    folds, used = _folds(rows)
    if len(rows) < 2:
        return []
    order = np.argsort(rows.class_ranks[rows.codes], kind="stable")  # within a class in the order of the rows
    fold = np.empty(len(rows), dtype=np.intp)
    fold[order] = np.arange(len(rows)) % min(folds, len(rows))
    found = [np.flatnonzero((fold == i) | (rows.weights >= folds)) for i in range(min(used, len(rows)))]
    return [each for each in found if len(each)]
