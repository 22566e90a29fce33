# Two commands matter: `make demo` and `make test`. The others are their parts.
SHELL := /bin/bash
CARGO ?= cargo
FUZZ_SECONDS ?= 60
TOOLS := $(CURDIR)/target/tools

.PHONY: install uninstall demo test build lint docs manual deny unit fuzz papers package semver bench bench-lab bench-field bench-friendliness bench-friendliness-quic bench-short bench-simulator simult-flows hostile interop dissect python-test wheels need-demo need-test

## Build the program and run the main job: one TCP connection over two and three paths, with a cut in the middle.
## VIRTUAL=1 runs it in virtual time, as it does by itself where network namespaces are forbidden.
demo: need-demo
	$(CARGO) build --release --locked -p sinnet-cli
	target/release/sinnet demo --out target/demo $(if $(VIRTUAL),--virtual)

## Everything that must be green: lints, docs, licences, unit, property, simulation and namespace tests, short fuzzing.
test: need-test lint docs deny unit python-test fuzz

build:
	$(CARGO) build --release --locked -p sinnet-cli

## The program, manual pages, completions and the systemd unit to PREFIX. It builds nothing, so that root does not: `make build` first.
PREFIX ?= /usr/local
UNITS ?= /etc/systemd/system
install:
	@[ -x target/release/sinnet ] || { echo "there is no target/release/sinnet yet: run make build, without sudo"; exit 1; }
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d $(DESTDIR)$(UNITS)
	install -s -m 755 target/release/sinnet $(DESTDIR)$(PREFIX)/bin/sinnet
	target/release/sinnet man $(DESTDIR)$(PREFIX)/share/man/man1
	target/release/sinnet completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/sinnet
	target/release/sinnet completions zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_sinnet
	target/release/sinnet completions fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/sinnet.fish
	sed 's,/usr/local/bin,$(PREFIX)/bin,' dist/sinnet.service >$(DESTDIR)$(UNITS)/sinnet.service

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/sinnet $(DESTDIR)$(PREFIX)/share/man/man1/sinnet.1 $(DESTDIR)$(PREFIX)/share/man/man1/sinnet-*.1 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sinnet $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_sinnet \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/sinnet.fish $(DESTDIR)$(UNITS)/sinnet.service

lint:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

docs: manual
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked

## The manual, docs/ as a site in target/manual; fails on a link that leads nowhere.
manual: $(TOOLS)/bin/mdbook
	rm -rf target/manual
	$(TOOLS)/bin/mdbook build
	tools/links target/manual

## Many tests wait for real time to pass, so twice as many run at once as there are processors. They are built before any runs, and with
## them target/debug/sinnet, which those of other crates start.
unit:
	RUST_TEST_THREADS=$$((2 * $$(nproc))) $(CARGO) test --workspace --locked

## Licences, bans, sources, and the advisories of a dated copy of RustSec's database: it fails closed, without a network too.
deny: $(TOOLS)/bin/cargo-deny
	$(CARGO) fetch --locked
	PATH="$(TOOLS)/bin:$$PATH" $(CARGO) deny --all-features check licenses bans sources
	PATH="$(TOOLS)/bin:$$PATH" $(CARGO) deny --all-features --locked --manifest-path python/Cargo.toml --config deny.toml check licenses bans sources
	@PATH="$(TOOLS)/bin:$$PATH" tools/advisories

## The fuzz targets whose code differs from main for FUZZ_SECONDS, or all for less; at most 4 minutes on two processors.
## tools/fuzz --hours N is for nights.
fuzz: $(TOOLS)/bin/cargo-fuzz
	PATH="$(TOOLS)/bin:$$PATH" tools/fuzz $(FUZZ_SECONDS)

## The Python package in an environment of its own, with its tests and notebooks; skipped where there is no Python with venv and pip.
python-test:
	CARGO="$(CARGO)" tools/python-test

## Wheels for Linux into target/wheels: glibc from 2.17 and musl, x86_64 and aarch64. Zig is the linker for all, from a wheel itself.
wheels:
	CARGO="$(CARGO)" tools/wheels

## Every experiment of the papers with 3 seeds: fails where what is red is not what is known to be. PAPERS names some of them.
## The program of the tests runs them: it is there already, and no slower than making another. Built by itself it would have other features
## of its dependencies, and all of it would be compiled a second time.
papers:
	$(CARGO) test --workspace --locked --no-run --test all
	target/debug/sinnet papers run --seeds 3 --check --out target/papers $(PAPERS)

## Every package is whole: nothing is read from outside of its folder. The leaves are also built from what was packed.
package:
	$(CARGO) package --workspace --no-verify --locked
	$(CARGO) package -p sinnet-clock -p sinnet-text -p sinnet-wire --locked

## What is public changes as Cargo's rules for semantic versions say, since BASE: the last tag, or main where there is none.
BASE ?= $(shell git describe --tags --abbrev=0 2>/dev/null || echo main)
semver: $(TOOLS)/bin/cargo-semver-checks
	PATH="$(TOOLS)/bin:$$PATH" $(CARGO) semver-checks --workspace --baseline-rev $(BASE)

bench:
	$(CARGO) bench --workspace

