# Everything runs through python3; another one: make test PYTHON=python3.13
PYTHON ?= python3
VENV := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help python venv demo test counts lint format proto check-proto
# Targets share .venv and the work tree.
.NOTPARALLEL:

help:
	@echo 'make demo         walk a node through its life with the real commands (ARGS: arguments for tools/demo)'
	@echo 'make test         every suite, each as a process of its own (SUITES="unit contract": only those)'
	@echo 'make lint         ruff, mypy, import contracts, generated messages up to date'
	@echo 'make format       rewrite the sources the way lint wants them'
	@echo 'make proto        regenerate the messages in bcd/protocol/pb'
	@echo 'make counts       rewrite tests/counts.json from the last make test'
	@echo 'make venv         .venv from requirements.lock; the others do it when needed'

# Checked before anything else, in words every Python understands.
python:
	@command -v $(PYTHON) >/dev/null || { echo 'make: $(PYTHON) not found: install Python 3.11 or newer, or name one: make PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit("make: $(PYTHON) is Python %d.%d, bcd needs 3.11 or newer; name another: make PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'

venv: python
	@$(PYTHON) -m tools.make_venv

demo: venv
	@$(VENV)/python -m tools.demo $(ARGS)

test: venv
	@$(VENV)/python -m tools.run_tests $(SUITES)

counts: venv
	@$(VENV)/python -m tools.count_tests

lint: venv check-proto
	$(VENV)/ruff check
	$(VENV)/ruff format --check
	$(VENV)/mypy
	$(VENV)/mypy -p tools
	$(VENV)/lint-imports --no-logo

format: venv
	$(VENV)/ruff check --fix
	$(VENV)/ruff format

proto: venv
	$(VENV)/python -m tools.proto

check-proto: venv
	$(VENV)/python -m tools.proto --check
