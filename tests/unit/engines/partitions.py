"""A table in partitions, as sources of this process and of others read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose, assert_array_equal

from likely.data.parts import Part, PartSource

PARTITIONS = 14  # more than 8: sums are added in two levels
ROWS = 30


def partition(number: int) -> pd.DataFrame:
    """Rows with text, weights and missing values; 'rare' occurs in partition 11 alone, and 4 is empty."""
    rng = np.random.default_rng(number)
    size = 0 if number == 4 else ROWS
    code = rng.integers(0, 2, size)
    label = np.array(["ä b", "usual"], dtype=object)[code]
    if number == 11:
        label[:6] = "rare"
    colour = np.array(["red", "green", "blue; or 'not'"], dtype=object)[(code + rng.integers(0, 2, size)) % 3]
    colour[rng.random(size) < 0.1] = None
    frame = pd.DataFrame({"length": rng.normal(2.0 * code, 1.0), "width": rng.normal(1e3 - code, 2.0)})
    frame.loc[rng.random(size) < 0.1, "width"] = np.nan
    weight = rng.integers(0, 4, size).astype(float)
    return frame.assign(
        colour=pd.array(colour, dtype="str"), label=pd.array(label, dtype="str"), weight=weight, visits=code + 1
    )


def whole(count: int = PARTITIONS) -> pd.DataFrame:
    """All partitions as one frame."""
    return pd.concat([partition(i) for i in range(count)], ignore_index=True)


@dataclass(frozen=True)
class FramePart:
    """A partition in memory."""

    frame: Any
    start: int = 0

    def chunks(self) -> Iterator[Any]:
        yield self.frame


class FrameSource(PartSource):
    """Frames, which threads of this process sum."""

    def __init__(self, frames: Sequence[Any]) -> None:
        self.frames = frames

    def parts(self) -> Sequence[Part]:
        return [FramePart(frame) for frame in self.frames]


def local(count: int = PARTITIONS) -> FrameSource:
    """The partitions, in this process."""
    return FrameSource([partition(i) for i in range(count)])


def assert_same_model(first: Any, second: Any, X: Any, rtol: float = 1e-9) -> None:
    """Two models of the same rows in other parts agree to rounding."""
    assert_array_equal(first.classes_, second.classes_)
    assert {k: repr(v) for k, v in first.families_.items()} == {k: repr(v) for k, v in second.families_.items()}
    assert_allclose(first.class_prior_, second.class_prior_, rtol=rtol)
    assert_allclose(first.log_joint(X), second.log_joint(X), rtol=rtol, atol=rtol)
    assert_allclose(first.predict_proba(X), second.predict_proba(X), rtol=rtol, atol=1e-12)


def assert_same_bits(first: Any, second: Any, X: Any) -> None:
    """Two models of the same parts agree to the last bit."""
    assert_array_equal(first.classes_, second.classes_)
    assert numbers(first.statistics_) == numbers(second.statistics_)
    assert_array_equal(first.log_joint(X), second.log_joint(X))
    assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def numbers(value: Any) -> list[Any]:
    """All numbers in statistics, in the order of their fields."""
    if isinstance(value, np.ndarray):
        return [value.shape, value.tobytes() if value.dtype != object else value.tolist()]
    if isinstance(value, tuple | list):
        return [numbers(each) for each in value]
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        return [numbers(getattr(value, name)) for name in fields]
    return [value]