## Sinnet, Linux MPTCP and plain TCP in the same scenarios, in real time: about half an hour a run, RUNS of them. VIRTUAL=1 for virtual time.
RUNS ?= 1
bench-lab: need-demo
	$(CARGO) build --release --locked -p sinnet-cli
	tools/bench-lab target/release/sinnet --runs $(RUNS) --out target/bench-lab.jsonl $(if $(VIRTUAL),--virtual)

## The environments of scenarios/field with CUBIC, BBR and QUIC inside: every path alone without Sinnet, Linux MPTCP, and Sinnet, with the
## congestion control that the kernel says was used. Three quarters of an hour a run. VIRTUAL=1 for virtual time.
bench-field: need-demo
	$(CARGO) build --release --locked -p sinnet-cli -p sinnet-quic
	tools/bench-field target/release/sinnet --quic target/release/quic --runs $(RUNS) --out target/bench-field.jsonl \
	  $(if $(VIRTUAL),--virtual)

## The kernel's own test of two paths, passed by plain TCP through Sinnet: twelve downloads, a minute and a half. VIRTUAL=1 for virtual time.
simult-flows: need-demo
	$(CARGO) build --release --locked -p sinnet-cli
	tools/simult-flows target/release/sinnet $(if $(VIRTUAL),--virtual)

## Friendliness over NETWORKS random networks (500), beside a Reno and a CUBIC, with a CUBIC in its place; FRIENDLINESS are further
## arguments of `sinnet friendliness`. Half an hour on one processor; what is finished is kept.
NETWORKS ?= 500
bench-friendliness:
	$(CARGO) build --release --locked -p sinnet-cli
	target/release/sinnet friendliness --networks $(NETWORKS) --each --out target/bench-friendliness $(FRIENDLINESS)

## The same with QUIC inside, in the virtual laboratory, over the first QUIC_NETWORKS of them (40): a quarter of an hour on two processors.
QUIC_NETWORKS ?= 40
bench-friendliness-quic:
	$(CARGO) run --release --locked -p sinnet-quic -- friendliness --networks $(QUIC_NETWORKS) --each $(FRIENDLINESS)

## Short transfers over 40 random networks of two paths, in virtual time, the first of an association and the second: some minutes.
bench-short:
	$(CARGO) build --release --locked -p sinnet-cli -p sinnet-quic
	tools/bench-short target/release/sinnet --again; again=$$?; \
	  tools/bench-short target/release/sinnet --quic target/release/quic && exit $$again

## The simulator on a dumbbell beside ns-2 (Debian's package ns2), in the same call: some minutes.
bench-simulator:
	benches/peers.sh

## Attacks on real daemons in namespaces, and what each does to a good association beside it: about ten minutes.
hostile: need-demo
	CARGO="$(CARGO)" tools/hostile

## Against other hosts of HIPv2 and the text of its RFCs: a harness that is not part of these sources, in the folder INTEROP.
## ONLY names cases. About ten minutes, as root; skipped where there is none.
interop:
	CARGO="$(CARGO)" INTEROP="$(INTEROP)" tools/interop $(foreach name,$(ONLY),--only $(name))

## Every packet of a long scenario of real daemons to tshark, scapy and pypcapkit, of which none may have a remark; `make test` does it
## without the last one.
dissect: need-demo
	CARGO="$(CARGO)" tools/dissect

$(TOOLS)/bin/cargo-deny:
	@if command -v cargo-deny >/dev/null; then mkdir -p $(TOOLS)/bin && ln -sf "$$(command -v cargo-deny)" $@; \
	else $(CARGO) install --locked --debug --root $(TOOLS) --version 0.20.2 cargo-deny; fi

$(TOOLS)/bin/cargo-fuzz:
	@if command -v cargo-fuzz >/dev/null; then mkdir -p $(TOOLS)/bin && ln -sf "$$(command -v cargo-fuzz)" $@; \
	else $(CARGO) install --locked --debug --root $(TOOLS) --version 0.13.2 cargo-fuzz; fi

# Without its server, which nobody needs here: a minute on two processors.
$(TOOLS)/bin/mdbook:
	@if command -v mdbook >/dev/null; then mkdir -p $(TOOLS)/bin && ln -sf "$$(command -v mdbook)" $@; \
	else $(CARGO) install --locked --debug --root $(TOOLS) --no-default-features --features search --version 0.5.4 mdbook; fi

$(TOOLS)/bin/cargo-semver-checks:
	@if command -v cargo-semver-checks >/dev/null; then mkdir -p $(TOOLS)/bin && ln -sf "$$(command -v cargo-semver-checks)" $@; \
	else $(CARGO) install --locked --debug --root $(TOOLS) --version 0.44.0 cargo-semver-checks; fi

# The programs of the demonstration in real time; without namespaces it needs none.
LAB_PROGRAMS := ip:iproute2 curl:curl python3:python3 setpriv:util-linux

need-demo:
	@tools/need cargo:rustup cc:gcc $$([ -n "$(VIRTUAL)" ] || ! tools/namespaces || echo $(LAB_PROGRAMS))

need-test: need-demo
	@tools/need $(LAB_PROGRAMS) tshark:tshark ping:iputils-ping nft:nftables c++:g++
