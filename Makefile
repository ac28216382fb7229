# The commands of the project. Each does its own set-up; scripts/ holds what they run.
#
#   make serve [DIR=/srv/media] [ARGS="--listen *:8443"]   build and serve DIR, or a sample directory
#   make test                                              everything that must hold before a change lands
#   make guest-test [ARGS="--kernel 6.12 NAME"]            its part that needs kernel TLS: in guests, see guest/README.md
#   make fuzz [TARGET=request] [TIME=600]                  fuzz one target, or all, TIME seconds each
#   make SETUP=no ...                                      never install a system package, only name it

.PHONY: serve test guest-test fuzz
.DEFAULT_GOAL := test

export DIR TARGET TIME SETUP

serve:
	@scripts/serve.sh $(ARGS)

test:
	@scripts/test.sh

guest-test:
	@scripts/guest-test.sh $(ARGS)

fuzz:
	@scripts/fuzz.sh
