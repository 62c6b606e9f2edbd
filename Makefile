# Every target does its own set-up: all that is needed beforehand is Python 3.11 (or newer) and make.

PYTHON  ?= python3
VENV    := .venv
LOWEST  := .venv-lowest
BIN     := $(VENV)/bin
PIP      = $(BIN)/python -m pip --disable-pip-version-check --quiet
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --upgrade

# What `make test`, `make properties` and `make test-lowest` run; all tests, unless some are named with
# TESTS="tests/cli tests/objects". Tests on real servers wait a lot: more processes than cores are faster then.
TESTS   ?=
WORKERS ?= auto

# Many programs are started; without kept bytecode each of them would compile all modules anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test properties test-lowest test-wheel test-pythons envtest clients cluster-api jobset playground site site-version dist release kubernetes check \
	charts chart-lint chart-version chart-push \
	bench format lock lock-lowest clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /: /' | awk -F': ' '{printf "  make %-13s %s\n", $$1, $$2}'

demo: $(VENV)/.ready  ## run the Memcached operator on the embedded cluster, and show what it does
	@$(BIN)/python -m examples.memcached.demo

test: $(VENV)/.ready  ## run the tests; TESTS="tests/cli" names some
	@$(BIN)/python -m pytest -q --numprocesses=$(WORKERS) --maxprocesses=4 --dist=worksteal $(TESTS)
	@$(if $(TESTS),,echo "make test leaves out the examples of the documentation (make test-wheel), random examples and whole matrices" \
		"(make properties), the lowest versions (make test-lowest)")

# A property's examples in `make test` depend on its code alone, and of a matrix it has a sample. Here examples are others
# in each run, and many more, and matrices are whole.
properties: $(VENV)/.ready  ## run properties with more and random examples, and whole matrices; TESTS="tests/cli" names some
	@$(BIN)/python -m pytest -q -m "hypothesis or matrix" --hypothesis-profile=random --numprocesses=auto --maxprocesses=4 \
		--dist=worksteal $(TESTS)

# An old library may use what a newer version of one of its own dependencies deprecates. What our code uses is tested by
# `make test`, where every warning is an error.
test-lowest: $(LOWEST)/.ready  ## run the tests with the lowest versions that pyproject.toml allows
	@$(LOWEST)/bin/python -m pytest -q --numprocesses=auto --maxprocesses=4 --dist=worksteal \
		-W ignore::DeprecationWarning $(TESTS)

# Without a checkout in sight, an example finds only what the wheel contains and what its page says to install.
test-wheel: $(VENV)/.ready  ## run the examples of the documentation in fresh environments, with the built wheel
	@$(BIN)/python scripts/check_wheel.py

test-pythons: $(VENV)/.ready  ## try the built wheel on each Python, with the lowest and the newest dependencies
	@$(BIN)/python -m scripts.check_pythons $(PYTHONS)

envtest: $(VENV)/.ready  ## build etcd and Kubernetes' programs, for the tests on a real API server
	@$(BIN)/python -m ocf.testing.envtest

clients: $(VENV)/.ready  ## install Kubernetes clients of other projects, for the tests with them
	@$(BIN)/python -m scripts.cached_environment clients
	@$(BIN)/python -m tests.clients.go_programs

cluster-api: envtest  ## build the controllers of Cluster API, and run the tests of its provider beside them; needs Go
	@$(BIN)/python -m tests.clients.go_programs cluster-api
	@OCF_REQUIRE=envtest,cluster-api $(BIN)/python -m pytest -q --numprocesses=auto --maxprocesses=2 \
		tests/controllers/nodegroup/whole_cluster/test_cluster_api_controllers.py

jobset: envtest  ## run JobSet's own suite on the controller of examples/jobset; needs Go
	@$(BIN)/python -m tests.clients.jobset

playground: $(VENV)/.ready  ## build the page that simulates autoscalers in the browser, and print how to serve it
	@$(BIN)/python -m scripts.generate.playground

site: $(VENV)/.ready  ## build the documentation site in .site/html, and print how to serve it
	@$(BIN)/python -m scripts.cached_environment site
	@$(BIN)/python -m scripts.site.build

# Of `mike`, which keeps one folder per version in a branch; pushing the branch is left to the caller.
site-version: $(VENV)/.ready  ## build the site and commit it as VERSION to the branch gh-pages, as the latest version
	@$(BIN)/python -m scripts.cached_environment site
	@$(BIN)/python -m scripts.site.versions $(VERSION)

dist: $(VENV)/.ready  ## build the wheel and the sdist into dist/
	@rm -rf dist
	@$(BIN)/python -m hatchling build --directory dist

