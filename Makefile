# `make demo` and `make test` are the two commands of the README; each installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPAT := .venv-compat
MMENGINE := .venv-mmengine
MMCV := .venv-mmcv
PEERS := .venv-peers
AUDIT := .venv-audit
BUILD := .venv-build
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
# `make test TORCH=2.9.0` takes another torch than constraints.txt; TORCH=newest takes the newest one.
CONSTRAINTS := $(if $(TORCH),build/constraints-torch-$(TORCH).txt,constraints.txt)
PIP := $(BIN)/python $(PIP_INSTALL) -c $(CONSTRAINTS)
COMPAT_PIP := $(COMPAT)/bin/python $(PIP_INSTALL) --no-compile -c $(CONSTRAINTS)
PEERS_PIP := $(PEERS)/bin/python $(PIP_INSTALL) -c constraints-peers.txt

# Two workers more than there are cores: many tests wait for processes and servers.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
RUNS ?= 10
MUTANTS ?= 300
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 0
CODE := hookline tests benchmarks examples scripts
# The optional features that the tests use.
EXTRAS := gpu,s3,onnx,captum,watch,tensorboard,wandb,mlflow,dvclive,trackio
# Without a network, trackers give up at once instead of waiting for a timeout.
OFFLINE := HTTP_PROXY=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1,localhost

# Most installed modules are never imported, so pip does not compile them; Python does at their first import, and must keep the result.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-exhaustive test-compat test-editor soak mutate fuzz audit compat-environment compat-matrix lint format check bench bench-check bench-peers docs gallery dist release-check clean

# `.use` has the package alone, `.dev` also the tools and every package that the tests use.
setup: $(VENV)/.dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

build/constraints-torch-newest.txt: constraints.txt
	mkdir -p build
	sed '/^torch==/d' $< > $@

build/constraints-torch-%.txt: constraints.txt
	mkdir -p build
	sed 's/^torch==.*/torch==$*/' $< > $@

$(VENV)/.use: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) -e .
	touch $@

# Dependency groups need pip 25.1; a new environment has the older pip of its Python.
$(VENV)/.dev: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) 'pip>=25.1'
	$(PIP) --no-compile --group dev -e '.[$(EXTRAS)]'
	touch $@ $(VENV)/.use

demo: $(VENV)/.use
	$(BIN)/hookline train hookline/configs/digits.yaml

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# Trains the example models to their stated scores and tries a failure at every single write of a checkpoint.
test-exhaustive: $(VENV)/.dev
	HOOKLINE_EVERY_WRITE=1 $(BIN)/python -m pytest -n auto --timeout 3600 -o faulthandler_timeout=3660 -m "exhaustive or slow" tests/models tests/docs tests/checkpoint tests/report tests/verify tests/cli

# Callbacks of other frameworks, MMEngine and MMCV themselves and the trackers that do not fit into `.venv`. The environments see the
# packages of `.venv` (torch, trackers) and add theirs.
test-compat: $(COMPAT)/.ready $(MMENGINE)/.ready $(MMCV)/.ready
	HOOKLINE_MMENGINE_PYTHON=$(CURDIR)/$(MMENGINE)/bin/python $(COMPAT)/bin/python -m pytest -n 2 --dist worksteal \
		tests/compat_foreign tests/compat/test_mmengine_real.py
	HOOKLINE_MMCV_PYTHON=$(CURDIR)/$(MMCV)/bin/python $(BIN)/python -m pytest tests/compat/test_mmcv_installed.py
	$(OFFLINE) $(COMPAT)/bin/python -m pytest -n 2 --dist worksteal tests/hooks tests/contracts -k "clearml or neptune or swanlab"

# The JSON Schema of configs in the real YAML language server, which needs npm.
test-editor: $(VENV)/.dev
	npm install --silent --prefix build/editor yaml-language-server@2.0.0
	HOOKLINE_YAML_SERVER=$(CURDIR)/build/editor/node_modules/.bin/yaml-language-server $(BIN)/python -m pytest -q -m exhaustive tests/config/test_json_schema.py

compat-environment: $(COMPAT)/.ready $(MMENGINE)/.ready $(MMCV)/.ready

compat-matrix: $(COMPAT)/.ready
	HOOKLINE_WRITE_MATRIX=1 $(COMPAT)/bin/python -m pytest -n 2 --dist worksteal tests/compat_foreign

# The packages with --no-deps ask for older versions than ours, and those of MosaicML and litdata also for torchvision. They
# work with the installed versions.
$(COMPAT)/.ready: pyproject.toml $(CONSTRAINTS) $(VENV)/.dev
	$(call environment_beside,$(COMPAT))
	$(COMPAT_PIP) --group compat -e .
	$(COMPAT_PIP) --no-deps mosaicml mosaicml-streaming swanlab azureml-core litdata
	touch $@

