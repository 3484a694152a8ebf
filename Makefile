# Every target creates .venv and fills it with what it needs: python3, make and
# a package index are enough. Stamps in .venv remember what is installed, so a
# second run calls no pip until pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

TORCH ?= torch==2.13.0
PYTEST_ARGS ?= -n 2 --dist=worksteal
# The floor in pyproject.toml holds for the whole suite, not for chosen tests.
COVERAGE := $(if $(filter file,$(origin PYTEST_ARGS)),--cov --cov-report=)
BENCH_ARGS ?=
DEMO_ARGS ?=
RELEASE_ARGS ?=
FUZZ_ROUNDS ?= 20
FUZZ_MINUTES ?= 60
FUZZ_JOBS ?= 2
FUZZ_SEED ?= $(shell date +%s)
OLDEST := .venv-oldest
OLDEST_PYTHON ?= python3.11
NEWEST := .venv-newest
NEWEST_PYTHON ?= python3.13

.DEFAULT_GOAL := help
.PHONY: help demo test fuzz fuzz-certificates fuzz-eigen test-oldest test-newest house load levels lint format bench docs release torch clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.demo ## three kernels on handwritten digits: a table, a verdict, a page
	$(BIN)/mercer demo $(DEMO_ARGS)

test: $(VENV)/.test ## tests, doctests, a floor for the lines that they run; PYTEST_ARGS="-k rbf" to choose
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(COVERAGE)

fuzz: $(VENV)/.test ## hostile inputs for longer, with new random numbers
	MERCER_FUZZ_ROUNDS=$(FUZZ_ROUNDS) MERCER_FUZZ_SEED=$(FUZZ_SEED) $(BIN)/python -m pytest tests/fuzz -n 2

fuzz-certificates: $(VENV)/.test ## an hour's search for an error beyond its bound, in extended precision
	cd tests && ../$(BIN)/python -m fuzz.certificates --seconds $$(($(FUZZ_MINUTES) * 60)) --seed $(FUZZ_SEED) --jobs $(FUZZ_JOBS)

fuzz-eigen: $(VENV)/.test ## 10 000 eigenproblems with repeated eigenvalues
	cd tests && ../$(BIN)/python -m fuzz.eigenproblems --seed $(FUZZ_SEED) --jobs $(FUZZ_JOBS)

test-oldest: ## the tests on the oldest supported Python, NumPy, SciPy and scikit-learn
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/$(SCRIPTS)/python -m pip --disable-pip-version-check install --quiet --constraint constraints/oldest.txt --editable ".[test,cli]"
	$(OLDEST)/$(SCRIPTS)/python -m pytest $(PYTEST_ARGS)

test-newest: ## the tests on the newest Python there is, and the newest of everything
	$(NEWEST_PYTHON) -m venv $(NEWEST)
	$(NEWEST)/$(SCRIPTS)/python -m pip --disable-pip-version-check install --quiet --upgrade --upgrade-strategy eager --editable ".[test,cli]"
	$(NEWEST)/$(SCRIPTS)/python -m pytest $(PYTEST_ARGS)

house: $(VENV)/.test ## lines, names and annotations of the source tree, and the way of typical calls
	$(BIN)/python -m benchmarks.house

load: $(VENV)/.bench ## 10 000 single predictions, 100 batches at once: memory and latencies
	$(BIN)/python -m benchmarks.load

levels: $(VENV)/.bench ## false alarms and power of tests and comparisons, by simulation: hours
	$(BIN)/python -m benchmarks.levels_of_tests levels
	$(BIN)/python -m benchmarks.levels_of_tests errors
	$(BIN)/python -m benchmarks.compare_level
	$(BIN)/python -m benchmarks.honest_errors --simulations 40

lint: $(VENV)/.lint ## ruff and mypy; a user's script and README's code in strict mode
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m benchmarks.house --docstrings
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/mypy --strict --follow-imports=silent tests/typing/user_script.py tests/typing/mistakes.py
	$(BIN)/python tests/typing/readme.py $(VENV)/readme.py
	$(BIN)/mypy --strict --follow-imports=silent $(VENV)/readme.py

format: $(VENV)/.lint ## let ruff rewrite the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.bench ## the benchmark table; BENCH_ARGS passes options
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

docs: $(VENV)/.docs ## the HTML pages, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

release: $(VENV)/.release ## build, install and try the package; RELEASE_ARGS=--whole runs all tests from the sdist
	$(BIN)/python tools/release.py $(RELEASE_ARGS)

torch: $(VENV)/.torch ## install torch, so that its tests run instead of being skipped

clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist docs/_build docs/auto_examples docs/auto_ideas docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: one environment, one stamp for each set of extras. Parallel pips
# in one environment would collide, hence .NOTPARALLEL.
.NOTPARALLEL:

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: EXTRAS := cli
$(VENV)/.test: EXTRAS := test,cli
$(VENV)/.lint: EXTRAS := lint,test,cli
$(VENV)/.bench: EXTRAS := bench
$(VENV)/.docs: EXTRAS := docs,cli
$(VENV)/.release: EXTRAS := release

$(VENV)/.demo $(VENV)/.test $(VENV)/.lint $(VENV)/.bench $(VENV)/.docs $(VENV)/.release: pyproject.toml | $(VENV)/.created
	$(PIP) --editable ".[$(EXTRAS)]"
	touch $@

$(VENV)/.torch: Makefile | $(VENV)/.created
	$(PIP) "$(TORCH)"
	touch $@
