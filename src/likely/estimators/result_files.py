"""`predict_to`: predictions of rows of any number, written to a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from likely.data.frames import as_narwhals, column_names, is_frame, whole_frame
from likely.data.parts import ChunkOf, LazySource, PartSource, closed_after, n_rows, source_of
from likely.data.sources import numbered_once
from likely.engines.result_files import arrow_column, columns_of, kept_columns, label_column, result_file
from likely.errors import InputError, listed
from likely.model.result_names import check_clash, result_names
from likely.numerics.progress import row_progress
from likely.typing import AnyArray, Array, TableLike

if TYPE_CHECKING:
    from likely.model.persistence import FilePath


class PredictToFile:
    """Mixin of classifiers: predictions in files."""

    if TYPE_CHECKING:

        @property
        def classes_(self) -> AnyArray: ...
        def predict_proba(self, X: Any) -> Array: ...

    def predict_to(
        self,
        X: TableLike,
        path: FilePath,
        *,
        keep: str | Iterable[object] = "all",
        log_density: bool = False,
        typicality: bool = False,
        prefix: str = "",
    ) -> int:
        """Predict any number of rows, and write the results to a CSV or Parquet file.

        Rows are read, predicted and written chunk by chunk, in their order. The file appears under its name when it is
        complete; after an error, an interrupt or a crash there is no such file, or the old one.

        Parameters
        ----------
        X : frame, array, chunk source or scan of shape (n_samples, n_features)
            Rows with the columns of the training rows. Other columns, such as identifiers, are not used.
        path : str, bytes or path-like
            Name of the file, which ends with .csv or .parquet. An existing file is replaced.
        keep : 'all' or list of str, default='all'
            Columns of X that are written before the results.
        log_density : bool, default=False
            Whether to write the log-density log p(x), as `log_density`.
        typicality : bool, default=False
            Whether to write the typicality (a p-value), as `typicality`.
        prefix : str, default=''
            Text before the names of all results.

        Returns
        -------
        int
            Number of rows written. The file has the columns of `keep`, `predicted`, `probability_<label>` for each
            class, and `log_density` and `typicality` if requested.

        See Also
        --------
        predict_proba : Class probabilities as an array.
        likely.scan : Rows in files and databases.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pandas as pd
        >>> from likely import NaiveBayes
        >>> X = pd.DataFrame({"mass": [3.1, 3.3, 5.2, 5.0], "species": ["Adelie", "Adelie", "Gentoo", "Gentoo"]})
        >>> model = NaiveBayes().fit(X, "species")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows = model.predict_to(X, Path(folder) / "predicted.csv", keep=["mass"])
        ...     columns = pd.read_csv(Path(folder) / "predicted.csv").columns.tolist()
        >>> rows, columns
        (4, ['mass', 'predicted', 'probability_Adelie', 'probability_Gentoo'])
        """
        import pyarrow as pa

        check_is_fitted(self)
        names = result_names(self.classes_.tolist(), prefix)
        further = {"log_density": log_density, "typicality": typicality}
        wanted = [name for name, asked in further.items() if asked]
        for name in wanted:
            if not hasattr(self, name):
                raise InputError(f"{type(self).__name__} has no {name}. Use {name}=False.")
        source = source_of(X)
        chunks = numbered_once(source) if isinstance(source, PartSource) else iter([(whole_frame(X), 0)])
        total = None
        if isinstance(source, PartSource) and not isinstance(source, LazySource):  # Spark would count its rows
            total = source.rows
        kept: list[Any] | None = None
        rows = 0
        with result_file(path, source) as file, closed_after(chunks), row_progress(total) as progress:
            for chunk, start in chunks:
                columns = columns_of(chunk)
                if kept is None:
                    kept = kept_columns(list(columns), keep)
                    check_clash([*names, *(prefix + name for name in wanted)], map(str, kept))
                elif isinstance(keep, str) and not set(columns) <= set(kept):
                    more = listed([name for name in columns if name not in kept])
                    raise InputError(
                        f"The chunk from row {start} on has the column {more}, and the first chunk has not. Name the "
                        "columns to write in keep=."
                    )
                file.write(pa.table(_chosen(columns, kept, start) | self._results(chunk, start, names, wanted, prefix)))
                rows += n_rows(chunk)
                progress.read(n_rows(chunk))
        return rows

    def _results(self, chunk: Any, start: int, names: list[str], wanted: list[str], prefix: str) -> dict[str, Any]:
        """The columns with the predictions of a chunk, whose first row has the number `start`."""
        features = self._features_of(chunk) if not start else ChunkOf(self._features_of(chunk), start)
        probability = self.predict_proba(features)
        results = {names[0]: label_column(self.classes_, probability.argmax(axis=1))}
        results |= dict(zip(names[1:], probability.T, strict=True))
        return results | {prefix + name: getattr(self, name)(features) for name in wanted}

    def _features_of(self, chunk: Any) -> Any:
        """A frame with the columns of the training rows alone; anything else as it is."""
        known = getattr(self, "feature_names_in_", None)
        if known is None or not is_frame(chunk):
            return chunk
        used = [name for name in column_names(chunk) if name in known]
        return as_narwhals(chunk).select(used).to_native() if used else chunk


def _chosen(columns: Mapping[Any, Any], kept: list[Any], start: int) -> dict[str, Any]:
    """Some columns of a chunk as Arrow arrays."""
    for name in kept:
        if name not in columns:
            raise InputError(f"The chunk from row {start} on has no column {name!r}, and the first chunk has one.")
    return {str(name): arrow_column(name, columns[name]) for name in kept}
