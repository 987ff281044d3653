"""Models as JavaScript: a module without imports, for browsers, Node.js and other runtimes."""

from __future__ import annotations

from likely.export.categories import category_type
from likely.export.program import Step
from likely.export.quoting import javascript_value
from likely.export.scorer import Input, Scorer
from likely.export.text import Writer

HEADER = """\
// Class probabilities of a model that was fitted with likely.

function checkRow(row) {
  if (typeof row !== "object" || row === null || Array.isArray(row)) {
    throw new TypeError("A row must be an object of values by the names of the columns.");
  }
}

function valueOf(row, name) {
  const value = Object.hasOwn(row, name) ? row[name] : undefined;
  return value === undefined || value === null || Number.isNaN(value) ? null : value;
}

function typeError(value, name, needed) {
  const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
  return new TypeError(`Column ${JSON.stringify(name)}: ${shown} is not ${needed}.`);
}

function numberOf(row, name) {
  const value = valueOf(row, name);
  if (value === null) return NaN;
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value !== "number") throw typeError(value, name, "a number");
  return value;
}

function codeOf(row, name, codes, isText) {
  const value = valueOf(row, name);
  if (value === null) return -1;
  if (isText && typeof value !== "string") throw typeError(value, name, "text");
  if (!isText && typeof value !== "number" && typeof value !== "boolean") throw typeError(value, name, "a number");
  return codes.get(value) ?? 0;
}

function cellOf(x, edges) {
  let cell = 0;
  while (cell < edges.length && x >= edges[cell]) cell += 1;
  return edges.length > 1 && x === edges[edges.length - 1] ? cell - 1 : cell;
}
"""


def to_javascript(scorer: Scorer) -> str:
    """The text of an ES module that exports `classes` and `predict`."""
    writer = JavaScriptWriter(scorer)
    inputs = scorer.program.inputs()
    labels = ", ".join(javascript_value(label) for label in scorer.classes)
    constants = [f"export const classes = [{labels}];"]
    constants += [
        f"const codes{j} = new Map([{_pairs(scorer.inputs[j])}]);" for j in inputs if _coded(scorer.inputs[j])
    ]
    body = ["checkRow(row);", *(_read(j, scorer.inputs[j]) for j in inputs)]
    body += [f"const v{i} = {writer.text(i)};" for i in sorted(writer.named)]
    invalid = writer.reference(scorer.invalid)
    body.append(f"if ({invalid}) return {{ predicted: null, probabilities: classes.map(() => null) }};")
    scores = ", ".join(writer.reference(i) for i in scorer.scores)
    probabilities = ", ".join(writer.reference(i) for i in scorer.probabilities)
    body.append(f"const predicted = classes[[{scores}].indexOf({writer.reference(scorer.largest)})];")
    body.append(f"return {{ predicted, probabilities: [{probabilities}] }};")
    tables = [f"const {name} = {values};" for values, name in writer.tables.items()]
    lines = [
        HEADER,
        *constants,
        *tables,
        "",
        "export function predict(row) {",
        *(f"  {line}" for line in body),
        "}",
        "",
    ]
    return "\n".join(lines)


def _coded(column: Input) -> bool:
    return column.vocabulary is not None


def _pairs(column: Input) -> str:
    """Pairs of a category and its code; true and 1 have the same code, and so have false and 0."""
    assert column.vocabulary is not None
    boolean = category_type(column.name, column.vocabulary) == "boolean"
    words = list(enumerate(column.vocabulary, 1))
    pairs = [(javascript_value(word), i) for i, word in words]
    if boolean:
        pairs += [(str(int(word)), i) for i, word in words]
    else:
        pairs += [(javascript_value(bool(word)), i) for i, word in words if word in (0, 1)]
    return ", ".join(f"[{word}, {i}]" for word, i in pairs)


def _read(index: int, column: Input) -> str:
    """The line that reads an input."""
    name = javascript_value(column.name)
    if column.vocabulary is not None:
        is_text = javascript_value(category_type(column.name, column.vocabulary) == "text")
        return f"const i{index} = codeOf(row, {name}, codes{index}, {is_text});"
    return f"const i{index} = numberOf(row, {name});"


class JavaScriptWriter(Writer):
    """Steps as expressions of JavaScript."""

    def __init__(self, scorer: Scorer) -> None:
        functions = {name: f"Math.{name}" for name in ("log", "log1p", "exp", "sin", "cos", "floor")}
        infix = {"equal": " === ", "and": " && ", "or": " || "}
        super().__init__(scorer.program, infix, {**functions, "maximum": "Math.max"})
        self.inputs = scorer.inputs
        self.tables: dict[str, str] = {}  # names of constant tables by their text

    def leaf(self, step: Step) -> str:
        name = f"i{step.value}"
        if step.operation == "number":
            return name
        if step.operation == "code":
            return f"Math.max({name}, 0)"
        return f"({name} < 0)" if _coded(self.inputs[step.value]) else f"Number.isNaN({name})"

    def special(self, step: Step, texts: list[str]) -> str:
        if step.operation == "not":
            return f"(!{texts[0]})"
        if step.operation == "where":
            return f"({texts[0]} ? {texts[1]} : {texts[2]})"
        table = self._table(step.value)
        return f"{table}[{texts[0]}]" if step.operation == "pick" else f"cellOf({texts[0]}, {table})"

    def _table(self, values: tuple[float, ...]) -> str:
        text = f"[{', '.join(self.number(value) for value in values)}]"
        return self.tables.setdefault(text, f"table{len(self.tables)}")
