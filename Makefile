# Every target sets up what it needs by itself; nothing but Python 3.11+ and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# What a user needs, and nothing of what developers need.
DEMO_VENV := .venv-demo
DEMO_READY := $(DEMO_VENV)/.ready
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
PYTEST_ARGS ?=
# Most of a test is waiting: more test files at a time than a machine has cores (one after another: WORKERS=0).
WORKERS ?= 4
# Browsers have more work of their own.
BROWSERS ?= 2
# Each start of an agent program takes seconds of a processor: two at a time are hardly faster, and miss keys.
AGENTS ?= 1
# What was compiled once is kept for all workers and all that they start, wherever this runs.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help demo test compiled test-browser test-install test-terminal test-sandbox test-whatsapp test-agents test-desktop programs chromium tmux editors dunst bubblewrap npm strace check format prove bench lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(DEMO_READY) ## watch an agent ask, you answer, the answer arrive (plays you when there is no terminal)
	@$(DEMO_VENV)/bin/pynchy demo $(DEMO_ARGS)

test: $(READY) ## run every test that needs Python alone
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

# Each worker would compile the tests for itself if all began at once.
compiled: $(READY)
	@$(BIN)/python -m pytest --collect-only --quiet >/dev/null

test-browser: $(READY) chromium ## run the tests of the inbox in a real browser (installs Chromium where it may)
	@$(BIN)/python -m pytest tests/browser -n $(BROWSERS) $(PYTEST_ARGS)

# $(call program,NAME,PACKAGES): see that a program is there; install it where it may be installed.
define program
	@command -v $(1) >/dev/null || { [ "$$(id -u)" = 0 ] && { apt-get install -y -qq $(2) >/dev/null 2>&1 || \
	  { apt-get update -qq && apt-get install -y -qq $(2) >/dev/null; }; }; } || \
	  { echo "this needs $(1) (Debian: apt-get install $(2))" >&2; exit 1; }
endef

programs: chromium dunst tmux editors bubblewrap npm strace ## install what the tests need beside Python (as root, Debian)

# The shell is Chromium without a window: the same engine for less work. Not every system has it.
chromium:
	$(call program,chromium,chromium)
	@command -v chromium-headless-shell >/dev/null || [ "$$(id -u)" != 0 ] || \
	  ! apt-cache show chromium-headless-shell >/dev/null 2>&1 || \
	  apt-get install -y -qq chromium-headless-shell >/dev/null

# A bus, a screen without a monitor, a notification service, a hand on the mouse, and a camera.
dunst:
	$(call program,dbus-daemon,dbus)
	$(call program,Xvfb,xvfb)
	$(call program,dunst,dunst)
	$(call program,xdotool,xdotool)
	$(call program,import,imagemagick)

tmux:
	$(call program,tmux,tmux)

# What people really run in a terminal.
editors:
	$(call program,vim,vim)
	$(call program,less,less)
	$(call program,top,procps)

bubblewrap:
	$(call program,bwrap,bubblewrap)

npm:
	$(call program,npm,npm)

strace:
	$(call program,strace,strace)

test-terminal: $(READY) tmux editors ## run the tests in a real terminal (installs tmux, vim and less where it may)
	@$(BIN)/python -m pytest tests/terminal $(PYTEST_ARGS)

test-desktop: $(READY) dunst ## run the tests of popups with a real notification service (installs dunst where it may)
	@$(BIN)/python -m pytest tests/desktop $(PYTEST_ARGS)

test-install: $(READY) ## install pynchy into an empty environment and see it work (needs a package index)
	@$(BIN)/python -m pytest tests/install $(PYTEST_ARGS)

test-whatsapp: $(READY) ## run the slow tests of WhatsApp: its troubles, crashes and commands
	@$(BIN)/python -m pytest tests/whatsapp/trouble $(PYTEST_ARGS)

test-sandbox: $(READY) bubblewrap ## run agents in real bubblewrap boxes (installs bubblewrap where it may)
	@PYNCHY_TEST_SANDBOX=1 $(BIN)/python -m pytest tests/sandbox tests/contract/test_launchers.py \
	  tests/prove/hostile/test_sandbox_red_team.py \
	  -k "sandbox or bubblewrap" $(PYTEST_ARGS)

test-agents: $(READY) bubblewrap tmux npm ## run the real agent programs against a scripted model (installs them; needs npm)
	@$(BIN)/python -m tests.agents.programs
	@PYNCHY_TEST_AGENTS=1 $(BIN)/python -m pytest tests/agents -n $(AGENTS) -o timeout=900 $(PYTEST_ARGS)

check: $(READY) ## format, lint, types and the direction of imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY) ## put the code into the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix-only --quiet .

prove: $(READY) strace ## prove the promises: crashes, power cuts, enemies, load (PROVE=all: without limit, PROVE=sample: a little of each)
	@PROVE=$(or $(PROVE),1) PROVE_REPORT=$(or $(PROVE_REPORT),.proof.json) \
	  $(BIN)/python -m pytest $(or $(PROVE_PARTS),tests/prove) -o timeout=1800 $(PYTEST_ARGS)
	@test -n "$(PROVE_PARTS)" || test "$(PROVE)" = sample || \
	  $(BIN)/python -m tests.prove.figures $(or $(PROVE_REPORT),.proof.json) docs/reliability.md

bench: $(READY) chromium dunst ## measure latency, start-up, lookups, recovery and the inbox beside their limits
	@$(BIN)/python -m tests.bench

lock: ## resolve requirements.lock again (needs uv)
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-annotate --no-header --upgrade --quiet -o requirements.lock

clean: ## remove what the targets made
	rm -rf $(VENV) $(DEMO_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.PHONY: python-is-new
python-is-new:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "pynchy needs Python 3.11 or newer; say which with: make PYTHON=python3.12 …" >&2; exit 1; }

$(DEMO_READY): pyproject.toml | python-is-new
	@echo "Installing pynchy into $(DEMO_VENV) (about 70 MB, once) …"
	@$(PYTHON) -m venv $(DEMO_VENV)
	@$(DEMO_VENV)/bin/python -m pip install --disable-pip-version-check -e .
	@touch $@

$(VENV)/.locked: requirements.lock | python-is-new
	@echo "setting up $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes -r requirements.lock
	@touch $@

$(READY): $(VENV)/.locked pyproject.toml
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@
