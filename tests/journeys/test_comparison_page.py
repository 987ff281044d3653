"""The page about generative and discriminative models shows what its examples print."""

from __future__ import annotations

from tests.pages import ROOT, run

PAGE = ROOT / "docs" / "generative-vs-discriminative.md"


def test_every_example_prints_what_the_page_shows() -> None:
    examples = run(PAGE)[0]
    assert len([example for example in examples if example.shown is not None]) == 5
    for example in examples:
        assert example.matches(), f"the page shows\n{example.shown}\nand the example prints\n{example.printed}"


def test_the_skewed_example_has_the_shape_of_ng_and_jordan() -> None:
    first = run(PAGE)[1]["curves"].verdicts[0]
    assert (first.score, first.second) == ("log_loss", "penalty 0.001")
    assert first.leads[0].winner == "generative"
    assert first.leads[-1].winner == "penalty 0.001"
    assert len(first.crossings) == 1
