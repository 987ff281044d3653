"""Seeds of random numbers, as scikit-learn has them."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state

from likely.errors import InputError


def seeded(random_state: Any) -> Any:
    """A RandomState from an option: None, a seed or a RandomState."""
    try:
        return check_random_state(random_state)
    except (ValueError, TypeError):
        raise InputError(
            f"random_state={random_state!r} is not a seed. Use an integer from 0 to 2**32 - 1, a RandomState, or None."
        ) from None
