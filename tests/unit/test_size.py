"""The size of the sources: how lines, tokens and statements are counted, and their budgets."""

from __future__ import annotations

from pathlib import Path

from tools.size import ROOT, Size, budgets, excesses, size, sizes

SOURCE = '''"""Module."""

import os  # a comment


class A:
    """One
    and two."""

    # a comment
    def f(self) -> str:
        """Doc."""
        return """a

string"""
'''


def test_every_package_keeps_its_budget() -> None:
    allowed = budgets()
    assert not list(excesses(sizes(ROOT, allowed), allowed))


def test_blank_lines_comments_and_docstrings_do_not_count() -> None:
    assert size(SOURCE) == Size(lines=6, tokens=2 + 3 + 8 + 2, statements=4)


def test_a_folder_in_a_package_is_a_package_if_it_has_a_budget(tmp_path: Path) -> None:
    root = tmp_path / "likely"
    for folder in (root, root / "a" / "b" / "c", root / "a" / "d"):
        folder.mkdir(parents=True)
        (folder / "x.py").write_text("x = 1\n", encoding="utf-8")
    assert sorted(sizes(root, {"likely": 1, "likely/a/b": 1})) == ["likely", "likely/a", "likely/a/b"]


def test_messages_name_packages_beyond_their_budgets_without_one_and_gone() -> None:
    beyond, unknown, gone = excesses({"a": Size(12), "b": Size(3)}, {"a": 10, "c": 5})
    assert beyond.startswith("Package a has 12 lines, 2 more than its budget of 10.")
    assert unknown == "Package b has 3 lines and no budget. Add one to tools/budgets.toml."
    assert gone == "There is no package c. Remove its budget from tools/budgets.toml."
    assert not list(excesses({"a": Size(10)}, {"a": 10}))
