# Two commands are all a newcomer needs: `make demo` and `make test`. Both build .venv on their first run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SHARED_DATA := $(wildcard ../shared/data)
ifneq ($(SHARED_DATA),)
export GRAPHGAUGE_DATA ?= $(abspath $(SHARED_DATA))
endif

.PHONY: demo test lint data bench gpu clean

demo: $(VENV)/.installed
	$(BIN)/graphgauge demo

test: lint
	$(BIN)/python -m pytest -q -n 2 --maxprocesses 2

lint: $(VENV)/.installed-dev
	$(BIN)/pre-commit run --all-files

# the tests of Cora, GitHub and MovieLens skip themselves without their files; where none may be skipped, this comes first
data:
	@test -d "$(GRAPHGAUGE_DATA)" || { echo "The data folder '$(GRAPHGAUGE_DATA)' is not there. Set GRAPHGAUGE_DATA to a folder with the" \
	"files that docs/datasets.md lists; without the variable, ../shared/data is used where it exists." >&2; exit 1; }

bench: $(VENV)/.installed-dev
	$(BIN)/python bench/extraction.py
	$(BIN)/python bench/unions.py --budgets
	$(BIN)/python bench/explainers.py
	$(BIN)/python bench/evaluation.py --growth
	$(BIN)/python bench/service.py
	$(BIN)/python bench/service.py --kill

# on a machine with an NVIDIA GPU and its build of torch: what is computed there is what is computed on a CPU
gpu: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -n 8 --maxprocesses 8 -m numeric --device cuda
	$(BIN)/python bench/device.py
	$(BIN)/python bench/evaluation.py --device cuda

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# torch comes first and on its own, so that no other package can pull in a different build of it
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) -e ".[dev]"
	touch $@
