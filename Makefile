# make build      sets up the tool in .venv, then builds, proves and publishes an environment for this machine
# make test       runs the linters and the tests that show that everything works (docs/dev/tests.md says how long it takes)
# make test-fast  runs the tests that need no real build and no cluster
# make test-all   runs every test: all profiles, strategies and examples with TensorFlow itself; stopped, it goes on where it was
# make fuzz       tries many more hostile inputs than make test-fast, and new ones at each run (minutes; FUZZ=100: an hour)
# make torture    kills builds of a small stack at every step and moment, and prints a table (many minutes; FAULTS=500: more)
# make bench      measures what the tool costs, as ratios within one run
# make matrix     builds and proves every combination of TensorFlow, Keras and Python (hours; ONLY="--only 2.21" limits it)
# make lint       runs ruff and mypy
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3

.PHONY: build test test-fast test-all fuzz torture bench matrix lint reference clean

build: .venv/ready
	.venv/bin/provision build --site local

# What builds and what starts clusters mostly waits: more workers than cores, each with whole files, the longest files first.
REAL = .venv/bin/pytest -n 3 --dist loadfile --no-loadscope-reorder

test: lint test-fast
	$(REAL) -m "(real or slurm) and not long"

test-all: lint test-fast
	$(REAL) -m "real or slurm" --resume

lint: .venv/ready-test
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

bench: .venv/ready
	.venv/bin/python tools/bench.py

matrix: .venv/ready
	.venv/bin/python tools/matrix.py $(ONLY)

.venv/ready: pyproject.toml tools/setup
	PYTHON=$(PYTHON) tools/setup fast
	touch $@

.venv/ready-test: .venv/ready
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[fast,test]'
	touch $@

# Needs no real build and no cluster. Some tests wait, so there is one worker more than cores.
test-fast: .venv/ready-test
	.venv/bin/pytest -q -n $$(( $$(nproc) + 1 )) -m "not real and not slurm"

# the property tests with FUZZ times as many examples
fuzz: .venv/ready-test
	FUZZ=$(or $(FUZZ),20) .venv/bin/pytest -q -n auto --hypothesis-show-statistics tests/unit/fuzz tests/real/test_secrets_all.py

# at every step boundary, then at random; a full and a read-only disk need root
torture: .venv/ready-test
	cd tests && ../.venv/bin/python -m parts.torture --faults $(or $(FAULTS),200)

clean:
	rm -rf .venv

# docs/reference/cli.md and man/provision.1, from the parsers
reference: .venv/ready
	.venv/bin/python tools/reference.py
