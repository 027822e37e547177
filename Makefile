# make demo | make test | make sweep | make test-torch | make lint | make bench | make clean
# PIP_FLAGS reaches pip, for example to take the CPU build of torch on Linux:
#   make demo PIP_FLAGS="--extra-index-url https://download.pytorch.org/whl/cpu"
PYTHON ?= python3
VENV ?= .venv
PIP_FLAGS ?=
PYTEST_FLAGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt $(PIP_FLAGS)
INSTALLED := $(VENV)/installed
LINT_TOOLS := $(VENV)/lint-tools
# make test-torch TORCH=2.11.0: what calls torch or is called by it, with another of its releases
TORCH ?= 2.9.1
OTHER_VENV := .venv-torch-$(TORCH)
TORCH_TESTS := test/inductor test/compiler/calls test/compiler/groups test/compiler/scales \
  test/runtime test/numerics/forms

.PHONY: install demo test sweep test-torch lint format bench clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt runtime/_relaunch.c
	@echo "preparing $(VENV) (the first time takes minutes)" >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "make: tilewright needs Python 3.11 or newer; name one with PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[test]"
	touch $@

$(LINT_TOOLS): $(INSTALLED)
	$(PIP) --editable ".[dev]"
	touch $@

demo: $(INSTALLED)
	$(BIN)/tilewright --version
	$(BIN)/tilewright run --m 512 --n 768 --k 320 --verbose --output build/demo

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow or not slow" $(PYTEST_FLAGS)

sweep: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "sweep or pairwise or array" --all $(PYTEST_FLAGS)

test-torch:
	$(PYTHON) -m venv $(OTHER_VENV)
	grep -vE '^(torch|setuptools|cuda-bindings|cuda-python)==' constraints.txt > $(OTHER_VENV)/constraints.txt
	$(OTHER_VENV)/bin/python -m pip install --quiet --constraint $(OTHER_VENV)/constraints.txt \
	  $(PIP_FLAGS) torch==$(TORCH) --editable ".[test]"
	$(OTHER_VENV)/bin/python -m pytest -n 2 --dist worksteal $(PYTEST_FLAGS) $(TORCH_TESTS)

lint: $(LINT_TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(LINT_TOOLS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(INSTALLED)
	$(BIN)/python benchmarks/host/compile_time.py
	$(BIN)/python benchmarks/emulator/emulator.py

clean:
	rm -rf $(VENV) .venv-torch-* build
