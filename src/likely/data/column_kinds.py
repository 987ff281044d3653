"""Types of the columns of a frame as plain values: text, categories, and types of Arrow as bytes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import narwhals as nw

PLAIN = (str, int, float, bool, bytes)  # categories that model files keep


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """The type of a column: its name in the library of the frame, and what the name leaves out."""

    name: str
    categories: tuple[Any, ...] | None = None  # of categories in pandas and Enum in Polars
    value_type: str = ""  # of the categories in pandas
    ordered: bool = False  # the categories in pandas
    arrow: bytes = b""  # a serialised schema with one column: types of Arrow, also in pandas, have no name to read back

    @classmethod
    def of(cls, kind: Any) -> ColumnKind:
        """The type of a column of pandas, Polars or Arrow."""
        if type(kind).__module__.startswith("pyarrow"):
            return cls(str(kind), arrow=_serialised(kind))
        if hasattr(kind, "pyarrow_dtype"):
            return cls(str(kind), arrow=_serialised(kind.pyarrow_dtype))
        if type(kind).__name__ == "Enum":
            return cls("Enum", tuple(kind.categories))
        if str(kind) == "category" and hasattr(kind, "ordered"):
            categories = kind.categories
            return cls("category", tuple(categories.tolist()), str(categories.dtype), bool(kind.ordered))
        return cls(f"string[{kind.storage}]" if str(kind) == "string" else str(kind))

    def empty(self, backend: str) -> Any:
        """A series of narwhals without values that has the type; None if the library does not know its name."""
        library = nw.Implementation.from_string(backend)
        if library.is_pyarrow():
            import pyarrow as pa

            return nw.from_native(pa.chunked_array([], _deserialised(self.arrow)), series_only=True)
        namespace: Any = library.to_native_namespace()
        if library.is_polars():
            kind = getattr(namespace, self.name.partition("(")[0], None)
            kind = namespace.Enum(self.categories) if self.name == "Enum" else kind
            return None if kind is None else nw.from_native(namespace.Series([], dtype=kind), series_only=True)
        try:
            return nw.from_native(namespace.Series([], dtype=self._of_pandas(namespace)), series_only=True)
        except TypeError:  # an extension type of another library
            return None

    def _of_pandas(self, library: Any) -> Any:
        if self.arrow:
            return library.ArrowDtype(_deserialised(self.arrow))
        if self.categories is None:
            return self.name
        return library.CategoricalDtype(library.Index(self.categories, dtype=self.value_type), self.ordered)

    def without(self, gone: Collection[Any] | None) -> ColumnKind:
        """The type without some of its categories, or without all of them."""
        if self.categories is None:
            return self
        kept = () if gone is None else tuple(value for value in self.categories if value not in gone)
        return replace(self, categories=kept)

    def to_file(self) -> tuple[Any, ...] | None:
        """The fields for a model file; None if it cannot hold the categories, such as intervals."""
        return astuple(self) if all(isinstance(value, PLAIN) for value in self.categories or ()) else None

    @classmethod
    def from_file(cls, values: Any) -> ColumnKind | None:
        """The type of a model file."""
        if values is None:
            return None
        name, categories, value_type, ordered, arrow = values
        texts = isinstance(name, str) and isinstance(value_type, str)
        if not (texts and isinstance(categories, tuple | None) and type(ordered) is bool and isinstance(arrow, bytes)):
            raise TypeError("a column has no type")
        try:
            if arrow:
                _deserialised(arrow)
        except OSError as error:  # of Arrow, on bytes that are not a schema
            raise TypeError(f"a column has no type: {error}") from None
        return cls(name, categories, value_type, ordered, arrow)


def kinds_of(frame: Any) -> tuple[ColumnKind, ...]:
    """The types of the columns of a frame of narwhals."""
    native = frame.to_native()
    return tuple(map(ColumnKind.of, native.schema.types if frame.implementation.is_pyarrow() else native.dtypes))


def kinds_of_file(values: Any, columns: int) -> tuple[ColumnKind | None, ...] | None:
    """The types of the columns in a model file; None if the training rows are not a frame."""
    if values is None:
        return None
    if not isinstance(values, Sequence) or len(values) != columns:
        raise TypeError("columns have other types")
    return tuple(map(ColumnKind.from_file, values))


def _serialised(kind: Any) -> bytes:
    import pyarrow as pa

    return bytes(pa.schema([("column", kind)]).serialize())


def _deserialised(data: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(data)).field(0).type
