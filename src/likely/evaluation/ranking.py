"""Results of model selection: the scores of all candidates, and why one of them was chosen."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from likely.evaluation.scoring import is_worse
from likely.model.rendering import RenderedResult, TextTable, limited, number, short_names, to_frame, with_error

HELD_OUT = ("log_loss", "error", "log_likelihood")
LARGER_IS_BETTER = ("log_likelihood", "log_evidence")
CRITERIA = {
    "log_loss": "log-loss",
    "error": "error rate",
    "log_likelihood": "log-likelihood",
    "log_evidence": "log-evidence",
    "bic": "BIC",
    "aic": "AIC",
}
DIGITS = {"log_evidence": 1, "bic": 1, "aic": 1}  # decimals of sums over all rows
SHOWN = 20  # candidates that are printed
CANDIDATE_WIDTH = 56  # characters of their names
CLOSE = 5  # candidates within one standard error that are named


@dataclass(frozen=True, slots=True)
class CandidateScore:
    """Scores of a candidate model. A score is None if it is not defined for the candidate.

    Attributes
    ----------
    name : str
        Name of the candidate.
    log_loss, error, log_likelihood : float or None
        Log-loss, error rate and mean log p(x, y) of held-out rows.
    log_evidence : float or None
        Log marginal likelihood of the training rows, under estimation='bayes'.
    bic : float or None
        Bayesian information criterion, p·log n − 2·log L, for point estimates.
    aic : float or None
        Akaike information criterion, 2·p − 2·log L, for point estimates.
    problem : str or None
        Why the candidate could not be fitted.
    standard_error : float or None
        Standard error of the criterion, where it is a score of held-out rows.
    difference : float or None
        Criterion minus that of the best candidate.
    difference_error : float or None
        Standard error of the difference, which is paired: over the same rows or folds.

    See Also
    --------
    Selection : The ranking of all candidates.
    """

    name: str
    log_loss: float | None = None
    error: float | None = None
    log_likelihood: float | None = None
    log_evidence: float | None = None
    bic: float | None = None
    aic: float | None = None
    problem: str | None = None
    standard_error: float | None = None
    difference: float | None = None
    difference_error: float | None = None

    def _rank(self, by: str) -> tuple[bool, float]:
        """Sort key for a criterion: better candidates first, those without a score last."""
        value = getattr(self, by)
        if self.problem is not None or value is None or np.isnan(value):
            return True, 0.0
        return False, -value if by in LARGER_IS_BETTER else value


@dataclass(frozen=True, slots=True, eq=False)
class Selection(RenderedResult):
    """Candidate models ranked by a criterion.

    `str()` renders the ranking as text, and notebooks show it as a table.

    Attributes
    ----------
    ranking : tuple of CandidateScore
        All candidates, the best first. Candidates that could not be fitted come last.
    best : estimator
        The best candidate, fitted to all rows.
    by : str
        The criterion.
    held_out : str
        How rows were held out: 'leave-one-out' or the number of folds.
    baseline : float
        Log-loss of the class proportions of the training rows, on the same held-out rows.
    baseline_error : float
        Its standard error.
    library : str or None
        Library of the frame that `to_frame` returns: that of X. None is pandas, or pyarrow if pandas is not installed.
    notes : tuple of str
        Remarks, such as the number of rows by which candidates were ranked, where X is a source of more rows.

    See Also
    --------
    select : Returns this object.
    """

    ranking: tuple[CandidateScore, ...]
    best: Any
    by: str
    held_out: str
    baseline: float
    baseline_error: float
    library: str | None = None
    notes: tuple[str, ...] = ()

    def to_frame(self) -> Any:
        """The ranking as a frame, one row for each candidate.

        Returns
        -------
        frame
            The fields of `CandidateScore`, and `chosen` and `worse_than_baseline` (log-loss above that of the class
            proportions); a frame of the library of X, or of pandas if X is not a frame.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from likely import LinearDiscriminant, NaiveBayes, select
        >>> models = {"linear": LinearDiscriminant(), "naive Bayes": NaiveBayes()}
        >>> select(*load_iris(return_X_y=True), models).to_frame()[["name", "chosen"]].values.tolist()
        [['linear', True], ['naive Bayes', False]]
        """
        columns = {field.name: [getattr(each, field.name) for each in self.ranking] for field in fields(CandidateScore)}
        chosen = [i == 0 for i in range(len(self.ranking))]
        worse = [self._is_worse(each) for each in self.ranking]
        return to_frame(columns | {"chosen": chosen, "worse_than_baseline": worse}, self.library)

    def _is_worse(self, scored: CandidateScore) -> bool:
        """Whether the log-loss of a candidate is above that of the class proportions."""
        return scored.log_loss is not None and is_worse(scored.log_loss, self.baseline)

    def _criterion(self) -> str:
        """The criterion as text, with how rows were held out."""
        name = CRITERIA[self.by]
        if self.by not in HELD_OUT:
            return name
        return f"leave-one-out {name}" if self.held_out == "leave-one-out" else f"{name} over {self.held_out}"

    def _parts(self) -> list[str | TextTable]:
        short = short_names((each.name for each in self.ranking), width=CANDIDATE_WIDTH)
        names = dict(zip(self.ranking, short, strict=True))
        problems = [f"{names[each]!r} could not be fitted: {each.problem}" for each in self.ranking if each.problem]
        without = [repr(names[each]) for each in self.ranking if each._rank(self.by)[0] and not each.problem]
        if without:
            problems.append(f"Not compared, without {CRITERIA[self.by]}: {', '.join(without)}")
        return [
            f"Chosen by {self._criterion()} among {len(self.ranking)} candidates",
            self._table(names),
            "\n".join([self._reason(names), *self._worse(names), *(f"note: {note}" for note in self.notes)]),
            "\n".join(problems),
        ]

    def _table(self, names: dict[CandidateScore, str]) -> TextTable:
        fitted = [each for each in self.ranking if each.problem is None]
        known = {
            name: text for name, text in CRITERIA.items() if any(getattr(each, name) is not None for each in fitted)
        }
        order = [self.by, *(name for name in known if name != self.by)]
        paired = any(each.difference_error is not None for each in fitted)
        header = ["candidate", CRITERIA[self.by], *(["difference"] if paired else []), *(known[n] for n in order[1:])]
        shown, more = limited(fitted, SHOWN)
        rows = []
        for each in shown:
            first = with_error(getattr(each, self.by), each.standard_error, DIGITS.get(self.by, 4))
            gap = ["" if each is fitted[0] else with_error(each.difference, each.difference_error)] if paired else []
            rest = (number(getattr(each, name), DIGITS.get(name, 4)) for name in order[1:])
            rows.append([names[each], first, *gap, *rest])
        blank = ["class proportions", *[""] * (len(header) - 1)]
        blank[header.index(CRITERIA["log_loss"])] = (
            with_error(self.baseline, self.baseline_error) if self.by == "log_loss" else number(self.baseline)
        )
        return TextTable(header, [*rows, blank], more=more)

    def _reason(self, names: dict[CandidateScore, str]) -> str:
        """Which candidate was chosen, and which ones are within one standard error of it."""
        first = self.ranking[0]
        extreme = "largest" if self.by in LARGER_IS_BETTER else "least"
        score = with_error(getattr(first, self.by), first.standard_error, DIGITS.get(self.by, 4))
        text = f"{names[first]!r} has the {extreme} {self._criterion()}, {score}."
        close = [
            each
            for each in self.ranking[1:]
            if each.difference is not None
            and each.difference_error is not None
            and not is_worse(abs(each.difference), each.difference_error)
        ]
        if not close:
            return text if first.standard_error is None else f"{text} No other candidate is within one standard error."
        named = ", ".join(repr(names[each]) for each in close[:CLOSE])
        more = f" and {len(close) - CLOSE} more" if len(close) > CLOSE else ""
        return f"{text} Within one standard error of the difference: {named}{more}."

    def _worse(self, names: dict[CandidateScore, str]) -> list[str]:
        """Candidates that are worse than the class proportions."""
        worse = [repr(names[each]) for each in self.ranking if self._is_worse(each)]
        if not worse:
            return []
        who = "All candidates are" if len(worse) == len([each for each in self.ranking if not each.problem]) else None
        text = who or f"{', '.join(worse)} {'is' if len(worse) == 1 else 'are'}"
        return [f"{text} worse than predicting the class proportions (log-loss {self.baseline:.4f})."]