$(MMENGINE)/.ready: pyproject.toml $(CONSTRAINTS) $(VENV)/.dev
	$(call environment_beside,$(MMENGINE))
	$(MMENGINE)/bin/python $(PIP_INSTALL) --no-compile -c $(CONSTRAINTS) --group compat-mmengine -e .
	touch $@

$(MMCV)/.ready: pyproject.toml $(CONSTRAINTS) $(VENV)/.dev
	$(call environment_beside,$(MMCV))
	$(MMCV)/bin/python $(PIP_INSTALL) --no-compile -c $(CONSTRAINTS) --group compat-mmcv -e .
	$(MMCV)/bin/python $(PIP_INSTALL) --no-compile --no-deps --no-build-isolation mmcv==1.7.2
	touch $@

# An environment that also sees the packages of `.venv`.
define environment_beside
	$(BIN)/python -m venv --clear --without-pip $(1)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" > `$(1)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))"`/beside.pth
endef

# The suite again and again, in random orders and partly beside other load, to find unstable tests.
soak: $(VENV)/.dev
	$(BIN)/python scripts/soak_tests.py --runs $(RUNS) --workers $(WORKERS)

# Which changes of the code the tests notice (docs/decisions/010-mutation-testing.md). Continues an interrupted run.
mutate: $(VENV)/.dev
	$(BIN)/python -m scripts.mutate --mutants $(MUTANTS)

# Damaged and forged checkpoints, manifests, logs and configs. The files of findings are kept in fuzz-findings/.
fuzz: $(VENV)/.dev
	$(BIN)/python -m scripts.fuzz --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

# Known vulnerabilities of the pinned packages. Needs the network; scripts/audit.py has the exit codes. The tool gets its own environment.
audit: $(AUDIT)/bin/pip-audit
	$(BIN)/python scripts/audit.py $(AUDIT)/bin/pip-audit

$(AUDIT)/bin/pip-audit:
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python $(PIP_INSTALL) 'pip-audit>=2.9'

lint: $(VENV)/.dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/python scripts/check_types.py
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_sizes.py
	-test -x $(AUDIT)/bin/pip-audit || $(MAKE) $(AUDIT)/bin/pip-audit
	-$(BIN)/python scripts/audit.py $(AUDIT)/bin/pip-audit --allow-unreachable # Shown only: news about a package must not block a change.

format: $(VENV)/.dev
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

check: lint test

# Our own benchmarks (about half an hour), the page and picture made from the results, and a check of the claims about them.
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/report.py

# The page and the claims, from the committed results.
bench-check: $(VENV)/.dev
	$(BIN)/python benchmarks/report.py --check

bench-peers: $(PEERS)/.ready $(COMPAT)/.ready
	$(PEERS)/bin/python benchmarks/run.py --peers
	$(COMPAT)/bin/python benchmarks/run.py --compat
	$(PEERS)/bin/python benchmarks/report.py

$(PEERS)/.ready: pyproject.toml constraints-peers.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS_PIP) -e . lightning accelerate transformers pytorch-ignite skorch mmengine keras pluggy h5py
	$(PEERS_PIP) requests torch_optimizer coolname tabulate py-cpuinfo importlib_metadata fastprogress fastdownload fasttransform pandas scikit-learn
	$(PEERS_PIP) --no-deps mosaicml fastai
	touch $@

# The documentation as a site, in site/, and its tests; a warning (a broken link, for example) is an error. Not --quiet, which hides
# warnings from --strict.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	HOOKLINE_SITE=site $(BIN)/python -m pytest -q -m exhaustive tests/docs/test_site.py

# The examples, trained (a few minutes), and the pictures of docs/gallery.md.
gallery: $(VENV)/.dev
	$(BIN)/python scripts/make_gallery.py

# The files of a release, and their hashes. The tool gets its own environment.
dist:
	test -x $(BUILD)/bin/python || $(PYTHON) -m venv $(BUILD)
	$(BUILD)/bin/python $(PIP_INSTALL) 'build>=1.2'
	rm -rf dist
	$(BUILD)/bin/python -m build --outdir dist .
	$(BUILD)/bin/python scripts/hash_release.py dist

# The checklist of a release: version, changelog, clean tree, files, and the wheel in an empty environment of each Python.
release-check:
	$(PYTHON) scripts/release.py $(PYTHONS)

clean:
	rm -rf $(VENV) $(COMPAT) $(MMENGINE) $(MMCV) $(PEERS) $(AUDIT) $(BUILD) runs site build dist fuzz-findings .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis *.egg-info
