# Every target creates .venv first: a fresh clone needs Python 3.11 or later and make, nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PEERS := $(VENV)/.peers
SQL := $(VENV)/.sql
SPARK := $(VENV)/.spark

# Modules are compiled once, and not in every process of the tests.
unexport PYTHONDONTWRITEBYTECODE

# Two processes of one thread each: BLAS and OpenMP of both would otherwise wait for one another.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-sql test-spark mutants bench bench-quality bench-data clean
.PHONY: java-found

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

test-sql: $(SQL) ## run the tests of SQL statements in a temporary PostgreSQL, which is installed if it is missing
	$(BIN)/python -m tests.postgres

test-spark: $(SPARK) ## run the tests of Spark, which need Java 17 or later
	OMP_NUM_THREADS=1 $(BIN)/pytest -m spark tests/unit/engines/test_spark.py

mutants: $(INSTALLED) ## measure how many of 200 mutants of statistics and families the tests detect
	$(BIN)/python -m tests.mutants

bench: $(INSTALLED) ## measure speed, memory and accuracy, compared with scikit-learn; NEWSGROUPS=folder adds 20 newsgroups
	$(BIN)/python -m benchmarks

bench-quality: $(PEERS) ## compare probabilities with other libraries, on the tables of FOLDER
	$(BIN)/python -m benchmarks quality $(FOLDER)

bench-data: $(INSTALLED) ## compare fits of 20 million rows in files with the sums of DuckDB; ROWS and FOLDER may be set
	$(BIN)/python -m benchmarks data $(or $(ROWS),20000000) $(FOLDER)

clean: ## remove the environment, caches and builds
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("likely needs Python 3.11 or later, and $(PYTHON) is %d.%d. Choose another: make PYTHON=python3.12" % sys.version_info[:2])'
	@echo "Creating $(VENV) and installing likely with its development dependencies. This takes one to three minutes, once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(PEERS): $(INSTALLED)
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev,bench]'
	@touch $@

$(SQL): $(INSTALLED)
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev,sql]'
	@touch $@

$(SPARK): $(INSTALLED) | java-found
	@echo "Installing PySpark, which takes 490 MB."
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev,spark]'
	@touch $@

java-found:
	@command -v java > /dev/null || { apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless; } || { echo "make test-spark needs Java 17 or later, and it could not be installed. Install it, on Debian: apt-get install openjdk-17-jre-headless"; exit 1; }
