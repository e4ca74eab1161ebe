# The developer's and operator's entry points. Each target is a script in deploy/dev.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help run stop test check fmt bench clean-data

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: ## a working market on http://127.0.0.1:8080 with a demo; Ctrl-C stops it (GPUMARKET_PORT=N for another port)
	@exec bash deploy/dev/run.sh

stop: ## stop it from another terminal; running containers go on
	@exec bash deploy/dev/stop.sh

test: ## every test, on a real PostgreSQL and a real container engine
	@exec bash deploy/dev/test.sh

check: ## format, lints, laws of the house, spelling
	@exec bash deploy/dev/check.sh

fmt: ## format the code
	@cargo fmt --all

bench: ## measurements, each against a yardstick of the same run (BENCH="--rows bookings --seconds 5")
	@exec bash deploy/dev/bench.sh $(BENCH)

clean-data: ## forget the demo: database, keys, log-ins, containers
	@exec bash deploy/dev/clean-data.sh
