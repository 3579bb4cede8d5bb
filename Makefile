# herdbook: everything is set up in .venv with plain venv and pip; nothing is installed outside this folder.
#   make demo    two disposable boxes, one record: the second starts where the first ended
#   make test    what continuous integration runs
# Another interpreter: make PYTHON=python3.12 test          Pass arguments to pytest: make test ARGS='-k trust -x'

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?=
STRICT ?=
CODE   := src tests docs bench

# Our settings must not leak into the tests from the caller's shell. KEEP=1 and the like reach the demo as they are.
unexport HERDBOOK_HOME HERDBOOK_RECORD HERDBOOK_URL HERDBOOK_KEY HERDBOOK_AGENT HERDBOOK_SESSION
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export PIP_ROOT_USER_ACTION := ignore
PIP := $(BIN)/python -m pip install --quiet --quiet

# A worker for each processor, up to four; a file stays with one of them, so that what it starts is started once.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses=4 --dist loadfile $(if $(STRICT),--no-skips)

.DEFAULT_GOAL := help
.PHONY: help demo demo-watch demo-train test check full train bench lint format docs clean
.DELETE_ON_ERROR:

help: ## show this
	@echo "herdbook: the record that outlives disposable agent environments"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  A first run sets up $(VENV) (half a minute for the demo, a minute or two for the tests); later runs start at once. Needs Python 3.11 or newer and make."
	@echo "  Another Python:  make PYTHON=python3.12 test      Fewer tests:  make test ARGS='-k trust -x'"

demo: $(VENV)/.run ## two boxes and one record, end to end, in under a minute
	@$(BIN)/herdbook demo $(ARGS)

demo-watch: $(VENV)/.dev ## the on-call stories: a toy service, its deploys, and what the record makes of them
	@$(BIN)/python -m examples.watch_demo $(ARGS)

demo-train: $(VENV)/.train ## a fleet's record becomes a small model that answers an unmodified client, on a processor
	@$(BIN)/python -m examples.train_demo $(ARGS)

test: $(VENV)/.dev lint ## lint, types and the tests that continuous integration runs (ten minutes on two processors)
	@echo "== tests: all but the long ones (make full runs those)"
	@$(PYTEST) -m "not long" $(ARGS)

check: $(VENV)/.dev lint ## before every commit: lint, types and the fast tests (a minute or two)
	@echo "== tests: the fast ones"
	@$(PYTEST) -m "not slow and not long and not isolation" -q $(ARGS)

full: $(VENV)/.dev lint ## everything, with many more random examples (tens of minutes)
	@echo "== tests: all of them, with the long ones and more examples each"
	@$(PYTEST) -m "not train" --hypothesis-profile=full $(ARGS)

train: $(VENV)/.train ## every dataset loads in datasets and trains in TRL (installs a gigabyte, then two minutes)
	@echo "== tests: those that train a model"
	@$(PYTEST) -m train $(ARGS)

bench: $(VENV)/.dev ## measure, side by side, as ratios
	@$(BIN)/python -m bench $(ARGS)

lint: $(VENV)/.dev ## style, layers and types, without running a test
	@echo "== lint: style, layers, types"
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/ruff format --quiet --check $(CODE) || { echo "not formatted; make format does it:"; $(BIN)/ruff format --check $(CODE); exit 1; }
	@$(BIN)/lint-imports --no-logo > $(VENV)/layers.txt 2>&1 || { cat $(VENV)/layers.txt; exit 1; }
	@$(BIN)/mypy --no-error-summary $(CODE)

format: $(VENV)/.dev ## rewrite the sources in the one format
	@$(BIN)/ruff check --quiet --fix $(CODE); $(BIN)/ruff format $(CODE)

docs: $(VENV)/.dev ## write the generated pages of docs/reference again
	@$(BIN)/python docs/generate.py

clean: ## remove what make made: .venv and the tools' caches
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment: one stamp a step, so that a repeated run does nothing --------------------------------------------

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "herdbook needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo 'not there')."; \
	  echo "Install a newer one, or name it:  make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: its ensurepip or venv module is missing."; \
	  echo "On Debian and Ubuntu: sudo apt install python3-venv. Then run make again."; exit 1; }
	@echo "== setting up $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.made pyproject.toml
	@echo "== installing herdbook and what it needs to run"
	@$(PIP) -e '.[boxes]'
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	@echo "== installing herdbook and what its tests need"
	@$(PIP) -e '.[dev,boxes]'
	@touch $(VENV)/.run $@

# First a build of torch for processors, by a version that no other build has: left to itself the resolver would bring gigabytes
# for a GPU that may not be there. Then the rest, which finds it done.
TORCH := torch==2.13.0$(if $(filter Linux,$(shell uname -s)),+cpu)
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

$(VENV)/.train: $(VENV)/.dev
	@echo "== installing herdbook and what training needs (1.5 GB)"
	@$(PIP) --retries 0 --timeout 10 --extra-index-url $(TORCH_INDEX) '$(TORCH)'
	@$(PIP) -e '.[dev,boxes,train]'
	@$(BIN)/python -c 'import torch; assert torch.version.cuda is None, "this is a build of torch for GPUs"'
	@touch $@
