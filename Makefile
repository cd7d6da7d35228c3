# Every target works on a fresh Debian 12 machine with Go (1.21 or newer fetches the toolchain that go.mod names), make and git.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# A checkout that belongs to somebody else is no reason not to build; the commit is put into our programs by hack/build. Everything but what has
# the race detector is compiled as our programs are: another flag would have Go compile two thousand packages once more. What only a debugger reads (DWARF) would take
# the compiler a quarter of its time.
export GOFLAGS := $(GOFLAGS) -buildvcs=false -trimpath -gcflags=all=-dwarf=false
export CGO_ENABLED := 0
# How long a test waits for what it expects when it doesn't say: machines are shared, and gomega's own second is often too short.
export GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT ?= 30s

##? Version of Kubernetes to build and to test with; the folder kubernetes has a module file for each that is known.
K8S_VERSION ?= v1.36.3
##? More flags for go test: TEST_FLAGS='-run TestX -v'.
TEST_FLAGS ?=
##? How long make fuzz works on each of its targets.
FUZZTIME ?= 30s
##? The seed that tests of properties draw from; 0 draws other cases each time.
RAPID_SEED ?= 1
export RAPID_SEED
##? How many cases make properties tries of each property.
CHECKS ?= 1000
##? How many fleets make sim plays, or seeds make adversary (1 unless told).
SEEDS ?= 10000
##? The first seed of make adversary.
SEED ?= 1
##? About how long make adversary plays with a seed. Another length is another plan.
LENGTH ?= 20m
##? Folder of the tables that make schema-diff reads; they come with the specification.
TABLES ?= ../shared/spec/schema

export FUZZTIME CHECKS
BUILD := go run ./hack/build -kubernetes $(K8S_VERSION)
# A program with the race detector waits a second at its end unless told; there are two hundred, and what goroutines do by then is over.
export GORACE ?= atexit_sleep_ms=0
# Passes on what go test prints, and then names the packages that took longest.
SLOWEST := hack/slowest.sh

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN { print "Usage: make TARGET [VARIABLE=value]" } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+( [a-z0-9-]+)*:.*## / { name = $$0; sub(/:.*/, "", name); text = $$0; sub(/.*## /, "", text); printf "  %-16s %s\n", name, text } \
	  /^##\? / { doc = substr($$0, 5) } \
	  /^[A-Z0-9_]+ *\?=/ && doc != "" { value = $$0; sub(/^[A-Z0-9_]+ *\?= */, "", value); if (value != "") doc = doc " [" value "]"; \
	    variables = variables sprintf("  %-16s %s\n", $$1, doc); doc = "" } \
	  END { printf "\nVariables\n%s", variables }' $(firstword $(MAKEFILE_LIST))

##@ Use

.PHONY: up down status
up: ## Bring up a management cluster and the hosted cluster clusters/demo on this machine (as root).
	@$(BUILD) programs kubernetes capi flannel
	@ln -sf hypershift bin/kubectl-package
	@ln -sf hypershift bin/kubectl_complete-package
	@bin/hypershift local up

down: bin/hypershift ## Remove everything that up made.
	bin/hypershift local down

status: bin/hypershift ## Show what runs.
	bin/hypershift local status

##@ Build

.PHONY: build
build: ## Build the four binaries into bin/.
	@$(BUILD) programs
	@ln -sf hypershift bin/kubectl-package
	@ln -sf hypershift bin/kubectl_complete-package

bin/hypershift:
	$(MAKE) build

.PHONY: kubernetes
kubernetes: ## Build etcd, the Kubernetes components and kubectl from their modules (5 minutes at first, then cached).
	@$(BUILD) kubernetes

.PHONY: capi
capi: ## Build the stock Cluster API manager and clusterctl, unmodified, from their module (2 minutes at first, then cached).
	@$(BUILD) capi clusterctl

.PHONY: capa
capa: ## Build the stock Cluster API provider for AWS, unmodified, from its module, for e2e-aws alone (4 minutes at first, then cached).
	@$(BUILD) capa

.PHONY: karpenter
karpenter: ## Build Karpenter's core with machines of platform Local, from its module (10 minutes at first, then cached).
	@$(BUILD) karpenter

