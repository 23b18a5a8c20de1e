# Everything a newcomer types. `make` alone lists it.
.DEFAULT_GOAL := help
.SUFFIXES:
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
unexport PYTHONDONTWRITEBYTECODE    # as images set it: hundreds of programs that tests start would compile everything again

VENV := .venv
AIRFLOW_VENV := .venv-airflow
SUPERSET_VENV := .venv-superset
RELEASE_VENV := .venv-release
STAMPS := $(VENV)/.stamps
PYTHON_IN := $(VENV)/bin/python
UV := $(VENV)/bin/uv
LOCK := pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --python-version 3.10
TESTS ?=
FRAMES ?= 1000000
SEED ?= $(shell date +%s)
SEEDS ?= 2000
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
KILLS ?= 52
JOBS ?= 1
RUNS ?= 1000
QUICK := not proof and not slow and not spark and not broker and not java and not airflow

.PHONY: help setup demo check test proofs pythons style lint workflows samples rhythms matrix schemas coverage-docs docs consoles screens rule-pictures notebooks airflow superset archive bench fuzz loss faults endings dist audit lock clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMPS)/kernel ## Install everything into .venv; quick when there is nothing to do

$(STAMPS)/venv: pipeline/setup/venv.sh
	@pipeline/setup/venv.sh $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/packages: requirements.lock $(STAMPS)/venv
	@echo "Installing Python packages …"
	@$(UV) pip install --quiet --compile-bytecode --python $(PYTHON_IN) --require-hashes -r requirements.lock
	@touch $@

$(STAMPS)/project: pyproject.toml $(STAMPS)/packages
	@$(UV) pip install --quiet --python $(PYTHON_IN) --no-deps --editable .
	@touch $@

