"""Programs: expressions as a list of steps in which equal steps occur once, ready to be written for another system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from likely.numerics.expressions import LOG_ZERO, Expression

INPUTS = frozenset({"number", "missing", "code"})  # operations that read a column
LEAVES = INPUTS | {"constant"}
REPEATED = {"square": 4, "log1p": 5}  # how many times the text of an operand occurs in that of the operation
SHORT = 8  # steps of an operand up to which its text is repeated
LONG = 64  # steps of a sum from which on it is a partial sum


@dataclass(frozen=True, slots=True)
class Step:
    """One operation; its operands are the numbers of earlier steps."""

    operation: str
    operands: tuple[int, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True)
class Program:
    """Steps, each after its operands, and the numbers of those that are results."""

    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    @classmethod
    def of(cls, roots: Sequence[Expression]) -> Program:
        """The program of some expressions; without recursion, because factorisations are deep."""
        steps: list[Step] = []
        known: dict[Step, int] = {}
        number: dict[int, int] = {}  # of expressions by their identity; the roots keep all of them alive
        for root in roots:
            stack = [root]
            while stack:
                node = stack[-1]
                waiting = [operand for operand in node.operands if id(operand) not in number]
                if waiting:
                    stack.extend(reversed(waiting))
                    continue
                stack.pop()
                if id(node) not in number:
                    step = Step(node.operation, tuple(number[id(operand)] for operand in node.operands), node.value)
                    if step not in known:
                        known[step] = len(steps)
                        steps.append(step)
                    number[id(node)] = known[step]
        return cls(tuple(steps), tuple(number[id(root)] for root in roots))

    def inputs(self) -> list[int]:
        """The inputs that the program reads."""
        return sorted({step.value for step in self.steps if step.operation in INPUTS})

    def _sizes(self) -> list[int]:
        """The number of operations in the whole text of each step."""
        sizes: list[int] = []
        for step in self.steps:
            sizes.append(1 + sum(sizes[i] for i in step.operands))
        return sizes

    def partial_sums(self) -> set[int]:
        """Sums, and conditions of conditions, that are long: once they have a name, their operands are not needed."""
        sizes = self._sizes()
        return {i for i, step in enumerate(self.steps) if step.operation in ("add", "and", "or") and sizes[i] > LONG}

    def last_inputs(self) -> list[int]:
        """The last input that each step needs; −1 for constants."""
        last: list[int] = []
        for step in self.steps:
            own = step.value if step.operation in INPUTS else -1
            last.append(max([own, *(last[i] for i in step.operands)]))
        return last

    def named(self) -> set[int]:
        """Steps that get a name, because their text would occur more than once; never leaves."""
        sizes = self._sizes()
        uses = Counter(self.outputs)
        for step in self.steps:
            times = len(step.value) if step.operation == "cell" else REPEATED.get(step.operation, 1)
            for operand in step.operands:
                uses[operand] += times if sizes[operand] > SHORT or step.operation == "cell" else 1
        return {
            i
            for i, step in enumerate(self.steps)
            if step.operation not in LEAVES and (uses[i] > 1 or i in self.outputs)
        }


def has_log_zero(program: Program) -> bool:
    """Whether a score can contain the logarithm of 0."""
    return any(
        (step.operation == "constant" and step.value == LOG_ZERO)
        or (step.operation == "pick" and LOG_ZERO in step.value)
        for step in program.steps
    )
