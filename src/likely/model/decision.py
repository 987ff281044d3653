"""Loss matrices, least expected loss, and the reject option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from likely.data.frames import as_narwhals, is_frame
from likely.errors import InputError, LikelyWarning, listed, warn
from likely.model.class_prior import check_names_classes, numbers
from likely.model.rendering import RenderedResult, TextTable, limited, number, to_frame
from likely.typing import AnyArray, Array

SHOWN = 10  # decisions that are printed


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decisions(RenderedResult):
    """Decisions with the least expected loss, one for each row. Printing shows the first ones as a table.

    Attributes
    ----------
    action : ndarray of shape (n_samples,)
        The action with the least expected loss, or the reject label where the row is rejected.
    expected_loss : ndarray of shape (n_samples,)
        Its expected loss, or the cost of rejection where the row is rejected.
    rejected : ndarray of shape (n_samples,)
        Whether the least expected loss exceeds the cost of rejection.
    best_action : ndarray of shape (n_samples,)
        The action with the least expected loss, also where the row is rejected.

    See Also
    --------
    GenerativeClassifier.decide : Returns this object.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from likely import LinearDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearDiscriminant().fit(X, y).decide(X[[0, 70]], reject=0.1, reject_label="ask")
    2 decisions, 1 rejected, mean expected loss 0.05
    <BLANKLINE>
    row  action  best action  expected loss
    0    0       0                   0.0000
    1    ask     2                   0.1000
    """

    action: AnyArray
    expected_loss: Array
    rejected: AnyArray
    best_action: AnyArray
    _library: str | None = None

    def __repr__(self) -> str:
        return str(self)

    def to_frame(self) -> Any:
        """Return the decisions as a table.

        Returns
        -------
        frame
            One row for each row of X, with `action`, `best_action`, `expected_loss` and `rejected`. The frame is of the
            library of X; for arrays of pandas, or of pyarrow if pandas is not installed.
        """
        data = {
            "action": self.action.tolist(),
            "best_action": self.best_action.tolist(),
            "expected_loss": self.expected_loss.tolist(),
            "rejected": self.rejected.tolist(),
        }
        return to_frame(data, self._library)

    def _parts(self) -> list[str | TextTable]:
        rows, rejected = len(self.action), int(self.rejected.sum())
        mean = float(self.expected_loss.mean()) if rows else 0.0
        shown, more = limited(range(rows), SHOWN)
        lines = [
            [str(i), str(self.action[i]), str(self.best_action[i]), number(float(self.expected_loss[i]))] for i in shown
        ]
        title = f"{rows} decision{'' if rows == 1 else 's'}, {rejected} rejected, mean expected loss {mean:.4g}"
        return [title, TextTable(["row", "action", "best action", "expected loss"], lines, left=3, more=more)]


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
        matrix, actions = _loss_from_mapping(loss, classes)
    else:
        named = None
        if is_frame(loss):
            frame = as_narwhals(loss)
            loss, named = [frame.row(i) for i in range(len(frame))], frame.columns
        matrix = numbers("loss", loss)
        if matrix.ndim != 2 or matrix.shape[0] != size or matrix.shape[1] == 0:
            raise InputError(
                f"loss has shape {matrix.shape}; it needs one row for each of the {size} classes "
                f"{listed(classes.tolist())}."
            )
        actions = classes if matrix.shape[1] == size else np.arange(matrix.shape[1])
        actions = actions if named is None else _action_labels(named)
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        k, a = wrong[0]
        raise InputError(
            f"The loss of action {actions.tolist()[a]!r} under class {classes.tolist()[k]!r} (row {k}, column {a} of "
            f"loss) is {matrix[k, a]}, which is not finite. Losses must be finite numbers."
        )
    return matrix, actions


def _loss_from_mapping(loss: Mapping[Any, Any], classes: AnyArray) -> tuple[Array, AnyArray]:
    check_names_classes("loss must have one row", loss, classes)
    labels = classes.tolist()
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
    return matrix, _action_labels(actions)


def _action_labels(actions: Sequence[Any]) -> AnyArray:
    """The names of actions as an array; tuples stay tuples, and numbers among text stay numbers."""
    if all(isinstance(action, str) for action in actions) or all(isinstance(action, Real) for action in actions):
        return np.array(actions)
    array = np.empty(len(actions), dtype=object)
    for place, action in enumerate(actions):
        array[place] = action
    return array


def decide(
    posterior: Array,
    classes: AnyArray,
    loss: Any,
    reject: float | None,
    reject_label: object = None,
    library: str | None = None,
) -> Decisions:
    """The action of least expected loss for each row, or rejection where that costs less."""
    matrix, actions = read_loss(loss, classes)
    cost = _checked_reject(reject, reject_label, matrix, actions)
    expected = posterior @ matrix
    best = expected.argmin(axis=1)
    lowest = expected[np.arange(len(best)), best]
    if cost is None:
        return Decisions(actions[best], lowest, np.zeros(len(best), dtype=bool), actions[best], library)
    rejected = lowest > cost
    labels = _action_labels([*actions.tolist(), reject_label])
    action = labels[np.where(rejected, len(actions), best)]
    return Decisions(action, np.where(rejected, cost, lowest), rejected, actions[best], library)


def _checked_reject(reject: Any, label: object, matrix: Array, actions: AnyArray) -> float | None:
    """The cost of rejection; an error if it is not a number, or so low that all rows would be rejected."""
    if reject is None:
        if label is not None:
            raise InputError(f"reject_label={label!r} needs the cost of rejection. Set reject.")
        return None
    if not (np.ndim(reject) == 0 and np.isfinite(numbers("reject", reject))):
        raise InputError(f"reject={reject!r} is not a finite cost.")
    if float(reject) < matrix.min():
        raise InputError(
            f"reject={reject!r} is less than every loss, so that all rows would be rejected. The least loss is "
            f"{matrix.min():g}."
        )
    if not isinstance(label, np.ndarray | list) and label in actions.tolist():
        raise InputError(f"reject_label={label!r} is also an action: {listed(actions)}. Choose another label.")
    most = min(matrix.max(axis=0).min(), matrix.mean(axis=1).max())  # of one action, or of all with equal probability
    if float(reject) >= most:
        warn(
            f"reject={reject!r} rejects no row: the least expected loss of a row is at most {most:.4g}. Choose a cost "
            "below it.",
            LikelyWarning,
        )
    return float(reject)
