"""The views that `EvidenceClassifier` knows by name, and the option `views`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

KNOWN: Mapping[str, Callable[[int], View]] = {
    "columns": lambda n_trees: ColumnsView(),
    "joint": lambda n_trees: JointGaussianView(),
    "scores": lambda n_trees: JointGaussianView(normal_scores=True),
    "histogram": lambda n_trees: HistogramView(),
    "pairs": lambda n_trees: PairsView(),
    "neighbours": lambda n_trees: NeighboursView(),
    "trees": TreesView,
    "text": lambda n_trees: TextView(),
}


def views_of(views: Any, n_trees: int, families: Any = None) -> list[View]:
    """The views that the options ask for."""
    text = TextView(checked_families(families))
    if isinstance(views, str) and views == "auto":
        views = list(KNOWN)
    if isinstance(views, str | bytes | Mapping) or not isinstance(views, Sequence) or not views:
        raise InputError(f"views={views!r} must be 'auto' or a list of views: {listed(KNOWN)}, or models of likely.")
    found = [_view_of(view, n_trees) for view in views]
    names = [view.name for view in found]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"views={views!r} has the view {twice[0]!r} twice. Drop one of them.")
    return [text if view.name == text.name else view for view in found]


def _view_of(view: Any, n_trees: int) -> View:
    if isinstance(view, View):
        return view
    if is_generative_classifier(view):
        return ModelView(view)
    if isinstance(view, str) and view in KNOWN:
        return KNOWN[view](n_trees)
    raise InputError(
        f"views: {view!r} is not a view. Known views are {listed(KNOWN)}; a model of likely with a joint density, such "
        "as LinearDiscriminant(), is a view too."
    )
