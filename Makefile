# make train     set up, then train with a live view until Ctrl-C
# make test      the same set-up, then every check and every test
# make chaos     ten minutes of killing, stopping and cutting off at random, then proofs
# make soak      an hour of training: does memory, disk or anything else grow?
# make fuzz      random games against their naive twins, then all decoders on changed bytes
#
# Variables:  MINUTES=10  GAMES=20000  SEED=1  NAME=my-run  SET="self_play.games=64 …"  TORCH=cpu|cuda
#             PRESET=cuarenta-laptop  PYTHON=python3.12  VENV=.venv  TESTS="tests/engine -k deal"

PRESET  ?= cuarenta-laptop
VENV    ?= .venv
TESTS   ?= tests
MINUTES ?=
GAMES   ?=
SEED    ?=
NAME    ?=
SET     ?=
TORCH   ?=
# The first Python of a supported version that runs.
PYTHON  ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	2>/dev/null && echo $$p && break; done)

BIN := $(VENV)/bin

.PHONY: help train test test-all chaos soak check fuzz format setup setup-test require-python
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -8

require-python:
	@test -n "$(PYTHON)" || { echo "set-up: no Python 3.11 to 3.13 found; make PYTHON=…" >&2; exit 2; }

setup: require-python
	@$(PYTHON) -I deploy/setup_venv.py --venv $(VENV) --extras learner --torch "$(TORCH)"
	@$(BIN)/cardleague warmup

setup-test: require-python
	@$(PYTHON) -I deploy/setup_venv.py --venv $(VENV) --extras learner,test --torch "$(TORCH)"
	@$(BIN)/cardleague warmup

train: setup
	@exec $(BIN)/cardleague train $(PRESET) \
		$(if $(NAME),--name $(NAME)) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(SEED),--seed $(SEED)) $(if $(SET),--set $(SET))

check: setup-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/pytest -n 2 $(TESTS)

soak: setup-test
	$(BIN)/python -m tests.soak.run --preset $(PRESET) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(SET),--set $(SET))

# Each Python has an environment of its own; one that is not installed is an error.
test-all:
	@for version in 3.11 3.12 3.13; do \
		python=$$(sh .ci/find-python $$version) || exit 2; \
		$(MAKE) --no-print-directory test PYTHON="$$python" VENV=.venv-$$version || exit 1; \
	done

chaos: setup-test
	$(BIN)/python -m tests.chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

# GAMES of each game, every switch drawn at random, beside its naive twin; then, coverage-guided,
# everything that reads bytes, where the minutes are shared by all decoders.
fuzz: require-python
	@$(PYTHON) -I deploy/setup_venv.py --venv $(VENV) --extras learner,test,fuzz --torch "$(TORCH)"
	@$(BIN)/cardleague warmup
	nice $(BIN)/python -m tests.engine.fuzz_games $(if $(GAMES),--games $(GAMES)) \
		$(if $(SEED),--seed $(SEED))
	nice $(BIN)/python -m tests.hostile.fuzz $(if $(MINUTES),--minutes $(MINUTES))

format: setup-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
