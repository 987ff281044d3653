"""Mutation testing: small changes of the code, one at a time, and whether a test notices.

    python -m tests.mutants --seed 0 --count 200

draws mutants of the sources. A mutant is killed by the first test that fails, by a time-out or by a crash. There are
three steps, each in forks of a process that has imported neither the tests nor the sources:

1. Survey: all tests run once on marked sources, which record which tests reach the statement of which mutant.
2. One process collects the tests and forks for each mutant. The fork replaces the code of the changed function and
   runs the tests that reach it, except those in files that use Polars, whose threads do not survive a fork.
3. Mutants that survive so far and are reached by tests with Polars are tested on these in a process that imports the
   changed source; and on all tests, if the change is outside functions or runs while tests are collected.

Tests that start another Python interpreter do not see the change in it.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import functools
import gc
import io
import math
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import zip_longest
from pathlib import Path
from random import Random
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

import pytest
from hypothesis import Phase, settings

from tests.mutations import Marks, Mutant, Source, import_instead, replace_code

SOURCES = [Path("src/likely/statistics"), Path("src/likely/families")]
OPTIONS = ["-p", "no:cacheprovider", "--hypothesis-seed=0", "--hypothesis-profile=mutants"]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]


class Test(NamedTuple):
    reached: set[int]  # mutants, by their numbers in the draw
    seconds: float  # of the processor
    passed: bool


class Survey:
    """Runs tests on marked sources and records which mutants they reach: a pytest plugin."""

    def __init__(self, part: int, parts: int) -> None:
        self.part, self.parts = part, parts  # of the test files
        self.tests: dict[str, Test] = {}
        self.collecting: set[int] = set()  # mutants that are reached while tests are collected
        self.now: set[int] = set()
        self.set_up = defaultdict[Path, set[int]](set)  # by fixtures, which other tests of the file may share

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.set_up[item.path] |= self.now

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.collecting |= self.now
        paths = list(dict.fromkeys(item.path for item in session.items))[self.part :: self.parts]
        items = [item for item in session.items if item.path in paths]
        for item, following in zip_longest(items, items[1:]):
            self.now.clear()
            start, failed = time.process_time(), session.testsfailed
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds = time.process_time() - start
            self.tests[item.nodeid] = Test(set(self.now), seconds, session.testsfailed == failed)
        for item in items:
            self.tests[item.nodeid].reached.update(self.set_up[item.path])
        return True


class Verdict(NamedTuple):
    killer: str = ""
    is_long: bool = False  # the killer is not in the default suite
    left: str = ""  # tests to be run in a process that imports the changed source: "all" or "threads"


class Trials:
    """Runs tests on mutants: a pytest plugin."""

    def __init__(self, given: argparse.Namespace, mutants: Mapping[int, Mutant], surveys: Iterable[Survey]) -> None:
        self.given, self.mutants, surveys = given, mutants, list(surveys)
        self.tests = {name: test for survey in surveys for name, test in survey.tests.items()}
        self.collecting = {i for survey in surveys for i in survey.collecting}
        self.imported: int | None = None  # the mutant that this process imports
        self.left = ""
        self.verdicts: dict[int, Verdict] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if self.imported is not None:
            self.verdicts[self.imported] = self.first_failure(session, self.imported)
        else:
            functions = [found for found in gc.get_objects() if type(found) is FunctionType]
            gc.freeze()
            self.verdicts = self.judge({i: partial(self.replaced, session, functions, i) for i in self.mutants})
        return True

    def by_replacing(self) -> dict[int, Verdict]:
        collect(self, self.given.long)
        return self.verdicts

    def replaced(self, session: pytest.Session, functions: Iterable[FunctionType], i: int) -> Verdict:
        if self.mutants[i].old == self.mutants[i].new:
            return Verdict()
        if not replace_code(functions, self.mutants[i]):
            return Verdict(left="all")
        if (verdict := self.first_failure(session, i)).killer:
            return verdict
        threads = any(has_threads(item.path) and i in self.test(item).reached for item in session.items)
        return Verdict(left="all" if i in self.collecting else "threads" if threads else "")

    def by_importing(self, i: int, left: str) -> Verdict:
        import_instead({self.mutants[i].path: self.mutants[i].source()})
        self.limit_time(0.0)
        self.imported, self.left = i, left
        collect(self, self.given.long)
        return self.verdicts.get(i, Verdict("collection"))

    def first_failure(self, session: pytest.Session, i: int) -> Verdict:
        if session.testsfailed:
            return Verdict("collection")
        items = self.order(session.items, i)
        for item, following in zip_longest(items, items[1:]):
            self.limit_time(self.test(item).seconds)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return Verdict(item.nodeid, is_long(item))
        return Verdict()

    def test(self, item: pytest.Item) -> Test:
        return self.tests.get(item.nodeid, Test(set(), 0.0, passed=True))

    def order(self, items: Iterable[pytest.Item], i: int) -> list[pytest.Item]:
        """Long cases last, tests that reach a mutant first; few cases of each test before more of them; by time."""
        cases, keys = Counter[str](), {}
        for item in items:
            test = self.test(item)
            chosen = i in test.reached and has_threads(item.path) == (self.left == "threads")
            if test.passed and (chosen or self.left == "all"):
                name = item.nodeid.partition("[")[0]
                cases[name] += 1
                keys[item] = is_long(item), i not in test.reached, cases[name].bit_length(), math.frexp(test.seconds)[1]
        return sorted(keys, key=keys.__getitem__)

    def limit_time(self, expected: float) -> None:
        """A signal ends this process if it takes longer, in time of the processor, or waits very much longer."""
        seconds = self.given.timeout + 10 * expected
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, 20 * seconds)

    def judge(self, calls: Mapping[int, Callable[[], Verdict]]) -> dict[int, Verdict]:
        verdicts = {}
        for i, found, seconds in forked(calls, self.given.jobs):
            verdict = found if isinstance(found, Verdict) else Verdict(found)
            word = "killed" if verdict.killer else "open" if verdict.left else "SURVIVED"
            print(f"{word} ({seconds:.0f} s) {self.mutants[i]}  {verdict.killer}", file=sys.__stdout__, flush=True)
            verdicts[i] = verdict
        return verdicts


def is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None


@functools.cache
def has_threads(path: Path) -> bool:
    return "polars" in path.read_text(encoding="utf-8")


def collect(plugin: Survey | Trials, long: bool) -> None:
    """Collects all tests and leaves them to a plugin."""
    phases = set(Phase) - {Phase.shrink, Phase.explain}
    settings.register_profile("mutants", database=None, phases=phases)
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*OPTIONS, *(["-m", ""] if long else [])], plugins=[plugin])


def survey(given: argparse.Namespace, mutants: Mapping[int, Mutant], part: int) -> Survey:
    found = Survey(part, given.jobs)
    import_instead({path: Marks(path, mutants).tree() for path in {mutant.path for mutant in mutants.values()}})
    vars(builtins)["_reached"] = found.now.add
    vars(functools)["cache"] = lambda function: function  # a test that takes a result from a cache reaches it too
    collect(found, given.long)
    return found


def forked(calls: Mapping[int, Callable[[], Any]], jobs: int) -> Iterator[tuple[int, Any, float]]:
    """What calls return, each in a fork of this process, or how the fork ended without a result; and the time."""
    waiting, running = list(calls.items()), dict[int, tuple[int, float]]()
    while waiting or running:
        if waiting and len(running) < jobs:
            i, call = waiting.pop(0)
            if process := os.fork():
                running[process] = i, time.perf_counter()
            else:
                answer(call)
        else:
            process, status = os.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)  # what tests left behind
            i, start = running.pop(process)
            if os.waitstatus_to_exitcode(status) > 0:
                raise ChildProcessError("see the traceback above")
            ended = "time-out" if status in (signal.SIGPROF, signal.SIGALRM) else f"signal {status}"
            yield i, ended if status else pickle.loads(answer_of(process).read_bytes()), time.perf_counter() - start


def answer(call: Callable[[], Any]) -> NoReturn:
    status = 1
    try:
        os.setpgrp()
        answer_of(os.getpid()).write_bytes(pickle.dumps(call()))
        status = 0
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def answer_of(process: int) -> Path:
    return Path(tempfile.gettempdir(), f"{process}.answer")


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation testing of the current directory.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one test, beyond its usual time")
    parser.add_argument(
        "--long", action="store_true", help="run the long cases too, on mutants that survive the others"
    )
    parser.add_argument("--source", nargs="+", type=Path, default=SOURCES)
    given = parser.parse_args()
    files = sorted(file for path in given.source for file in (path.rglob("*.py") if path.is_dir() else [path]))
    possible = [mutant for file in files for mutant in Source(file).mutants()]
    mutants = dict(enumerate(Random(given.seed).sample(possible, min(given.count, len(possible)))))
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTHONPATH"] = str(Path("src").resolve())
    sys.path.insert(0, os.environ["PYTHONPATH"])
    with tempfile.TemporaryDirectory() as temporary:
        tempfile.tempdir = os.environ["TMPDIR"] = temporary
        parts = {part: partial(survey, given, mutants, part) for part in range(given.jobs)}
        trials = Trials(given, mutants, [found for _, found, _ in forked(parts, given.jobs)])
        print(f"{len(trials.tests)} tests", flush=True)
        ((_, verdicts, _),) = forked({0: trials.by_replacing}, 1)
        left = {i: verdict.left for i, verdict in verdicts.items() if verdict.left}
        verdicts |= trials.judge({i: partial(trials.by_importing, i, tests) for i, tests in left.items()})
    survived = [str(mutants[i]) for i, verdict in verdicts.items() if not verdict.killer]
    by_long = [f"{mutants[i]}  {verdict.killer}" for i, verdict in verdicts.items() if verdict.is_long]
    for title, count in ("killed", len(mutants) - len(survived)), ("killed by long cases alone", len(by_long)):
        print(f"{title}: {count} of {len(mutants)} ({count / len(mutants):.1%})")
    print(*sorted(survived), sep="\n")
    print(*(f"skipped, fails without a mutant: {name}" for name, test in trials.tests.items() if not test.passed))


if __name__ == "__main__":
    main()
