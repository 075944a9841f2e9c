# Everything a developer types. Works with whichever python is first on PATH.

.DEFAULT_GOAL := help
.PHONY: help check test test-slow docs build

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

check:  ## format, lint, types, import contracts, generated docs
	python -m ruff format --check .
	python -m ruff check .
	python -m mypy
	lint-imports
	python -m docs.generate --check

test:  ## the tests that take seconds
	python -m pytest -m "not slow"

test-slow:  ## every test, on two processes
	OMP_NUM_THREADS=1 python -m pytest -n 2

docs:  ## write docs/cli.md anew from the commands' --help
	python -m docs.generate

build:  ## build the wheel into dist/
	python -m pip wheel --quiet --no-deps --wheel-dir dist .
