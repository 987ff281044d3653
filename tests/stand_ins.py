"""Stand-ins for packages that examples of the documentation use, and that are no dependencies of the library.

They have what the examples need, and no more. An installed package is used instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class FastAPI:
    """A web application whose decorators return the function itself."""

    def post(self, path: str) -> Callable[[Any], Any]:
        """Register a function for a path."""
        assert path.startswith("/")
        return lambda function: function


class PythonModel:
    """The base of models in MLflow."""

    def load_context(self, context: Any) -> None:
        """Load the artifacts."""

    def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:
        """Predict rows."""
        raise NotImplementedError


@contextmanager
def stand_ins() -> Iterator[None]:
    """Make the stand-ins importable under the names of the packages that are not installed."""
    added = []
    for package, name, attribute in (("fastapi", "fastapi", FastAPI), ("mlflow", "mlflow.pyfunc", PythonModel)):
        if package not in sys.modules and find_spec(package) is None:
            module = ModuleType(name)
            setattr(module, attribute.__name__, attribute)
            sys.modules.update({package: ModuleType(package), name: module})
            added += [package, name]
    try:
        yield
    finally:
        for name in added:
            sys.modules.pop(name, None)
