"""The command `python -m benchmarks quality`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.quality import curves, diagram, report, tables
from benchmarks.quality.cache import Cache
from benchmarks.quality.measures import Results
from benchmarks.quality.models import Model, select
from benchmarks.quality.validation import FOLDS, SEEDS, result


def parser() -> argparse.ArgumentParser:
    """Arguments of the command."""
    parsed = argparse.ArgumentParser("python -m benchmarks quality", description="Quality of class probabilities.")
    parsed.add_argument("folder", nargs="?", type=Path, help="CSV or Parquet files; default: tables of the project")
    parsed.add_argument("--tables", type=_names, metavar="A,B", help="only these tables")
    parsed.add_argument("--models", type=_names, metavar="A,B", help="only these models")
    parsed.add_argument("--cache", type=Path, metavar="PATH", help="JSON file that keeps results of peers")
    parsed.add_argument("--diagram", type=Path, metavar="PATH", help="write reliability diagrams to this image")
    parsed.add_argument("--curves", action="store_true", help="learning curves instead of cross-validation")
    return parsed


def quality(arguments: list[str]) -> Iterator[str]:
    """Cross-validated quality, or learning curves, as Markdown."""
    options = parser().parse_args(arguments)
    if options.folder is not None and not options.folder.is_dir():
        raise SystemExit(f"{options.folder} is not a folder.")
    models, absent = select(options.models or (curves.MODELS if options.curves else None))
    if absent:
        yield f"Not installed, and not compared: {', '.join(absent)}. `pip install -e '.[bench]'` installs them."
        yield ""
    if not models:
        raise SystemExit("None of these models is installed.")
    cache = Cache(options.cache)
    found, skipped = tables.load(options.folder, options.tables)
    yield from report.listed(skipped)
    yield ""
    if options.curves:
        yield from curves.curves(found, models, cache)
        return
    results = validated([table.drawn() for table in found], models, cache)
    yield from described(results, models)
    if options.diagram is not None:
        shown = [model.name for model in models if model is models[0] or model.name in curves.MODELS]
        diagram.draw(results, shown, options.diagram)
        yield f"Reliability diagrams: {options.diagram}"


def validated(found: list[tables.Table], models: list[Model], cache: Cache) -> Results:
    """Results of all models on all tables."""
    results: Results = {}
    for table in found:
        results[table.name] = {}
        for model in models:
            progress(f"{table.name}: {model.name}")
            results[table.name][model.name] = result(model, table, cache)
    progress("")
    return results


def progress(text: str) -> None:
    """Replace the last line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def described(results: Results, models: list[Model]) -> Iterator[str]:
    """All measures of the results."""
    names, peers = [model.name for model in models], [model.name for model in models if not model.ours]
    yield f"{len(results)} tables, {len(SEEDS)} times {FOLDS}-fold, at most {tables.MOST_ROWS:,} rows."
    yield ""
    yield from report.overview(results, names)
    for title in report.MEASURES:
        yield from report.by_table(results, names, title)
    ours = [model.name for model in models if model.ours][:1]
    for name in ours if peers else ():
        yield from report.differences(results, name, peers)
        yield from report.calibration(results, name, peers)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
