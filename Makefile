# The README's two commands are `make demo` and `make test`; each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: setup demo test lint format check bench clean

# To use it: the package alone. To work on it: with the tools and everything that the tests talk to.
setup: $(VENV)/.dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.use: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.use

demo: $(VENV)/.use
	$(BIN)/hookline train configs/digits.yaml

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.dev
	$(BIN)/ruff format --check hookline tests benchmarks
	$(BIN)/ruff check hookline tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format hookline tests benchmarks
	$(BIN)/ruff check --fix hookline tests benchmarks

check: lint test

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/overhead.py

clean:
	rm -rf $(VENV) runs build dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis *.egg-info
