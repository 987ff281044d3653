"""The joint model p(x, y): a class prior times class-conditional densities, and all that follows from it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from likely.data.row_blocks import evaluate
from likely.data.table import Table
from likely.errors import ImpossibleRowsWarning, listed
from likely.families.quadratic import Quadratic
from likely.model.block import Block
from likely.model.calibration import Calibration
from likely.model.explanation import Explanation, LinearBlock
from likely.numerics.arrays import all_finite
from likely.numerics.caches import cached_property
from likely.numerics.special import log_softmax_into, log_sum_exp, softmax_into
from likely.numerics.threads import single_threaded_blas_for
from likely.typing import AnyArray, Array

SAME_EVIDENCE = 1e-6  # a smaller difference between classes may be rounding


@dataclass(frozen=True, slots=True, eq=False)
class RowScores:
    """The probabilities that a model gives the classes of labeled rows."""

    log_joint: Array  # log p(x, class) of a row's class, (rows,), where requested
    probability: Array  # p(class | x) of a row's class, (rows,), where requested
    right: AnyArray  # whether a row's class is the most probable one, (rows,), where requested
    posterior: Array  # p(class | x), (rows, classes), where requested; else (0, classes)

    @classmethod
    def empty(cls, rows: int, classes: int, posterior: bool = True, scored: bool = True) -> Self:
        """Uninitialised scores of `rows` rows: posteriors, and what is `scored` (probability and right)."""
        some = rows if scored else 0
        posteriors = np.empty((rows if posterior else 0, classes))
        return cls(np.empty(rows), np.empty(some), np.empty(some, dtype=bool), posteriors)

    def set_block(self, start: int, stop: int, scores: Array, codes: AnyArray) -> None:
        """Set probability, right and posterior of rows start to stop from scores (classes, n), which are overwritten.

        Of several classes with equal probability the first is the most probable one.
        """
        posterior = self.posterior[start:stop] if len(self.posterior) else np.empty((stop - start, len(scores)))
        if len(self.right):
            self.right[start:stop] = scores.argmax(axis=0) == codes
        softmax_into(scores, posterior)
        if len(self.probability):
            self.probability[start:stop] = posterior[np.arange(len(codes)), codes]


@dataclass(frozen=True, eq=False)
class JointModel:
    """Class prior times class-conditionals. Frozen: a new prior makes a new model."""

    classes: AnyArray
    log_prior: Array
    blocks: tuple[Block, ...]
    names: tuple[str, ...]
    calibration: Calibration | None = None  # of the class probabilities; densities are those of the pure model

    def with_log_prior(self, log_prior: Array) -> Self:
        return replace(self, log_prior=log_prior)

    @property
    def tempered(self) -> bool:
        """Whether the evidence of a block has an exponent of its own."""
        return any(block.conditionals.tempered for block in self.blocks)

    def _width(self, table: Table) -> int:
        """About how many numbers the evaluation of a row needs."""
        if not table.is_sparse:
            return self._dense_width
        thin = 4 * table.stored_per_row + 4 * len(self.classes)
        return sum(thin if block.sparse else block.conditionals.width for block in self.blocks)

    @cached_property
    def _dense_width(self) -> int:
        """About how many numbers the evaluation of a dense row needs."""
        with single_threaded_blas_for(len(self.names)):  # densities factorise covariances to know their width
            return sum(block.conditionals.width for block in self.blocks)

    def _over_blocks(self, table: Table, work: Callable[[int, int, Array], None], exact: bool) -> None:
        """work(start, stop, evidence) for every row block: log p(x | class), (classes, n).

        Where not exact, up to a term common to all classes.
        """
        readers = [block.reader(table) for block in self.blocks]

        def turn(start: int, stop: int) -> None:
            total: Array | None = None
            for block, read in zip(self.blocks, readers, strict=True):
                part = block.evaluate(read(start, stop), exact)
                total = part if total is None else np.add(total, part, out=total)
            assert total is not None
            work(start, stop, total)

        evaluate(table, turn, self._width(table))

    def _over_joint(self, table: Table, work: Callable[[int, int, Array], None]) -> None:
        """work(start, stop, joint) for every row block: log p(x, class), (classes, n)."""
        prior = self.log_prior[:, None]

        def turn(start: int, stop: int, evidence: Array) -> None:
            evidence += prior
            work(start, stop, evidence)

        self._over_blocks(table, turn, exact=True)

    def over_scores(self, table: Table, work: Callable[[int, int, Array], None]) -> None:
        """work(start, stop, scores): log p(class | x), (classes, n), up to a term common to all classes.

        This term includes the log-prior of the first class that has one, so that equal priors do not round off tiny
        differences, and scores relative to the first class stay so. Rows impossible under every class have the
        log-prior.
        """
        impossible: list[tuple[int, int]] = []
        prior = (self.log_prior - self.log_prior[np.argmax(self.log_prior > -np.inf)])[:, None]

        def turn(start: int, stop: int, evidence: Array) -> None:
            scores = self.calibrated(evidence, prior, table, start)
            if not scores[0].min() > -np.inf:
                zero = np.isneginf(scores.max(axis=0))
                if zero.any():
                    scores[:, zero] = self.log_prior[:, None]
                    impossible.append((start + int(np.argmax(zero)), int(zero.sum())))
            work(start, stop, scores)

        self._over_blocks(table, turn, exact=False)
        if impossible:
            first, count = table.number(min(impossible)[0]), sum(many for _, many in impossible)
            warnings.warn(
                f"{count} {'row has' if count == 1 else 'rows have'} probability 0 under every class (first: row "
                f"{first}); the class prior was returned. Use estimation='map' or 'bayes' to smooth.",
                ImpossibleRowsWarning,
                stacklevel=4,
            )

    def calibrated(self, evidence: Array, log_prior: Array, table: Table, start: int) -> Array:
        """Scores of rows from `start` on, whose softmax are class probabilities, from evidence, which is overwritten.

        Only rows with the same evidence for all classes, up to rounding, can be without any observed value.
        """
        if self.calibration is None:
            evidence += log_prior
            return evidence
        unobserved: AnyArray | None = None
        with np.errstate(invalid="ignore"):
            rows = np.flatnonzero(np.abs(evidence[-1] - evidence[0]) < SAME_EVIDENCE)
        if len(rows):
            unobserved = np.zeros(evidence.shape[1], dtype=bool)
            unobserved[rows] = self.unobserved(table, start + rows)
        return self.calibration.scores(evidence, log_prior, unobserved)

    def unobserved(self, table: Table, rows: AnyArray) -> AnyArray:
        """Whether these rows have no value in any column that has a density and is not constant."""
        found = np.ones(len(rows), dtype=bool)
        if len(rows):
            some = table.take(rows)
            for block in self.blocks:
                found &= block.unobserved(block.reader(some)(0, len(rows)))
        return found

    def evidence(self, table: Table) -> Array:
        """log p(x | class) of rows, (classes, rows), in which text has an exponent of its own."""
        out = np.empty((len(self.classes), table.rows))
        readers = [block.reader(table) for block in self.blocks]

        def work(start: int, stop: int) -> None:
            out[:, start:stop] = sum(
                block.evidence(read(start, stop)) for block, read in zip(self.blocks, readers, strict=True)
            )

        evaluate(table, work, self._width(table))
        return out

    def log_joint(self, table: Table) -> Array:
        """log p(x, class), (rows, classes)."""
        out = np.empty((table.rows, len(self.classes)))

        def work(start: int, stop: int, joint: Array) -> None:
            out[start:stop] = joint.T

        self._over_joint(table, work)
        return out

    def scores(self, table: Table) -> Array:
        """Scores of the classes, (rows, classes): linear in x where all blocks are, else log p(class | x)."""
        if self.calibration is not None or not all(block.conditionals.is_linear for block in self.blocks):
            return self.log_posterior(table)
        out = np.empty((table.rows, len(self.classes)))
        readers = [block.reader(table) for block in self.blocks]

        def work(start: int, stop: int) -> None:
            scores = np.repeat(self.log_prior[:, None], stop - start, axis=1)
            missing = np.zeros(stop - start, dtype=bool)
            with np.errstate(over="ignore", invalid="ignore"):
                for block, read in zip(self.blocks, readers, strict=True):
                    rows = read(start, stop)
                    scores += block.conditionals.linear_scores(rows)
                    missing |= np.isnan(rows).any(axis=1)
            far = missing | ~np.all(np.isfinite(scores), axis=0)
            if far.any():  # overflow, or missing values
                scores[:, far] = sum(
                    block.evaluate(read(start, stop)[far], exact=False)
                    for block, read in zip(self.blocks, readers, strict=True)
                )
                scores[:, far] += self.log_prior[:, None]
            out[start:stop] = scores.T

        evaluate(table, work, self._width(table))
        return out

    def log_density(self, table: Table) -> Array:
        """log p(x), (rows,)."""
        out = np.empty(table.rows)

        def work(start: int, stop: int, joint: Array) -> None:
            out[start:stop] = log_sum_exp(joint)

        self._over_joint(table, work)
        return out

    def class_log_density(self, table: Table, code: int) -> Array:
        """log p(x | class) of one class, (rows,)."""
        out = np.empty(table.rows)
        uniform = self.with_log_prior(np.zeros(len(self.classes)))  # a class of prior 0 has a density too

        def work(start: int, stop: int, joint: Array) -> None:
            out[start:stop] = joint[code]

        uniform._over_blocks(table, work, exact=True)
        return out

    def posterior(self, table: Table) -> Array:
        """p(class | x), (rows, classes): softmax of the joint."""
        out = np.empty((table.rows, len(self.classes)))

        def work(start: int, stop: int, joint: Array) -> None:
            softmax_into(joint, out[start:stop])

        self.over_scores(table, work)
        return out

    def joint_and_posterior(self, table: Table) -> tuple[Array, Array]:
        """log p(x, class) and p(class | x) of the pure model, (rows, classes) each.

        Rows impossible under every class have the prior.
        """
        joint, posterior = (np.empty((table.rows, len(self.classes))) for _ in range(2))

        def work(start: int, stop: int, scores: Array) -> None:
            joint[start:stop] = scores.T
            impossible = np.isneginf(scores.max(axis=0))
            if impossible.any():
                scores[:, impossible] = self.log_prior[:, None]
            softmax_into(scores, posterior[start:stop])

        self._over_joint(table, work)
        return joint, posterior

    def score_rows(self, table: Table, codes: AnyArray, densities: bool = True) -> RowScores:
        """Scores of labeled rows; a code of -1 is a class that the model does not have.

        Rows impossible under every class have the prior. Without `densities`, log_joint is not set.
        """
        found = RowScores.empty(table.rows, len(self.classes))
        if densities and self.tempered:  # class probabilities do not follow from the densities
            densities = False
            found.log_joint[:] = np.nan
            if all(block.conditionals.has_density for block in self.blocks):
                found.log_joint[:] = self.log_joint(table)[np.arange(table.rows), codes]

        def work(start: int, stop: int, evidence: Array) -> None:
            mine = codes[start:stop]
            if densities:
                found.log_joint[start:stop] = evidence[mine, np.arange(stop - start)] + self.log_prior[mine]
            scores = self.calibrated(evidence, self.log_prior[:, None], table, start)
            if not all_finite(scores):
                impossible = np.isneginf(scores.max(axis=0))
                scores[:, impossible] = self.log_prior[:, None]
            found.set_block(start, stop, scores, mine)

        self._over_blocks(table, work, exact=densities)
        unknown = codes < 0
        if unknown.any():
            found.log_joint[unknown], found.probability[unknown], found.right[unknown] = -np.inf, 0.0, False
        return found

    def log_posterior(self, table: Table) -> Array:
        """log p(class | x), (rows, classes)."""
        out = np.empty((table.rows, len(self.classes)))

        def work(start: int, stop: int, joint: Array) -> None:
            log_softmax_into(joint, out[start:stop])

        self.over_scores(table, work)
        return out

    def explain(self, table: Table, sequential: bool = False) -> Explanation:
        """The terms of log p(x, class), one for each column, and the rest as an offset."""
        evidence = np.zeros((table.rows, len(self.classes), len(self.names)))
        unattributed = np.zeros((table.rows, len(self.classes)))
        readers = [block.reader(table) for block in self.blocks]

        def work(start: int, stop: int) -> None:
            for block, read in zip(self.blocks, readers, strict=True):
                rows, parts = read(start, stop), block.conditionals
                with block.in_table():
                    terms = parts.explain_sequential(rows) if sequential else parts.explain(rows)
                    rest = parts.unattributed(rows)
                evidence[start:stop, :, block.index] += terms
                if rest is not None:
                    unattributed[start:stop] += rest.T

        evaluate(table, work, 2 * len(self.classes) * len(self.names))
        linear = [
            LinearBlock(block.index, np.array(read(0, table.rows)), block.conditionals)  # the user may change X
            for block, read in zip(self.blocks, readers, strict=True)
            if block.conditionals.has_linear_contrasts and not sequential
        ]
        offset = self.log_prior + unattributed
        found = Explanation(evidence, offset, self.names, self.classes, unattributed, tuple(linear))
        if self.calibration is None:
            return found
        unobserved = self.unobserved(table, np.arange(table.rows))
        return found.scaled(self.calibration.exponent, np.where(unobserved[:, None], 0.0, self.calibration.intercepts))

    def sample(self, n: int, label: int | None, rng: np.random.Generator) -> tuple[list[AnyArray], AnyArray]:
        """n rows, column by column, and the codes of their classes, drawn from the joint density or from one class."""
        prior = np.exp(self.log_prior)
        codes = rng.choice(len(prior), size=n, p=prior / prior.sum()) if label is None else np.full(n, label)
        columns: list[AnyArray] = [np.ones(n) for _ in self.names]  # exposures, which have no density, are 1
        for j in self.unused:
            columns[j] = np.full(n, None, dtype=object)
        for k in np.unique(codes):
            mine = np.flatnonzero(codes == k)
            for block in self.blocks:
                if block.conditionals.reads_text and columns[block.index[0]].dtype != object:
                    columns[block.index[0]] = np.empty(n, dtype=object)
                drawn = block.sample(int(k), len(mine), rng)
                for j, values in zip(block.index, drawn.T, strict=True):
                    columns[j][mine] = values
        for block in self.blocks:
            for j, words in zip(block.index, block.conditionals.vocabularies or (), strict=False):
                categories = np.empty(len(words) + 1, dtype=object)  # the last, None, for columns without any value
                categories[:-1] = words
                columns[j] = categories[columns[j].astype(np.intp)]
        return columns, codes

    def quadratic(self) -> Quadratic | None:
        """log p(class | x), up to a common term, as quadratic forms in all columns; None if a block has none."""
        size, d = len(self.classes), len(self.names)
        parts = [block.conditionals.quadratic() for block in self.blocks]
        if any(part is None for part in parts):
            return None
        curved = any(part is not None and part.square is not None for part in parts)
        square = np.zeros((size, d, d) if curved else 0)
        linear, constant, centre = np.zeros((size, d)), np.zeros(size), np.zeros(d)
        for block, part in zip(self.blocks, parts, strict=True):
            assert part is not None
            linear[:, block.index], centre[block.index] = part.linear, part.centre
            constant += part.constant
            if part.square is not None:
                square[:, block.index[:, None], block.index] += part.square
        if self.calibration is not None:
            t = self.calibration.exponent
            square, linear, constant = t * square, t * linear, t * constant + self.calibration.intercepts
        return Quadratic(square if curved else None, linear, constant + self.log_prior, centre)

    @property
    def unused(self) -> list[int]:
        """Columns that no block reads."""
        read = [
            block.index if block.extra is None else np.concatenate([block.index, block.extra]) for block in self.blocks
        ]
        return np.setdiff1d(np.arange(len(self.names)), np.concatenate(read)).tolist()

    def notes(self, ignored: Collection[str] = ()) -> list[str]:
        """Notes for the summary, such as constant columns; `ignored` are the columns that were declared to be so."""
        return [*self._notes_on_columns(ignored), *self.block_notes(constant=True)]

    def block_notes(self, constant: bool = False) -> list[str]:
        """Notes on the densities of blocks; with those on constant columns if wanted."""
        each = ((block.conditionals, [self.names[j] for j in block.index]) for block in self.blocks)
        notes = ((parts, note) for parts, names in each for note in parts.notes(names))
        return [note for parts, note in notes if constant or not note.startswith(parts.ignored_note)]

    def _notes_on_columns(self, ignored: Collection[str]) -> list[str]:
        unused = [self.names[j] for j in self.unused]
        declared, found = ([name for name in unused if (name in ignored) is each] for each in (True, False))
        aside = [f"ignored, as declared: {listed(declared)}"] if declared else []
        return aside + ([f"set aside, not used (identifiers or free text): {listed(found)}"] if found else [])
