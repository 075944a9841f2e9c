# Everything a developer types. Works with whichever python is first on PATH.

.DEFAULT_GOAL := help
.PHONY: help check test test-slow test-nightly docs build bench bench-peers

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

check:  ## format, lint, types, import contracts, generated docs
	python -m ruff format --check .
	python -m ruff check .
	python -m mypy
	lint-imports
	python -m docs.generate --check
	python -m benchmarks report --check

test:  ## the tests that take seconds
	python -m pytest -m "not slow"

test-slow:  ## every test but those of test-nightly, on two processes
	OMP_NUM_THREADS=1 python -m pytest -n 2 --dist worksteal

docs:  ## write docs/cli.md from the commands' --help, docs/performance.md from benchmarks/results
	python -m docs.generate
	python -m benchmarks report

build:  ## build the wheel into dist/
	python -m pip wheel --quiet --no-deps --wheel-dir dist .

test-nightly:  ## the tests that take many minutes: 100 000 damaged inputs, columns of gigabytes
	OMP_NUM_THREADS=1 python -m pytest -n 2 --dist worksteal -m nightly

bench:  ## speed, start-up and memory beside the peers; BENCH="--settings FILE --name NAME ..." says where they are
	python -m benchmarks run $(BENCH)
	python -m benchmarks startup $(BENCH)
	python -m benchmarks memory $(BENCH)
	python -m benchmarks report

bench-peers:  ## make the peers' environments below DIR, and DIR/settings.toml for bench
	python -m benchmarks peers $(DIR)