.PHONY: flannel
flannel: ## Build the pod network of hosted clusters from flannel's libraries (a minute at first, then cached).
	@$(BUILD) flannel

.PHONY: cross
cross: ## Type-check the CLI for Linux, macOS and Windows on amd64 and arm64 (a minute; nothing is compiled).
	hack/cross.sh

##? Parts of a distribution that make dist makes, separated by commas (all unless told).
DIST_PARTS ?=
##? Architectures of a distribution's images.
DIST_ARCHS ?= amd64,arm64
##? More flags for hack/dist: DIST_FLAGS='-url https://downloads.example.com/v0.1.0'.
DIST_FLAGS ?=

##? Folder of the distribution that make dist-check looks at, and that make e2e-install installs when it is named.
MADE ?= dist

.PHONY: dist dist-verify dist-check
dist: ## Make a distribution in dist/: archives, images, chart, manifests, SBOM, checksums (an hour and a half and 20 GB at first; see docs/release.md).
	go run ./hack/dist -parts '$(DIST_PARTS)' -architectures '$(DIST_ARCHS)' $(DIST_FLAGS)

dist-check: ## Look at what make dist made: checksums, inventory, programs and licences of images of each architecture, and a push to a registry (MADE=folder, a minute).
	DIST_MADE='$(abspath $(MADE))' go test -count=1 -v -timeout 20m -run '^TestMade$$' ./hack/dist

dist-verify: ## Make the archives, the chart and the manifests twice, from two clones, and compare them byte by byte; DIST_PARTS as for dist.
	DIST_PARTS='$(DIST_PARTS)' DIST_ARCHS='$(DIST_ARCHS)' DIST_FLAGS='$(DIST_FLAGS)' hack/dist-verify.sh

##? Address of the repository, for make module-paths: github.com/acme/hcp.
ROOT ?=

.PHONY: module-paths
module-paths: ## Give the Go modules the address ROOT, with their folders behind it, in all files that name them.
	go run ./hack/modulepaths -root '$(ROOT)'

##? Where readers of the site find files of the repository: https://git.example.com/team/hypershift/blob/main/. Without it, links to them are text.
SOURCE ?=

.PHONY: site diagrams
site: ## Make a static site of docs/ in dist/site, which needs no network and can be searched.
	cd tools && go run ./site -out ../dist/site -source '$(SOURCE)'

diagrams: ## Draw the diagrams of docs/ that have no picture yet, for make site (Chromium; asks npm for mermaid).
	hack/diagrams.sh

.PHONY: generate
generate: ## Generate deepcopy functions and CustomResourceDefinitions.
	hack/generate.sh

.PHONY: golden
golden: ## Rewrite the golden files of rendered objects; read the diff before you commit it.
	UPDATE=true go test ./internal/controlplane/... ./internal/cli/... ./internal/configoperator/... ./internal/hostedcluster/... ./internal/nodepool ./internal/packages/control/operatorpackage

##@ Test

.PHONY: deps
deps: ## Install what tests and local mode need from Debian, by package name.
	hack/install-deps.sh

.PHONY: test
test: deps kubernetes capi test-packages ## Everything that gives the same answer each time: unit, property, API server and end-to-end tests (as root).
	@hack/beside.sh "$(MAKE) --no-print-directory test-checks" $(MAKE) --no-print-directory e2e TEST_FLAGS="$(TEST_FLAGS) -short"

.PHONY: test-unit
test-unit: kubernetes capi test-modules ## Unit, property and API server tests, without the race detector.
	@{ $(BESIDE); go test -timeout 30m ./... $(TEST_FLAGS) || code=1; $(BESIDE_END); } | $(SLOWEST)

