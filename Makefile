# `make demo` and `make test` need Python 3.11 or newer and git, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# One thread is as fast for small models; several crawl when something else keeps a core busy.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test bench clean

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "CALM needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	@echo "setting up $(VENV), once (torch is large) ..."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

demo: $(READY)
	@rm -rf demo
	$(BIN)/calm run demo --learner lstm --size tiny --out demo/lstm
	$(BIN)/calm run demo --learner floor --out demo/floor
	$(BIN)/calm report demo/lstm demo/floor --out demo/report
	@echo
	@echo "Forgetting is in demo/report/loss.png: the spikes where the language switches."

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

bench: $(READY)
	$(BIN)/python bench/harness.py
	$(BIN)/python bench/throughput.py
	$(BIN)/python bench/memory.py
	$(BIN)/python bench/building.py
	$(BIN)/python bench/report.py

clean:
	rm -rf $(VENV) demo