$(STAMPS)/system: $(STAMPS)/project $(wildcard pipeline/setup/*.py)
	@$(PYTHON_IN) -m pipeline.setup
	@touch $@

$(STAMPS)/kernel: $(STAMPS)/system $(wildcard decoder/*.py decoder/*/*.py decoder/*/*/*.py pipeline/capture/*.py pipeline/analysis/timeline/*_kernel.py)
	@echo "Compiling the decoder's kernel …"
	@$(PYTHON_IN) -c "import decoder.kafka.kernel.bodies, decoder.kafka.kernel.records, decoder.mongodb.batch, pipeline.capture.runs.block_agent, pipeline.analysis.timeline.carry_kernel, decoder.kernel.leaf_kernel"
	@touch $@

demo: setup ## The whole way in one go: sample captures to tables, findings and checks in ./demo-lake
	@$(VENV)/bin/wirelake demo

check: style ## In two minutes: lint, types, and quick tests without Spark, broker or browser (make check TESTS=tests/decoder)
	@$(PYTHON_IN) -m pytest -m "$(QUICK)" --numprocesses 2 --dist loadgroup --no-loadscope-reorder $(TESTS)

test: style ## Lint, then all tests but the proofs (make test TESTS=tests/pipeline for some of them)
	@$(PYTHON_IN) -m pytest --numprocesses 3 --dist loadgroup --no-loadscope-reorder --durations 25 $(TESTS)

proofs: setup airflow superset ## What takes minutes: a Spark cluster, Airflow, Superset, kills, lakes built in pieces, every secret, the benchmark
	@$(PYTHON_IN) -m pytest -m proof --durations 5

pythons: setup ## Quick tests of the built wheel on each Python it supports (make pythons TESTS=tests/decoder)
	@$(PYTHON_IN) -m tests.pythons $(TESTS)

style: setup ## Formatting, ruff, mypy, import rules, and the vocabulary of texts
	@$(VENV)/bin/ruff format --check --quiet . || { echo "Run .venv/bin/ruff format"; exit 1; }
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(PYTHON_IN) -m tests.prose

lint: style ## The same, and whether all tests load
	@$(PYTHON_IN) -m pytest --collect-only --quiet --quiet >/dev/null || { echo "Run .venv/bin/pytest --collect-only"; exit 1; }

workflows: setup ## Lint the workflows of .github with actionlint
	@$(VENV)/bin/go run $(ACTIONLINT)

samples: setup ## Record the sample captures again from real brokers (needs Maven, tcpdump and root)
	@$(PYTHON_IN) -m tests.captures.record

rhythms: setup ## Record traffic at real rhythms again, a quarter of an hour (needs Maven, tcpdump, zstd and root)
	@$(PYTHON_IN) -m tests.captures.rhythms

matrix: setup ## Judge all recordings, and write which rule fires on which into docs/findings.md
	@$(PYTHON_IN) -m tests.captures.matrix --write

schemas: setup ## Build the Kafka schema table again from the published message definitions
	@$(PYTHON_IN) -m decoder.kafka.schema.build

coverage-docs: setup ## Measure the decoder against Kafka's own classes and write docs/coverage.md (needs Maven)
	@$(PYTHON_IN) -m tests.oracle.coverage

docs: setup ## Build the documentation site into dist/site; a dead link is an error
	@$(PYTHON_IN) -m website

consoles: setup ## Record again what commands print in the documents, at 80 columns
	@$(PYTHON_IN) -m tests.documents

screens: setup ## Record the pictures of docs/screens, and what axe finds, again in a real browser (needs Chromium)
	@$(PYTHON_IN) -m tests.pipeline.dashboard.web.browser.screens
	@$(PYTHON_IN) -m tests.pipeline.dashboard.web.browser.axe_report

rule-pictures: setup ## Draw a picture of each rule again, from a recording in which it fires
	@$(PYTHON_IN) -m tests.pipeline.dashboard.web.pictures.rule_pictures

notebooks: setup ## Run the notebooks again and keep what they show
	@$(PYTHON_IN) -m tests.end_to_end.notebooks

airflow: $(AIRFLOW_VENV)/.stamp ## Install Airflow into its own environment, .venv-airflow

$(AIRFLOW_VENV)/.stamp: airflow_dags/requirements.lock | $(STAMPS)/venv
	@echo "Installing Airflow …"
	@[ -x $(AIRFLOW_VENV)/bin/python ] || $(UV) venv --quiet --python $(PYTHON_IN) $(AIRFLOW_VENV)
	@$(UV) pip install --quiet --compile-bytecode --python $(AIRFLOW_VENV)/bin/python --require-hashes -r airflow_dags/requirements.lock
	@touch $@

superset: $(SUPERSET_VENV)/.stamp ## Install Apache Superset into its own environment, .venv-superset

$(SUPERSET_VENV)/.stamp: tests/superset/requirements.lock | $(STAMPS)/venv
	@echo "Installing Superset …"
	@[ -x $(SUPERSET_VENV)/bin/python ] || $(UV) venv --quiet --python $(PYTHON_IN) $(SUPERSET_VENV)
	@$(UV) pip install --quiet --compile-bytecode --python $(SUPERSET_VENV)/bin/python --require-hashes -r tests/superset/requirements.lock
	@touch $@

archive: setup ## Pack what the workers of a Spark cluster need into dist/ (see docs/cluster.md)
	@$(PYTHON_IN) -m pipeline.setup.archive

bench: setup ## Measure throughput on the sample captures
	@$(PYTHON_IN) -m benchmarks

fuzz: setup ## Decode hostile frames for long (make fuzz FRAMES=10000000 SEED=1)
	@$(PYTHON_IN) -m tests.hostile.fuzz --frames $(FRAMES) --seed $(SEED)
	@$(PYTHON_IN) -m tests.hostile.fuzz --frames $(FRAMES) --seed $(SEED) --reader mongodb

loss: setup ## Harm captures and compare what the agent makes of them (make loss SEEDS=10000)
	@$(PYTHON_IN) -m tests.hostile.loss --seeds $(SEEDS) --jobs 2
	@$(PYTHON_IN) -m tests.hostile.loss --seeds $(SEEDS) --jobs 2 --protocol mongodb

faults: setup ## Kill the job again and again, and compare its tables (make faults KILLS=52 SEED=1 JOBS=2)
	@$(PYTHON_IN) -m tests.faults.campaign --kills $(KILLS) --seed $(SEED) --jobs $(JOBS)

endings: setup ## Run each command that needs no JVM again and again (make endings RUNS=1000 JOBS=2)
	@$(PYTHON_IN) -m tests.faults.endings --runs $(RUNS) --jobs $(JOBS)

dist: setup $(RELEASE_VENV)/.stamp ## Build the wheel into dist/, and beside it the list of what it is made of (CycloneDX)
	@$(PYTHON_IN) -m pipeline.setup.sbom dist --cyclonedx $(RELEASE_VENV)/bin/cyclonedx-py

$(RELEASE_VENV)/.stamp: release/requirements.lock | $(STAMPS)/venv
	@[ -x $(RELEASE_VENV)/bin/python ] || $(UV) venv --quiet --python $(PYTHON_IN) $(RELEASE_VENV)
	@$(UV) pip install --quiet --python $(RELEASE_VENV)/bin/python --require-hashes -r release/requirements.lock
	@touch $@

audit: ## Look for known vulnerabilities of what is pinned, and for licences that are not permitted
	@$(MAKE) --no-print-directory dist || echo "No wheel can be built now: what was built before is looked at, if anything was."
	@if [ -x $(PYTHON_IN) ]; then $(PYTHON_IN) -m pipeline.setup.audit dist; \
	  else echo "NOT LOOKED UP, nothing at all: there is no $(VENV) (make setup)"; fi

lock: setup ## Resolve the newest allowed versions into all lock files
	@$(UV) $(LOCK) --upgrade --all-extras --group dev --group docs pyproject.toml -o requirements.lock
	@$(UV) $(LOCK) --upgrade airflow_dags/requirements.in -o airflow_dags/requirements.lock
	@$(UV) $(LOCK) --upgrade tests/superset/requirements.in -o tests/superset/requirements.lock
	@$(UV) $(LOCK) --upgrade release/requirements.in -o release/requirements.lock

clean: ## Remove the environments, caches and the demo lake
	@rm -rf $(VENV) $(AIRFLOW_VENV) $(SUPERSET_VENV) $(RELEASE_VENV) dist .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis \
	  demo-lake demo-landing spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