# The chart's tests wait for Helm most of the time: they run beside the others, and print when those are over.
BESIDE = code=0; logs=$$(mktemp -d); (cd test/helm && go test -timeout 30m ./...) >"$$logs/helm" 2>&1 & helm=$$!
BESIDE_END = wait $$helm || code=1; cat "$$logs"/*; rm -rf "$$logs"; exit $$code

.PHONY: test-modules
test-modules:
	cd api && go vet ./... && go test -vet=off ./...
	@# What these look at is outside of their module, of which go knows no changes.
	cd tools && go test -count=1 ./...
	cd flannel && go test ./...
	cd alerts && go test ./...
	cd storage && go test ./...
	cd tools/gitops && go test -count=1 ./...

# The race detector runs where goroutines meet: tools/goroutines says where that is, and in which order packages are tested.
.PHONY: test-all test-checks test-packages
test-all: test-checks test-packages

# What only computes. Nothing of it depends on the time that it takes, so make test does it while end-to-end tests wait.
test-checks: cross test-modules
	@lists=$$(cd tools && go run ./goroutines ..); eval "$$lists"; go test -p 2 -vet=off -timeout 30m $$computing $(TEST_FLAGS) | $(SLOWEST)
	go vet -tags e2e,upgrade,fleet,brownfield,migration,live,openshift,bench,aws,hosts,backup,install,kms,sizes,conformance ./...

test-packages: kubernetes capi
	@# test-checks vets all tests. Suites are of one long package and some short ones, so the others run beside them.
	@lists=$$(cd tools && go run ./goroutines ..); eval "$$lists"; { $(BESIDE); \
	  CGO_ENABLED=1 go test -race -p 3 -vet=off -timeout 40m -skip "$$alone" $$meeting $(TEST_FLAGS) || code=1; \
	  go test -p 2 -vet=off -timeout 40m -run "$$alone" $$suites $(TEST_FLAGS) >"$$logs/suites" 2>&1 & suites=$$!; \
	  KUBE_CACHE_MUTATION_DETECTOR=true go test -p 2 -vet=off -timeout 40m $$others $(TEST_FLAGS) || code=1; \
	  wait $$suites || code=1; \
	  $(BESIDE_END); } | $(SLOWEST)

.PHONY: test-karpenter
test-karpenter: kubernetes ## Karpenter's core with our machines on a real API server: from nothing to machines and back (10 minutes at first).
	cd karpenter && go vet ./... && go test -vet=off -count=1 -timeout 30m ./... $(TEST_FLAGS)

.PHONY: test-types
test-types: ## Types of the web console's program, by TypeScript's own compiler from its Go module (three minutes at first, then cached).
	cd tools/typescript && go run github.com/microsoft/typescript-go/cmd/tsgo -p ../../internal/console/web

.PHONY: test-browser
test-browser: deps kubernetes test-types ## The web console in a real Chromium, every page of it; UPDATE=true writes the pictures of docs/console.md (4 minutes).
	hack/install-deps.sh chromium
	cd test/browser && go vet ./... && go test -vet=off -count=1 -timeout 30m ./... $(TEST_FLAGS)

.PHONY: e2e
e2e: kubernetes build ## One run of make up's path in a state folder of its own, and five minutes of an adversary (as root, 16 minutes).
	go test -count=1 -v -timeout 45m -tags e2e ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-upgrade
e2e-upgrade: kubernetes build ## A highly available cluster from Kubernetes 1.35 to 1.36, failed requests counted (as root, 30 minutes; builds 1.35).
	go test -count=1 -v -timeout 90m -tags e2e,upgrade -run '^TestUpgrade$$' ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-fleet
e2e-fleet: kubernetes build ## A package over two hosted clusters: a bad version, a dead API, its end; clusters destroyed at odd moments (as root, 10 minutes).
	go test -count=1 -v -timeout 45m -tags e2e,fleet -run '^TestFleet$$' ./test/e2e $(TEST_FLAGS)

##? How many hosted clusters make e2e-sizes ends with at its shared endpoint: 3, or more of which those are without workers.
CLUSTERS ?= 3

.PHONY: e2e-sizes
e2e-sizes: kubernetes build karpenter ## Sizes, the shared endpoint with clients by name, nodes by Karpenter, audit logs on volumes; CLUSTERS hosted clusters (as root, 20 minutes).
	trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; CLUSTERS=$(CLUSTERS) go test -count=1 -v -timeout 75m -tags e2e,sizes -run '^TestSizes$$' ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-placement
e2e-placement: kubernetes build flannel ## Nodes for the requests of one hosted cluster, on a hosted cluster of seven nodes as the management cluster: pairs, a machine that dies, a drain (as root, 25 minutes).
	trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; go test -count=1 -v -timeout 75m -tags e2e,sizes -run '^TestPlacement$$' ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-brownfield
e2e-brownfield: kubernetes build ## From standard Cluster API types to private ones, with a hosted cluster from before (as root, 6 minutes).
	go test -count=1 -v -timeout 45m -tags e2e,brownfield -run '^TestBrownfield$$' ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-openshift
e2e-openshift: kubernetes build ## The life of an OpenShift payload whose programs are stand-ins: created, changed, upgraded, deleted (as root, an hour).
	go build -ldflags '-s -w' -o bin/standin ./test/standin/cmd
	go test -count=1 -v -timeout 120m -tags e2e,openshift -run '^TestOpenShift$$' ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-migration
e2e-migration: kubernetes build ## A hosted cluster with workers from standard Cluster API types to private ones and back, failed requests counted (as root, 15 minutes).
	go test -count=1 -v -timeout 60m -tags e2e,migration -run '^TestMigration$$' ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-aws
e2e-aws: kubernetes capi capa ## An emulated AWS: network, zones and roles made, interrupted, destroyed; instances by the stock provider (10 minutes; downloads at first).
	go test -count=1 -v -timeout 20m -tags aws ./test/awsemulator $(TEST_FLAGS)
	go test -count=1 -v -timeout 20m -tags aws ./test/awsprivate $(TEST_FLAGS)
	go test -count=1 -v -timeout 30m -tags aws ./test/awsmachines $(TEST_FLAGS)

.PHONY: e2e-aws-live
e2e-aws-live: kubernetes build capa ## Nodes that boot from instances of an emulated AWS, in one local cluster (as root, 40 minutes).
	bin/hypershift local up --state-dir /tmp/hcp-e2e
	trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; go test -count=1 -v -timeout 75m -tags e2e,aws -run '^TestAWS' ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-hosts
e2e-hosts: kubernetes build ## Nodes on platforms Agent and KubeVirt, whose hosts and virtual machines stand-ins boot as pods, in one local cluster (as root, 20 minutes).
	bin/hypershift local up --state-dir /tmp/hcp-e2e --skip-demo
	trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; go test -count=1 -v -timeout 45m -tags e2e,hosts -run '^TestHosts$$' ./test/e2e $(TEST_FLAGS)

.PHONY: backup-storages
backup-storages: bin/azurite/node_modules/.package-lock.json ## Build and install what tests save backups in: s3server, versitygw, Azurite (of npm; a minute at first).
	cd tools/s3server && go build -o ../../bin/s3server .
	cd tools/versitygw && go build -o ../../bin/versitygw github.com/versity/versitygw/cmd/versitygw

bin/azurite/node_modules/.package-lock.json: tools/azurite/package.json tools/azurite/package-lock.json
	mkdir -p bin/azurite && cp $^ bin/azurite && cd bin/azurite && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

.PHONY: test-backup
test-backup: kubernetes build backup-storages ## Backups and restores with faults and kill points, in S3 (gofakes3, versitygw) and Azure (Azurite); DRILL_BYTES measures others (15 minutes).
	go test -count=1 -v -timeout 60m -tags backup ./test/backup $(TEST_FLAGS)

##? How long test-kms keeps the plugin away.
KMS_AWAY ?= 5m

.PHONY: test-kms
test-kms: kubernetes ## The plugin that holds encryption keys is away for KMS_AWAY, while somebody reads and writes each second (10 minutes).
	KMS_AWAY=$(KMS_AWAY) go test -count=1 -v -timeout 180m -tags kms -run '^TestAway$$' ./internal/configoperator/reencryption $(TEST_FLAGS)

.PHONY: e2e-backup e2e-backup-azure
e2e-backup: kubernetes build backup-storages ## Backups, restores and clones: with faults and 100 kill points, and of hosted clusters, in S3 and Azure (as root, 50 minutes).
	$(MAKE) test-backup
	go test -count=1 -v -timeout 85m -tags e2e,backup -run '^TestBackup(HighlyAvailable|Azure)?$$' ./test/e2e $(TEST_FLAGS)

e2e-backup-azure: kubernetes build backup-storages ## A hosted cluster saved by Jobs in Azure Blob Storage (Azurite), read, destroyed and restored: a part of e2e-backup (as root, 5 minutes).
	go test -count=1 -v -timeout 45m -tags e2e,backup -run '^TestBackupAzure$$' ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-live
e2e-live: kubernetes build ## Faults and what users add to a cluster: full disks, killed tunnels, webhooks, volumes (as root, 20 minutes).
	bin/hypershift local up --state-dir /tmp/hcp-e2e
	trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; go test -count=1 -v -timeout 45m -tags e2e,live -run '^TestLive' ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-authorities
e2e-authorities: kubernetes build ## Every authority of a highly available hosted cluster replaced, and no request of three clients fails (as root, 40 minutes).
	bin/hypershift local up --state-dir /tmp/hcp-e2e --skip-demo
	trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; go test -count=1 -v -timeout 90m -tags e2e,live -run '^TestAuthoritiesUnmissed$$' ./test/e2e $(TEST_FLAGS)

##? Commit that make e2e-install takes as the version before: it upgrades from that, goes back to it, and up again; without one it upgrades to the same.
BEFORE ?=

INSTALL_MADE = $(if $(filter file,$(origin MADE)),bin/e2e-install,$(MADE))

.PHONY: e2e-install
e2e-install: kubernetes capi build flannel ## docs/install.md, word by word on a hosted cluster as the management cluster; MADE=dist installs that in ten (as root, 25 minutes).
	@# Without MADE it makes images for this machine alone, beside dist, which it leaves as it is.
	$(if $(filter file,$(origin MADE)),$(MAKE) dist DIST_PARTS=images DIST_ARCHS=$$(go env GOARCH) DIST_FLAGS='-releases 1.36.3 -out $(INSTALL_MADE)')
	$(if $(BEFORE),hack/before.sh $(BEFORE) .cache/before)
	bin/hypershift local up --state-dir /tmp/hcp-e2e
	trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; INSTALL_MADE='$(abspath $(INSTALL_MADE))' $(if $(BEFORE),INSTALL_BEFORE=$(CURDIR)/.cache/before) \
	  go test -count=1 -v -timeout 45m -tags e2e,install -run '^TestInstall$$' ./test/e2e $(TEST_FLAGS)

.PHONY: e2e-monitoring
e2e-monitoring: kubernetes build ## A real Prometheus asks a local cluster: targets, rules, and every query of every dashboard (as root, 12 minutes; builds Prometheus at first).
	bin/hypershift local up --state-dir /tmp/hcp-e2e
	trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; (cd alerts && STATE=/tmp/hcp-e2e go test -count=1 -v -timeout 30m -tags e2e -run '^TestLive$$' . $(TEST_FLAGS))

##? Part of the suite that make conformance runs: a regular expression on names of specs (all unless told).
FOCUS ?=
##? Part of the suite that make conformance leaves out: a regular expression on names of specs.
SKIP ?=
##? Whether make conformance runs only specs that have not passed yet: true, or empty.
REST ?=
##? How many specs make conformance runs at once.
PROCS ?= 6
##? State folder of the local installation that make conformance tests; without one it brings one up, and takes it down again.
STATE ?=

.PHONY: conformance conformance-programs
conformance-programs: # e2e.test and what its images are made of (10 minutes at first, then cached)
	cd conformance && version=$$(go list -m -f '{{.Version}}' k8s.io/kubernetes) && mkdir -p ../bin/conformance && \
	  go test -c -vet=off -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$version" -o ../bin/conformance/e2e.test k8s.io/kubernetes/test/e2e && \
	  go build -ldflags '-s -w' -o ../bin/conformance/ k8s.io/kubernetes/test/images/agnhost k8s.io/kubernetes/test/images/nonewprivs \
	    k8s.io/sample-apiserver go.etcd.io/etcd/server/v3 github.com/onsi/ginkgo/v2/ginkgo
	go build -o bin/conformance/conformance ./test/conformance/cmd

conformance: kubernetes build conformance-programs ## Kubernetes' conformance suite against a hosted cluster: FOCUS=sig-network, STATE=.local for the cluster that is up (as root, hours).
	$(if $(STATE),,trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; bin/hypershift local up --state-dir /tmp/hcp-e2e;) \
	  bin/conformance/conformance -state-dir $(or $(STATE),/tmp/hcp-e2e) -sources "$$(cd conformance && go list -m -f '{{.Dir}}' k8s.io/kubernetes)" \
	    -focus '$(FOCUS)' -skip '$(SKIP)' -procs $(PROCS) $(if $(REST),-rest)

.PHONY: e2e-conformance-quick
e2e-conformance-quick: kubernetes build conformance-programs ## A few conformance specs of every group on a local cluster that is brought up for it (as root; builds e2e.test at first).
	trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; bin/hypershift local up --state-dir /tmp/hcp-e2e; \
	  bin/conformance/conformance -state-dir /tmp/hcp-e2e -sources "$$(cd conformance && go list -m -f '{{.Dir}}' k8s.io/kubernetes)" -quick -procs $(PROCS)

.PHONY: conformance-proxy
conformance-proxy: kubernetes build conformance-programs ## The suite's specs of custom resources through the proxy of private types (2 minutes).
	go test -count=1 -v -timeout 30m -tags conformance -run '^TestProxy$$' ./test/conformance $(TEST_FLAGS)

.PHONY: adversary adversary-plan
adversary: kubernetes build ## Faults of all kinds while users work, and every promise checked; SEED=n plays one again (as root, LENGTH for each of SEEDS).
	go build -o bin/adversary ./test/adversary/cmd
	@# The default of SEEDS is of simulated fleets.
	trap 'bin/hypershift local down --state-dir /tmp/hcp-e2e' EXIT; bin/hypershift local up --state-dir /tmp/hcp-e2e; \
	  bin/adversary -seed $(SEED) -seeds $(if $(filter file,$(origin SEEDS)),1,$(SEEDS)) -for $(LENGTH)

adversary-plan: ## Print what make adversary would do with SEED and LENGTH, as lines of JSON.
	@go run ./test/adversary/cmd -plan -seed $(SEED) -for $(LENGTH)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME.
	hack/fuzz.sh

.PHONY: properties
properties: kubernetes ## Try CHECKS new cases of every property (20 minutes).
	hack/properties.sh

.PHONY: sim
sim: ## Play SEEDS simulated fleets with the planner of rollouts, and check each step.
	SIM_SEEDS=$(SEEDS) go test -count=1 -timeout 60m -run TestSimulation ./internal/packages/control/rollout

.PHONY: crash
crash: kubernetes ## Interrupt every reconciler at each of its writes; make test steps over some of the slow ones' (an hour).
	CRASH_STEP=1 go test -count=1 -timeout 120m $$(grep -rl --include='*_test.go' CrashAtEveryWrite internal | xargs -n1 dirname | sort -u | sed 's,^,./,') $(TEST_FLAGS)

.PHONY: bench
bench: kubernetes build ## Print what hosted clusters cost in time and memory, beside bare processes (as root, 20 minutes).
	go test -count=1 -v -timeout 50m -tags bench -run '^$$' -bench . -benchtime 1x ./test/api ./test/bench ./test/bench/capiproxy ./test/bench/ignition ./test/bench/nodepools ./test/bench/packages ./test/bench/rollout $(TEST_FLAGS)

.PHONY: bench-compare
bench-compare: ## Build BASE=ref and this tree, run BENCH alternately RUNS times, fail for what got 10 % worse beyond noise (as root, 45 minutes).
	BASE='$(BASE)' RUNS='$(RUNS)' BENCH='$(BENCH)' hack/bench-compare.sh

.PHONY: schema-diff
schema-diff: ## Compare the definitions with every line of the tables of field facts in TABLES=FOLDER, which come with the specification.
	cd tools && go run ./schemadiff -crds ../config/crd -tables '$(abspath $(TABLES))' -reasons schemadiff/reasons.tsv ../config/packageoperator

.PHONY: schema-compat schema-baseline
schema-compat: ## Fail when definitions refuse what those of the previous release took.
	hack/schema-compat.sh

schema-baseline: ## Make today's definitions the ones that schema-compat compares with; part of making a release.
	hack/schema-compat.sh -write

.PHONY: lint
lint: ## Run golangci-lint at the pinned version (built at first, 5 minutes).
	hack/lint.sh

.PHONY: vuln
vuln: ## Look up known vulnerabilities in what we link (needs the network).
	hack/vuln.sh

.PHONY: verify
verify: ## Generated files are fresh, definitions compatible with the previous release, code formatted and vetted.
	hack/verify.sh
