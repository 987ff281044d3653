"""Names for the types that signatures use."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]
Index = npt.NDArray[np.intp]
Codes = npt.NDArray[np.integer[Any]]
Vocabulary = tuple[Any, ...]  # the distinct labels of a column
