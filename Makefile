# The README's two commands are `make demo` and `make test`; each builds the environment it needs.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
export FREEHIRE_STATE ?= $(CURDIR)/.freehire

.PHONY: demo ui test check drill clean

demo: .venv/local
	$(BIN)/freehire-embed demo

# Without DAGSTER_HOME, Dagster speaks of a temporary history; it takes absolute paths only.
ui: .venv/local
	export DAGSTER_HOME="$$(cd "$${DAGSTER_HOME:-.}" && pwd -P)" && exec $(BIN)/dagster dev -w workspace.yaml

test: .venv/dev
	$(BIN)/python -m pytest

# What an operator runs before trusting an upgrade: docs/drill.md.
drill: .venv/local
	$(BIN)/freehire-embed drill

# Exactly what CI runs beside the tests.
check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14) and "Python 3.11 to 3.13 is needed; say which with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv

.venv/local: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e '.[local]'
	@touch $@

.venv/dev: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e '.[dev]'
	@touch $@ .venv/local

clean:
	rm -rf .venv .freehire
	-rmdir .logs_queue logs 2>/dev/null
