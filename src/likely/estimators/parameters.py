"""Estimated parameters as a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likely.data.frames import FrameSchema
from likely.model.rendering import to_frame


class ParameterTable:
    """Mixin of estimators whose fitted parameters are a table."""

    if TYPE_CHECKING:  # of Learner
        _frame: FrameSchema

        def _parameter_table(self) -> dict[str, list[Any]]: ...

    def parameters(self) -> Any:
        """Return the estimated parameters and their standard errors as a tidy table.

        Returns
        -------
        frame
            One row for each class and parameter, with `class`, `block`, `column`, `parameter`, `value` and
            `standard_error`. The block is the family, the target of a regression, or 'class prior'. The frame is of the
            library of the training rows; for arrays of pandas, or of pyarrow if pandas is not installed.

        See Also
        --------
        summary : The model in a few lines.

        Notes
        -----
        Values under "bayes" are posterior means. The error is from the inverse Fisher information under "mle", and the
        posterior standard deviation under "map" and "bayes". It is NaN where there is no closed form: for models fitted
        by EM, shrunken covariances, given values, coefficients of regressions under "map" and "bayes", and there also
        for the Beta, VonMises and Gamma (with an estimated shape) families. Pooled parameters are repeated for each
        class, and constant columns, which are ignored, have none.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant
        >>> X, y = load_iris(return_X_y=True)
        >>> frame = LinearDiscriminant().fit(X, y).parameters()
        >>> frame[frame["parameter"] == "mean"].head(2).round(3)[["class", "column", "value", "standard_error"]]
           class column  value  standard_error
        3      0     x0  5.006           0.072
        4      1     x0  5.936           0.072
        """
        return to_frame(self._parameter_table(), self._frame.backend)
