"""The views that `EvidenceClassifier` knows by name, and the option `views`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from likely.errors import InputError, listed
from likely.estimators.generative import is_generative_classifier
from likely.evidence.columns import ColumnsView
from likely.evidence.declared import checked_families
from likely.evidence.histogram import HistogramView
from likely.evidence.joint_gaussian import JointGaussianView
from likely.evidence.model_view import ModelView
from likely.evidence.neighbours import NeighboursView
from likely.evidence.pairs import PairsView
from likely.evidence.text import TextView
from likely.evidence.trees import TreesView
from likely.evidence.view import View
from likely.families.base import Family


def views_of(views: Any, n_trees: int, families: Any = None, columns: Mapping[int, Family] | None = None) -> list[View]:
    """The views that the options ask for; `columns` are the families of declared columns."""
    known: dict[str, View] = {
        "columns": ColumnsView(columns),
        "joint": JointGaussianView(),
        "scores": JointGaussianView(normal_scores=True),
        "histogram": HistogramView(),
        "pairs": PairsView(),
        "neighbours": NeighboursView(),
        "trees": TreesView(n_trees),
        "text": TextView(checked_families(families)),
    }
    if isinstance(views, str) and views == "auto":
        views = list(known)
    if isinstance(views, str | bytes | Mapping) or not isinstance(views, Sequence) or not views:
        raise InputError(f"views={views!r} must be 'auto' or a list of views: {listed(known)}, or models of likely.")
    found = [_view_of(view, known) for view in views]
    names = [view.name for view in found]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"views={views!r} has the view {twice[0]!r} twice. Drop one of them.")
    return found


def _view_of(view: Any, known: Mapping[str, View]) -> View:
    if isinstance(view, View):
        return view
    if is_generative_classifier(view):
        return ModelView(view)
    if isinstance(view, str) and view in known:
        return known[view]
    raise InputError(
        f"views: {view!r} is not a view. Known views are {listed(known)}; a model of likely with a joint density, such "
        "as LinearDiscriminant(), is a view too."
    )
