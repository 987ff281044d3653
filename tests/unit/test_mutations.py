"""The mutants that `make mutants` draws from."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType
from typing import Any

from tests.mutations import Marks, Source, replace_code

CODE = '''"""1 + 1"""
BLOCK = 1000


def function(x: int, σ: float = 0.5) -> "x + 1":
    """x < 1"""
    if not x <= 3 and σ:
        raise ValueError(f"{x + 1} < 2")
    return x.copy(σ, x), -σ
'''

CHANGES = {
    ("0.5", "1.5"),
    ("0.5", "-0.5"),
    ("not x <= 3 and σ", "not (not x <= 3 and σ)"),
    ("and", "or"),
    ("not", ""),
    ("<=", "<"),
    ("<=", ">"),
    ("3", "4"),
    ("3", "2"),
    ("σ, x", "x, σ"),
    ("x.copy(σ, x), -σ", "-σ, x.copy(σ, x)"),
    ("-", ""),
}


def test_code_is_changed_and_not_what_is_written_about_it(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(CODE, encoding="utf-8")
    mutants = list(Source(path).mutants())
    assert {(mutant.old, mutant.new) for mutant in mutants} == CHANGES
    text = path.read_bytes()
    for mutant in mutants:
        assert text[mutant.start : mutant.end].decode() == mutant.old
        compile(text[: mutant.start] + mutant.new.encode() + text[mutant.end :], path, "exec")


FUNCTIONS = """
def outer(x):
    def inner(y):
        return y + 1
    if x:
        return inner(x)
    return 0

def other(x, y=0.5):
    return x
"""


def functions(path: Path, code: Any, **found: Any) -> dict[str, Any]:
    exec(compile(code, str(path.resolve()), "exec"), found)
    return found


def test_shifts_are_no_comparisons(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("def function(x):\n    return x << y\n", encoding="utf-8")
    assert not list(Source(path).mutants())


def test_a_change_takes_effect_in_the_code_of_a_function_but_not_in_its_defaults(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    mutants = {(mutant.old, mutant.new): mutant for mutant in Source(path).mutants()}
    found = functions(path, FUNCTIONS)
    live = [function for function in found.values() if isinstance(function, FunctionType)]
    assert not replace_code(live, mutants["0.5", "1.5"])
    assert replace_code(live, mutants["+", "-"])
    assert (found["outer"](5), found["other"](5)) == (4, 5)


def test_a_mark_tells_which_calls_reach_the_statement_of_a_mutant(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    mutants = dict(enumerate(Source(path).mutants()))
    reached: set[int] = set()
    found = functions(path, Marks(path, mutants).tree(), _reached=reached.add)
    assert {mutants[i].old for i in reached} == {"0.5"}
    assert found["outer"](0) == 0
    assert {mutants[i].old for i in reached} == {"0.5", "x", "0"}
    assert found["outer"](5) == 6
    assert {mutants[i].old for i in reached} == {"0.5", "x", "0", "+", "1"}
