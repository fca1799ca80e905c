# Each target sets itself up: a machine with Python >= 3.11.4 and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Tests start a hundred processes, which would each compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo check test torture docs format clean

demo: $(DEMO)  ## Supervised, FixMatch and DebiasPL on real digits with ten labels
	$(BIN)/debiaspl demo --overwrite

check: $(STAMP)  ## format, lint, types, layers and the fast tests: about 2 minutes on two cores
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(call types_and,$(PYTEST) -m "not slow and not gpu")

test: $(STAMP)  ## the same with all tests: about 7 minutes on two cores
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(call types_and,$(PYTEST))

MINUTES ?= 10
torture: $(STAMP)  ## failing disks, kills and bad files for MINUTES=10; prints what was tried and what failed
	$(BIN)/python -m tests.faults --minutes $(MINUTES)

docs: $(STAMP)  ## the documentation as a site in build/site; a broken link is an error
	$(BIN)/python -m tools.site

PYTEST := $(BIN)/pytest -n 3 --dist worksteal --timeout 600 --timeout-method thread

# mypy has work for one core only, so it runs beside the tests; what it says comes after theirs.
define types_and
said=$$(mktemp) && { $(BIN)/mypy >$$said 2>&1 & types=$$!; $(1); tests=$$?; \
	wait $$types; types=$$?; cat $$said; rm $$said; exit $$((tests + types)); }
endef

format: $(STAMP)  ## write the code the way `make test` wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# Installed once; again only when what is to be installed has changed. The demo needs a part of it.
$(DEMO): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 4) and "debiaspl needs Python >= 3.11.4, but $(PYTHON) is %d.%d.%d. Name another one: make PYTHON=python3.12" % sys.version_info[:3])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[demo]'
	touch $@

$(STAMP): $(DEMO)
	$(PIP) --editable '.[dev]'
	touch $@
