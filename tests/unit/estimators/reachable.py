"""Search of the memory that is reachable from an object, for values of rows."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from safetensors.numpy import load

IGNORED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.dtype)


def atoms(start: Any) -> Iterable[tuple[str, Any]]:
    """All arrays, texts, bytes and numbers that are reachable from an object, with the ways to them."""
    seen: dict[int, Any] = {}  # kept alive, so that numbers of objects are not used again
    waiting: list[tuple[str, Any]] = [(type(start).__name__, start)]
    while waiting:
        way, value = waiting.pop()
        if value is None or isinstance(value, IGNORED):
            continue
        if isinstance(value, str | bytes | int | float | complex | np.generic):
            yield way, value
            continue
        if id(value) in seen:
            continue
        seen[id(value)] = value
        waiting += parts(way, value)
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            yield way, value


def parts(way: str, value: Any) -> list[tuple[str, Any]]:
    """What an object holds."""
    if isinstance(value, np.ndarray):
        inner = list(enumerate(value.ravel().tolist())) if value.dtype.kind == "O" else []
        return [(f"{way}[{i}]", each) for i, each in [*inner, ("base", value.base)]]
    if scipy.sparse.issparse(value):
        return [(f"{way}.{name}", each) for name, each in vars(value).items()]
    if isinstance(value, Mapping):
        keys = [(f"{way}.keys()", key) for key in value]
        return [*keys, *((f"{way}[{str(key)[:20]}]", each) for key, each in value.items())]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"{way}[{i}]", each) for i, each in enumerate(value)]
    if isinstance(value, memoryview):
        return [(way, value.tobytes())]
    fields = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        names = kind.__dict__.get("__slots__", ())
        names = (names,) if isinstance(names, str) else names
        fields |= {name: getattr(value, name) for name in names if hasattr(value, name) and name != "__weakref__"}
    if isinstance(value, types.MappingProxyType):
        fields |= dict(value)
    return [(f"{way}.{name}", each) for name, each in fields.items()]


def found_in(start: Any, numbers: Iterable[float], words: Iterable[str]) -> dict[Any, str]:
    """Numbers and words that can be reached from an object, each with one way to it."""
    known = np.unique(np.asarray(list(numbers), dtype=np.float64))
    found: dict[Any, str] = {}
    narrow, spelled = known.astype(np.float32), {repr(number): number for number in known.tolist()}
    for way, value in atoms(start):
        if isinstance(value, str | bytes):
            text = value if isinstance(value, str) else value.decode("latin-1")
            found |= {word: way for word in words if word in text}
            found |= {number: way for text_of, number in spelled.items() if text_of in text}
            if isinstance(value, bytes):
                found |= {number: way for number in known.tolist() if np.float64(number).tobytes() in value}
            continue
        cells = np.asarray(value)
        if cells.dtype.kind in "US":
            found |= {word: way for word in words if any(word in str(cell) for cell in cells.ravel().tolist())}
        elif cells.dtype.kind in "iuf":
            mine = narrow if cells.dtype == np.float32 else known
            some = np.isin(mine, cells.ravel().astype(mine.dtype))
            found |= dict.fromkeys(known[some].tolist(), way)
    return found


def found_in_file(path: Path, numbers: Iterable[float], words: Iterable[str]) -> dict[Any, str]:
    """The same of a model file: its arrays and its header."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])["__metadata__"]
    return found_in([load(data), json.loads(header["likely"]), data[8 + size :]], numbers, words)
