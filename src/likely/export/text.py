"""Programs as text: what the SQL and the JavaScript target have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from likely.export.program import INPUTS, Program, Step
from likely.export.quoting import number_text


def balanced(texts: list[str], operator: str) -> str:
    """Texts joined by an operator in nested pairs: parsers limit the depth of expressions."""
    while len(texts) > 1:
        pairs = [f"({a}{operator}{b})" for a, b in zip(texts[::2], texts[1::2], strict=False)]
        texts = [*pairs, texts[-1]] if len(texts) % 2 else pairs
    return texts[0]


COMMON = {  # operators of all languages
    "add": " + ",
    "subtract": " - ",
    "multiply": " * ",
    "divide": " / ",
    "less": " < ",
    "less_equal": " <= ",
}


class Writer(ABC):
    """Writes steps of a program as text; steps with a name are referred to by it."""

    def __init__(self, program: Program, infix: dict[str, str], functions: dict[str, str]) -> None:
        self.program, self.named = program, program.named()
        self.infix, self.functions = {**COMMON, **infix}, functions

    def reference(self, step: int) -> str:
        """The name of a step, or its text where it has none."""
        return f"v{step}" if step in self.named else self.text(step)

    def text(self, number: int) -> str:
        """The text of a step; those of its operands without a name are part of it."""
        step = self.program.steps[number]
        if step.operation == "constant":
            return self.number(step.value)
        if step.operation in INPUTS:
            return self.leaf(step)
        return self.operation(step, [self.reference(operand) for operand in step.operands])

    def number(self, value: float) -> str:
        """A constant; negative ones in parentheses, because two signs in a row would begin a comment in SQL."""
        text = number_text(value)
        return f"({text})" if text.startswith("-") else text

    def operation(self, step: Step, texts: list[str]) -> str:
        """The text of an operation."""
        name = step.operation
        if name in self.infix:
            return f"({texts[0]}{self.infix[name]}{texts[1]})"
        if name in self.functions:
            return f"{self.functions[name]}({', '.join(texts)})"
        if name == "square":
            return f"({texts[0]} * {texts[0]})"
        if name == "linear":
            products = [f"({self.number(c)} * {x})" for c, x in zip(step.value, texts, strict=True)]
            return balanced(products, " + ")
        return self.special(step, texts)

    @abstractmethod
    def leaf(self, step: Step) -> str:
        """The text of an input."""

    @abstractmethod
    def special(self, step: Step, texts: list[str]) -> str:
        """The text of an operation that has neither a common operator nor a function."""
