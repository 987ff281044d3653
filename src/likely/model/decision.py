"""Loss matrices, least expected loss, and the reject option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from likely.data.frames import is_frame
from likely.errors import InputError, listed
from likely.model.class_prior import numbers
from likely.typing import AnyArray, Array


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """Decisions with the least expected loss, one for each row.

    Attributes
    ----------
    action : ndarray of shape (n_samples,)
        The action with the least expected loss, also where the row is rejected.
    expected_loss : ndarray of shape (n_samples,)
        Its expected loss, or the cost of rejection where the row is rejected.
    rejected : ndarray of shape (n_samples,)
        Whether the least expected loss exceeds the cost of rejection.

    See Also
    --------
    GenerativeClassifier.decide : Returns this object.
    """

    action: AnyArray
    expected_loss: Array
    rejected: AnyArray


def read_loss(loss: Any, classes: AnyArray) -> tuple[Array, AnyArray]:
    """Losses (classes, actions) and the names of the actions.

    `loss` is None (0 for the right class, 1 for any other), an array classes × actions, a mapping
    {class: {action: cost}}, or a frame with actions as columns: its index, if it has one, names the classes, and its
    rows are the classes in their order if it has none.
    """
    size = len(classes)
    if loss is None:
        return 1.0 - np.eye(size), classes
    if hasattr(loss, "index") and hasattr(loss, "columns") and not isinstance(loss, Mapping):
        for kind, labels in (("class", list(loss.index)), ("action", list(loss.columns))):
            if len(set(labels)) < len(labels):
                raise InputError(f"loss names a {kind} twice: {listed(labels)}.")
        loss = {
            label: dict(zip(loss.columns, row, strict=True))
            for label, row in zip(loss.index, loss.to_numpy(), strict=True)
        }
    if isinstance(loss, Mapping):
        return _loss_from_mapping(loss, classes)
    named = None
    if is_frame(loss):
        frame = nw.from_native(loss, eager_only=True)
        loss, named = [frame.row(i) for i in range(len(frame))], frame.columns
    matrix = numbers("loss", loss)
    if matrix.ndim != 2 or matrix.shape[0] != size or matrix.shape[1] == 0:
        raise InputError(
            f"loss has shape {matrix.shape}; it needs one row for each of the {size} classes "
            f"{listed(classes.tolist())}."
        )
    if named is not None:
        return _checked_loss(matrix), _action_labels(named)
    actions = classes if matrix.shape[1] == size else np.arange(matrix.shape[1])
    return _checked_loss(matrix), actions


def _loss_from_mapping(loss: Mapping[Any, Any], classes: AnyArray) -> tuple[Array, AnyArray]:
    labels = classes.tolist()
    missing = [label for label in labels if label not in loss]
    unknown = [label for label in loss if label not in labels]
    if missing or unknown:
        wrong = [f"it lacks {listed(missing)}"] if missing else []
        wrong += [f"{listed(unknown)} {'is' if len(unknown) == 1 else 'are'} unknown"] if unknown else []
        raise InputError(f"loss must have one row for each of the classes {listed(labels)}: {', and '.join(wrong)}.")
    if not all(isinstance(loss[label], Mapping) for label in labels):
        raise InputError("loss must be a mapping {class: {action: cost}}.")
    actions = list(loss[labels[0]])
    for label in labels:
        if set(loss[label]) != set(actions):
            raise InputError(
                f"loss[{label!r}] has the actions {listed(loss[label])}, but loss[{labels[0]!r}] has {listed(actions)}."
            )
    matrix = numbers("loss", [[loss[label][action] for action in actions] for label in labels])
    if not actions:
        raise InputError("loss has no actions.")
    return _checked_loss(matrix), _action_labels(actions)


def _action_labels(actions: Sequence[Any]) -> AnyArray:
    """The names of actions as an array; numbers among text stay numbers."""
    array = np.array(actions)
    if array.dtype.kind in "US" and not all(isinstance(action, str) for action in actions):
        return np.array(actions, dtype=object)
    return array


def _checked_loss(matrix: Array) -> Array:
    if not np.all(np.isfinite(matrix)):
        raise InputError("loss has entries that are not finite.")
    return matrix


def decide(posterior: Array, classes: AnyArray, loss: Any, reject: float | None) -> Decisions:
    """The action of least expected loss for each row, or rejection where that costs less."""
    matrix, actions = read_loss(loss, classes)
    if reject is not None and not (np.ndim(reject) == 0 and np.isfinite(numbers("reject", reject))):
        raise InputError(f"reject={reject!r} is not a finite cost.")
    expected = posterior @ matrix
    best = expected.argmin(axis=1)
    lowest = expected[np.arange(len(best)), best]
    rejected = np.zeros(len(best), dtype=bool) if reject is None else lowest > float(reject)
    value = lowest if reject is None else np.where(rejected, float(reject), lowest)
    return Decisions(actions[best], value, rejected)
