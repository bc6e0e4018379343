# Everything runs from a fresh clone: the virtual environment is made when it is missing or when
# what it holds is out of date.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RBMS := .venv-rbms
PRESET ?= quick

.PHONY: estimate test test-slow test-gpu lint bench bench-gpu paper race sides ising paths coverage evidence tutorials terminal install clean help

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

estimate: $(READY) ## log Z of a packaged RBM, beside its exact value
	$(BIN)/annealz estimate

test: $(READY) ## the tests
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not gpu"

test-slow: $(READY) ## the slow statistical sweeps as well
	$(BIN)/python -m pytest -m "not gpu"

lint: $(READY) ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(READY) $(RBMS)/.ready ## time per step against rbms, plain JAX and the bare products
	$(BIN)/python benchmarks/bench.py

test-gpu: $(READY) ## the fused steps on a GPU, against float64 and exact values
	$(BIN)/python -m pytest -m gpu -s

bench-gpu: $(READY) ## seconds of whole runs on a GPU, by fused steps and by XLA's
	$(BIN)/python benchmarks/device.py benchmarks/device-results.json

paper: $(READY) ## Kiwaki (2015) anew, in minutes; PRESET=full the paper's scale, FRESH=1 all runs
	$(BIN)/python papers/kiwaki2015/reproduce.py --preset $(PRESET) $(if $(FRESH),--fresh)

race: $(READY) ## all schedules at equal cost: tables and verdicts from the committed runs
	$(BIN)/python studies/schedules/race.py
	$(BIN)/python studies/schedules/standings.py

sides: $(READY) ## bounds, BAR and resampling against exact values; what is missing of an hour's runs
	$(BIN)/python studies/two_sides/sides_runs.py
	$(BIN)/python studies/two_sides/sides_mutants.py
	$(BIN)/python studies/two_sides/sides_page.py

ising: $(READY) ## the Ising lattice against Kaufman's solution; what is missing of half an hour's runs
	$(BIN)/python studies/ising/ising_runs.py

paths: $(READY) ## moment-averaged against geometric paths; what is missing of half an hour's runs
	$(BIN)/python studies/paths/paths_runs.py

coverage: $(READY) ## do the intervals cover? the page from the committed results; FRESH=1 all runs
	$(BIN)/python studies/coverage/cover.py $(if $(FRESH),--fresh)

evidence: $(READY) ## evidence of densities: the page from the committed results; FRESH=1 all runs
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[evidence]'
	$(BIN)/python studies/evidence/evidence_page.py $(if $(FRESH),--fresh)

tutorials: $(READY) ## the tutorials run anew, with what they print
	$(BIN)/python docs/tutorials/execute.py

terminal: $(READY) ## docs/images/terminal.svg from a run of its own
	$(BIN)/python docs/figures/terminal.py

install: $(READY) ## the virtual environment

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(RBMS)/.ready:
	$(PYTHON) -m venv $(RBMS)
	$(RBMS)/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(RBMS)/bin/pip install --quiet --disable-pip-version-check rbms==0.5.0
	@touch $@

clean: ## remove the virtual environments
	rm -rf $(VENV) $(RBMS)
