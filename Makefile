# Run `make` or `make help` for what there is. Everything needed but Go, git and make is built
# from pinned Go modules into .cache/ on first use.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
IMAGE ?= ghcr.io/kick-dev/kick
# gRPC without its page of traces, which would keep half of the Kubernetes API in the manager (docs/adr/0010).
TAGS := grpcnotrace
# KICK=0 makes `make up` start the control plane without KICK.
KICK ?= 1

# The development tools, built once per set of versions. Their module is apart from the product's, so
# that neither decides the other's dependencies.
TOOLS := $(abspath .cache/tools/$(shell cd hack/tools && { go version; cat go.sum; } | git hash-object --stdin))
CONTROLLER_GEN := $(TOOLS)/controller-gen
CRD_REF_DOCS := $(TOOLS)/crd-ref-docs
CYCLONEDX := $(TOOLS)/cyclonedx-gomod
GOLANGCI_LINT := $(TOOLS)/golangci-lint
$(CONTROLLER_GEN): package := sigs.k8s.io/controller-tools/cmd/controller-gen
$(CRD_REF_DOCS): package := github.com/elastic/crd-ref-docs
$(CYCLONEDX): package := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
$(GOLANGCI_LINT): package := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(TOOLS)/%:
	@echo "Building $* for the first time, which takes up to a few minutes"
	cd hack/tools && CGO_ENABLED=0 go build -trimpath -o $@ $(package)

##@ Build

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the manager and the plugin for kubectl: bin/manager, bin/kubectl-kick
	CGO_ENABLED=0 go build -tags $(TAGS) -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/ ./cmd/manager ./cmd/kubectl-kick

.PHONY: docker-build
docker-build: ## Build the container image (IMAGE=…, VERSION=…)
	docker build --build-arg VERSION=$(VERSION) --tag $(IMAGE):$(VERSION) .

# What people install: static binaries of every command, the chart, the manifest that it renders to, SBOMs and
# checksums. The program checks all of it before it ends.
.PHONY: release
release: $(CYCLONEDX) bin/helm ## Build what a release consists of, for every platform, into dist/ (VERSION=…)
	go run ./hack/release -version '$(VERSION)' -helm bin/helm -cyclonedx $(CYCLONEDX) -out dist

# go build decides whether there is anything to do.
.PHONY: bin/helm
bin/helm:
	cd test/testbed/components/helm && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o $(abspath $@) helm.sh/helm/v4/cmd/helm

.PHONY: clean
clean: down ## Stop what `make up` started and remove what was built, but for .cache/
	rm -rf bin dist .testbed .testbed-demo

##@ Generate and check

# The packages that may carry markers: types, rights and webhooks.
MARKED := $(addprefix paths=./,$(addsuffix /...,api cmd/manager controllers internal webhooks))

.PHONY: generate
generate: $(CONTROLLER_GEN) $(CRD_REF_DOCS) ## Generate deepcopy code, CRDs, RBAC, webhooks, the API and the metrics reference from the Go code
	rm -rf config/crd/.new
	$(CONTROLLER_GEN) object crd rbac:roleName=kick-manager webhook $(MARKED) \
	  output:crd:artifacts:config=config/crd/.new \
	  output:rbac:artifacts:config=config/rbac \
	  output:webhook:artifacts:config=config/webhook
	rm -f config/crd/bases/*.yaml
	mv config/crd/.new/*.yaml config/crd/bases/
	rmdir config/crd/.new
	$(CRD_REF_DOCS) --source-path=api --config=hack/api-docs.yaml --renderer=markdown \
	  --output-path=docs/api.md --log-level=ERROR
	go run ./hack/metrics > docs/metrics.md

.PHONY: chart
chart: ## Generate the chart's CRDs, RBAC and webhooks from config/
	go run ./hack/chart

.PHONY: verify
verify: ## Prove that generated files and the go.mod files are up to date
	hack/verify.sh

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Lint the main module and the test modules
	@failed=0; \
	$(GOLANGCI_LINT) run ./... || failed=1; \
	for module in $(TEST_MODULES); do \
	  echo "--- $$module"; \
	  (cd $$module && $(GOLANGCI_LINT) run --config $(abspath .golangci.yml) --enable-only $(COMMON_LINTERS) ./...) || failed=1; \
	done; \
	exit $$failed

# What Go's own vet and golangci-lint check by default: enough for test modules.
COMMON_LINTERS := errcheck,govet,ineffassign,staticcheck,unused

##@ Test

TEST_MODULES := $(patsubst %/go.mod,%,$(wildcard test/*/go.mod))
# The race detector needs a C compiler.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

.PHONY: test
test: test-unit test-chart test-testbed test-integration test-faults ## Run all tests but for the long ones: bench, most faults, fuzz, soak

.PHONY: test-unit
test-unit: ## Run the tests of the main module, with the race detector where there is a C compiler
	go test $(RACE) ./...

# -count=1 here and below: these tests depend on files outside their module, which go test does not watch.
.PHONY: test-chart
test-chart: ## Render the chart in many ways and check what comes out
	cd test/chart && go test -count=1 ./...

.PHONY: test-testbed
test-testbed: ## Test the testbed itself
	cd test/testbed && go test -count=1 -timeout 20m ./...

.PHONY: test-integration
test-integration: build bin/testbed ## Test the manager on a real control plane (KICK_TEST_FULL=1: long stories at full length)
	bin/testbed build
	cd test/integration && go test -count=1 -timeout 75m ./...

# How long each fuzz test runs.
FUZZTIME ?= 60s
# By default go test spends up to a minute, in which it tries nothing else, on making one interesting input smaller, and vets
# all dependencies first.
FUZZ_FLAGS := -vet=off -fuzzminimizetime 1s

