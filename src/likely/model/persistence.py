"""Model files without pickle: safetensors files with a JSON header that describes the arrays.

A file holds the options of a model, its specification and its statistics; the model is estimated from them again.
Reading creates only values of known types and objects of registered classes. A SHA-256 checksum covers the whole file,
because safetensors does not detect changed bytes.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from likely.data.date_text import DateForm
from likely.data.ledger import Ledger
from likely.data.new_files import new_file
from likely.data.number_text import NumberForm
from likely.data.reading import ColumnReading, Reading
from likely.errors import InputError, ModelFileError, listed
from likely.families import MEMBERS
from likely.families.gaussian.mixture import MixtureFamily, SubMoments
from likely.families.gaussian.prior import NormalInverseWishart
from likely.families.gaussian.shrinkage import Regularized
from likely.families.given import GivenFamily
from likely.families.point_mass import PointMassSums
from likely.families.priors import BetaPrior, Dirichlet, GammaPrior, PseudoRows
from likely.families.text.document_sums import DocumentSums
from likely.model.calibration import Calibration
from likely.model.choices import Choice, UnlabeledWeight, WeightScore
from likely.model.plans import Plan
from likely.model.specification import Specification
from likely.numerics.coordinates import Coordinates
from likely.statistics.bigram_counts import BigramCounts
from likely.statistics.category_counts import CategoryCounts, PairCounts
from likely.statistics.cell_counts import CellCounts
from likely.statistics.counts import Counts, label_order
from likely.statistics.given import GivenStatistics
from likely.statistics.joint import JointStatistics
from likely.statistics.moments import Moments, Sharing, Tails
from likely.statistics.pattern_moments import PatternMoments
from likely.statistics.sums import Sums
from likely.typing import AnyArray

FORMAT = 1
LARGEST_HEADER = 100_000_000
LARGEST_INTEGER = 10_000  # bits; Python limits the conversion of longer integers to text
NO_DIGEST = b'"sha256":"' + b"0" * 64 + b'"'
DIGEST = re.compile(rb'"sha256":"([0-9a-f]{64})"')
OFFSETS = re.compile(rb'"data_offsets":\[\d{1,18},(\d{1,18})\]')  # quotes inside of text are escaped
Built = TypeVar("Built")
FilePath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_classes: dict[str, type] = {}
_names: dict[type, str] = {}


def register(kind: type, name: str | None = None) -> type:
    """Allow objects of a class, such as a custom family, prior or statistics, in model files.

    A class that was defined again, as by a notebook cell that is run twice, replaces the former one.

    Parameters
    ----------
    kind : type
        The class: a subclass of `sklearn.base.BaseEstimator`, as families and priors are, or a dataclass. The classes
        of its options, such as a prior of your own, are registered too.
    name : str or None, default=None
        The name that files refer to the class by. None is the name of the class. The class must be registered under the
        same name before such a file is loaded.

    Returns
    -------
    type
        The class, so that `register` can decorate it.
    """
    name = name or kind.__name__
    if not (is_dataclass(kind) or issubclass(kind, BaseEstimator)):
        raise InputError(f"{kind.__name__} is neither a BaseEstimator nor a dataclass, so it cannot be saved.")
    known = _classes.get(name, kind)
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise InputError(
            f"Another class is registered under the name {name!r}: {known.__module__}.{known.__qualname__}. "
            f"Pass another name: register({kind.__name__}, name='mylab.{kind.__name__}')."
        )
    _classes[name], _names[kind] = kind, name
    return kind


for _kind in (
    *MEMBERS,
    *(BetaPrior, Dirichlet, GammaPrior, NormalInverseWishart, PseudoRows, Regularized),
    *(
        GivenFamily,
        GivenStatistics,
        MixtureFamily,
        PointMassSums,
        SubMoments,
        Calibration,
        Choice,
        Plan,
        Specification,
        Coordinates,
        BigramCounts,
        CategoryCounts,
        CellCounts,
        ColumnReading,
        Counts,
        DateForm,
        DocumentSums,
        JointStatistics,
        Ledger,
        Moments,
        NumberForm,
        PairCounts,
        PatternMoments,
        Reading,
        Sharing,
        Sums,
        Tails,
        UnlabeledWeight,
        WeightScore,
    ),
):
    register(_kind)


class _Writer:
    """Values as JSON; arrays of numbers are collected under names."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}

    def plain(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.longdouble):
            value = np.float64(value)
        if isinstance(value, np.generic):
            return {"scalar": value.dtype.str, "value": self.plain(value.item())}
        if isinstance(value, int):
            if value.bit_length() > LARGEST_INTEGER:
                raise InputError(f"A number of {value.bit_length():,} bits cannot be part of a model file.")
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, bytes):
            return {"bytes": value.hex()}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, list | tuple):
            return {"tuple" if isinstance(value, tuple) else "list": [self.plain(part) for part in value]}
        if isinstance(value, set | frozenset):
            name = "set" if isinstance(value, set) else "frozenset"
            return {name: [self.plain(part) for part in sorted(value, key=label_order)]}
        if isinstance(value, Mapping):
            return {"dict": [[self.plain(key), self.plain(part)] for key, part in value.items()]}
        return self._object(value)

    def _array(self, array: AnyArray) -> Any:
        if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8:
            name = f"{len(self.arrays)}"
            self.arrays[name] = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
            return {"array": name}
        if array.dtype.kind not in "OUS":
            raise InputError(f"Arrays of type {array.dtype} cannot be part of a model file.")
        values = array.ravel().tolist()
        kind = array.dtype if array.dtype.kind == "O" else np.array(values, dtype=array.dtype.kind).dtype
        return {"objects": [self.plain(part) for part in values], "shape": list(array.shape), "type": kind.str}

    def _object(self, value: Any) -> Any:
        kind = type(value)
        if kind not in _names:
            remedy = (
                "Register its class with likely.persistence.register."
                if isinstance(value, BaseEstimator)
                else "Use text or numbers for labels and options."
            )
            raise InputError(f"{value!r}, of type {kind.__name__}, cannot be part of a model file. {remedy}")
        return {"object": _names[kind], "fields": {name: self.plain(part) for name, part in _parts(value).items()}}


