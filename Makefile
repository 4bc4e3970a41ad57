# `make demo` shows the plugin on the recorded runs, `make test` is the whole check, the same here as in CI.

PYTHON ?= python3
PORT ?= 6006
PYTEST_FLAGS ?= --numprocesses auto --dist loadfile
CHROMIUM ?= $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name))))
export CHROMIUM

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PACKAGE := $(VENV)/.package
TEST_TOOLS := $(VENV)/.test-tools
NODE_MODULES := frontend/node_modules/.package-lock.json
STATIC := tb_tidy_plugin/plugin/static

.PHONY: help demo test lint types generate generated frontend bundle pytest clean npm chromium

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

demo: $(PACKAGE) ## serve the sample runs; PORT=6007 for another port
	@echo "TorchTidy is at http://localhost:$(PORT)/#torchtidy"
	@$(BIN)/tensorboard --logdir sample_runs --port $(PORT)

test: lint types generated frontend pytest ## run every check

lint: $(TEST_TOOLS) ## check style and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(TEST_TOOLS) ## check the types
	$(BIN)/mypy

generate: $(TEST_TOOLS) $(NODE_MODULES) ## write the generated files
	$(BIN)/python -m tb_tidy_plugin.dev generate
	cd frontend && npm run types

generated: $(TEST_TOOLS) $(NODE_MODULES) ## check that the generated files are current
	$(BIN)/python -m tb_tidy_plugin.dev generate --check
	@cd frontend && npx json2ts -i ../docs/api.schema.json | diff --brief - src/api/types.gen.ts \
	    || { echo "frontend/src/api/types.gen.ts is stale: run 'make generate'" >&2; exit 1; }

frontend: $(NODE_MODULES) bundle ## check the frontend
	cd frontend && npm run lint && npm run typecheck && npm test && npm run check

bundle: $(NODE_MODULES) ## check that the committed bundle is what its sources build
	cd frontend && npx vite build --outDir ../build/frontend --emptyOutDir --logLevel warn
	@diff --recursive --brief --exclude=.stamp build/frontend $(STATIC) \
	    || { echo "$(STATIC) is stale: run 'npm run build' in frontend/ and commit what it writes" >&2; exit 1; }

pytest: $(TEST_TOOLS) | npm chromium ## run the Python and browser tests
	$(BIN)/pytest $(PYTEST_FLAGS)

clean: ## remove all that the other targets made
	rm -rf $(VENV) build *.egg-info frontend/node_modules .coverage .hypothesis
	rm -rf .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find tb_tidy_plugin tests -name __pycache__ -type d -prune -exec rm -rf {} +

npm:
	@command -v npm > /dev/null \
	    || { echo "npm is missing: install Node.js >= 20.19 (https://nodejs.org)" >&2; exit 1; }

chromium:
	@test -x "$(CHROMIUM)" \
	    || { echo "Chromium is missing: 'apt-get install chromium', or set CHROMIUM to its path" >&2; exit 1; }

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)

$(PACKAGE): setup.py | $(BIN)/pip
	$(PIP_INSTALL) --editable .
	@touch $@

# The install must not rebuild the bundle: whether it is current is one of the checks.
$(TEST_TOOLS): setup.py tests/requirements.txt tests/constraints.txt | $(BIN)/pip
	TORCHTIDY_FRONTEND=skip $(PIP_INSTALL) --requirement tests/requirements.txt --editable .
	@touch $@ $(PACKAGE)

$(NODE_MODULES): frontend/package.json frontend/package-lock.json | npm
	cd frontend && npm ci --no-audit --no-fund
	@touch $@
