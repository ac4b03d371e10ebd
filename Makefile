# Pith's front door. CI calls the same targets: .ci/run.
.DEFAULT_GOAL := help
SHELL := /bin/bash
export CARGO_TERM_COLOR ?= auto

.PHONY: help setup build demo demo-split ueransim dissect openapi branch faults packets kernel-sctp hostile scas check test witnesses bench-control bench-user soak-user fuzz-user traffic world fuzz lint fmt

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what building and running need (Debian, Ubuntu): compiler and packages
	@scripts/setup

build: setup ## the release binaries: target/release/pith, target/release/pith-ran
	@scripts/cargo build --release --locked -p pith -p pith-ran

demo: build ## core, gNBs and UEs in namespaces of their own: register, open sessions, ping (ARGS="--ues 100")
	@scripts/demo $(ARGS)

demo-split: build ## the same with every NF a process of its own over HTTP/2
	@scripts/demo --split $(ARGS)

ueransim: build ## UERANSIM's gNB and UEs against Pith: UERANSIM=/path/to/its/build
	@scripts/cargo build --release --locked -p pith-sctp-shim
	@scripts/ueransim $(or $(UERANSIM),$(error say where UERANSIM is built: make ueransim UERANSIM=/path/to/UERANSIM/build)) $(ARGS)

dissect: build ## tshark reads recorded runs: nothing malformed on NGAP, NAS, PFCP, GTP-U
	@scripts/dissect $(ARGS)

openapi: build ## every SBI message between processes against 3GPP's OpenAPI files (PITH_OPENAPI=DIR)
	@scripts/openapi $(ARGS)

branch: build ## two UPFs: packets begin to leave at the edge, and stop to, while a phone pings
	@scripts/branch $(ARGS)

faults: build ## radios and phones killed, rubbish on every port: nothing is left, nobody else notices
	@scripts/faults $(ARGS)

packets: build ## Scapy as SMF, gNB and data network: every packet of the user plane, on each path
	@scripts/packets $(ARGS)

kernel-sctp: setup ## the SCTP tests on a kernel that has SCTP (user-mode Linux): multi-homing
	@scripts/kernel-sctp

hostile: build ## seven attackers at once beside 100 honest phones: SECONDS=600 ARGS=--split
	@scripts/cargo build -q --release --locked -p pith-fuzz
	@scripts/hostile --seconds $(or $(SECONDS),60) $(ARGS)

scas: setup ## 3GPP's security assurance cases (SCAS): docs/scas.md, target/scas.json
	@scripts/cargo build -q --locked -p pith -p pith-ran -p pith-fuzz
	@python3 tests/scas/run.py $(ARGS)

check: setup ## the quick part of `make test`: formatting, lints, unit tests, 64 simulated worlds
	@scripts/check

test: setup ## everything that must pass: formatting, lints, tidy, unit, world and end-to-end tests
	@scripts/test

witnesses: ## tshark, Scapy, the OpenAPI files, killed radios, rubbish on every port, on real processes
	@scripts/setup witnesses
	@[[ -n "$$PITH_BIN" ]] || scripts/cargo build --release --locked -p pith -p pith-ran
	@scripts/witnesses

bench-control: build ## registrations and sessions of UEs that start at once: table, target/bench/control.json
	@python3 bench/control.py

bench-user: setup ## shares, shaping and packet paths of the user plane: table, target/bench/user.json, fairness.svg
	@python3 bench/user.py

soak-user: setup ## mixed load for the user plane with packet conservation, an hour of it: SECONDS=60
	@scripts/cargo run -q --release --locked -p pith-datapath --example soak -- $(or $(SECONDS),3600)

fuzz-user: setup ## a fuzzer of GTP-U and users' packets before each path of the user plane: ARGS="native --packets 10000000"
	@scripts/cargo run -q --release --locked -p pith-datapath --example packet_fuzz -- $(ARGS)

traffic: setup ## a core full of G-PDUs or plain packets, into an interface: ARGS="eth1 uplink --sessions 1000"
	@scripts/cargo run -q --release --locked -p pith-datapath --example traffic -- $(ARGS)

world: setup ## simulated worlds with faults: SEEDS=10000
	@scripts/cargo run -q --release --locked -p pith-world -- --seeds $(or $(SEEDS),1000)

fuzz: setup ## spoiled inputs for every decoder and every NF: ARGS="ngap --inputs 1000000"
	@scripts/cargo run -q --profile fuzz --locked -p pith-fuzz -- $(or $(ARGS),all)

lint: setup ## formatting, clippy, bands, licences
	@scripts/cargo fmt --check
	@scripts/cargo clippy --workspace --all-targets --locked -- -D warnings
	@scripts/cargo run -q --locked -p xtask -- tidy
	@scripts/cargo run -q --locked -p xtask -- deny

fmt: ## format all sources
	@scripts/cargo fmt
