"""Regression against NumPy's bare product and scikit-learn's LinearRegression."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.linear_model import LinearRegression

from benchmarks.discriminants import draw
from benchmarks.timing import Line, alternate, at_least, at_most, peak_megabytes
from likely import GenerativeRegressor


def regression() -> Iterator[Line]:
    """1,000,000 x 20, one target."""
    X, _ = draw(1_000_000, 20, 1)
    rng = np.random.default_rng(1)
    y = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(len(X))
    yield "1,000,000 x 20"
    for estimation in ("mle", "bayes"):
        ours, theirs = GenerativeRegressor(estimation), LinearRegression()
        bare, mine, peers = alternate([partial(np.matmul, X.T, X), partial(ours.fit, X, y), partial(theirs.fit, X, y)])
        yield at_most(f"fit, {estimation} / X.T @ X", mine / bare, 2.0)
        yield at_least(f"fit, {estimation}: LinearRegression / likely", peers / mine, 5.0)
        mine, spread, peers = alternate(
            [partial(ours.predict, X), partial(ours.predict, X, return_std=True), partial(theirs.predict, X)]
        )
        yield at_most(f"predict, {estimation} / LinearRegression", mine / peers, 3.0)
        yield at_most(f"predict with deviations, {estimation} / LinearRegression", spread / peers, 10.0)
    yield at_most("extra memory in MB, fit", peak_megabytes(partial(ours.fit, X, y)), 64.0)
    result = 2 * y.nbytes / 1e6
    extra = peak_megabytes(partial(ours.predict, X, return_std=True)) - result
    yield at_most("extra memory in MB, predict with deviations", extra, 64.0)
