# The project's commands. Each sets up what it needs in a virtual environment of its own.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= auto
CASES ?= 50
SEED ?= 0
TENSORFLOW ?= python3
DEMO := models/cnn_int8
MARKS ?= not slow

# Tests start a thousand processes. Where bytecode may not be kept, each of these compiles tflq again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow test-long check quick lint types imports tests oldest without-products new-op index data docs golden site matrix canary drop-ins unreasonable threads bench bench-networks downstream format models clean

help:
	@echo "make demo     convert a quantized network and verify it in the interpreter"
	@echo "make test     lint, types, import rules and the tests that take no longer than a second, in under five minutes"
	@echo "make test-slow  the other tests but the longest; CI runs both"
	@echo "make test-long  the longest tests: large networks, all pairs of values, drawn sizes; before a release"
	@echo "make check    the same without the tests"
	@echo "make quick    lint, types, and the tests of what differs from main, in under two minutes"
	@echo "make oldest   start each command with every dependency and extra at its lower bound (PYTHON: the oldest, 3.11)"
	@echo "make without-products  the tests on a wheel without the quantizer, sweeps, the explorer and text as a source"
	@echo "make new-op   begin a new operator: make new-op NAME=tfl.foo FAMILY=arithmetic (docs/new-operator.md)"
	@echo "make index    write tflq/ir/index.py again: the modules of ops, rules and functions"
	@echo "make data     make schema/ and the measured tables of kernels in rules/ again, before a release"
	@echo "make docs     make the pages that say what the code does again (PAGES: cli, tour, README, ...)"
	@echo "make golden   write tests/golden again: what an operator of each family becomes"
	@echo "make site     the documentation as pages, in build/site"
	@echo "make matrix   random models of all operators, whole: CASES of each kind; the tests run a part of them"
	@echo "make canary   which kernel set each release of the interpreter is, or which operators agree with none (SEED: other models)"
	@echo "make drop-ins  200 random graphs with computed sizes: every input resized, both sides compared; the tests run a few"
	@echo "make unreasonable  20,000 models with unreasonable parameters, an hour on two cores; the tests run a few"
	@echo "make threads  200 processes with threads against one thread, and 15 minutes of memory with a plot"
	@echo "make bench    all claims of benchmarks/ in one table against their aims, on an otherwise idle machine"
	@echo "make bench-networks  the networks of Keras that it measures (needs tensorflow: TENSORFLOW=python)"
	@echo "make downstream  what tools downstream make of quantized networks, measured: scripts/downstream.json (NETWORKS: a folder of more)"
	@echo "make format   format the code and mend what the linter can mend"
	@echo "make models   make the models in models/ again (needs tensorflow: make models PYTHON=...)"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tflq needs Python 3.11 or newer; say which: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[verify]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[verify,tosa,onnx,images,kaggle,dask,browser,docs,dev]'
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation ./examples/ml_dialect
	@touch $(VENV)/.run $@

demo: $(VENV)/.run
	@mkdir -p build
	$(BIN)/tflq convert $(DEMO).tflite build/demo.tflite --force
	$(BIN)/tflq verify $(DEMO).tflite build/demo.tflite --layers

test: check tests

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "slow and not long"

test-long: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m long

check: lint types imports

quick: $(VENV)/.dev
	$(BIN)/python scripts/quick.py

lint: $(VENV)/.dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports

tests: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "$(MARKS)"

$(VENV)-oldest/.done: pyproject.toml scripts/oldest.py
	$(PYTHON) -m venv --clear $(VENV)-oldest
	$(PYTHON) scripts/oldest.py > $(VENV)-oldest/oldest.txt
	$(VENV)-oldest/bin/python -m pip install -qq --disable-pip-version-check --no-compile -r $(VENV)-oldest/oldest.txt
	$(VENV)-oldest/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation .
	@touch $@

oldest: $(VENV)-oldest/.done
	$(VENV)-oldest/bin/python -m pytest -n $(JOBS) -m smoke -k "not OO" tests/test_smoke.py

without-products: $(VENV)/.dev
	$(BIN)/python scripts/without_products.py -n $(JOBS) -m "not slow"

new-op: $(VENV)/.dev
	$(BIN)/python scripts/new_op.py $(NAME) $(FAMILY) $(OPERANDS)

index: $(VENV)/.dev
	$(BIN)/python scripts/make_index.py

data: $(VENV)/.dev
	$(BIN)/python scripts/make_data.py schema
	$(BIN)/python scripts/make_data.py kernels --jobs 2
	$(BIN)/python scripts/make_data.py schemes

docs: $(VENV)/.dev
	$(BIN)/python scripts/make_docs.py $(PAGES)

golden: $(VENV)/.dev
	$(BIN)/python scripts/make_golden.py

site: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "build/site: to read and search it, $(BIN)/python -m http.server -d build/site"

matrix: $(VENV)/.dev
	$(BIN)/python scripts/matrix.py --count $(CASES)

canary: $(VENV)/.dev
	$(BIN)/python scripts/canary.py --seed $(SEED)

drop-ins: $(VENV)/.dev
	$(BIN)/python scripts/drop_ins.py

unreasonable: $(VENV)/.dev
	@mkdir -p build
	$(BIN)/python scripts/unreasonable.py --json build/unreasonable.json

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install -qq --disable-pip-version-check 'tosa-converter-for-tflite>=2026.2'
	@touch $@

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/bench.py --write

bench-networks:
	$(TENSORFLOW) benchmarks/keras_networks.py

downstream: $(VENV)/.run
	$(BIN)/python scripts/downstream.py $(NETWORKS)

threads: $(VENV)/.dev
	@mkdir -p build
	$(BIN)/python scripts/threads.py --processes 200 --forms 2
	$(BIN)/python benchmarks/threads_memory.py --plot build/threads.svg

format: $(VENV)/.dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

models:
	$(PYTHON) models/make_models.py
	PYTHONPATH=. $(PYTHON) models/handmade.py

clean:
	rm -rf $(VENV) $(VENV)-oldest build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
