"""Mutation testing: small changes of the code, one at a time, and whether a test notices.

    python -m tests.mutants --seed 0 --count 200

draws mutants from the syntax trees of the sources and tests each in a copy of the current directory, two at a time.
A mutant is killed by the first test that fails, or by a time-out. Constants of modules (block sizes, tolerances),
docstrings, annotations and the texts of errors are not changed.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

SOURCES = [Path("src/likely/statistics"), Path("src/likely/families")]
STAGES = {"laws": 1, "reference": 2, "unit": 3, "journeys": 4}
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "build", "dist")

ARITHMETIC = {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "//": ["*"], "**": ["*"], "%": ["*"]}
COMPARISONS = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="]}
WORDS = {"is": ["is not"], "is not": ["is"], "in": ["not in"], "not in": ["in"], "and": ["or"], "or": ["and"]}
OTHERS = ARITHMETIC | COMPARISONS | WORDS
WITH_OPERATORS = (ast.BinOp, ast.AugAssign, ast.Compare, ast.BoolOp)
OPERATOR = re.compile(rb"//|\*\*|[-+*/%]|[<>=!]=|[<>]|\bis\s+not\b|\bnot\s+in\b|\bis\b|\bin\b|\band\b|\bor\b")


class Mutant(NamedTuple):
    path: Path
    line: int
    start: int  # in bytes of the file
    end: int
    old: str
    new: str
    code: str

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

    def span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None  # noqa: PT018
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def mutant(self, start: int, end: int, new: str) -> Mutant:
        line = self.text.count(b"\n", 0, start) + 1
        code = self.text[self.lines[line - 1] : self.lines[line]].decode().strip()
        return Mutant(self.path, line, start, end, self.text[start:end].decode(), new, code)


def stages(mutated: Path) -> list[list[str]]:
    """Test files: those of the mutated package, laws, references, other packages, journeys; most mentions first."""
    tree = ast.parse(mutated.read_bytes())
    names = [mutated.stem, *(node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))]
    mentioned = re.compile(rf"\b({'|'.join(names)})\b")
    found: list[list[tuple[int, str]]] = [[] for _ in range(5)]
    for path in sorted(Path("tests").rglob("test_*.py")):
        its_own = path.parts[1] not in STAGES or (path.parts[1] == "unit" and path.parts[2] in mutated.parts)
        mentions = len(mentioned.findall(path.read_text(encoding="utf-8")))
        found[0 if its_own else STAGES[path.parts[1]]].append((-mentions, str(path)))
    return [[path for _, path in sorted(stage)] for stage in found if stage] + [["src/likely"]]


def run(files: Sequence[str], folder: Path, seconds: float, skipped: Iterable[str] = ()) -> str:
    """What ended the tests: the first that failed, a time-out, or nothing."""
    env = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    options = ["-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    options += [f"--deselect={test}" for test in skipped]
    command, out = [sys.executable, "-m", "pytest", *options, *files], subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, env=env, stdout=out, text=True, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"time-out after {seconds:.0f} s"
    if process.returncode in (0, 5):  # 5: no tests in these files
        return ""
    named = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return named[1] if named else f"exit code {process.returncode}"


def judge(mutant: Mutant, folders: SimpleQueue[Path], seconds: float, broken: set[str]) -> tuple[Mutant, str, float]:
    """A mutant, what killed it (or nothing), and the time that took; tests that fail without a mutant are skipped."""
    start, folder, text = time.perf_counter(), folders.get(), mutant.path.read_bytes()
    write(folder / mutant.path, text[: mutant.start] + mutant.new.encode() + text[mutant.end :])
    for files in stages(mutant.path):
        while killer := run(files, folder, seconds, sorted(broken)):
            test = killer.partition("[")[0]
            if "::" not in test or not fails_unchanged(test, seconds):
                break
            broken.add(test)
        if killer:
            break
    write(folder / mutant.path, text)
    folders.put(folder)
    return mutant, killer, time.perf_counter() - start


@cache
def fails_unchanged(test: str, seconds: float) -> bool:
    return bool(run([test], Path.cwd(), seconds))


def write(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation testing in a copy of the current directory.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one group of test files")
    parser.add_argument("--source", nargs="+", type=Path, default=SOURCES)
    given = parser.parse_args()
    files = sorted(file for path in given.source for file in (path.rglob("*.py") if path.is_dir() else [path]))
    possible = [mutant for file in files for mutant in Source(file).mutants()]
    drawn = Random(given.seed).sample(possible, min(given.count, len(possible)))
    survived, broken = [], set[str]()
    with TemporaryDirectory() as temporary, ThreadPoolExecutor(given.jobs) as pool:
        folders: SimpleQueue[Path] = SimpleQueue()
        for i in range(given.jobs):
            folders.put(Path(shutil.copytree(".", Path(temporary) / str(i), ignore=NOT_COPIED)))
        tasks = [pool.submit(judge, mutant, folders, given.timeout, broken) for mutant in drawn]
        for task in as_completed(tasks):
            mutant, killer, seconds = task.result()
            print(f"{'killed' if killer else 'SURVIVED'} ({seconds:.0f} s) {mutant}  {killer}", flush=True)
            survived += [] if killer else [mutant]
    killed = len(drawn) - len(survived)
    print(f"\nkilled {killed} of {len(drawn)} ({killed / len(drawn):.1%}) of {len(possible)} possible mutants")
    print(*sorted(map(str, survived)), *(f"skipped, fails without a mutant: {test}" for test in broken), sep="\n")


if __name__ == "__main__":
    main()