def _parts(value: Any) -> dict[str, Any]:
    """The options of an object, or the fields of a dataclass, or what it has for files instead."""
    if hasattr(value, "_file_fields"):
        found: dict[str, Any] = value._file_fields()
        return found
    if isinstance(value, BaseEstimator):
        return value.get_params(deep=False)
    return {field.name: getattr(value, field.name) for field in fields(value)}


class _Reader:
    """Values from JSON, all of known types."""

    def __init__(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays = arrays
        self._ways: dict[str, Callable[[dict[str, Any]], Any]] = {
            "scalar": self._scalar,
            "float": lambda tree: float(tree["float"]),
            "bytes": lambda tree: bytes.fromhex(tree["bytes"]),
            "array": lambda tree: self.arrays[tree["array"]],
            "objects": self._objects,
            "list": lambda tree: [self.value(part) for part in tree["list"]],
            "tuple": lambda tree: tuple(self.value(part) for part in tree["tuple"]),
            "set": lambda tree: {self.value(part) for part in tree["set"]},
            "frozenset": lambda tree: frozenset(self.value(part) for part in tree["frozenset"]),
            "dict": lambda tree: {self.value(key): self.value(part) for key, part in tree["dict"]},
            "object": self._object,
        }

    def value(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            if isinstance(tree, list):
                raise ModelFileError("it has a list where none is allowed")
            return tree
        return self._ways[next(iter(tree))](tree)

    def _scalar(self, tree: dict[str, Any]) -> Any:
        kind = np.dtype(tree["scalar"])
        if kind.kind not in "biufSU":
            raise ModelFileError(f"a value of type {kind}")
        return kind.type(self.value(tree["value"]))

    def _objects(self, tree: dict[str, Any]) -> AnyArray:
        kind = np.dtype(tree["type"])
        values = [self.value(part) for part in tree["objects"]]
        if kind.kind not in "OUS":
            raise ModelFileError(f"objects of type {kind}")
        if kind.kind != "O":
            if not all(isinstance(value, str if kind.kind == "U" else bytes) for value in values):
                raise ModelFileError(f"something else among labels of type {kind}")
            return np.array(values, dtype=kind.kind).reshape(tree["shape"])  # not of the width in the header
        array = np.empty(len(values), dtype=kind)
        array[:] = values
        return array.reshape(tree["shape"])

    def _object(self, tree: dict[str, Any]) -> Any:
        name = str(tree["object"])
        library = import_module("likely")
        if name not in _classes and name in library.__all__:
            getattr(library, name)  # the module of an estimator registers the classes that its files need
        if name not in _classes:
            raise ModelFileError(
                f"it needs the class {name!r}, which is not registered; import it and call likely.persistence.register"
            )
        kind, given = _classes[name], {str(key): self.value(part) for key, part in tree["fields"].items()}
        if hasattr(kind, "_of_file"):
            return kind._of_file(given)
        known = set(inspect.signature(kind).parameters)
        if not set(given) <= known:
            raise ModelFileError(f"{name} has no option {listed(sorted(set(given) - known))} in this version")
        return kind(**given)


def write(path: FilePath, content: Mapping[str, Any]) -> None:
    """Write values into a file atomically."""
    from safetensors.numpy import save

    writer = _Writer()
    tree = {name: writer.plain(value) for name, value in content.items()}
    header = json.dumps({"format": FORMAT, **tree}, ensure_ascii=True, allow_nan=False)
    if len(header) > LARGEST_HEADER // 3:
        raise InputError(
            f"The labels and options of this model take {len(header):,} bytes, more than a file's header can hold. "
            "Use shorter or fewer categories."
        )
    blank = _with_metadata(save(writer.arrays), {"likely": header, "sha256": "0" * 64})
    assert blank.count(NO_DIGEST) == 1
    digest = hashlib.sha256(blank).hexdigest().encode()
    with new_file(Path(os.fsdecode(path))) as file:
        file.write(blank.replace(NO_DIGEST, b'"sha256":"' + digest + b'"'))


def _with_metadata(data: bytes, metadata: Mapping[str, str]) -> bytes:
    """A safetensors file with metadata in a fixed order, so that equal models have equal files."""
    stop = 8 + int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:stop])
    ordered = dict(sorted(entries.items(), key=lambda entry: (entry[1]["data_offsets"], entry[0])))
    header = json.dumps({"__metadata__": dict(metadata), **ordered}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # arrays are aligned
    return len(header).to_bytes(8, "little") + header + data[stop:]


def read(path: FilePath, build: Callable[[dict[str, Any]], Built]) -> Built:
    """The object built from the values in a file that `write` has written; other files are an error."""
    try:
        return build(_checked(Path(os.fsdecode(path))))
    except ModelFileError as error:
        raise ModelFileError(f"{os.fsdecode(path)}: {error}.") from None
    except OSError:
        raise
    except Exception as error:  # whatever a forged file makes fail
        raise ModelFileError(
            f"{os.fsdecode(path)}: it is not a complete model ({type(error).__name__}: {error})."
        ) from error


def _checked(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    status = path.stat()
    if not stat.S_ISREG(status.st_mode) and not path.is_dir():
        raise ModelFileError("it is not a file: it is a pipe, a socket or a device")
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if status.st_size < 10 or length > min(status.st_size - 8, LARGEST_HEADER):
            raise ModelFileError("it is not a model file of likely, or it was cut short")
        header = file.read(length)
        if b'"likely":' not in header:
            raise ModelFileError("it is not a model file of likely")
        if status.st_size != 8 + length + _payload(header):
            raise ModelFileError("its length differs from that in its header: it was truncated or altered")
        found = DIGEST.findall(header)
        if len(found) != 1:
            raise ModelFileError("it has no checksum: it was truncated or altered")
        data = length.to_bytes(8, "little") + header + file.read()
    digest = hashlib.sha256(data[:8])
    digest.update(header.replace(found[0], b"0" * 64))
    digest.update(memoryview(data)[8 + length :])
    if digest.hexdigest().encode() != found[0]:  # before anything is parsed
        raise ModelFileError("its checksum is wrong: it was truncated or altered")
    try:
        arrays = load(data)
    except SafetensorError as error:
        raise ModelFileError(f"its arrays cannot be read ({error})") from None
    tree = json.loads(json.loads(header)["__metadata__"]["likely"])
    if isinstance(tree["format"], bool) or tree["format"] != FORMAT:
        raise ModelFileError(f"its format is {tree['format']!r}, and this version of likely reads {FORMAT}")
    reader = _Reader(arrays)
    return {name: reader.value(part) for name, part in tree.items() if name != "format"}


def _payload(header: bytes) -> int:
    """The size of the arrays in bytes according to the header, which is searched and not parsed."""
    return max((int(found.group(1)) for found in OFFSETS.finditer(header)), default=0)