.PHONY: fuzz
fuzz: ## Run each fuzz test for a while (FUZZTIME=60s); inputs that fail are kept under testdata/fuzz
	@git grep -o '^func Fuzz[A-Za-z]*' -- '*_test.go' | while IFS=: read -r file name; do \
	  go test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) $(FUZZ_FLAGS) "./$${file%/*}" || exit 1; \
	done

# SCALE=1 is 200 namespaces, 2,300 Deployments and 10,000 Secrets and ConfigMaps. PHASES and BENCH_FLAGS: see
# `go run . -h` in test/bench. An empty BENCH leaves out the Go benchmarks.
SCALE ?= 1
PHASES ?=
BENCH ?= .
BENCH_FLAGS ?=
BENCH_JSON ?= bin/bench.json

# How many random histories, of how many steps on average.
SOAK_CHECKS ?= 3000
SOAK_STEPS ?= 300

.PHONY: soak-model
soak-model: ## Run many more random histories of a model cluster than `go test` does (SOAK_CHECKS=…, SOAK_STEPS=…)
	go test -count=1 -timeout 6h -v -run TestRandomHistories ./internal/core/properties \
	  -rapid.checks=$(SOAK_CHECKS) -rapid.steps=$(SOAK_STEPS) -rapid.seed=0

# How long things happen at random on the testbed, and the seed of a run that is to be repeated.
SOAK_TIME ?= 20m
SOAK_SEED ?=

.PHONY: soak
soak: bin/manager-faults bin/testbed ## Let edits, rollouts, kills and windows happen to 200 workloads at random (SOAK_TIME=20m, SOAK_SEED=…)
	bin/testbed build
	cd test/faults && KICK_TEST_SOAK=$(SOAK_TIME) KICK_TEST_SOAK_SEED=$(SOAK_SEED) go test -count=1 -timeout 24h -v -run '^TestSoak$$' ./...

.PHONY: faults
faults: bin/manager-faults bin/testbed ## Break things around the manager and count the restarts (KICK_TEST_FULL=1: every call with every fault)
	bin/testbed build
	cd test/faults && go test -count=1 -timeout $(if $(KICK_TEST_FULL),5h,90m) -v ./...

# One story of each sort, in a few minutes.
BRIEF_FAULTS := ^(TestCrashMatrixOfAChange|TestTheSearchForHashesFindsThem|TestNothingIsGivenAway|TestALeaderThatFails|TestTheMemoryIsSpoiltWhileTheManagerIsDown)$$

.PHONY: test-faults
test-faults: bin/manager-faults bin/testbed ## Take a small sample of the faults
	bin/testbed build
	cd test/faults && go test -count=1 -timeout 30m -short -run '$(BRIEF_FAULTS)' ./...

# The tag gives the manager a clock that the tests can set wrong. go build decides whether there is anything to do.
.PHONY: bin/manager-faults
bin/manager-faults:
	CGO_ENABLED=0 go build -tags wrongclock,$(TAGS) -trimpath -o $@ ./cmd/manager

# Needs Chromium (KICK_TEST_BROWSER=path names one). Without one it is Debian's where that can be installed, and else nothing is
# looked at, which is said.
.PHONY: pictures
pictures: ## Look at the drawings and pages of the plugin in a browser, in light and dark (leaves test/pictures/artefacts)
	@if [ -z "$${KICK_TEST_BROWSER:-}" ] && ! command -v chromium chromium-browser google-chrome google-chrome-stable chrome >/dev/null \
	  && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Debian's package chromium"; \
	  { apt-get update && apt-get install --yes --no-install-recommends chromium; } >/dev/null || echo "It could not be installed."; \
	fi
	rm -rf test/pictures/artefacts
	cd test/pictures && go test -count=1 -timeout 20m -v ./... | grep -v '^=== '

.PHONY: newcomer
newcomer: ## Clone what is committed, and do what the README and the quickstart say
	test/newcomer.sh

.PHONY: bench
bench: build bin/testbed ## Measure KICK on a big cluster and the core alone (SCALE=1, PHASES=…, BENCH_FLAGS=…)
	$(if $(BENCH),go test -run '^$$' -bench '$(BENCH)' -benchmem $(BENCHED))
	bin/testbed build
	cd test/bench && go run . -scale $(SCALE) -phases '$(PHASES)' -json $(abspath $(BENCH_JSON)) $(BENCH_FLAGS)

# The packages with Go benchmarks.
BENCHED := ./internal/core/... ./internal/cluster/ledger ./webhooks

.PHONY: test-bench
test-bench: build bin/testbed ## Run the benchmark on a small cluster and check what it counts
	bin/testbed build
	cd test/bench && go test -count=1 -timeout 10m ./...

##@ Try it

.PHONY: demo
demo: ## Boot a control plane, install KICK, change a Secret, prove exactly one restart, stop
	hack/demo.sh

.PHONY: up
up: build bin/testbed ## Start a control plane with KICK and leave it running (KICK=0: without KICK)
	bin/testbed up --dir .testbed --cert-manager --image $(IMAGE)=$(abspath bin/manager)
ifneq ($(KICK),0)
	bin/testbed helm --dir .testbed -- upgrade --install kick charts/kick \
	  --namespace kick-system --create-namespace --wait
endif
	@echo "export KUBECONFIG=$(abspath .testbed/kubeconfig)"

.PHONY: down
down: ## Stop what `make up` started
	if [ -d .testbed ]; then $(MAKE) bin/testbed && bin/testbed down --dir .testbed; fi

# go build decides whether there is anything to do.
.PHONY: bin/testbed
bin/testbed:
	cd test/testbed && CGO_ENABLED=0 go build -trimpath -o $(abspath $@) ./cmd/testbed
