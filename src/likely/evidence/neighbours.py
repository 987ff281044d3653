"""The view of similar rows: kernel-weighted classes of the nearest reference rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from likely.data.row_hash import scrambled
from likely.evidence.coordinates import Coordinates
from likely.evidence.encoding import SHARED, Encoding
from likely.evidence.nearest import Pairs, nearest, search_matrix
from likely.evidence.reference_rows import ReferenceRows
from likely.evidence.rows import EncodedRows, TrainingRows
from likely.evidence.view import ROUNDING, FittedView, View
from likely.model.persistence import register
from likely.numerics.block_sizes import REDUCED
from likely.numerics.caches import cached_property
from likely.numerics.shapes import Shape
from likely.numerics.threads import run
from likely.numerics.ties import first_best
from likely.typing import AnyArray, Array, Codes

MOST_REFERENCES, FEWER_REFERENCES = 4096, 1024
MOST_NUMBERS = 2**21  # coordinates of all reference rows: rows of many columns have fewer reference rows
SHARPNESS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # β; each is twice the last
SMOOTHING = (0.1, 0.5, 2.0)  # s


class NeighboursView(View):
    """Nearest reference rows by standardised numbers (one term) and by normal scores (another one)."""

    name = "neighbours"

    def fit(self, rows: TrainingRows, encoding: Encoding, seed: int) -> FittedNeighbours | None:
        scales = (False, True) if len(encoding.numeric) else (False,)
        systems = tuple(Coordinates.of(rows, encoding, normal_scores) for normal_scores in scales)
        if systems[0].width == 0:
            return None
        salt = scrambled(np.array([seed % 2**64], dtype=np.uint64) + np.uint64(3))
        most = int(np.clip(MOST_NUMBERS // systems[0].width, FEWER_REFERENCES, MOST_REFERENCES))
        references = ReferenceRows.of(rows, scrambled(rows.keys + salt), systems, most)
        view = FittedNeighbours(systems, references, tuple(Kernel() for _ in systems), salt)
        terms = range(len(systems))
        view = replace(view, kernels=tuple(run(terms, view._with_bandwidth, most=2)))
        return replace(view, kernels=tuple(run(terms, view._tuned, most=2)))


@register
@dataclass(frozen=True, slots=True)
class Kernel:
    """The weight exp(−β·(d − d_1)/h) of a row at squared distance d, where the nearest one is at d_1."""

    bandwidth: Annotated[float, Shape(">0")] = 1.0  # h
    sharpness: float = 1.0  # β
    smoothing: float = 0.5  # s: the weight of the class proportions

    def _valid(self) -> bool:
        return self.sharpness in SHARPNESS and self.smoothing in SMOOTHING


@dataclass(frozen=True, slots=True, eq=False)
class Removal:
    """What leave-one-out removes: of each row a weight, and its place among the reference rows (−1: it is not one)."""

    codes: Codes
    held_out: Array
    places: AnyArray

    def take(self, part: slice) -> Removal:
        return Removal(self.codes[part], self.held_out[part], self.places[part])


@register
@dataclass(frozen=True, eq=False)
class FittedNeighbours(FittedView):
    """Reference rows, and a kernel for each term.

    With S_k = Σ weight_i · exp(−β(d_i − d_1)/h) over the nearest reference rows of class k,
    e_k = log(S_k + s·π_k) − log π_k ≈ log p(x | k) − log p(x), π_k = (N_k + ½)/(N + ½K). In a class with more or fewer
    reference rows than its proportion the sum is multiplied by (N_k/N) / (R_k/R), R_k the weight of its reference rows.
    """

    systems: Annotated[tuple[Annotated[Coordinates, Shape(SHARED)], ...], Shape("widths")]
    references: Annotated[ReferenceRows, Shape("classes widths")]
    kernels: Annotated[tuple[Kernel, ...], Shape("widths")]
    salt: Annotated[npt.NDArray[np.uint64], Shape("1")]  # ranks of rows are their keys, scrambled with it

    name = NeighboursView.name
    attributes_columns: ClassVar[bool] = False

    @property
    def term_names(self) -> tuple[str, ...]:
        return ("standardised columns", "normal scores") if len(self.systems) == 2 else ("categories",)

    @property
    def term_columns(self) -> tuple[int | None, ...]:
        return (None,) * len(self.systems)

    def terms(self, rows: EncodedRows) -> Array:
        return self._evaluated(rows, None)

    def left_out(self, rows: TrainingRows) -> Array:
        removal = Removal(rows.codes, rows.held_out, self.references.places(self._ranks(rows)))
        return self._evaluated(rows.rows, removal)

    def without(self, held_out: TrainingRows, remaining: TrainingRows) -> FittedNeighbours:
        """Without the reference rows among `held_out`; β and s, which depend on classes, are chosen again."""
        view = self.removed(held_out)
        return replace(view, kernels=tuple(run(range(len(self.systems)), view._tuned, most=2)))

    def removed(self, rows: TrainingRows) -> Self:
        return replace(self, references=self.references.removed(rows, self._ranks(rows)))

    def counted(self, rows: TrainingRows) -> Self:
        references = self.references
        sample = references.sample(rows, self._ranks(rows), self.systems, references.quotas, references.limits)
        return replace(self, references=sample)

    def __add__(self, other: Self) -> Self:
        return replace(self, references=self.references.merged(other.references))

    def renumbered(self, first: int) -> Self:
        references = self.references
        return replace(self, references=replace(references, positions=references.positions + first))

    def _sizes(self) -> dict[str, Any]:
        return {"widths": tuple(each.n_numeric for each in self.systems)}

    def _valid(self) -> bool:
        cells = self.references.cells
        sizes = [[len(lookup) for lookup in each.lookups] for each in self.systems]
        return len(sizes) > 0 and all(len(each) == cells.shape[1] and bool(np.all(cells < each)) for each in sizes)

    def contributions(self, rows: EncodedRows, weights: Array) -> Array:
        return np.tensordot(weights, self.terms(rows), axes=1).T[:, :, None]

    def similar(self, rows: EncodedRows, n: int) -> tuple[AnyArray, Array]:
        """The n nearest reference rows of each row, by standardised columns, and their distances, both (rows, n)."""
        n = min(n, len(self.references))
        places, distances = np.empty((len(rows), n), dtype=np.intp), np.empty((len(rows), n))
        for part in self._parts(len(rows)) if n else []:
            points = self.systems[0].points(rows, part).astype(np.float64)
            pairs = nearest(points, self._matrices[0], n)
            chosen = pairs.begins[:-1, None] + np.arange(n)  # the nearest first
            places[part], distances[part] = pairs.references[chosen], np.sqrt(pairs.distances[chosen])
        return places, distances

    def _ranks(self, rows: TrainingRows) -> AnyArray:
        return scrambled(rows.keys + self.salt)

    @cached_property
    def _matrices(self) -> tuple[Array, ...]:
        return tuple(search_matrix(points) for points in self._points)

    @cached_property
    def _points(self) -> tuple[AnyArray, ...]:
        """The reference rows in each system of coordinates."""
        parts = zip(self.systems, self.references.numbers, strict=True)
        return tuple(system.joined(numbers, self.references.cells) for system, numbers in parts)

    @cached_property
    def _class_factors(self) -> Array:
        """N_k/R_k."""
        return _ratio(self.references.class_weights, self.references.sampled_weights)

    def _parts(self, n: int) -> list[slice]:
        size = max(16, REDUCED // max(1, len(self.references)))
        return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]

    def _evaluated(self, rows: EncodedRows, removal: Removal | None) -> Array:
        """Terms of rows, (terms, classes, n)."""
        found = np.zeros((len(self.systems), len(self.references.quotas), len(rows)))
        if not len(self.references):
            return found

        def work(task: tuple[int, slice]) -> None:
            term, part = task
            points = self.systems[term].points(rows, part).astype(np.float64)
            found[term, :, part] = self._block(term, points, removal and removal.take(part))

        run([(term, part) for part in self._parts(len(rows)) for term in range(len(found))], work, most=2)
        found[:, :, self.systems[0].empty(rows)] = 0.0
        return found

    def _block(self, term: int, points: Array, removal: Removal | None) -> Array:
        """A term of some points, (classes, n)."""
        kernel, n, classes = self.kernels[term], len(points), len(self.references.quotas)
        pairs, masses = self._pairs(term, points, removal)
        masses *= np.exp(pairs.excess * (-kernel.sharpness / kernel.bandwidth))
        cell = self.references.codes[pairs.references].astype(np.intp) * n + pairs.rows  # codes are short integers
        sums = np.bincount(cell, masses, minlength=classes * n).reshape(classes, n)
        proportions = self._proportions(removal)
        return np.log(sums + kernel.smoothing * proportions) - np.log(proportions)

    def _proportions(self, removal: Removal | None) -> Array:
        """π_k, (classes, 1), or without each of the rows of a removal, (classes, n)."""
        totals = self.references.class_weights[:, None] + 0.5
        if removal is not None:
            totals = np.repeat(totals, len(removal.codes), axis=1)
            totals[removal.codes, np.arange(len(removal.codes))] -= removal.held_out
        return totals / totals.sum(axis=0)

    def _pairs(self, term: int, points: Array, removal: Removal | None) -> tuple[Pairs, Array]:
        """Points with their nearest reference rows, and the weights of these, multiplied by their class factors."""
        references, totals = self.references, self.references.class_weights
        if removal is None:
            pairs = nearest(points, self._matrices[term])
            factors = self._class_factors * _ratio(references.weights.sum(), totals.sum())
            return pairs, (references.weights * factors[references.codes])[pairs.references]
        place, sampled = removal.places, references.sampled_weights
        all_removed = (place >= 0) & (
            references.weights[place] - removal.held_out <= ROUNDING * references.weights[place]
        )
        pairs = nearest(points, self._matrices[term], removed=np.where(all_removed, place, -1))
        row, reference = pairs.rows, pairs.references
        from_sample = np.where(place >= 0, removal.held_out, 0.0)
        code = references.codes[reference]
        of_class = _ratio(totals[removal.codes] - removal.held_out, sampled[removal.codes] - from_sample)
        overall = _ratio(sampled.sum() - from_sample, totals.sum() - removal.held_out)
        factors = np.where(code == removal.codes[row], of_class[row], self._class_factors[code]) * overall[row]
        weights = references.weights[reference] - np.where(reference == place[row], removal.held_out[row], 0.0)
        return pairs, weights * factors

    def _reference_pairs(self, term: int) -> Iterator[tuple[slice, Pairs, Array]]:
        """Reference rows with their nearest other reference rows, in blocks, with their weights."""
        references = self.references
        held_out, places = np.minimum(references.weights, 1.0), np.arange(len(references))
        removal = Removal(references.codes, held_out, places)
        for part in self._parts(len(references)):
            points = self._points[term][part].astype(np.float64)
            yield part, *self._pairs(term, points, removal.take(part))

    def _with_bandwidth(self, term: int) -> Kernel:
        """The median squared distance of the 8th nearest row; where it is 0, the median of those that are not."""
        found = np.concatenate([np.zeros(0), *(pairs.distance_of(8) for _, pairs, _ in self._reference_pairs(term))])
        for distances in (found, found[found > 0.0]):
            if len(distances) and np.median(distances) > 0.0:
                return Kernel(float(np.median(distances)))
        return Kernel()

    def _tuned(self, term: int) -> Kernel:
        """The kernel with the least leave-one-out log-loss over the reference rows."""
        kernel, references = self.kernels[term], self.references
        losses = np.zeros((len(SHARPNESS), len(SMOOTHING)))
        weights = references.weights * self._class_factors[references.codes]
        held_out = np.minimum(references.weights, 1.0)
        for part, pairs, masses in self._reference_pairs(term):
            codes = references.codes[part]
            n, row = len(codes), pairs.rows
            proportions = self._proportions(Removal(codes, held_out[part], np.arange(n)))[codes, np.arange(n)]
            same = references.codes[pairs.references] == codes[row]
            power = np.exp(pairs.excess * (-SHARPNESS[0] / kernel.bandwidth))
            for i in range(len(SHARPNESS)):
                if i:
                    power *= power  # of twice the sharpness
                total = np.bincount(row, masses * power, minlength=n)
                of_class = np.bincount(row[same], (masses * power)[same], minlength=n)
                for j, smoothing in enumerate(SMOOTHING):
                    probability = (of_class + smoothing * proportions) / (total + smoothing)
                    losses[i, j] -= float(weights[part] @ np.log(probability))
        best_sharpness, best_smoothing = divmod(first_best(-losses.ravel()), len(SMOOTHING))
        return replace(kernel, sharpness=SHARPNESS[best_sharpness], smoothing=SMOOTHING[best_smoothing])


def _ratio(numerator: Array | float, denominator: Array | float) -> Array:
    """numerator / denominator, and 0 where the denominator is 0."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, np.float64), np.asarray(denominator, np.float64))
    safe = denominator > 0.0
    return np.where(safe, np.maximum(numerator, 0.0) / np.where(safe, denominator, 1.0), 0.0)
