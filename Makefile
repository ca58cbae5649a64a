# Penstock. `make demo` and `make test` need nothing but Go; everything else fetches its tools, pinned by .ci/tools/go.mod,
# into .cache/bin.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

GO      ?= go
TOOLS   := .cache/bin
TIMEOUT ?= 15m
# Folders called testdata are left out of ./... and named one by one.
PKG     ?= ./... ./testdata/rides ./testdata/servers

# The race detector needs cgo and a C compiler. A machine with nothing but Go has neither, and still runs the tests.
HAVE_RACE := $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v "$$($(GO) env CC | cut -d' ' -f1)" >/dev/null && echo yes)

# Steps that cannot run here say so in this file; .ci/run prints it at the end.
SKIPPED := .cache/skipped
skip     = { mkdir -p .cache && echo "$(1)" | tee -a $(SKIPPED) | sed 's/^/SKIPPED: /'; }

.PHONY: help
help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## ingest a Kafka topic, be killed half way, go on, and prove that every record is there once
	@$(GO) run ./cmd/penstock demo

.PHONY: test
test: ## run all tests, with the race detector and in random order (PKG=./sdk/...)
ifeq ($(HAVE_RACE),yes)
	$(GO) test -race -shuffle=on -timeout $(TIMEOUT) $(PKG)
else
	@$(call skip,race detector: it needs cgo and a C compiler (CGO_ENABLED=1 and gcc or clang). The tests run WITHOUT it.)
	$(GO) test -shuffle=on -timeout $(TIMEOUT) $(PKG)
endif

.PHONY: race
race: ## run all tests twice under the race detector, each time in another order
	$(GO) test -race -shuffle=on -count=2 -timeout $(TIMEOUT) $(PKG)

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## run the linters of .golangci.yml
	$(TOOLS)/golangci-lint run --allow-parallel-runners $(PKG)

.PHONY: fmt
fmt: $(TOOLS)/gofumpt ## format all Go files
	@$(TOOLS)/gofumpt -l -w $$(git ls-files "*.go")

.PHONY: generate
generate: ## write generated code anew
	$(GO) run -C .ci/tools ./protogen runtime/protocol/wire/penstock.proto
	$(GO) generate ./...

.PHONY: bench
bench: ## run the benchmarks (BENCH=Turn PKG=./runtime/... COUNT=10)
	$(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -count $(or $(COUNT),1) -timeout 60m $(PKG)

.PHONY: peers
peers: ## measure Penstock beside other Go programs, a module of its own (ARGS='table -only raw', 'codecs', 'restart')
	$(GO) run -C conformance/peers . $(or $(ARGS),table)

.PHONY: fuzz
fuzz: ## fuzz every decoder for a while each (FUZZTIME=10m JOBS=2)
	@.ci/fuzz '$(or $(FUZZTIME),10s)' '$(or $(JOBS),2)' $(PKG)

.PHONY: crash
crash: ## kill -9 a real job at random moments and check what it committed (N=50 FLAGS='-sink kafka -servers real')
	$(GO) run ./conformance/crash -kills $(or $(N),50) $(FLAGS)
	$(GO) run ./conformance/crash -kills $(or $(N),50) -rescale $(FLAGS)

.PHONY: sim
sim: ## run the engine through seeded lives full of faults, in virtual time (SEEDS=1000 FIRST=1)
	@$(GO) run ./conformance/simulation/sim -seeds $(or $(SEEDS),1000) -first $(or $(FIRST),1)

.PHONY: mutations
mutations: ## break each rule of the runtime once and show which test notices (ONLY=gate)
	$(GO) run ./conformance/mutation -only '$(ONLY)'

.PHONY: soak
soak: ## run a job for half an hour and show that nothing grows (FOR=30m)
	$(GO) run ./conformance/soak -for $(or $(FOR),30m)

.PHONY: verify
verify: ## everything that CI checks
	@.ci/verify

# ---- What follows are the steps of verify. Each can be run alone.

.PHONY: check-fmt
check-fmt: $(TOOLS)/gofumpt
	@files=$$($(TOOLS)/gofumpt -l . | grep -v "^\.cache/" || true); [ -z "$$files" ] || { echo "not formatted, run make fmt:"; echo "$$files"; exit 1; }

.PHONY: check-tidy
check-tidy:
	@$(GO) mod tidy -diff || { echo "go.mod or go.sum is not tidy, run go mod tidy"; exit 1; }

.PHONY: check-fix
check-fix:
	@diff=$$($(GO) fix -diff ./... 2>&1) && [ -z "$$diff" ] || { echo "$$diff"; echo "older idioms than the language has, run go fix ./..."; exit 1; }

.PHONY: vet
vet:
	@$(GO) vet ./...
	@$(GO) vet -C .ci/tools ./...
	@$(GO) vet -C conformance/peers ./...

.PHONY: check-generate
check-generate:
	@.ci/check-generate

.PHONY: check-sim
check-sim:
	@$(MAKE) sim SEEDS=5000

.PHONY: check-fuzz
check-fuzz:
	@$(MAKE) fuzz FUZZTIME=2s

.PHONY: bench-once
bench-once:
	@$(GO) test -short -run '^$$' -bench . -benchtime 1x -timeout 10m ./... | { grep -v 'no test files' || true; }

.PHONY: vulnerabilities
vulnerabilities: $(TOOLS)/govulncheck
	@.ci/vulnerabilities $(SKIPPED)

# ---- Tools

tool-golangci-lint := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
tool-gofumpt       := mvdan.cc/gofumpt
tool-govulncheck   := golang.org/x/vuln/cmd/govulncheck
tool-benchstat     := golang.org/x/perf/cmd/benchstat

$(TOOLS)/%: .ci/tools/go.mod .ci/tools/go.sum
	@echo "building $* (once)"
	@$(GO) build -C .ci/tools -o ../../$@ $(tool-$*)
	@touch $@
