# `make demo` shows the plugin on the recorded runs, `make test` is the whole check, the same here as in CI.

PYTHON ?= python3
PORT ?= 6006
# The oldest versions have wheels for these two only. A shim of pyenv may be there without the Python behind it.
PYTHON_MIN ?= $(shell for each in python3.10 python3.11 $(PYTHON); do \
    $$each -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 10), (3, 11)))' 2> /dev/null && echo $$each && break; done)
PYTHONS ?= python3.10 python3.11 python3.12 python3.13
MINUTES ?= 10
# Two more than there are cores: tests wait for browsers, servers and limits of time for a quarter of their time.
# A process that crashes ends the run: xdist 3.8 waits forever for files that the process had finished.
PYTEST_FLAGS ?= --numprocesses $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2) --dist loadfile --no-loadscope-reorder \
    --max-worker-restart 0

# What Python compiles is kept in the environments here, or each process would compile torch and all tests again.
unexport PYTHONDONTWRITEBYTECODE

# Programs that the system does not have; `tests/tools.sh` brings them.
export PATH := $(CURDIR)/build/tools/bin:$(PATH)

# Two environments, since the tests compare with another profiler plugin, which would show up in the demo.
DEMO := .venv-demo
TEST := .venv
MIN := .venv-min
NEWEST := .venv-newest
BIN := $(TEST)/bin
DEMO_SOURCES := sample_runs/image_classifier_untidy,sample_runs/text_generation_eval,sample_runs/decoder_training_gpu_untidy
# Most modules of what is installed are never imported: to compile all of them takes 40 s.
INSTALL := bin/pip install --quiet --disable-pip-version-check --no-compile
NODE_MODULES := frontend/node_modules/.package-lock.json
COMPILED := $(wildcard tb_tidy_plugin/*/*.pyx tb_tidy_plugin/*/*.pxi)
MIN_TESTS := tests/cli/test_cli.py tests/cli/test_doctor.py tests/plugin/test_in_tensorboard.py tests/plugin/test_profiles.py \
    tests/plugin/test_web.py tests/trace/test_kineto.py tests/trace/test_real_traces.py tests/trace/test_files.py
# The formats, what runs in a training process, and all that records and judges programs.
NEWEST_TESTS := tests/accuracy tests/analysis tests/benchmarks tests/budgets tests/capture tests/dev tests/differential \
    tests/faults tests/fixes tests/lines tests/profile tests/rules tests/second_corpus tests/sources tests/torchfacts/test_aten.py \
    tests/trace/test_external.py
OLDEST_TESTS := tests/trace/test_kineto.py
STATIC := tb_tidy_plugin/plugin/static

.PHONY: help demo test oldest lint types generate generated numbers ledger accuracy fixes lines proof gpu-proof gpu-proof-report residuals screens firefox painted bench bench-check load test-min newest-torch test-install fuzz frontend bundle pytest clean node browser

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

demo: $(DEMO)/.installed ## serve the sample runs; PORT=6007 for another port
	@echo "TorchTidy is at http://localhost:$(PORT)/#torchtidy&p.torchtidy.run=image_classifier_untidy"
	@$(DEMO)/bin/tensorboard --logdir sample_runs --port $(PORT) --torchtidy_source_roots $(DEMO_SOURCES)

# Two at a time: while Python's packages are installed, the frontend is checked.
test: ## run every check
	@$(MAKE) --jobs=2 lint types generated frontend oldest pytest

lint: $(TEST)/.installed ## check style and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(TEST)/.installed ## check the types
	$(BIN)/mypy

generate: $(TEST)/.installed $(NODE_MODULES) ## write the generated files
	$(BIN)/python -m tb_tidy_plugin.dev generate
	cd frontend && npm run types

numbers: $(TEST)/.installed ## write docs/numbers.md; needs the shared traces
	$(BIN)/python -m tests.differential.peer_comparison

ledger: $(TEST)/.installed ## write the table of docs/ledger.md; needs the shared traces
	$(BIN)/python -m tests.ledger

accuracy: $(TEST)/.installed ## count what the rules find in both corpora; writes docs/accuracy.md
	$(BIN)/python -m tests.accuracy
	$(BIN)/python -m tests.second_corpus

fixes: $(TEST)/.installed ## fix the corpus' slow programs and compare results; writes the table of docs/fixes.md; PROOF=--proof also times
	$(BIN)/python -m tests.accuracy.fixes $(PROOF)

