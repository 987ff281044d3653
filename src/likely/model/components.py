"""Mixture components by expectation maximisation: the best of several random starts."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from likely.data.batches import Batch, Batches
from likely.data.labels import label_values
from likely.errors import DeadComponentWarning, InputError, NotEstimableError, trying, warn
from likely.model.em import EMHistory, EMOptions, initial_model, iterate
from likely.model.expectations import TrainingRows, expect, has_incomplete_rows, needs_em
from likely.model.fit import Fit
from likely.model.joint import JointModel
from likely.model.seeding import seed_components
from likely.model.specification import Specification
from likely.numerics.ties import exceeds
from likely.statistics.counts import Counts
from likely.statistics.joint import JointStatistics

DEAD = 1e-3  # expected rows below which a component is dead


def learn_components(
    specification: Specification,
    batches: Batches,
    size: int,
    rng: Any,
    n_init: int,
    options: EMOptions,
    start: Any = None,
) -> Fit:
    """The best fit of several starts; with one component less, from seeds, where one dies in every start."""
    rows = sum(batch.unlabeled.table.rows for batch in batches if batch.unlabeled is not None)
    if rows < size:
        samples = f"{rows} sample{'' if rows == 1 else 's'}"
        raise InputError(f"{size} components are more than X has rows: {samples}. Use fewer components.")
    best: tuple[JointStatistics, EMHistory] | None = None
    problem: NotEstimableError | None = None
    for _ in range(1 if start is not None or size == 1 else n_init):
        try:
            found = _from_start(specification, batches, size, rng, options, start)
            with trying():
                specification.estimate(found[0])  # a component may have collapsed in the last iteration
        except NotEstimableError as error:
            problem = error
            continue
        if best is None or exceeds(found[1].objective[-1], best[1].objective[-1]):
            best = found
    if best is None:
        if size == 1:
            assert problem is not None
            raise problem
        where = "in every start" if start is None else "from the given start"
        seeds = "" if start is None else ", from k-means++ seeds"
        warn(
            f"With {size} components, one dies {where} ({problem}). Fitted {size - 1} components instead{seeds}. "
            "Use estimation='map' to keep all of them.",
            DeadComponentWarning,
        )
        return learn_components(specification, batches, size - 1, rng, n_init, options)
    dead = int(np.count_nonzero(best[0].counts.weight < DEAD))
    if dead:
        warn(
            f"{dead} of {size} components have almost no rows: the prior alone determines them. Use fewer.",
            DeadComponentWarning,
        )
    return Fit(specification, best[0], history=best[1])


def _from_start(
    specification: Specification, batches: Batches, size: int, rng: Any, options: EMOptions, start: Any
) -> tuple[JointStatistics, EMHistory]:
    """EM from an assignment of rows to components: the one that the user gives, or that of k-means++ seeds."""
    classes = np.arange(size)
    rows = TrainingRows(specification, batches, 1.0)
    assigned = _from_codes(batches, size, start) if start is not None else seed_components(batches, size, rng)
    latent = needs_em(specification, assigned) or has_incomplete_rows(specification, assigned)
    initial: JointStatistics | None = None
    model: JointModel | None = None
    if not latent:
        initial = specification.summarise(assigned).align(classes)
        with suppress(NotEstimableError), trying():
            model = specification.plugged_in.estimate(initial)[0]
    if model is None:
        model = initial_model(specification, Batches.of([assigned]), classes)
        return iterate(rows, model, options)
    if start is None:  # the statistics are those of some rows only
        initial = expect(model, rows)[0]
    return iterate(rows, model, options, initial)


def _from_codes(batches: Batches, size: int, start: Any) -> Batch:
    """All rows, labeled with the components that the user starts from."""
    batch, *others = batches
    assert batch.unlabeled is not None
    if others:
        raise InputError("start= needs all rows in memory, and X comes in chunks. Pass a frame, or leave start out.")
    codes = label_values(start)
    if codes.dtype.kind not in "iu" or len(codes) != batch.unlabeled.table.rows or not set(codes) <= set(range(size)):
        raise InputError(f"start must be a component from 0 to {size - 1} for every row.")
    weights = batch.unlabeled.weights
    return Batch(batch.X, batch.unlabeled.table, Counts.of(np.arange(size), codes, weights), codes, weights)
