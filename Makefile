# The commands of the project. Each does its own set-up; scripts/ holds what they run.
#
#   make serve [DIR=/srv/media] [ARGS="--listen *:8443"]   build and serve DIR, or a sample directory
#   make test                                              everything that must hold before a change lands
#   make test-all                                          the same and the long tests that a short one stands for: hours
#   make guest-test [ARGS="--kernel 6.12 NAME"]            its part that needs kernel TLS: in guests, see guest/README.md
#   make test-aarch64 [ARGS="--package linerate-record"]   tests on 64-bit ARM: in a guest with a kernel of that kind
#   make nic [ARGS=6.12]                                   the software adapter (nic/README.md), for the guests' kernels
#   make fuzz [TARGET=request] [TIME=600]                  fuzz one target, or all, TIME seconds each
#   make hostile [ARGS="logs disks --ipv4"]              fault programs beside nginx, the long form: docs/RELIABILITY.md
#   make conformance TLSFUZZER=DIR [ONLY='test-tls13-key*'] [FAMILY=6]   tlsfuzzer's scripts, from a checkout of it
#   make pynfs PYNFS=DIR [PYTHON=python3]                 pynfs' tests of NFS, from a checkout of it that was built
#   make cthon CTHON=DIR                                 the Connectathon tests of NFS that need no writing, from a checkout of them
#   make careful                                           crates/os and record under AddressSanitizer (nightly Rust)
#   make mutants [PACKAGE=record] [ARGS="--file nonce.rs"]   change a crate place by place: does a test notice?
#   make readme-figures [ROUNDS=5] [EACH=1] [CACHE=DIR]     README's table, measured and written anew, in a quiet quarter of an hour
#   make report [EXPERIMENT=engines] [ARGS=--quick]        run an experiment and put its report into docs/reports
#   make version VERSION=X.Y.Z                            write a version to every place that has it
#   make release [ARGS="deb image"]                        what is published of it, into target/dist
#   make SETUP=no ...                                      never install a system package, only name it

.PHONY: serve test test-all guest-test test-aarch64 nic fuzz hostile conformance pynfs cthon careful mutants readme-figures report version release
.DEFAULT_GOAL := test

export DIR TARGET TIME SETUP EXPERIMENT TLSFUZZER PYNFS CTHON PYTHON ONLY FAMILY PACKAGE ROUNDS EACH CACHE VERSION

serve:
	@scripts/serve.sh $(ARGS)

test:
	@scripts/test.sh

test-all:
	@LINERATE_TEST_ALL=yes scripts/test.sh

guest-test:
	@scripts/guest-test.sh $(ARGS)

test-aarch64:
	@scripts/test-aarch64.sh $(ARGS)

nic:
	@scripts/packages.sh guest
	@nic/build $(ARGS)

fuzz:
	@scripts/fuzz.sh

hostile:
	@scripts/hostile.sh $(ARGS)

careful:
	@scripts/careful.sh

mutants:
	@scripts/mutants.sh $(ARGS)

conformance:
	@scripts/conformance.sh

pynfs:
	@scripts/pynfs.sh

cthon:
	@scripts/cthon.sh

readme-figures:
	@scripts/readme-figures.sh

report:
	@scripts/report.sh $(ARGS)

version:
	@scripts/version.sh --set "$(VERSION)"

release:
	@scripts/release.sh $(ARGS)
