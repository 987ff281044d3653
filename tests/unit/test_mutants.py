"""The mutants that `make mutants` draws from."""

from __future__ import annotations

from pathlib import Path

from tests.mutants import Source

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