lines: $(TEST)/.installed ## count how often the line inside a function is right; writes docs/lines.md
	$(BIN)/python -m tests.lines

bench: $(TEST)/.installed ## measure how fast traces are read and judged; writes docs/performance*.md
	$(BIN)/python -m tests.performance
	$(BIN)/python -m tests.performance.serving
	$(BIN)/python -m tests.performance.peers
	$(BIN)/python -m tests.performance.ranks

bench-check: $(TEST)/.installed ## measure again how soon findings are there; fails where ratios got twice as bad
	$(BIN)/python -m tests.performance.serving --check

load: $(TEST)/.installed ## load TensorBoard with many runs and readers; writes docs/load.md
	$(BIN)/python -m tests.load

# What this finds breaks everything for whoever has the oldest versions. After the other install: both build in build/.
oldest: | $(TEST)/.installed ## read the sample runs with the oldest versions of what setup.py asks for; a part of `make test`
	@if [ -z "$(PYTHON_MIN)" ]; then echo "SKIPPED: the oldest versions need Python 3.10 or 3.11" >&2; \
	else $(MAKE) $(MIN)/.installed && $(MIN)/bin/tb-tidy doctor sample_runs \
	    && $(MIN)/bin/tb-tidy check --no-cache --format json --output build/oldest.json sample_runs \
	    && $(MIN)/bin/pytest --quiet $(OLDEST_TESTS) -m 'not (browser or compiled or torch or slow)'; fi

test-min: $(MIN)/.installed ## run the tests of what depends on others with their oldest versions
	$(MIN)/bin/pytest $(MIN_TESTS) -m 'not (browser or compiled or torch)'

newest-torch: $(NEWEST)/.installed ## run what needs torch with the newest release that is supported; a part of `make proof`
	$(NEWEST)/bin/python -m tb_tidy_plugin.dev generate --check
	$(NEWEST)/bin/pytest $(PYTEST_FLAGS) --proof $(NEWEST_TESTS) -m 'torch and not browser'

test-install: $(TEST)/.installed ## install the wheel into clean environments, one for each of PYTHONS that is here
	TORCHTIDY_PYTHONS="$(PYTHONS)" $(BIN)/pytest tests/install

# With the machine's own Python and packages: it may have no network.
gpu-proof: ## measure on this machine's GPU, 8 minutes a call; PROOF="--device cpu" for options; docs/gpu-proof.md
	@status=0; $(PYTHON) -m tests.gpu_proof $(PROOF) || status=$$?; [ $$status -eq 3 ] || exit $$status

gpu-proof-report: $(TEST)/.installed ## write docs/accuracy-gpu.md and the sample runs of ARCHIVE=gpu-proof.tar
	$(BIN)/python -m tests.gpu_proof --report "$(ARCHIVE)" $(PROOF)

proof: $(TEST)/.installed ## run what needs a quiet machine: timed tests, growth, slow programs against fixed ones (for the same page)
	$(BIN)/pytest --timed
	$(BIN)/pytest $(PYTEST_FLAGS) --all-recordings -m sampled
	$(BIN)/pytest $(PYTEST_FLAGS) --proof -m "proof or hypothesis"
	TIDY_API_EXAMPLES=100 $(BIN)/pytest tests/plugin/test_openapi.py
	$(BIN)/python -m tests.growth
	$(BIN)/python -m tests.accuracy --proof
	$(BIN)/python -m tests.accuracy --proof --conditions library
	$(BIN)/python -m tests.accuracy --proof --conditions cores
	$(BIN)/python -m tests.second_corpus --proof
	$(MAKE) newest-torch

fuzz: $(TEST)/.installed ## break all kinds of files for MINUTES=10 minutes; leaves what it finds in build/fuzz/
	$(BIN)/python -m tests.fuzz --what all --minutes $(MINUTES)

screens: $(TEST)/.installed | browser ## take the pictures of docs/screens/ again
	$(BIN)/python -m tests.browser.screens

firefox: $(TEST)/.installed ## open every view in the Firefox that is installed; pictures in build/firefox/
	$(BIN)/python -m tests.browser.firefox

painted: $(TEST)/.installed | browser ## measure clicks until views are painted; writes the table of docs/ui.md
	$(BIN)/python -m tests.browser.painted

generated: $(TEST)/.installed $(NODE_MODULES) ## check that the generated files are current
	$(BIN)/python -m tb_tidy_plugin.dev generate --check
	@cd frontend && npx json2ts -i ../docs/api.schema.json | diff --brief - src/api/types.gen.ts \
	    || { echo "frontend/src/api/types.gen.ts is stale: run 'make generate'" >&2; exit 1; }

