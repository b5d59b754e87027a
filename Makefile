# make setup   creates .venv with the locked dependencies
# make web     builds the recorded web of the default crawl
# make crawl   runs a focused crawl to its end, after setup and web
# make crawl-cluster  crawls by four processes on a Ray cluster of this machine, with shared storage
# make compare crawls twice, focused and breadth-first, and compares the harvest
# make test    runs the tests that protect a change
# make test-all  runs all tests, also those marked long, with more examples of each property
# make test-long  runs what make test-all adds to make test
# make lint    runs linters, type checker and import contracts
# make reference  writes the generated parts of the documentation into its pages
# make docs    builds the documentation site into build/site
# make check   runs make lint and make test
# make fuzz    mutates pages, URLs, robots.txt, feeds and headers, and parses them, for ten minutes
# make benchmark-harvest  compares orderings on four webs and 28 topics; resumes when stopped
# make benchmark-frontier  measures the frontier at up to ten million links, beside Scrapy's queues
# make benchmark-crawl  measures pages per second and CPU per page, beside a stock Scrapy crawl; needs nginx
# make wheels  builds this machine's wheel in build/wheels, with compiled kernels, and tests them
# make lock    resolves the dependencies again
# make clean   removes .venv and compiled kernels; webs, crawls and models stay

PYTHON ?= python3
TOPIC  ?= topics/parallel-computing.toml
POLICY ?= focused
NAME   := $(basename $(notdir $(TOPIC)))
# The shipped topics are crawled on a recorded web, whose hosts are this machine: no delay harms
# nobody, and one request at a time gives the same pages in each run (docs/how-to/compare.md, "How much
# results vary"). Any other topic, and WEB= (empty), crawls the live Web as the topic says.
SHIPPED := parallel-computing statistics cryptography databases astronomy security
WEB    ?= $(if $(filter $(SHIPPED),$(NAME)),webs/docweb-small)
DELAY  ?= 0
CONCURRENCY ?= 1

VENV := .venv
BIN  := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: wheels crawl crawl-cluster test test-all test-long check docs reference lint compare web setup lock clean benchmark-harvest benchmark-frontier benchmark-crawl fuzz

setup: $(READY)

# The kernels are compiled where a C compiler is; without one they run interpreted.
KERNELS := $(wildcard focused/kernels/*.py)
COMPILED = focused/kernels/*.so focused/kernels/compiled.json
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation

$(READY): requirements.lock pyproject.toml lab/pyproject.toml setup.py $(KERNELS)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' || \
	  { echo "Python 3.11 to 3.14 is needed; $(PYTHON) is not: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "python3-venv is missing: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }
	@echo "installing locked dependencies into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@rm -f $(COMPILED)
	@mkdir -p build
	@command -v cc >build/kernels.log && FOCUSED_COMPILE=1 $(INSTALL) -e . -e lab >build/kernels.log 2>&1 || \
	  { echo "kernels run interpreted, which costs some 6 ms of CPU a page: no C compiler, or see build/kernels.log"; \
	  $(INSTALL) -e . -e lab; }
	@touch $@

web: $(READY)
	@$(if $(filter webs/docweb-small,$(WEB)),$(BIN)/focused web build docweb --tier small,:)

crawl: $(READY) web
	$(BIN)/focused crawl $(TOPIC) --policy $(POLICY) \
	  $(if $(WEB),--web $(WEB) --delay-s $(DELAY) --concurrency $(CONCURRENCY))

# Without a delay there is no patience: partitions would not wait for better links of others.
CLUSTER_DELAY ?= 0.1
CLUSTER_PAGES ?= 600

crawl-cluster: $(READY) web
	$(BIN)/focused crawl $(TOPIC) --web $(or $(WEB),webs/docweb-small) --processes 4 --ray local \
	  --storage file://$(CURDIR)/crawls/shared --delay-s $(CLUSTER_DELAY) --pages $(CLUSTER_PAGES)

compare: $(READY) web
	@$(MAKE) --no-print-directory crawl POLICY=focused
	@$(MAKE) --no-print-directory crawl POLICY=bfs
	$(BIN)/focused report $(TOPIC) --policies focused,bfs $(if $(WEB),--web $(WEB))

benchmark-harvest: $(READY)
	$(BIN)/python benchmarks/harvest.py

benchmark-frontier: $(READY)
	$(BIN)/python benchmarks/frontier.py

benchmark-crawl: $(READY) web
	$(BIN)/python benchmarks/crawling.py

fuzz: $(READY) web
	$(BIN)/python benchmarks/fuzz.py --minutes 10

# Crawls in tests wait for hosts: two workers a core. One worker runs all tests of a file, so that a
# crawl that they share is made once. Bytecode that is not kept would be compiled by each process
# that a test starts. A worker that dies ends the run: pytest-xdist waits for ever for the one that
# would replace it.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
  --max-worker-restart 0

test: $(READY)
	$(PYTEST)

test-all: $(READY)
	$(PYTEST) -m "" --hypothesis-profile=thorough

# One worker a core: some measure times, and many start processes of their own.
test-long: WORKERS = $(shell getconf _NPROCESSORS_ONLN)
test-long: $(READY)
	$(PYTEST) -m "long or hypothesis" --hypothesis-profile=thorough

reference: $(READY)
	$(BIN)/python -m docs.site_hooks

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

# Wheels of other systems: cibuildwheel, by its table in pyproject.toml.
wheels: $(READY)
	rm -rf build/wheels build/lib*  # setuptools would add files that were deleted since
	FOCUSED_COMPILE=1 $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --wheel-dir build/wheels .
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-index \
	  --target build/wheels/installed build/wheels/*.whl
	FOCUSED_COMPILE=1 PYTHONPATH=build/wheels/installed $(BIN)/pytest -c tests/kernels/wheel.ini tests/kernels

lock: $(READY)
	$(BIN)/uv pip compile --universal --python-version 3.11 --extra dev --generate-hashes \
	  --no-header --quiet --upgrade --no-emit-package focused-lab --no-emit-package focused-crawler \
	  pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) build lab/build *.egg-info lab/*.egg-info $(COMPILED)
