# Everything below sets up .venv by itself; needed are Python 3.10 or later, git and make.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One process more than there are processors: tests wait a tenth of their time, for locks and for servers.
WORKERS ?= $(shell echo $$(( $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 1 )))
PYTEST_OPTIONS ?= -n $(WORKERS) --dist worksteal
# Where tests write 200,000 small files, half a gigabyte: in memory, where 2 GiB are free and programs may be
# started; TMPDIR=DIR says otherwise.
MEMORY = $(shell d=/dev/shm/patchkit-tests-$$(id -u); mkdir -m 700 -p $$d && test -O $$d && cp /bin/true $$d \
	&& $$d/true && df -Pk $$d | awk 'END { exit $$4 < 2097152 }' && echo $$d; rm -f $$d/true)
PYTEST = TMPDIR=$(or $(TMPDIR),$(MEMORY),/tmp) $(BIN)/python -m pytest $(PYTEST_OPTIONS)
# Which mistakes `make mutation` tries; those of 6 have been looked at.
SEED ?= 6
# What `make simulate` runs on: npu is simulated where there is none.
DEVICE ?= npu
STEPS ?=

# Where this is set, every start compiles all modules: 0.3 s of CPU time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test quick check format golden reference bench bench-full faults fuzz remotes corpora coverage mutation
.PHONY: dist site stacks site-deploy audit clean simulate simulate-quick simulate-mutations simulate-mistakes

help:  ## what can be made
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: $(VENV)/.runs  ## the tour: apply, check, edit, refresh, a drift that is found
	PATCHKIT="$(abspath $(BIN)/patchkit)" sh demo/run.sh

test: $(VENV)/.develops  ## the tests of patchkit, and those of the shipped patches
	$(PYTEST)

quick: $(VENV)/.develops  ## the tests of patchkit without the slow ones, for the loop while working
	$(PYTEST) -m "not slow" tests

check: $(VENV)/.develops  ## format, lint, types, stale generated files, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tools.reference --check
	$(PYTEST)

format: $(VENV)/.develops  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

golden: $(VENV)/.develops  ## write tests/golden; read the difference
	$(BIN)/python -m pytest --update-golden tests
	git diff --stat tests/golden

reference: $(VENV)/.develops  ## write schemas and tables of formats
	$(BIN)/python -m tools.reference

bench: $(VENV)/.develops  ## ratios to git, quilt and others, some minutes; writes docs/evidence.md
	$(BIN)/python -m bench.run --write docs/evidence.md

bench-full: $(VENV)/.develops  ## the same up to 1000, or real commits of REPOSITORY=clone
	$(BIN)/python -m bench.run --patches 10,50,200,1000 --patience 60 \
		$(if $(REPOSITORY),--repository $(REPOSITORY)) --write \
		docs/evidence.md

faults: $(VENV)/.develops  ## stop commands at 1200 points, all examples of laws, 40 minutes; writes docs/evidence.md
	PATCHKIT_TEST_SHARE=1 $(PYTEST) -m hypothesis
	$(BIN)/python -m bench.faults --points 1200 --editor 600 --write docs/evidence.md

fuzz: $(VENV)/.develops  ## ten minutes of damaged input for every reader; writes docs/evidence.md
	$(BIN)/python -m bench.fuzz --minutes 10 --write docs/evidence.md

remotes: $(VENV)/.develops  ## git servers that cut, stall and lie; writes docs/evidence.md
	$(BIN)/python -m bench.remotes --write docs/evidence.md

corpora: $(VENV)/.develops  ## the suites of others, from clones: GIT=DIR GNU_PATCH=DIR SLIME=DIR ...
	$(BIN)/python -m bench.corpora --write docs/evidence.md $(if $(GIT),--git $(GIT)) \
		$(if $(GNU_PATCH),--gnu-patch $(GNU_PATCH)) $(if $(SLIME),--slime $(SLIME)) \
		$(if $(SGLANG),--sglang $(SGLANG)) $(if $(MEGATRON),--megatron $(MEGATRON)) \
		$(if $(MINDSPEED),--mindspeed $(MINDSPEED)) $(if $(DEBIAN),--debian $(DEBIAN))

