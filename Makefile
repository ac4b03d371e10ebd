# Entry points of the project. CI calls the same targets: .ci/run.
.DEFAULT_GOAL := help
SHELL := /bin/bash
export CARGO_TERM_COLOR ?= auto

.PHONY: help setup build demo demo-split ueransim dissect ipv6 framed openapi branch faults restart outlive upgrade instances areas packets kernel-sctp hostile scas check test witnesses bench-control bench-residency bench-instructions bench-scale bench-user soak-user fuzz-user traffic world kill fuzz lint fmt

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install the compiler and packages for build and run (Debian, Ubuntu)
	@scripts/setup

build: setup ## the release binaries: target/release/pith, target/release/pith-ran
	@scripts/cargo build --release --locked -p pith -p pith-ran

demo: build ## core, gNBs and UEs in their own network namespaces: register, establish sessions, ping (ARGS="--ues 100"; ARGS=--tour: handovers and paging while packets flow)
	@scripts/demo $(ARGS)

demo-split: build ## the same with each NF as a separate process, over HTTP/2
	@scripts/demo --split $(ARGS)

ueransim: build ## UERANSIM's gNB and UEs against Pith: UERANSIM=/path/to/its/build
	@scripts/cargo build --release --locked -p pith-sctp-shim
	@scripts/ueransim $(or $(UERANSIM),$(error set UERANSIM to the build directory: make ueransim UERANSIM=/path/to/UERANSIM/build)) $(ARGS)

dissect: build ## tshark reads recorded runs: no malformed NGAP, NAS, PFCP or GTP-U packet
	@scripts/dissect $(ARGS)

ipv6: build ## IPv6 and IPv4v6 sessions, portable and XDP: simulated UEs, the kernel as a UE, tshark
	@scripts/ipv6 $(ARGS)

framed: build ## Static addresses and framed routes, portable and XDP: the kernel as a UE and router, a host behind it
	@scripts/framed $(ARGS)

openapi: build ## every SBI message between processes against 3GPP's OpenAPI files (PITH_OPENAPI=DIR)
	@scripts/openapi $(ARGS)

branch: build ## two UPFs: an uplink classifier is inserted and removed while a UE pings
	@scripts/branch $(ARGS)

faults: build ## gNBs and UEs killed, invalid data on every port: no state is left, other UEs are not affected
	@scripts/faults $(ARGS)

outlive: build ## a core is killed (kill -9) under pings of 5 ms: counts the lost ones (--xdp, --retain, --victim core|smf|upf)
	@scripts/outlive $(ARGS)

upgrade: build ## 100 upgrades of a UPF under a constant stream, on each path: lost packets, usage at the SMF, times; then in a core, under pings
	@PITH_UPGRADES=$${UPGRADES:-100} PITH_UPGRADE_PPS=$${PPS:-5000} scripts/cargo test --release --locked -p pith-runtime --test upgrade nothing_is_lost -- --nocapture --test-threads 1
	@scripts/outlive --upgrade --xdp --kills $${UPGRADES:-100} --ues 10 --interval 5 --count 20000
restart: build ## a core with stored contexts is killed (kill -9) and started again: UEs keep registration and sessions
	@scripts/restart $(ARGS)

instances: build ## two instances of AMF, SMF and PCF over one Redis: one is killed (kill -9), no UE registers again
	@scripts/instances $(ARGS)

areas: build ## two AMFs of different AMF Sets: UEs move between them with their sessions, handed over and in CM-IDLE (ARGS="--derive --mtls")
	@scripts/areas $(ARGS)

packets: build ## Scapy as SMF, gNB and data network checks the packets of each user-plane path
	@scripts/packets $(ARGS)

kernel-sctp: setup ## the SCTP tests on a kernel with SCTP (user-mode Linux): multi-homing
	@scripts/kernel-sctp

hostile: build ## seven concurrent attackers and 100 honest UEs: SECONDS=600 ARGS=--split
	@scripts/cargo build -q --release --locked -p pith-fuzz
	@scripts/hostile --seconds $(or $(SECONDS),60) $(ARGS)

scas: setup ## 3GPP's security assurance cases (SCAS): docs/scas.md, target/scas.json
	@scripts/cargo build -q --locked -p pith -p pith-ran -p pith-fuzz
	@python3 tests/scas/run.py $(ARGS)

check: setup ## the quick part of `make test`: formatting, lints, unit tests, 64 simulated worlds
	@scripts/check

test: setup ## everything that must pass: formatting, lints, tidy, unit, world and end-to-end tests
	@scripts/test

witnesses: ## checks of running processes with tshark, Scapy, the OpenAPI files, killed gNBs, invalid data
	@scripts/setup witnesses
	@[[ -n "$$PITH_BIN" ]] || scripts/cargo build --release --locked -p pith -p pith-ran
	@scripts/witnesses

bench-residency: build ## residencies over Valkey or Redis, 100 to 1,000 UEs at once: table, target/bench/residency.json, residency.svg
	@python3 bench/residency.py $(ARGS)

bench-instructions: build ## instructions of the core a UE by residency, by callgrind: table, target/bench/instructions.json (ARGS="--residencies none soft")
	@python3 bench/instructions.py $(ARGS)

bench-control: build ## registrations, sessions, service requests, paging and handovers of UEs at once: table, target/bench/control.json
	@python3 bench/control.py $(ARGS)

bench-scale: build ## memory, CPU and service requests of 1,000 to 1,000,000 registered UEs: table, target/bench/scale.json
	@python3 bench/scale.py

bench-user: setup ## shares, shaping and packet paths of the user plane: table, target/bench/user.json, fairness.svg
	@python3 bench/user.py

soak-user: setup ## mixed load for the user plane with packet accounting, without and with NAT, for an hour: SECONDS=60 ARGS=nat
	@scripts/cargo run -q --release --locked -p pith-datapath --example soak -- $(or $(SECONDS),3600) $(ARGS)

fuzz-user: setup ## a fuzzer of GTP-U and users' packets for each path of the user plane, with NAT and spread, too: ARGS="native-nat --packets 10000000"
	@scripts/cargo run -q --release --locked -p pith-datapath --example packet_fuzz -- $(ARGS)

traffic: setup ## sends G-PDUs or plain packets into an interface, on one CPU: ARGS="eth1 uplink --sessions 1000"
	@scripts/cargo run -q --release --locked -p pith-datapath --example traffic -- $(ARGS)

world: setup ## simulated worlds with faults: SEEDS=10000
	@scripts/cargo run -q --release --locked -p pith-world -- --seeds $(or $(SEEDS),1000)

ifneq ($(filter real split,$(firstword $(ARGS))),)
kill: build
	@python3 bench/kill.py $(ARGS)
else
kill: setup ## a core is killed at each store and send of each procedure: table, target/kill.json; ARGS=real or split: kill -9 of processes under load
	@scripts/cargo run -q --profile fuzz --locked -p pith-world -- kill --json target/kill.json $(or $(ARGS),--seeds 0..64)
endif

fuzz: setup ## fuzz inputs for every decoder and every NF: ARGS="ngap --inputs 1000000"
	@scripts/cargo run -q --profile fuzz --locked -p pith-fuzz -- $(or $(ARGS),all)

lint: setup ## formatting, clippy, bands, licences
	@scripts/cargo fmt --check
	@scripts/cargo clippy --workspace --all-targets --locked -- -D warnings
	@scripts/cargo run -q --locked -p xtask -- tidy
	@scripts/cargo run -q --locked -p xtask -- deny

fmt: ## format all sources
	@scripts/cargo fmt
