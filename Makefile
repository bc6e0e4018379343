# Everything runs from a fresh clone: the virtual environment is made when it is missing or when
# what it holds is out of date.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RBMS := .venv-rbms
PEERS := .venv-peers
LOWEST := .venv-lowest
PRESET ?= quick
# Bytecode is kept, whatever the environment says: half of the time to collect the tests.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
# Compiling takes most of the time of most tests: half of it without optimisations, which change no formula.
# tests/statistical and tests/golden compile as users do.
QUICK := XLA_FLAGS=--xla_cpu_use_fusion_emitters=false JAX_DISABLE_MOST_OPTIMIZATIONS=1
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: estimate test test-more test-views test-docs test-research test-slow test-gpu test-lowest test-browser pictures chromium lint bench bench-gpu docs docs-serve docs-figures paper race sides ising coverage trust quality evidence evidence-peers tutorials terminal install clean help

help: ## available targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

estimate: $(READY) ## log Z of a packaged RBM, beside its exact value
	$(BIN)/annealz estimate

test: $(READY) ## the tests of the library and its commands
	$(QUICK) $(PYTEST) -m "not slow and not gpu and not more and not views and not browser" tests/unit tests/system
	$(PYTEST) -m "not slow and not gpu and not more" tests/statistical tests/golden

test-more: $(READY) ## further cases of the same checks, mutants, processes and signals
	$(QUICK) $(PYTEST) -m "more and not slow and not gpu and not browser" tests/unit tests/system
	$(PYTEST) -m "more and not slow and not gpu" tests/statistical tests/golden

test-views: $(READY) ## the report, plots, notebook and terminal
	$(QUICK) $(PYTEST) -m "views and not slow and not more" tests/unit/views tests/system/test_terminal.py

test-docs: $(READY) ## the code of README, pages, docstrings and tutorials
	$(PYTEST) tests/docs

test-research: $(READY) ## the reproduced paper and the studies
	$(PYTEST) -m "not slow" tests/research

test-slow: $(READY) ## statistical sweeps of minutes
	$(PYTEST) -m "slow and not gpu"

test-lowest: $(READY) ## a smoke test with the lowest versions that are allowed
	$(PYTHON) -m venv $(LOWEST)
	$(BIN)/python .ci/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/pip install --quiet --constraint $(LOWEST)/constraints.txt '.[formats]'
	$(LOWEST)/bin/python .ci/smoke.py

test-browser: chromium $(READY) ## reports in a browser: Debian's chromium, installed where it is missing
	$(BIN)/python -m pytest tests/system/test_browser.py -rs

chromium:
	@command -v chromium >/dev/null || { \
	  $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core; }

pictures: chromium $(READY) ## the pictures and screenshots of README and docs
	$(BIN)/python docs/figures/plots.py
	$(BIN)/python docs/figures/screenshots.py
	$(BIN)/python docs/figures/gms13.py

lint: $(READY) ## ruff, pyright, the order of the folders and their numbers of lines
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/python .ci/budgets.py

bench: $(READY) $(RBMS)/.ready ## time per step against rbms, plain JAX and the bare products
	$(BIN)/python benchmarks/bench.py

test-gpu: $(READY) ## the fused steps on a GPU, against float64 and exact values
	$(BIN)/python -m pytest -m gpu -s -W default::DeprecationWarning tests/unit/engine

bench-gpu: $(READY) ## seconds of whole runs on a GPU, by fused steps and by XLA's
	$(BIN)/python benchmarks/device.py benchmarks/device-results.json

docs: $(VENV)/.docs ## the site, in site/: strictly, without a warning
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-serve: $(VENV)/.docs ## the site at http://127.0.0.1:8000, rebuilt when a page changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

docs-figures: $(READY) ## the figures of the pages on theory and schedules, in minutes
	$(BIN)/python docs/figures/theory.py
	$(BIN)/python docs/figures/gms13.py

paper: $(READY) ## Kiwaki (2015) reproduced, in minutes; PRESET=full for the paper's scale, FRESH=1 for new runs
	$(BIN)/python papers/kiwaki2015/reproduce.py --preset $(PRESET) $(if $(FRESH),--fresh)

race: $(READY) ## all schedules at equal cost: tables and verdicts from the committed runs
	$(BIN)/python studies/schedules/race.py
	$(BIN)/python studies/schedules/standings.py

sides: $(READY) ## bounds, BAR and resampling against exact values; runs what is missing, an hour in all
	$(BIN)/python studies/two_sides/sides_runs.py
	$(BIN)/python studies/two_sides/sides_mutants.py
	$(BIN)/python studies/two_sides/sides_page.py

ising: $(READY) ## the Ising lattice against Kaufman's solution; runs what is missing, an hour in all
	$(BIN)/python studies/ising/cluster_runs.py
	$(BIN)/python studies/ising/ising_runs.py

coverage: $(READY) ## do the intervals cover? the page from the committed results; FRESH=1 all runs
	$(BIN)/python studies/coverage/cover.py $(if $(FRESH),--fresh)

trust: $(READY) ## how often is ok right? the page from the committed results; FRESH=1 all runs, hours, UAI=FOLDER
	$(if $(FRESH),-$(BIN)/python studies/trust/trust.py --out studies/trust/fresh $(if $(UAI),--uai $(UAI)))
	$(BIN)/python studies/trust/trust_page.py $(if $(FRESH),--out studies/trust/fresh)

quality: $(READY) ## quality before and after a change: the page from the committed results
	PYTHONPATH=studies/schedules:studies/trust $(BIN)/python studies/quality/quality_page.py

evidence: $(READY) ## evidence of densities: the page from the committed results; FRESH=1 all runs of annealz
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[evidence]'
	$(BIN)/python studies/evidence/evidence_page.py $(if $(FRESH),--fresh)

evidence-peers: $(PEERS)/.ready ## nested samplers and SMC on the same problems: runs what is missing, hours in all
	$(PEERS)/bin/python studies/evidence/evidence_reference.py
	$(PEERS)/bin/python studies/evidence/evidence_peers.py

tutorials: $(READY) ## run the tutorials again and keep their output
	$(BIN)/python docs/tutorials/execute.py

terminal: $(READY) ## docs/images/terminal.svg from a run of its own
	$(BIN)/python docs/figures/terminal.py

install: $(READY) ## the virtual environment

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/.docs: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

$(RBMS)/.ready:
	$(PYTHON) -m venv $(RBMS)
	$(RBMS)/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(RBMS)/bin/pip install --quiet --disable-pip-version-check rbms==0.5.0
	@touch $@

$(PEERS)/.ready: studies/evidence/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check -r studies/evidence/peers.txt
	@touch $@

clean: ## remove the virtual environments and the site
	rm -rf $(VENV) $(RBMS) $(PEERS) site