residuals: $(TEST)/.installed ## replay the shared traces without an edit; writes the table of docs/estimates.md
	$(BIN)/python -m tests.estimate

frontend: $(NODE_MODULES) bundle ## check the frontend
	cd frontend && npm run lint && npm run typecheck && npm test && npm run check

bundle: $(NODE_MODULES) ## check that the committed bundle is what its sources build
	cd frontend && npx vite build --outDir ../build/frontend --emptyOutDir --logLevel warn
	@diff --recursive --brief --exclude=.stamp build/frontend $(STATIC) \
	    || { echo "$(STATIC) is stale: run 'npm run build' in frontend/ and commit what it writes" >&2; exit 1; }

pytest: $(TEST)/.compiled | node browser ## run the Python and browser tests
	$(BIN)/pytest $(PYTEST_FLAGS)

clean: ## remove all that the other targets made
	rm -rf $(DEMO) $(TEST) $(MIN) $(NEWEST) build *.egg-info frontend/node_modules .coverage .hypothesis
	rm -rf .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find tb_tidy_plugin -name '*.so' -delete -o -path '*/_*.c' -delete
	find tb_tidy_plugin tests -name __pycache__ -type d -prune -exec rm -rf {} +

node:
	@PYTHON="$(PYTHON)" tests/tools.sh venv $@

browser: $(TEST)/.installed
	@VENV="$(TEST)" tests/tools.sh $@

%/bin/pip:
	@PYTHON="$(PYTHON)" tests/tools.sh venv
	$(PYTHON) -m venv $*

# With LibCST, so that findings have diffs of the scripts in sample_runs.
$(DEMO)/.installed: setup.py $(COMPILED) | $(DEMO)/bin/pip
	$(DEMO)/$(INSTALL) --editable '.[fix]'
	@touch $@

# The install must not rebuild the bundle: whether it is current is one of the checks.
# Without a compiler the checks fail: skipping the tests of what is compiled would look like a pass.
$(TEST)/.installed: setup.py tests/requirements.txt tests/constraints.txt $(COMPILED) | $(TEST)/bin/pip
	@PYTHON="$(PYTHON)" tests/tools.sh compiler
	TORCHTIDY_FRONTEND=skip TORCHTIDY_EXTENSION=require $(TEST)/$(INSTALL) --requirement tests/requirements.txt --editable .
	@touch $@

# Once, before several processes do it at the same time: what the tests import, and the tests with their assertions.
$(TEST)/.compiled: $(TEST)/.installed
	@$(BIN)/python -m compileall -q tb_tidy_plugin tests
	@$(BIN)/python -c 'import torch._dynamo, torch._inductor.compile_fx, torch.profiler, torch.utils.data, tensorboard.main'
	@$(BIN)/pytest --collect-only --quiet > $(TEST)/collected.txt || { cat $(TEST)/collected.txt; exit 1; }
	@touch $@

# From a wheel: without a compiler, as most users have it.
$(MIN)/.installed: setup.py tests/constraints-min.txt
	$(PYTHON_MIN) -m venv $(MIN)
	TORCHTIDY_FRONTEND=skip TORCHTIDY_EXTENSION=skip $(MIN)/$(INSTALL) --prefer-binary \
	    --constraint tests/constraints-min.txt hypothesis jsonschema pytest pytest-xdist setuptools .
	@touch $@

# A torch with CUDA takes 5 GB: `PIP_EXTRA_INDEX_URL` as in CONTRIBUTING.md names the CPU builds.
$(NEWEST)/.installed: setup.py tests/requirements.txt tests/constraints.txt tests/constraints-newest.txt $(COMPILED) \
        | $(NEWEST)/bin/pip
	grep --invert-match '^torch==' tests/constraints.txt > $(NEWEST)/constraints.txt
	cat tests/constraints-newest.txt >> $(NEWEST)/constraints.txt
	grep --invert-match '^-c ' tests/requirements.txt > $(NEWEST)/requirements.txt
	TORCHTIDY_FRONTEND=skip TORCHTIDY_EXTENSION=require $(NEWEST)/$(INSTALL) --constraint $(NEWEST)/constraints.txt \
	    --requirement $(NEWEST)/requirements.txt --editable .
	@touch $@

$(NODE_MODULES): frontend/package.json frontend/package-lock.json | node
	cd frontend && npm ci --no-audit --no-fund
	@touch $@
