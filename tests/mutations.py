"""Small changes of the code, for mutation testing: what can be changed, and how a change takes effect.

Constants of modules (block sizes, tolerances), docstrings, annotations and the texts of errors are not changed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import SourceFileLoader
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

ARITHMETIC = {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "//": ["*"], "**": ["*"], "%": ["*"]}
COMPARISONS = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="]}
WORDS = {"is": ["is not"], "is not": ["is"], "in": ["not in"], "not in": ["in"], "and": ["or"], "or": ["and"]}
OTHERS = ARITHMETIC | COMPARISONS | WORDS
WITH_OPERATORS = (ast.BinOp, ast.AugAssign, ast.Compare, ast.BoolOp)
OPERATOR = re.compile(
    rb"//|\*\*|[-+*/%]|[<>!=]=|(?<![<>])[<>](?![<>])|\bis\s+not\b|\bnot\s+in\b|\bis\b|\bin\b|\band\b|\bor\b"
)


class Mutant(NamedTuple):
    path: Path
    line: int
    start: int  # in bytes of the file
    end: int
    old: str
    new: str
    code: str

    def source(self) -> bytes:
        """The file with this change."""
        text = self.path.read_bytes()
        return text[: self.start] + self.new.encode() + text[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old!r} → {self.new!r} in {self.code!r}"


class Source:
    """The mutants of one file."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = path, path.read_bytes()
        self.lines = [0, *(newline.end() for newline in re.finditer(rb"\n", self.text))]

    def mutants(self) -> Iterator[Mutant]:
        for statement in ast.parse(self.text).body:
            if not isinstance(statement, ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign | ast.Expr):
                yield from self.inside(statement)

    def inside(self, node: ast.AST) -> Iterator[Mutant]:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.arg):
            return
        if isinstance(node, ast.expr | ast.stmt):
            yield from self.of(node)
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from self.inside(child)

    def of(self, node: ast.expr | ast.stmt) -> Iterator[Mutant]:
        operands = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        for left, right in pairwise(operands if isinstance(node, WITH_OPERATORS) else []):
            if found := OPERATOR.search(self.text, self.span(left)[1], self.span(right)[0]):
                for new in OTHERS[" ".join(found[0].decode().split())]:
                    yield self.mutant(*found.span(), new)
        match node:
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                start = self.span(node)[0]
                yield self.mutant(start, start + (1 if isinstance(node.op, ast.USub) else 3), "")
            case ast.Constant(value=bool(value)):
                yield self.mutant(*self.span(node), str(not value))
            case ast.Constant(value=(int() | float()) as number):
                yield self.mutant(*self.span(node), repr(number + 1))
                yield self.mutant(*self.span(node), repr(number - 1))
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield self.mutant(*self.span(test), f"not ({self.read(test)})")
            case ast.Call(args=[ast.Name() as one, ast.Name() as two, *_]) | ast.Tuple([one, two], ast.Load()):
                yield self.mutant(self.span(one)[0], self.span(two)[1], f"{self.read(two)}, {self.read(one)}")
            case ast.Return(value=(ast.Call(ast.Attribute(inner)) | ast.Subscript(inner)) as value):
                yield self.mutant(*self.span(value), self.read(inner))

    def read(self, node: ast.expr) -> str:
        return self.text[slice(*self.span(node))].decode()

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None  # noqa: PT018
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def mutant(self, start: int, end: int, new: str) -> Mutant:
        line = self.text.count(b"\n", 0, start) + 1
        code = self.text[self.lines[line - 1] : self.lines[line]].decode().strip()
        return Mutant(self.path, line, start, end, self.text[start:end].decode(), new, code)


class Marks(ast.NodeTransformer):
    """Puts a call before each statement that contains a mutant."""

    def __init__(self, path: Path, mutants: Mapping[int, Mutant]) -> None:
        self.source = Source(path)
        self.left = {i: mutant for i, mutant in mutants.items() if mutant.path == path}

    def tree(self) -> ast.Module:
        tree: ast.Module = ast.fix_missing_locations(self.visit(ast.parse(self.source.text)))
        return tree

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)  # first, so that a mutant belongs to the innermost statement
        if not isinstance(node, ast.stmt):
            return node
        start, end = self.source.span(node)
        inside = [i for i, mutant in self.left.items() if start <= mutant.start < end]
        self.left = {i: mutant for i, mutant in self.left.items() if i not in inside}
        return [*(ast.parse(f"_reached({i})").body[0] for i in inside), node]


def replace_code(functions: Iterable[FunctionType], mutant: Mutant) -> bool:
    """Whether the change could be made in the code of functions."""
    path, changes = str(mutant.path.resolve()), []
    codes = {(code.co_qualname, code.co_firstlineno): code for code in nested(compile(mutant.source(), path, "exec"))}
    for function in functions:
        old = function.__code__
        new = codes.get((old.co_qualname, old.co_firstlineno), old)
        if old.co_filename == path and new != old:
            changes.append((function, new))
    if any(len(function.__code__.co_freevars) != len(new.co_freevars) for function, new in changes):
        return False
    for function, new in changes:
        function.__code__ = new
    return bool(changes)


def nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def import_instead(sources: Mapping[Path, ast.Module | bytes]) -> None:
    """From now on imports these sources instead of those in the files."""
    others = {str(path.resolve()): source for path, source in sources.items()}
    usual = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, name: str) -> CodeType | None:
        path = self.get_filename(name)
        return compile(others[path], path, "exec", dont_inherit=True) if path in others else usual(self, name)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
