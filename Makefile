# make serve     set up and start a server on LISTEN
# make test      set up and run everything that decides whether a change is good
# make style     formatting, lint, spelling          make types     mypy, strict
# make layers    import contracts and house rules    make all       test with coverage, and build the package
# make sanitized a sample of the tests, with a fork server that watches its own memory; a part of test
# make docs      build the documents into build/site; warnings are errors
# make wheels    wheels for x86-64 and for aarch64 into dist, compiled by Zig, and tests of what it compiles
# make bench     measure; CODEX=path names the reference binary to measure against
# make bench-gate  fail if a request costs more instructions than in the version before; BASE=commit; a part of test
# make fuzz      RUNS cases for what decodes a peer's bytes; TARGET=name for one decoder
# make soak      a hundred clients do everything for SECONDS (1800); SEED=number does the same again
# make chaos     clients use a server that is killed KILLS (500) times, with PROCESSES (50) at once; SEED=number
# make load      1,000 connections and 2,000 processes at once for SECONDS (300), and CODEX=path after it
# make clean     remove what the targets above made

PYTHON ?= python3
LISTEN ?= ws://127.0.0.1:0
CODEX ?=
BASE ?=
RUNS ?= 1000000
TARGET ?=
SECONDS ?=
SEED ?=
KILLS ?=
PROCESSES ?=
# More than there are processors on small machines: most tests wait for a program most of the time.
TEST_PROCESSES ?= 4

# Where it is forbidden to keep what was compiled, each test process and each server compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
# A virtualenv of last resort.  It lives here, so that nothing outside this folder changes.
VIRTUALENV := .virtualenv

