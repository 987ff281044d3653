"""The documentation is plain: short paragraphs and sentences, and none of the phrases that readers stumble over."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

from tests.pages import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
MODULES = sorted((ROOT / "src" / "likely").rglob("*.py"))
PACKAGES = sorted({module.relative_to(ROOT / "src" / "likely").parts[0] for module in MODULES})
LONGEST_PARAGRAPH, LONGEST_SENTENCE = 80, 35  # words

PHRASES = {
    r"\bNone where\b": "None if",
    r"\b(?<![Tt]here )(is|are) no (?!longer\b|more\b)\w+": "is not a",
    r"\bbeside\b": "next to, with",
    r"\bso many\b": "this many",
}


def prose(text: str) -> str:
    """A page without examples, displayed formulas, tables and headings; code and formulas count as one word."""
    text = re.sub(r"^```.*?^```$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$\$.*?\$\$", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"^(#.*|\|.*| {4}\S.*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\$[^$]+\$", "F", text)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]+`", "C", text))


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a page; each item of a list is one."""
    items = re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", prose(text), flags=re.MULTILINE)
    return [" ".join(each.split()) for each in re.split(r"\n\s*\n", items) if each.strip()]


def sentences(paragraph: str) -> list[str]:
    return re.split(r"(?<=[.!?])[\"')\]*]* +(?=[A-Z0-9\[(*\"'])", paragraph)


def written(path: Path) -> dict[int, str]:
    """The docstrings and comments of a module, by line."""
    source = path.read_text(encoding="utf-8")
    found = {
        token.start[0]: token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found[node.lineno] = node.value.value
    return found


def unwanted(text: str) -> list[str]:
    """Phrases that the text should not have, with what to write instead."""
    plain = " ".join(text.split())
    return [f"{match[0]!r}: write {better!r}" for each, better in PHRASES.items() for match in re.finditer(each, plain)]


def test_paragraphs_and_sentences_are_told_apart() -> None:
    page = "# Title\n\nOne `a b` sentence. Two\nlines, $x + y$.\n\n| a | b |\n\n1. An item. 3 rows.\n- Another: 0.5."
    assert paragraphs(page) == ["One C sentence. Two lines, F.", "An item. 3 rows.", "Another: 0.5."]
    assert sentences("An item. 3 rows (0.5 of all). It's C.") == ["An item.", "3 rows (0.5 of all).", "It's C."]
    assert unwanted("There is no row. This is\nno row.") == ["'is no row': write 'is not a'"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paragraphs_and_sentences_are_short(page: Path) -> None:
    for paragraph in paragraphs(page.read_text(encoding="utf-8")):
        assert len(paragraph.split()) <= LONGEST_PARAGRAPH, paragraph
        for sentence in sentences(paragraph):
            assert len(sentence.split()) <= LONGEST_SENTENCE, sentence


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_have_no_phrase_that_readers_stumble_over(page: Path) -> None:
    assert unwanted(prose(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_and_comments_have_no_phrase_that_readers_stumble_over(package: str) -> None:
    found = [
        f"{module.relative_to(ROOT)}:{line}: {phrase}"
        for module in MODULES
        if module.relative_to(ROOT / "src" / "likely").parts[0] == package
        for line, text in sorted(written(module).items())
        for phrase in unwanted(text)
    ]
    assert not found, "\n".join(found)
