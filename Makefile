# The README's two commands are `make demo` and `make test`; each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPAT := .venv-compat
PEERS := .venv-peers
PEERS_PIP := $(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-peers.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1))) # one more than there are cores: many tests wait for processes and servers
COMPAT_PIP := $(COMPAT)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# Most of what is installed is never imported, so it is compiled at its first import, and the result must be kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-exhaustive test-compat compat-environment compat-matrix lint format check bench bench-peers docs clean

# To use it: the package alone. To work on it: with the tools and everything that the tests talk to.
setup: $(VENV)/.dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.use: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --no-compile -e '.[dev]'
	touch $@ $(VENV)/.use

demo: $(VENV)/.use
	$(BIN)/hookline train configs/digits.yaml

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# Trains the example models to their stated scores and goes through every single write of a checkpoint.
test-exhaustive: $(VENV)/.dev
	HOOKLINE_EVERY_WRITE=1 $(BIN)/python -m pytest -n auto -m "exhaustive or slow" tests/models tests/docs tests/checkpoint tests/report tests/verify tests/cli

# Callbacks of other frameworks: in an environment beside the one that is worked in, which sees its packages (torch, trackers) and
# has the others.
test-compat: $(COMPAT)/.ready
	$(COMPAT)/bin/python -m pytest -n 2 --dist worksteal tests/compat_foreign

compat-environment: $(COMPAT)/.ready

compat-matrix: $(COMPAT)/.ready
	HOOKLINE_WRITE_MATRIX=1 $(COMPAT)/bin/python -m pytest -n 2 --dist worksteal tests/compat_foreign

# The last three ask for older packages, Composer for an older torch and torchvision besides: each runs with the ones that are here.
$(COMPAT)/.ready: pyproject.toml constraints.txt $(VENV)/.dev
	$(BIN)/python -m venv --clear --without-pip $(COMPAT)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" > `$(COMPAT)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))"`/beside.pth
	$(COMPAT_PIP) -e '.[compat]'
	$(COMPAT_PIP) --no-deps mosaicml swanlab azureml-core
	touch $@

lint: $(VENV)/.dev
	$(BIN)/ruff format --check hookline tests benchmarks examples
	$(BIN)/ruff check hookline tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff format hookline tests benchmarks examples
	$(BIN)/ruff check --fix hookline tests benchmarks examples

check: lint test

# All of our own benchmarks, one after another (about half an hour), and the page and picture made from them; then those with other frameworks.
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/report.py

bench-peers: $(PEERS)/.ready
	$(PEERS)/bin/python benchmarks/run.py --peers
	$(PEERS)/bin/python benchmarks/report.py

$(PEERS)/.ready: pyproject.toml constraints-peers.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS_PIP) -e . lightning accelerate transformers pytorch-ignite skorch mmengine keras pluggy h5py
	$(PEERS_PIP) requests torch_optimizer coolname tabulate py-cpuinfo importlib_metadata fastprogress fastdownload fasttransform pandas scikit-learn
	$(PEERS_PIP) --no-deps mosaicml fastai
	touch $@

# The documentation as a site, in site/; a warning (a link that leads nowhere, say) is an error.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict # not --quiet, which would hide warnings from --strict

clean:
	rm -rf $(VENV) $(COMPAT) $(PEERS) runs site build dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis *.egg-info
