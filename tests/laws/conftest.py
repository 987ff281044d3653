"""Laws of sums, densities and forms are of the pure model: calibration is switched off where a test does not set it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _pure(pure_models: None) -> None:
    """Use `pure_models` in every test of this directory."""
