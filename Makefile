# Every target does its own set-up: see scripts/setup.py.  A new machine needs python3, python3-venv,
# make and git.  Arguments for the command behind a target: make run ARGS="--profile bob".

PYTHON ?= python3
ARGS ?=
SETUP = @$(PYTHON) -m scripts.setup

.PHONY: help run pipeline quick test test-long interop-setup check bench proto package icons translations docs screenshots lock clean

help:
	@echo 'make run        start Causerie            make check   lint, types, import contracts, generated code'
	@echo 'make test       all tests but long ones   make bench   every figure, into build/bench'
	@echo 'make quick      core, session and codec, without drawn examples: half a minute'
	@echo 'make test-long  the long ones             make package program folder, .deb, .rpm and tarball, into dist'
	@echo 'make interop-setup   the other implementations that tests talk to (make test does it too)'
	@echo 'make proto, make docs, make icons, make screenshots, make translations, make lock'
	@echo '                                regenerate what is generated'
	@echo 'make pipeline ARGS="audit LOGS"   did everybody end up with the same conversation? (Spark)'
	@echo 'make clean      remove .venv, build, dist and caches'

run:
	$(SETUP) run -- causerie $(ARGS)

pipeline:
	$(SETUP) pipeline -- causerie-pipeline $(ARGS)

quick:
	$(SETUP) test -- python -m pytest -q -n auto -m "not long and not slow and not hypothesis" tests/core tests/session tests/codec $(ARGS)

test:
	$(SETUP) test -- python -m scripts.testing $(ARGS)

test-long:
	$(SETUP) package -- python -m scripts.testing --long $(ARGS)

interop-setup:
	$(SETUP) test -- python -m scripts.peers

check:
	$(SETUP) test -- python -m scripts.check $(ARGS)

bench:
	$(SETUP) test -- python -m benchmarks $(ARGS)

proto:
	$(SETUP) tools -- python scripts/proto.py

docs:
	$(SETUP) tools -- python -m scripts.settings_page
	$(SETUP) tools -- python -m scripts.man_page

icons:
	$(SETUP) test -- python -m scripts.icons

translations:
	$(SETUP) tools -- python -m scripts.translations

screenshots:
	$(SETUP) test -- xvfb-run -a -s "-screen 0 1400x900x24" python -m scripts.screenshots

package:
	$(SETUP) package -- python -m scripts.package $(ARGS)

lock:
	$(SETUP) tools -- python -m scripts.lock $(ARGS)

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
