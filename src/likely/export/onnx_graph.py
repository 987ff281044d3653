"""Models as ONNX graphs, built with `onnx.helper`; every number is a double, whatever the type of the inputs is."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from likely.errors import ExportError, MissingExtraError, check_choice, listed
from likely.export.categories import category_type
from likely.export.program import Step
from likely.export.quoting import check_integer, check_utf8, unsupported
from likely.export.scorer import Input, Scorer
from likely.typing import AnyArray

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8  # read by ONNX Runtime since version 1.12
DTYPES = ("float64", "float32")
LONGEST = 10_000  # steps for missing values in a joint block; ONNX Runtime loads such a graph in 3 to 15 seconds
RESULTS = ("label", "probabilities", "valid")
_OPERATORS = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "maximum": "Max",
    "log": "Log",
    "exp": "Exp",
    "sin": "Sin",
    "floor": "Floor",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "equal": "Equal",
    "and": "And",
    "or": "Or",
    "not": "Not",
    "where": "Where",
}


def to_onnx(scorer: Scorer, dtype: str) -> Any:
    """The model as a ModelProto; where all columns are numbers, they are in one input X."""
    check_choice("dtype", dtype, DTYPES)
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError("onnx") from error
    graph = _Graph(onnx, scorer, dtype)
    graph.read_inputs()
    names: list[str] = []
    for step in scorer.program.steps:
        names.append(graph.step(step, [names[i] for i in step.operands]))
    graph.write_outputs(names)
    proto = onnx.helper.make_graph(graph.nodes, "likely", graph.inputs, graph.outputs, graph.constants)
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    model = onnx.helper.make_model(proto, opset_imports=opsets, producer_name="likely", ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model


def _is_number(column: Input) -> bool:
    """Whether the values of a column are numbers: also those that stand for categories."""
    return column.used and (column.vocabulary is None or category_type(column.name, column.vocabulary) != "text")


def _named(column: Input) -> Input:
    """The column; an error where its name cannot be that of an input."""
    if column.name in RESULTS or not check_utf8(column.name, "name"):
        raise ExportError(
            f"The column {column.name!r} cannot be an input of an ONNX graph, whose outputs are {listed(RESULTS)}. "
            "Rename the column."
        )
    return column


class _Graph:
    """Nodes, constants, inputs and outputs of a graph; every value of the program has the shape (rows, 1)."""

    def __init__(self, onnx: Any, scorer: Scorer, dtype: str) -> None:
        self.onnx, self.scorer, self.matrix = onnx, scorer, all(map(_is_number, scorer.inputs))
        self.type = onnx.TensorProto.DOUBLE if dtype == "float64" else onnx.TensorProto.FLOAT
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._known: dict[Any, str] = {}  # names of constants, and of concatenated values
        self._columns: dict[int, str] = {}  # names of inputs, by the number of their column
        self._prefix = "_"  # of names within the graph, which no column has
        while any(column.name.startswith(self._prefix) for column in scorer.inputs):
            self._prefix += "_"

    def node(self, operator: str, inputs: list[str], name: str | None = None, domain: str = "", **options: Any) -> str:
        """The name of the result of a new node."""
        name = name or f"{self._prefix}t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], domain=domain, **options))
        return name

    def constant(self, values: AnyArray) -> str:
        """The name of a constant tensor."""
        key = (values.dtype.str, values.shape, values.tobytes() if values.dtype != object else tuple(values.flat))
        if key not in self._known:
            self._known[key] = f"{self._prefix}c{len(self.constants)}"
            self.constants.append(self.onnx.numpy_helper.from_array(values, self._known[key]))
        return self._known[key]

    def number(self, value: float) -> str:
        return self.constant(np.array([[value]]))

    def cast(self, name: str, type_: int) -> str:
        return self.node("Cast", [name], to=type_)

    # -- inputs

    def read_inputs(self) -> None:
        """One matrix X of all columns, or one input (rows, 1) for each column that the program reads."""
        helper, used = self.onnx.helper, self.scorer.program.inputs()
        if self.matrix:
            width = len(self.scorer.inputs)
            self.inputs.append(helper.make_tensor_value_info("X", self.type, ["rows", width]))
            for j in used:
                index = self.constant(np.array([j], dtype=np.int64))
                self._columns[j] = self._numbers(self.node("Gather", ["X", index], axis=1), self.scorer.inputs[j])
            return
        if not used:
            raise ExportError("No column changes the predictions of the model, so a graph would have no input.")
        for j in used:
            column = _named(self.scorer.inputs[j])
            text = not _is_number(column)
            type_ = self.onnx.TensorProto.STRING if text else self.type
            self.inputs.append(helper.make_tensor_value_info(column.name, type_, ["rows", 1]))
            self._columns[j] = self._codes(column) if text else self._numbers(column.name, column)

    def _codes(self, column: Input) -> str:
        """The codes of a column of text, 0 where the text is unknown; doubles."""
        words = [check_utf8(str(word), "category") for word in column.vocabulary or ()]
        code = self.node(
            "LabelEncoder",
            [column.name],
            domain="ai.onnx.ml",
            keys_strings=words,
            values_int64s=list(range(1, len(words) + 1)),
            default_int64=0,
        )
        return self.cast(code, self.onnx.TensorProto.DOUBLE)

    def _numbers(self, name: str, column: Input) -> str:
        """Numbers as doubles, or their codes where they are categories: Σ i·[x = category i]."""
        x = self.cast(name, self.onnx.TensorProto.DOUBLE)
        if column.vocabulary is None:
            return x
        words = self._keys(column)
        same = self.cast(self.node("Equal", [x, self.constant(words)]), self.onnx.TensorProto.DOUBLE)
        places = self.constant(np.arange(1.0, words.shape[1] + 1.0)[:, None])
        return self.node("MatMul", [same, places])

    def _keys(self, column: Input) -> AnyArray:
        """Categories that are numbers, (1, categories), rounded as the input is."""
        exact = np.array([[float(word) for word in column.vocabulary or ()]])
        with np.errstate(over="ignore"):
            keys = exact.astype(np.float32).astype(np.float64) if self.type == self.onnx.TensorProto.FLOAT else exact
        if len(np.unique(keys)) < keys.size:
            raise ExportError(
                f"Column {column.name!r} has categories that are the same number in float32. Set dtype='float64', or "
                "convert the column to text before the fit."
            )
        return keys

    # -- steps

    def step(self, step: Step, operands: list[str]) -> str:
        """The name of the value of a step."""
        if step.operation in _OPERATORS:
            return self.node(_OPERATORS[step.operation], operands)
        if step.operation in ("number", "code"):
            return self._columns[step.value]
        return str(getattr(self, f"_{step.operation}")(step.value, operands))

    def _constant(self, value: float, operands: list[str]) -> str:
        """A constant; one that rounds to 0 or 1 in float32 is added to zeros.

        ONNX Runtime removes additions of 0 and products with 1 from a graph, and compares constants in float32 there.
        """
        with np.errstate(over="ignore"):
            rounded = float(np.float32(value))
        name = self.number(value)
        return self.node("Sum", [name, self.zeros]) if rounded in (0.0, 1.0) and rounded != value else name

    def _missing(self, value: int, operands: list[str]) -> str:
        if self.scorer.inputs[value].vocabulary is None:
            return self.node("IsNaN", [self._columns[value]])
        raise ExportError(
            "unseen='error' cannot be exported to ONNX, where text has no missing values. Set unseen='missing'."
        )

    def _square(self, value: None, operands: list[str]) -> str:
        return self.node("Mul", [operands[0], operands[0]])

    def _cos(self, value: None, operands: list[str]) -> str:
        return self.node("Sin", [self.node("Add", [operands[0], self.number(np.pi / 2.0)])])

    def _log1p(self, value: None, operands: list[str]) -> str:
        """log(u)·x/(u − 1) with u = 1 + x, in which the rounding errors of u cancel; x where u = 1."""
        one = self.number(1.0)
        u = self.node("Add", [operands[0], one])
        equal = self.node("Equal", [u, one])
        step = self.node("Where", [equal, one, self.node("Sub", [u, one])])
        ratio = self.node("Div", [operands[0], step])
        logs = self.node("Where", [equal, one, self.node("Log", [u])])
        return self.node("Mul", [logs, ratio])

    def _together(self, operands: list[str]) -> str:
        """Values as the columns of a matrix."""
        key = ("together", *operands)
        if key not in self._known:
            self._known[key] = self.node("Concat", operands, axis=1)
        return self._known[key]

    def _linear(self, value: tuple[float, ...], operands: list[str]) -> str:
        return self.node("MatMul", [self._together(operands), self.constant(np.array(value)[:, None])])

    def _pick(self, value: tuple[float, ...], operands: list[str]) -> str:
        index = self.cast(operands[0], self.onnx.TensorProto.INT64)
        return self.node("Gather", [self.constant(np.array(value)), index], axis=0)

    def _cell(self, value: tuple[float, ...], operands: list[str]) -> str:
        if not value:
            return self.number(0.0)
        edges = np.array([value])
        reached = self.node("GreaterOrEqual", [operands[0], self.constant(edges)])
        count = self.node(
            "MatMul", [self.cast(reached, self.onnx.TensorProto.DOUBLE), self.constant(np.ones((edges.size, 1)))]
        )
        if edges.size == 1:
            return count
        last = self.node("Equal", [operands[0], self.number(float(edges[0, -1]))])
        return self.node("Sub", [count, self.cast(last, self.onnx.TensorProto.DOUBLE)])

    # -- outputs

    def write_outputs(self, names: list[str]) -> None:
        """`label`, (rows,), `probabilities`, (rows, classes), and `valid`, (rows,): else these are of the prior."""
        onnx, scorer = self.onnx, self.scorer
        invalid, prior, place = names[scorer.invalid], np.array([scorer.prior]), self._integers(1)
        best = self.node("ArgMax", [self._repeated([names[i] for i in scorer.scores])], axis=1)
        mode = self.constant(np.array([[np.argmax(prior)]], dtype=np.int64))
        labels, type_ = self._labels()
        code = self.node("Squeeze", [self.node("Where", [invalid, mode, best]), place])
        self.node("Gather", [self.constant(labels), code], RESULTS[0], axis=0)
        probabilities = self._repeated([names[i] for i in scorer.probabilities])
        probabilities = self.node("Where", [invalid, self.constant(prior), probabilities])
        self.node("Cast", [probabilities], RESULTS[1], to=self.type)
        marks = self.node("Where", [invalid, self.number(1.0), self.zeros])
        self.node("Squeeze", [self.node("Equal", [marks, self.zeros]), place], RESULTS[2])
        info = onnx.helper.make_tensor_value_info
        self.outputs.append(info(RESULTS[0], type_, ["rows"]))
        self.outputs.append(info(RESULTS[1], self.type, ["rows", len(scorer.classes)]))
        self.outputs.append(info(RESULTS[2], onnx.TensorProto.BOOL, ["rows"]))

    def _repeated(self, names: list[str]) -> str:
        """Values as the columns of a matrix; those that are the same for all rows are repeated."""
        return self.node("Concat", [self.node("Add", [name, self.zeros]) for name in names], axis=1)

    @cached_property
    def zeros(self) -> str:
        """Zeros, (rows, 1): results that are the same for all rows are repeated by adding them."""
        first = "X" if self.matrix else self.inputs[0].name
        rows = self.node("Slice", [self.node("Shape", [first]), *(self._integers(v) for v in (0, 1))])
        shape = self.node("Concat", [rows, self._integers(1)], axis=0)
        return self.node("ConstantOfShape", [shape], value=self.onnx.numpy_helper.from_array(np.zeros(1)))

    def _integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def _labels(self) -> tuple[AnyArray, int]:
        """The class labels as a tensor, and its type."""
        labels, types = self.scorer.classes, self.onnx.TensorProto
        if all(isinstance(label, bool) for label in labels):
            return np.array(labels), types.BOOL
        if all(isinstance(label, int) and not isinstance(label, bool) for label in labels):
            for label in labels:
                check_integer("class label", label, 2**63 - 1)
            return np.array(labels, dtype=np.int64), types.INT64
        if all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels):
            return np.array(labels, dtype=np.float64), types.DOUBLE
        if all(isinstance(label, str) for label in labels):
            return np.array([check_utf8(label, "class label") for label in labels], dtype=object), types.STRING
        raise unsupported("class label", next(label for label in labels if not isinstance(label, str)))