release: $(VENV)/.ready  ## check the release VERSION=1.2.3, and with TAG=1 commit and tag it; nothing is pushed
	@$(BIN)/python -m scripts.release $(VERSION) $(if $(TAG),--tag)

kubernetes: envtest  ## regenerate and record what depends on the release of Kubernetes; ONLY="schema http" names steps
	@$(BIN)/python -m scripts.update_kubernetes $(if $(ONLY),--only $(ONLY))

check: $(VENV)/.ready-check  ## lint, format, types (mypy and pyright), import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/check_pages.py
	$(BIN)/pyright
	$(BIN)/lint-imports

charts: $(VENV)/.ready  ## generate the chart and the kustomization of the controllers; CHECK=1 only compares
	@$(BIN)/python -m scripts.generate.charts $(if $(CHECK),--check)

# Needs helm and kubectl in the path. Each file in ci/ has values that lint and render the chart.
chart-lint: charts  ## lint and render the chart with helm, and the kustomization with kubectl
	@for values in charts/ocf-controllers/ci/*.yaml; do \
		helm lint --strict charts/ocf-controllers --values $$values && \
		helm template ocf charts/ocf-controllers --values $$values >/dev/null || exit 1; done
	@for base in namespace hpa-controller nodegroup-controller; do \
		kubectl kustomize charts/kustomize/$$base >/dev/null || exit 1; done

# The version is that of the chart, which names the images by it; as a line for the output of a step of CI.
chart-version:  ## print the version of the chart and of the images
	@sed -n 's/^version: /version=/p' charts/ocf-controllers/Chart.yaml

chart-push:  ## package the chart with helm, and push it to REGISTRY=oci://...
	@test -n "$(REGISTRY)" || { echo "name the registry with REGISTRY=oci://registry.example.com/charts" >&2; exit 1; }
	@helm package charts/ocf-controllers --destination dist
	@helm push dist/ocf-controllers-*.tgz $(REGISTRY)

bench: $(VENV)/.ready  ## run the benchmarks and print their medians
	@$(BIN)/python -m benchmarks

format: $(VENV)/.ready-check  ## fix and format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: lock-lowest  ## update the locked development versions
	for set in test check; do $(COMPILE) --generate-hashes pyproject.toml requirements/$$set.in -o requirements/$$set.lock || exit 1; done
	$(COMPILE) --generate-hashes --constraint requirements/test.lock --extra admission --extra kopf pyproject.toml \
		-o requirements/operator.lock
	$(COMPILE) --generate-hashes --constraint requirements/test.lock pyproject.toml -o requirements/controllers.lock
	$(COMPILE) --generate-hashes --constraint requirements/test.lock --extra cel pyproject.toml requirements/serve.in \
		-o requirements/serve.lock
	$(COMPILE) --generate-hashes --constraint requirements/test.lock requirements/build.in -o requirements/build.lock
	for set in clients docs; do $(COMPILE) --generate-hashes requirements/$$set.in -o requirements/$$set.lock || exit 1; done

# First the lowest versions, then the newest of all other packages that fit them. Wheels only: what was published as
# sources alone is too old to build everywhere.
lock-lowest: $(VENV)/.ready  ## update the lowest versions, after a change of a bound in pyproject.toml
	$(PIP) install uv
	$(COMPILE) --only-binary :all: --resolution lowest-direct --all-extras pyproject.toml -o $(VENV)/lowest.txt
	$(COMPILE) --only-binary :all: --generate-hashes --constraint $(VENV)/lowest.txt --all-extras \
		pyproject.toml requirements/test.in -o requirements/lowest.lock

clean:  ## remove the virtual environment and all caches
	rm -rf $(VENV) $(LOWEST) .site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# The stamps say which locked set the environment holds; a changed lock file installs anew.
$(VENV)/.ready: requirements/test.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "ocf needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1); name another with PYTHON=..." >&2; exit 1; }
	@echo "Setting up $(VENV) (once, about a minute): virtual environment, locked dependencies, ocf itself"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements/test.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(LOWEST)/.ready: BIN := $(LOWEST)/bin
$(LOWEST)/.ready: requirements/lowest.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { \
		echo "the lowest versions are tested with the lowest Python, 3.11; $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
			"name another with PYTHON=..." >&2; exit 1; }
	@echo "Setting up $(LOWEST) (once, about a minute): virtual environment, the lowest dependencies, ocf itself"
	@$(PYTHON) -m venv $(LOWEST)
	@$(PIP) install --only-binary :all: --require-hashes -r requirements/lowest.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.ready-check: $(VENV)/.ready requirements/check.lock
	@echo "Adding the linters and type checkers to $(VENV)"
	@$(PIP) install --require-hashes -r requirements/check.lock
	@touch $@
