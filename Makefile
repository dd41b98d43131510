# The tasks of this project, from nothing but a clone on Debian 12. Missing packages are installed on the way
# (tools/packages.txt); every build folder is build/<preset>, as in CMakePresets.json.
#
#   JOBS=N           parallel jobs (default: all cores)
#   PREFIX=DIR       where `make install` puts things (default: /usr/local; DESTDIR is honoured)
#   WERROR=ON        warnings of g++ are errors, as in CI (those of clang always are)
#   FUZZ_SECONDS=N   time per fuzz target
SHELL := /bin/bash
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
WERROR ?= OFF
FUZZ_SECONDS ?= 30

RELEASE := build/release
STRICT := $(if $(filter ON,$(WERROR)),-DFORELOAD_WERROR=ON)
# TSan and ASan of clang 14 can not place their shadow memory when the kernel randomises addresses widely.
# Where a container forbids setarch, they are run without it.
SETARCH := $(shell setarch -R true 2>/dev/null && echo setarch -R)
CTEST := ctest --output-on-failure --no-tests=error -j$(JOBS)

.DEFAULT_GOAL := help
.PHONY: help build demo test test-release test-asan test-tsan check install soak fuzz bench tidy format clean

help:
	@echo "make demo      build, generate a small dataset once, and show what stalls and what does not"
	@echo "make test      all tests: release, ASan+UBSan, TSan, install + consumer, tools/check (about twenty minutes)"
	@echo "make build     the library and the command: $(RELEASE)/foreload"
	@echo "make install   install both below PREFIX=$(PREFIX)"
	@echo "make install-python   build the Python package and install it below PREFIX=$(PREFIX)"
	@echo "make check     format, include direction, headers, sizes, names of types"
	@echo "make soak      the reliability tests in full length"
	@echo "make fuzz      every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make bench     all benchmarks; writes bench/results.json"
	@echo "make tidy      clang-tidy        make format   clang-format        make clean   removes build/"

# Once configured, ninja itself runs CMake again when a CMake file changes.
$(RELEASE)/build.ninja: | packages-core
	cmake --preset release -DFORELOAD_TESTS=OFF -DFORELOAD_BENCHMARKS=OFF $(STRICT)

.PHONY: packages-core packages-test packages-bench packages-tidy
packages-core:
	@tools/install-packages core
packages-test:
	@tools/install-packages core test bench python peers report
packages-bench:
	@tools/install-packages core bench python peers
packages-tidy: packages-%:
	@tools/install-packages core $*

build: packages-core $(RELEASE)/build.ninja
	@cmake --build $(RELEASE) -j$(JOBS) --target foreload foreload_cli foreload_demo

demo: build
	@tools/demo $(RELEASE) build/demo-data

.PHONY: install-python packages-python
packages-python:
	@tools/install-packages core python
# Debian's interpreter finds what lies below /usr/local by itself; for another PREFIX the last line says what to set.
install-python: packages-python $(RELEASE)/build.ninja
	@cmake -DFORELOAD_PYTHON=ON $(STRICT) $(RELEASE) >/dev/null
	@cmake --build $(RELEASE) -j$(JOBS) --target _foreload
	@cmake --install $(RELEASE) --component python --prefix "$(PREFIX)" >/dev/null
	@tools/python-installed "$(DESTDIR)$(PREFIX)"

# The tests of the Python package against today's torch and numpy, where PyPI can be reached.
.PHONY: test-current-torch
test-current-torch: build-release
	@tools/test-current-torch $(RELEASE)

install: build
	@cmake --install $(RELEASE) --prefix "$(PREFIX)"

# Everything is compiled before the first test runs, so that a compile error shows early.
test: packages-test
	@$(MAKE) --no-print-directory build-tests
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory test-release
	@$(MAKE) --no-print-directory test-asan
	@$(MAKE) --no-print-directory test-tsan

.PHONY: build-tests build-release build-asan build-tsan
build-tests: build-release build-asan build-tsan
build-release: packages-test
	@cmake --preset release -DFORELOAD_TESTS=ON -DFORELOAD_BENCHMARKS=ON -DFORELOAD_PYTHON=ON $(STRICT) >/dev/null
	@cmake --build $(RELEASE) -j$(JOBS)
build-asan build-tsan: build-%: packages-test
	@cmake --preset $* >/dev/null
	@cmake --build build/$* -j$(JOBS) --target unit_tests

test-release: build-release
	@$(CTEST) --test-dir $(RELEASE)
test-asan test-tsan: test-%: build-%
	@$(SETARCH) $(CTEST) --test-dir build/$* -L unit

check: packages-test
	@tools/check

soak: build-release
	FORELOAD_SOAK=1 ctest --output-on-failure --no-tests=error --test-dir $(RELEASE) --timeout 7200

fuzz: build-asan
	@$(SETARCH) tools/fuzz build/asan $(FUZZ_SECONDS)

bench: packages-bench
	@cmake --preset release -DFORELOAD_BENCHMARKS=ON -DFORELOAD_PYTHON=ON >/dev/null
	@cmake --build $(RELEASE) -j$(JOBS) --target foreload foreload_cli benchmarks
	@tools/bench $(RELEASE)/bench bench/results.json

tidy: packages-tidy
	@cmake --preset dev -DFORELOAD_TESTS=OFF -DFORELOAD_BENCHMARKS=OFF >/dev/null
	@run-clang-tidy -quiet -p build/dev -j$(JOBS) '/(src|apps)/'

format: packages-test
	@tools/check --fix-format

clean:
	rm -rf build