coverage: $(VENV)/.measures  ## branch coverage of the suite, by package; writes docs/evidence.md
	rm -rf build/coverage
	mkdir -p build/coverage
	: "the fault harness would strike what coverage.py writes"
	PATCHKIT_TEST_SHARE=1/3 $(BIN)/python -m coverage run -m pytest $(PYTEST_OPTIONS) --ignore tests/faults; status=$$?; \
		$(BIN)/python -m coverage combine --quiet \
		&& $(BIN)/python -m bench.coverage --write docs/evidence.md && exit $$status

mutation: $(VENV)/.measures  ## small mistakes in the core: does a test notice? Half an hour; SEED=n
	PATCHKIT_TEST_SHARE=1/3 $(BIN)/python -m bench.mutation --sample 40 --seed $(SEED) --write docs/evidence.md

dist: $(VENV)/.develops  ## sdist and wheel; the same bytes wherever they are built
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	@cd dist && sha256sum *

site: $(VENV)/.develops $(VENV)/.documents  ## the documentation as a site, in build/site; links and, in a browser, contrast are tested
	$(BIN)/python -m mkdocs build --quiet --strict
	$(BIN)/python -m pytest -q tests/test_site.py

stacks: $(VENV)/.runs  ## all shipped stacks and their upstreams, state by state, in build/stacks: a page, and the issues
	@mkdir -p build/stacks
	$(BIN)/patchkit drift --format json --output build/stacks/drift.json; test $$? -le 1
	$(BIN)/patchkit ci --merge build/stacks/drift.json --quiet --format html --output build/stacks/index.html; test $$? -le 1
	$(BIN)/patchkit ci --issues build/stacks/drift.json --output build/stacks/issues

site-deploy: $(VENV)/.documents  ## VERSION=n: the site as that version and `latest`, on branch gh-pages
	$(BIN)/mike deploy --push --update-aliases $(VERSION) latest
	$(BIN)/mike set-default --push latest

simulate: $(VENV)/.runs .simenv  ## the stacks on a simulated NPU, half an hour; STEPS="megatron bridge/train", DEVICE=npu
	.simenv/bin/python -m simulate run $(STEPS) --device $(DEVICE) --report build/simulate-$(DEVICE).json

simulate-quick: $(VENV)/.runs .simenv-quick  ## the short form, some minutes
	.simenv/bin/python -m simulate run $(STEPS) --quick --device $(DEVICE) --report build/simulate-quick.json

simulate-mutations: $(VENV)/.runs .simenv  ## each patch taken away: does the step that is about it fail?
	.simenv/bin/python -m simulate mutations $(STEPS) --device $(DEVICE) --report build/simulate-mutations.json

simulate-mistakes: $(VENV)/.runs .simenv  ## sixty small mistakes in patches: does a test notice, or a step? An hour
	.simenv/bin/python -m simulate mistakes $(STEPS) --report build/simulate-mistakes.json

# torch for CPUs, and what the runs import; done again when requirements.txt changes
.PHONY: .simenv .simenv-quick
.simenv:
	@$(PYTHON) -m simulate.environment .simenv

.simenv-quick:
	@$(PYTHON) -m simulate.environment --quick .simenv

audit: $(VENV)/.runs  ## known vulnerabilities of dependencies; asks the network
	$(BIN)/python -m pip check
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m pip_audit --skip-editable --strict

clean:  ## remove everything made here
	rm -rf $(VENV) .simenv .demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# A stamp is written last, so that a set-up that was cut short is done again.
$(VENV)/.runs: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "Python 3.10 or later is needed: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { echo "No virtual environment could be made; on Debian: apt install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable .
	@$(BIN)/python -m compileall -q patchkit  # as pip does for whoever installs it
	@touch $@

$(VENV)/.develops: $(VENV)/.runs
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/.documents: $(VENV)/.runs
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

$(VENV)/.measures: $(VENV)/.develops
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable '.[measure]'
	@touch $@