# Stamps.  The package alone is enough to serve; the checks need the tools too.
MADE := $(VENV)/stamp-made
READY := $(VENV)/stamp-ready
READY_DEV := $(VENV)/stamp-ready-dev
READY_FUZZ := $(VENV)/stamp-ready-fuzz
READY_WHEELS := $(VENV)/stamp-ready-wheels
COMPILER := $(VENV)/stamp-compiler
BUBBLEWRAP := $(VENV)/stamp-bubblewrap
STRACE := $(VENV)/stamp-strace
VALGRIND := $(VENV)/stamp-valgrind
# What an editable installation does not follow by itself.
INSTALLED_FROM := pyproject.toml hatch_build.py $(wildcard src/holdfast/host/native/*.[ch])
# Tests of the source itself, which `layers` runs.
HOUSE_TESTS := tests/test_house.py tests/test_layers.py

.DEFAULT_GOAL := test
.DELETE_ON_ERROR:
.PHONY: serve test checks style types layers collected sanitized docs all wheels bench bench-gate fuzz soak chaos load clean

# What make adds to the environment: programs that the server runs would take themselves for a part of this
# make, and so would a make among them.  Variables given on the command line of make are exported, too.
OURS = MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES MAKE_TERMOUT MAKE_TERMERR MAKE_COMMAND GNUMAKEFLAGS \
    $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))

serve: $(READY)
	@exec env $(OURS:%=-u %) $(BIN)/holdfast serve --listen $(LISTEN) --hint 'try: $(BIN)/holdfast run --url {url} -- echo hello'

test: $(READY_DEV) $(BUBBLEWRAP) $(STRACE) $(VALGRIND)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync checks
	@$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist worksteal $(HOUSE_TESTS:%=--ignore=%)
	@$(MAKE) --no-print-directory sanitized
	@$(BIN)/python -m bench.gate --short

style: $(READY_DEV)
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/codespell

types: $(READY_DEV)
	@$(BIN)/mypy

layers: $(READY_DEV)
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest --quiet $(HOUSE_TESTS)

# What comes before the tests.  The types take one processor for as long as all the rest takes another.
checks: types style layers collected

# Imports every test once, so that what is compiled for it is there when several processes want it at once.
collected: $(READY_DEV)
	@$(BIN)/python -m pytest --collect-only --quiet --quiet $(HOUSE_TESTS:%=--ignore=%) >$(VENV)/collect.log 2>&1 \
	    || { cat $(VENV)/collect.log >&2; exit 1; }

sanitized: $(READY_DEV) $(BUBBLEWRAP)
	@TEST_PROCESSES=$(TEST_PROCESSES) $(BIN)/python -m tests.native.sanitized

docs: $(READY_DEV)
	@$(BIN)/python docs/generate.py --check
	@mkdir -p build
	@$(BIN)/python -m mkdocs build --strict >build/docs.log 2>&1 || { cat build/docs.log >&2; exit 1; }

all: style types layers $(BUBBLEWRAP) $(STRACE)
	@$(BIN)/coverage run -m pytest
	@$(BIN)/coverage report
	@$(BIN)/python -m pip --quiet wheel --no-deps --wheel-dir dist .

# Zig compiles a C library for each machine, once.
wheels: export ZIG_GLOBAL_CACHE_DIR := $(CURDIR)/build/zig
wheels: export ZIG_LOCAL_CACHE_DIR := $(CURDIR)/build/zig
wheels: $(READY_DEV) $(READY_WHEELS)
	@for machine in x86_64 aarch64; do \
	    HOLDFAST_TARGET=$$machine $(BIN)/python -m pip --quiet wheel --no-build-isolation --no-deps \
	        --wheel-dir dist . || exit 1; \
	done
	@$(BIN)/python -m pytest --quiet tests/native/test_zig.py

bench: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" CODEX="$(CODEX)" bench/run

bench-gate: $(READY_DEV) $(VALGRIND)
	@$(BIN)/python -m bench.gate $(if $(BASE),--base $(BASE))

fuzz: $(READY_FUZZ)
	@$(BIN)/python -m tests.fuzz.run --runs $(RUNS) $(if $(TARGET),--target $(TARGET))

soak: $(READY)
	@$(BIN)/python -m bench.soak $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

chaos: $(READY)
	@$(BIN)/python -m bench.chaos $(if $(KILLS),--kills $(KILLS)) $(if $(PROCESSES),--processes $(PROCESSES)) \
	    $(if $(SEED),--seed $(SEED))

load: $(READY)
	@CODEX="$(CODEX)" $(BIN)/python -m bench.load --holdfast $(BIN)/holdfast $(if $(SECONDS),--seconds $(SECONDS))

clean:
	@rm -rf $(VENV) $(VIRTUALENV) build dist src/holdfast/host/fork_server .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up.  Silent when it succeeds; the log of a failure is shown.

define install
	@$(BIN)/python -m pip install --disable-pip-version-check --editable '$(1)' >$(VENV)/install.log 2>&1 \
	    || { cat $(VENV)/install.log >&2; exit 1; }
endef

$(READY): $(INSTALLED_FROM) | $(MADE) $(COMPILER)
	$(call install,.)
	@touch $@

$(READY_DEV): $(INSTALLED_FROM) | $(MADE) $(COMPILER)
	$(call install,.[dev])
	@touch $(READY) $@

$(READY_FUZZ): $(INSTALLED_FROM) | $(MADE) $(COMPILER)
	$(call install,.[fuzz])
	@touch $@

$(READY_WHEELS): pyproject.toml | $(MADE) $(COMPILER)
	$(call install,.[wheels])
	@touch $@

# Some distributions ship Python without what `python -m venv` needs.  Then: the system's package if we may
# install it and it can be reached, else virtualenv, which brings its own pip.
MAKE_VENV = $(PYTHON) -m venv --clear $(VENV)
APT_INSTALL = DEBIAN_FRONTEND=noninteractive timeout 120 apt-get -qq -o Acquire::Retries=0 \
    -o Acquire::http::Timeout=10 -o DPkg::Lock::Timeout=30

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo 'holdfast needs Python 3.11 or later; name one with PYTHON=path' >&2; exit 1; }
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	with_venv() { $(MAKE_VENV); }; \
	with_apt() { \
	    [ "$$(id -u)" = 0 ] && command -v apt-get || return 1; \
	    $(APT_INSTALL) install -y python3-venv || { $(APT_INSTALL) update && $(APT_INSTALL) install -y python3-venv; }; \
	    $(MAKE_VENV); \
	}; \
	with_virtualenv() { \
	    $(PYTHON) -m pip install --disable-pip-version-check --upgrade --target $(VIRTUALENV) virtualenv \
	        && PYTHONPATH=$(VIRTUALENV) $(PYTHON) -m virtualenv --clear $(VENV); \
	}; \
	{ with_venv || with_apt || with_virtualenv; } >"$$log" 2>&1 \
	    || { cat "$$log" >&2; echo 'no virtual environment could be made; install python3-venv' >&2; exit 1; }
	@touch $@

# For the fork server.  Without a C compiler the build installs Zig's from PyPI, for itself.
$(COMPILER): | $(MADE)
	@get() { \
	    [ "$$(id -u)" = 0 ] && command -v apt-get || return 1; \
	    set -- install -y gcc libc6-dev; \
	    $(APT_INSTALL) "$$@" || { $(APT_INSTALL) update && $(APT_INSTALL) "$$@"; }; \
	}; \
	command -v $(firstword $(CC)) >/dev/null || get >/dev/null 2>&1 \
	    || echo 'there is no C compiler: the fork server is compiled with ziglang, which pip downloads' >&2
	@touch $@

# For the tests of sandboxes that need it.  Without it they are skipped, and say so.
$(BUBBLEWRAP): | $(MADE)
	@get() { \
	    [ "$$(id -u)" = 0 ] && command -v apt-get || return 1; \
	    $(APT_INSTALL) install -y bubblewrap || { $(APT_INSTALL) update && $(APT_INSTALL) install -y bubblewrap; }; \
	}; \
	command -v bwrap >/dev/null || get >/dev/null 2>&1 \
	    || echo 'bubblewrap is not installed and could not be: its sandboxes are not tested' >&2
	@touch $@

# For the tests in which the system refuses a call.  The same.
$(STRACE): | $(MADE)
	@get() { \
	    [ "$$(id -u)" = 0 ] && command -v apt-get || return 1; \
	    $(APT_INSTALL) install -y strace || { $(APT_INSTALL) update && $(APT_INSTALL) install -y strace; }; \
	}; \
	command -v strace >/dev/null || get >/dev/null 2>&1 \
	    || echo 'strace is not installed and could not be: calls that the system refuses are not tested' >&2
	@touch $@

# For counting instructions.  The same.
$(VALGRIND): | $(MADE)
	@get() { \
	    [ "$$(id -u)" = 0 ] && command -v apt-get || return 1; \
	    $(APT_INSTALL) install -y valgrind || { $(APT_INSTALL) update && $(APT_INSTALL) install -y valgrind; }; \
	}; \
	command -v valgrind >/dev/null || get >/dev/null 2>&1 \
	    || echo 'valgrind is not installed and could not be: instructions are not counted' >&2
	@touch $@
