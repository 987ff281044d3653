# Every target creates .venv first: a fresh clone needs Python 3.11 or later and make, nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PEERS := $(VENV)/.peers

# Two processes of one thread each: BLAS and OpenMP of both would otherwise wait for one another.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test test-long mutants bench bench-quality clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F '|' '{ printf "  %-20s %s\n", $$1, $$2 }'

demo: $(INSTALLED) ## print the demonstration on the penguins
	$(BIN)/python -m likely.demo

test: $(INSTALLED) ## run linters, type checker, import contracts and tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST)

test-long: $(INSTALLED) ## run the long tests and the remaining parametrised cases
	$(PYTEST) -m long

mutants: $(INSTALLED) ## measure how many of 200 mutants of statistics and families the tests detect
	$(BIN)/python -m tests.mutants

bench: $(INSTALLED) ## measure speed, memory and accuracy, compared with scikit-learn
	$(BIN)/python -m benchmarks

bench-quality: $(PEERS) ## compare probabilities with other libraries, on the tables of FOLDER
	$(BIN)/python -m benchmarks quality $(FOLDER)

clean: ## remove the environment, caches and builds
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("likely needs Python 3.11 or later, and $(PYTHON) is %d.%d. Choose another: make PYTHON=python3.12" % sys.version_info[:2])'
	@echo "Creating $(VENV) and installing likely with its development dependencies. This takes one to three minutes, once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(PEERS): $(INSTALLED)
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev,bench]'
	@touch $@
