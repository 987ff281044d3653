"""Summary of a softmax regression: coefficients with standard errors, deviance and AIC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.special

from likely.model.persistence import register
from likely.model.rendering import RenderedResult, TextTable, limited, short_names, to_frame

SHOWN = 40  # coefficients that a rendering lists


@register
@dataclass(frozen=True, slots=True)
class Fitted:
    """Goodness of fit on the training rows; `parameters` is None if the effective number is unknown."""

    rows: int
    weight: float
    parameters: float | None
    log_likelihood: float
    null_log_likelihood: float


@register
@dataclass(frozen=True, slots=True)
class Coefficient:
    """Coefficient of a feature: log-odds of a class against the reference class, per unit of the feature.

    Attributes
    ----------
    label : object
        The class.
    column : str
        Name of the feature, or '(intercept)'.
    estimate : float
        The coefficient.
    error : float or None
        Its standard error; with a penalty, its posterior standard deviation. None if inference is off.
    z : float or None
        Estimate divided by error.
    p : float or None
        Two-sided p-value of the hypothesis that the coefficient is 0.
    low, high : float or None
        Confidence interval.

    See Also
    --------
    SoftmaxSummary : All coefficients of a model.
    """

    label: Any
    column: str
    estimate: float
    error: float | None = None
    z: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None


def coefficient(label: Any, column: str, estimate: float, error: float | None, quantile: float) -> Coefficient:
    """A coefficient with its z-value, p-value and interval, estimate ± quantile · error."""
    if error is None:
        return Coefficient(label, column, estimate)
    z = estimate / error if error > 0.0 else 0.0
    p = 2.0 * float(scipy.special.ndtr(-abs(z)))
    return Coefficient(label, column, estimate, error, z, p, estimate - quantile * error, estimate + quantile * error)


@register
@dataclass(frozen=True, slots=True)
class SoftmaxSummary(RenderedResult):
    """Summary of a fitted softmax regression.

    `str()` renders it as text, and notebooks show it as tables.

    Attributes
    ----------
    estimator : str
        Name of the estimator class.
    classes : tuple
        Class labels.
    reference : object
        The reference class.
    penalty : float
        The L2 penalty.
    rows : int
        Number of training rows.
    weight : float
        Total weight of the training rows.
    parameters : float or None
        Number of parameters; with a penalty the effective number, None if it was not computed.
    log_likelihood : float
        Log-likelihood of the training rows.
    null_log_likelihood : float
        Log-likelihood of the model with intercepts only.
    level : float
        Level of the confidence intervals.
    iterations : int
        Number of iterations.
    converged : bool
        Whether the optimization converged.
    coefficients : tuple of Coefficient
        Coefficients of all classes but the reference class.

    See Also
    --------
    SoftmaxRegression.summary : Returns this object.
    """

    estimator: str
    classes: tuple[Any, ...]
    reference: Any
    penalty: float
    rows: int
    weight: float
    parameters: float | None
    log_likelihood: float
    null_log_likelihood: float
    level: float
    iterations: int
    converged: bool
    coefficients: tuple[Coefficient, ...]

    @property
    def deviance(self) -> float:
        """Residual deviance, −2 · log-likelihood."""
        return -2.0 * self.log_likelihood

    @property
    def null_deviance(self) -> float:
        """Null deviance: that of the model with intercepts only, which predicts the class proportions."""
        return -2.0 * self.null_log_likelihood

    @property
    def aic(self) -> float | None:
        """Akaike information criterion, deviance + 2 · parameters; None if the number of parameters is unknown."""
        return None if self.parameters is None else self.deviance + 2.0 * self.parameters

    def to_frame(self) -> Any:
        """The coefficients as a frame.

        Returns
        -------
        frame
            One row for each coefficient: `class`, `column`, `estimate`, `standard_error`, `z`, `p`, `low` and `high`;
            a frame of pandas, or of pyarrow if pandas is not installed.
        """
        fields = ("label", "column", "estimate", "error", "z", "p", "low", "high")
        names = {"label": "class", "error": "standard_error"}
        columns = {names.get(field, field): [getattr(each, field) for each in self.coefficients] for field in fields}
        return to_frame(columns, None)

    def _parts(self) -> list[str | TextTable]:
        deviance = f"residual deviance {self.deviance:.6g}, null deviance {self.null_deviance:.6g}"
        fit = f"{self.rows} rows, {self.iterations} iterations{'' if self.converged else ', not converged'}"
        return [
            f"{self.estimator}, penalty={self.penalty:g}: log-odds against {self.reference!r}",
            "\n".join([fit, deviance + ("" if self.aic is None else f", AIC {self.aic:.6g}")]),
            self._table(),
            self._note(),
        ]

    def _table(self) -> TextTable:
        """Coefficients, with standard errors if there are any."""
        shown, more = limited(self.coefficients, SHOWN)
        labels, columns = short_names(c.label for c in shown), short_names(c.column for c in shown)
        rows = [
            [label, column, f"{c.estimate:.6g}"]
            + (
                []
                if c.error is None
                else [f"{c.error:.6g}", f"{c.z:.3f}", f"{c.p:.2g}", f"{c.low:.5g} to {c.high:.5g}"]
            )
            for c, label, column in zip(shown, labels, columns, strict=True)
        ]
        header = ("class", "column", "estimate", "std error", "z", "p", f"{100 * self.level:g}% interval")
        return TextTable(header[: len(rows[0])] if rows else header, rows, left=2, more=more)

    def _note(self) -> str:
        if not self.coefficients or self.coefficients[0].error is None:
            return "note: set inference=True for standard errors"
        kind = "posterior standard deviations" if self.penalty else "those of maximum likelihood"
        return f"note: standard errors are {kind}"
