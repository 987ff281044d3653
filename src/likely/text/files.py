"""Model files of text classifiers: vocabulary, sparse statistics and choices as plain values."""

from __future__ import annotations

from typing import Any

from likely.choice.term_options import TermChoice
from likely.families.text.files import restored_sums, sums_content
from likely.families.text.term_models import TermModel
from likely.model.calibration import Calibration
from likely.model.choices import UnlabeledWeight
from likely.text.class_bigrams import ClassBigrams
from likely.text.fitting import TextFit


def fit_content(fit: TextFit) -> dict[str, Any]:
    """Vocabulary, statistics and choices as plain values."""
    return {
        **sums_content(fit.vocabulary, fit.sums),
        "choices": fit.choices,
        "prior": fit.prior,
        "bigrams": fit.bigrams,
        "unlabeled": fit.unlabeled,
        "column": fit.column,
        "library": fit.library,
    }


def restored_fit(content: dict[str, Any]) -> TextFit:
    """The fit in a model file, validated."""
    vocabulary, sums = restored_sums(content)
    choices = tuple(content["choices"])
    if not (choices and all(map(_sound, choices))):
        raise TypeError("no documents have such choices")
    bigrams = content["bigrams"]
    if not (bigrams is None or (isinstance(bigrams, ClassBigrams) and bigrams.sound(sums.classes, vocabulary.size))):
        raise TypeError("no documents have such pairs of terms")
    unlabeled = content["unlabeled"]
    if not (unlabeled is None or isinstance(unlabeled, UnlabeledWeight)):
        raise TypeError("the weight of unlabeled documents is invalid")
    frame = content.get("column"), content.get("library")
    return TextFit(vocabulary, sums, choices, content["prior"], bigrams, unlabeled, *frame)


def _sound(choice: Any) -> bool:
    calibration = choice.calibration if isinstance(choice, TermChoice) else False
    valid = calibration is None or (isinstance(calibration, Calibration) and calibration.sound())
    return valid and isinstance(choice.model, TermModel) and choice.mean_length > 0.0
