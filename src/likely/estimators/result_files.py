"""`predict_to`: predictions of rows of any number, written to a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from likely.data.frames import as_narwhals, column_names, is_frame, whole_frame
from likely.data.parts import closed_after
from likely.data.sources import ChunkOf, is_source, numbered_once
from likely.engines.result_files import arrow_table, kept_columns, label_column, result_file
from likely.errors import InputError
from likely.model.result_names import check_clash, result_names
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
        keep: str | Sequence[str] = "all",
        log_density: bool = False,
        typicality: bool = False,
        prefix: str = "",
    ) -> int:
        """Predict rows of any number, and write the results to a CSV or Parquet file.

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
            Number of rows. The file has the columns of `keep`, `predicted` and `probability_<label>` for each class.

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
        check_is_fitted(self)
        names = result_names(self.classes_.tolist(), prefix)
        further = {"log_density": log_density, "typicality": typicality}
        wanted = [name for name, asked in further.items() if asked]
        for name in wanted:
            if not hasattr(self, name):
                raise InputError(f"{type(self).__name__} has no {name}. Use {name}=False.")
        chunks = numbered_once(X) if is_source(X) else iter([(whole_frame(X), 0)])
        rows = 0
        with result_file(path) as file, closed_after(chunks):
            for chunk, start in chunks:
                table = arrow_table(chunk)
                kept = kept_columns(table, keep)
                check_clash([*names, *(prefix + name for name in wanted)], kept)
                features = self._features_of(chunk) if not start else ChunkOf(self._features_of(chunk), start)
                probability = self.predict_proba(features)
                result = table.select(kept)
                result = result.append_column(names[0], label_column(self.classes_, probability.argmax(axis=1)))
                for name, column in zip(names[1:], probability.T, strict=True):
                    result = result.append_column(name, [column])
                for name in wanted:
                    result = result.append_column(prefix + name, [getattr(self, name)(features)])
                file.write(result)
                rows += len(probability)
        return rows

    def _features_of(self, chunk: Any) -> Any:
        """A frame with the columns of the training rows alone; anything else as it is."""
        known = getattr(self, "feature_names_in_", None)
        if known is None or not is_frame(chunk):
            return chunk
        used = [name for name in column_names(chunk) if name in known]
        return as_narwhals(chunk).select(used).to_native() if used else chunk
