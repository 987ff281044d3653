"""Lines of code, tokens and statements of each package of src/likely, and the budgets of its lines.

    python -m tools.size

Blank lines, comments and docstrings do not count. A package is a folder of src/likely; a folder in it is one only if
`budgets.toml` names it. The exit code is 1 if a package has more lines than its budget, or no budget.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1] / "src" / "likely"
BUDGETS = Path(__file__).with_name("budgets.toml")
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Size(NamedTuple):
    lines: int = 0
    tokens: int = 0
    statements: int = 0


def total(sizes: Iterable[Size]) -> Size:
    return Size(*map(sum, zip(Size(), *sizes, strict=True)))


def size(source: str) -> Size:
    """Lines with a token that is neither a comment nor in a docstring, such tokens, and other statements."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = [
        node.body[0]
        for node in nodes
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None
    ]
    documented = {(node.lineno, node.col_offset) for node in docstrings}
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in NO_CODE and not (token.type == tokenize.STRING and token.start in documented)
    ]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    statements = sum(isinstance(node, ast.stmt) for node in nodes) - len(docstrings)
    return Size(len(lines), len(tokens), statements)


def sizes(root: Path, budgets: Mapping[str, int]) -> dict[str, Size]:
    """Size of each package."""
    found = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        found[package_of(path, root, budgets)].append(size(path.read_text(encoding="utf-8")))
    return {package: total(each) for package, each in found.items()}


def package_of(path: Path, root: Path, budgets: Mapping[str, int]) -> str:
    """The innermost folder that has a budget; without one, the folder in the root, or the root itself."""
    folders = [each.relative_to(root.parent).as_posix() for each in path.parents if each.is_relative_to(root)]
    return next((folder for folder in folders if folder in budgets and folder != root.name), folders[-2:][0])


def budgets(path: Path = BUDGETS) -> dict[str, int]:
    with path.open("rb") as file:
        read: dict[str, int] = tomllib.load(file)["lines"]
    return read


def excesses(found: Mapping[str, Size], allowed: Mapping[str, int]) -> Iterator[str]:
    """What is wrong: packages beyond their budgets or without one, and budgets without a package."""
    for package, (lines, _, _) in found.items():
        if package not in allowed:
            yield f"Package {package} has {lines:,} lines and no budget. Add one to tools/{BUDGETS.name}."
        elif lines > allowed[package]:
            yield (
                f"Package {package} has {lines:,} lines, {lines - allowed[package]:,} more than its budget of "
                f"{allowed[package]:,}. Shorten it, or raise the budget in tools/{BUDGETS.name} and say why in the "
                "message of the commit."
            )
    for package in allowed.keys() - found.keys():
        yield f"There is no package {package}. Remove its budget from tools/{BUDGETS.name}."


def main() -> int:
    allowed = budgets()
    found = sizes(ROOT, allowed)
    print(f"{'':28}{'lines':>8}{'budget':>8}{'tokens':>9}{'statements':>12}")
    for package, each in found.items():
        print(f"{package:28}{each.lines:8,}{allowed.get(package, 0):8,}{each.tokens:9,}{each.statements:12,}")
    every = total(found.values())
    print(f"{'in all':28}{every.lines:8,}{sum(allowed.values()):8,}{every.tokens:9,}{every.statements:12,}")
    messages = list(excesses(found, allowed))
    for message in messages:
        print(message)
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
