# Two commands on a bare machine with Python 3.11 or newer:
#   make demo    sets everything up and runs the main job
#   make test    sets everything up, then runs the tests, and checks style and types meanwhile
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Half of the set-up would go into compiling modules that nobody imports; Python compiles the others when it imports them.
INSTALL := $(PIP) install --no-compile --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow benchmark results docs lint format clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

$(VENV)/core: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "maxmean needs Python 3.11 or newer; name one with PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[tabular]'
	@touch $@

# torch is named with its version on its own: a range would fetch the newest build with its CUDA packages.
$(VENV)/full: $(VENV)/core
	$(INSTALL) torch==2.13.0
	$(INSTALL) --editable '.[test,deep,gymnasium,jax,ray,tabular,torch]'
	@touch $@

demo: $(VENV)/core  ## reproduce the paper's experiments at the quick scale; ends with the path of the report
	$(BIN)/maxmean reproduce --scale quick --out out/quick

lint: $(VENV)/full  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Style and types are checked beside the tests, since the type checker keeps but one core busy. What they say comes last.
test: $(VENV)/full  ## style, types and the tests (six minutes on two cores the first time, with the set-up)
	@$(MAKE) --no-print-directory lint >$(VENV)/lint.log 2>&1 & lint=$$!; \
	$(BIN)/pytest -n auto; failed=$$?; \
	wait $$lint || failed=1; cat $(VENV)/lint.log; exit $$failed

test-slow: $(VENV)/full  ## the longer checks
	MAXMEAN_TESTS_COMPILE_AS_USERS=1 $(BIN)/pytest -n auto -m slow
	MAXMEAN_TESTS_COMPILE_AS_USERS=1 $(BIN)/pytest -n auto tests/deep tests/envs tests/mev/test_estimators.py

benchmark: $(VENV)/full  ## speed, as ratios against peers measured in the same run
	$(BIN)/python benchmarks/mev.py
	$(BIN)/python benchmarks/tabular.py
	$(BIN)/python benchmarks/envs.py
	$(BIN)/python benchmarks/deep.py
	$(BIN)/python benchmarks/host.py

results: $(VENV)/full  ## compute the shipped results anew, at the paper's scale, and what the documentation says of them
	rm -rf out/paper
	$(BIN)/maxmean reproduce --scale paper --out out/paper
	cd src/maxmean/results && rm -rf $(shell $(BIN)/maxmean list --names)
	cp -r $(foreach name,$(shell $(BIN)/maxmean list --names),out/paper/$(name)) src/maxmean/results/
	$(BIN)/python docs/write_results.py

$(VENV)/docs: $(VENV)/core
	$(INSTALL) --editable '.[docs]'
	@touch $@

docs: $(VENV)/docs  ## the documentation site, in out/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'Open out/site/index.html; for its search, python3 -m http.server --directory out/site'

format: $(VENV)/full  ## mend the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove what the other commands made
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
