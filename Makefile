# "make help" lists the targets. A part is a top folder: app, db, lockkit, loadgen, tests. A room is a
# folder with sources in a part. .layers lists the rooms, and tests/README.md says how a test joins.
# Variables:
#   B=build            folder of everything that is built      V=1    shows the commands
#   CC=gcc|clang       SAN=address|undefined|thread[,...]: with these checks
#   WITHOUT=zookeeper  programs and library without that client (not the tests)
#   LAB=0              the service without the hazard lab
#   NDEBUG=1           lockkit without its assertions
#   JOBS, TEST_JOBS    compilers and test programs at a time, by default one for each core; of the programs up to twice
#                      as many while the cores idle
#   TEST_FULL=1        long sizes of the tests                 TEST_TIMEOUT_S=300    for each program
#   SUITE=asan|tsan|plain  of the tests only those that CI runs so (tests/suites)
#   SUBSET='app/section db/test_fence'  of the tests only these folders and programs
#   PREFIX=/usr/local, DESTDIR  of install and uninstall

B       ?= build
LAB     ?= 1
SAN     ?=
CC      ?= gcc
PREFIX  ?= /usr/local
JOBS    ?= $(shell nproc)
TEST_TIMEOUT_S ?= $(if $(TEST_FULL),3600,300)
TEST_JOBS ?= $(JOBS)
VERSION := $(shell sed -n 's/^.define LK_VERSION "\(.*\)"/\1/p' lockkit/lockkit.h)

# -- packages: this is the only list; what is missing is installed, through sudo if not root --------
PKGS_build := gcc make libc6-dev pkg-config libmicrohttpd-dev libhiredis-dev libsqlite3-dev libpq-dev \
              libzookeeper-mt-dev libjansson-dev nettle-dev uthash-dev libjs-d3 libqrencode-dev redis-server redis-tools
PKGS_lab   := memcached libzookeeper-java libslf4j-java liblog4j1.2-java openjdk-17-jre-headless postgresql-15
PKGS_test  := $(PKGS_lab) libcmocka-dev openjdk-17-jdk-headless elfutils chromium chromium-driver fonts-wqy-microhei \
              libcurator-recipes-java python3-kazoo python3-redis python3-pymemcache python3-psycopg2 \
              python3-jsonschema liblua5.1-0-dev hledger beancount zbar-tools
PKGS_lint  := clang libclang-rt-14-dev clang-format clang-tidy cppcheck systemd
PKGS_bench := wrk hey python3-redis chromium chromium-driver libcmocka-dev

# -- flags ----------------------------------------------------------------------------------------
LIBS_LOCKKIT := hiredis sqlite3 libpq
LIBS_ALL     := $(LIBS_LOCKKIT) libmicrohttpd jansson nettle libqrencode
LIB_ZOOKEEPER := -lzookeeper_mt # which has no pkg-config file
WARN   := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wconversion -Wno-sign-conversion \
          -Wmissing-prototypes -Wvla
OPT    ?= -O2 -g
CFLAGS_ALL := $(shell pkg-config --cflags $(LIBS_ALL) 2>/dev/null)
CFLAGS += -std=c11 -D_GNU_SOURCE $(OPT) $(WARN) -fPIC -pthread $(CFLAGS_ALL)
ifneq ($(filter zookeeper,$(WITHOUT)),)
PKGS_build := $(filter-out libzookeeper-mt-dev,$(PKGS_build))
LIB_ZOOKEEPER :=
CFLAGS += -DLK_WITHOUT_ZOOKEEPER
endif
LDLIBS := -Wl,--as-needed $(shell pkg-config --libs $(LIBS_ALL) 2>/dev/null) $(LIB_ZOOKEEPER) -pthread -lm
# Overflows and bent returns end a program that users get. Not where a sanitizer looks, or without optimization.
HARDEN := $(if $(SAN)$(filter -O0,$(OPT)),,-D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection \
          $(shell $(CC) -fcf-protection -x c -E /dev/null >/dev/null 2>&1 && echo -fcf-protection))
HARDEN_LINK ?= -Wl,-z,relro,-z,now
LDFLAGS += $(HARDEN_LINK)
ifneq ($(SAN),)
CFLAGS  += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
LDFLAGS += -fsanitize=$(SAN)
endif
Q := $(if $(V),,@)
SUB := $(MAKE) --no-print-directory -j$(JOBS)
wrap = $(patsubst %,-Wl$(comma)--wrap=%,$(1))
comma := ,
LINK = $(Q)mkdir -p $(@D) && $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS)

# -- sources: a room is a folder; .layers says whose headers it may include -------------------------
include .layers
obj   = $(patsubst %.c,$(B)/obj/%.o,$(1))
room  = $(patsubst %/,%,$(dir $(1)))
src   = $(filter-out $(MAINS),$(wildcard $(addsuffix /*.c,$(filter $(1) $(1)/%,$(ROOMS)))))
lib   = $(patsubst %,$(B)/lib%.a,$(1))
MAINS := app/seckilld.c app/lab_none.c loadgen/cli/main.c loadgen/cli/hazards_main.c loadgen/cli/torture_main.c loadgen/sandbox/clockshim.c
LOCKKIT_CMD_O := $(call obj,$(call src,lockkit/cmd)) # the command, beside the library
NO_ZOOKEEPER := $(if $(LIB_ZOOKEEPER),,$(call obj,$(call src,lockkit/zookeeper) $(wildcard lockkit/guards/zk_*.c)))
LOCKKIT_O := $(filter-out $(LOCKKIT_CMD_O) $(NO_ZOOKEEPER),$(call obj,$(call src,lockkit)))
NO_LAB_O  := $(call obj,app/lab_none.c) # stands before libapp.a, so no lab is linked
$(B)/liblockkit.a: $(LOCKKIT_O)
$(B)/libdb.a:      $(call obj,$(call src,db))
$(B)/libapp.a:     $(call obj,$(call src,app))
$(B)/libsandbox.a: $(call obj,$(call src,loadgen/sandbox))
$(B)/libloadgen.a: $(call obj,$(filter-out loadgen/sandbox/%,$(call src,loadgen)))
L_APP     := $(call lib,app lockkit db)
L_LOADGEN := $(call lib,loadgen sandbox lockkit)
BINS      := $(addprefix $(B)/,seckilld loadgen hazards torture lockkit)

all: deps-build ## builds the programs and the lock library, in build/
	$(Q)$(SUB) bins
bins: $(BINS) $(B)/liblockkit.so
	@:

$(B)/seckilld: $(call obj,app/seckilld.c) $(if $(filter 0,$(LAB)),$(NO_LAB_O)) $(L_APP) $(B)/lab.$(LAB)
	$(LINK)
$(B)/nolab/seckilld: $(call obj,app/seckilld.c) $(NO_LAB_O) $(L_APP)
	$(LINK)
$(B)/lab.$(LAB): # a new one, when LAB changes, links the service again
	$(Q)mkdir -p $(@D) && rm -f $(B)/lab.? && touch $@
$(B)/loadgen: $(call obj,loadgen/cli/main.c) $(L_LOADGEN)
	$(LINK)
$(B)/hazards: $(call obj,loadgen/cli/hazards_main.c) $(L_LOADGEN) | $(B)/libclockshim.so
	$(LINK)
$(B)/torture: $(call obj,loadgen/cli/torture_main.c) $(L_LOADGEN) | $(B)/libclockshim.so
	$(LINK)
$(B)/lockkit: $(LOCKKIT_CMD_O) $(call lib,lockkit)
	$(LINK)
$(LOCKKIT_O): CFLAGS += -fvisibility=hidden $(if $(NDEBUG),-DNDEBUG) # lockkit.h, provider.h: what is public
$(B)/liblockkit.so: $(LOCKKIT_O)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,liblockkit.so.1 -o $@ $^ $(LDLIBS)
PRELOADED = $(Q)mkdir -p $(@D) && $(CC) -std=c11 -D_GNU_SOURCE $(OPT) $(WARN) -fPIC -shared -o $@ $<
$(B)/libclockshim.so: loadgen/sandbox/clockshim.c # without SAN: servers without a sanitizer load it
	$(PRELOADED)
$(B)/%.a:
	$(Q)rm -f $@ && ar rcs $@ $^
# A room sees its own headers and those of the rooms that .layers names; the tests see all.
TEST_ROOMS := $(sort $(dir $(shell find tests -name "*.[ch]")))
sees = $(addprefix -I,$(if $(filter tests/%,$(1)),$(ROOMS) $(TEST_ROOMS),$(room) $(sees/$(room)) $(upward/$(room))))
$(B)/obj/%.o: %.c Makefile .layers
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(if $(filter tests/%,$<),,$(HARDEN)) $(call sees,$<) -MMD -MP -c -o $@ $<
$(B)/read/%: %.c Makefile .layers # the compiler's warnings alone
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(call sees,$<) -fsyntax-only $< && touch $@
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
$(B)/obj/app/page/openapi.o: app/openapi.json
$(B)/obj/loadgen/museum/web_files.o: $(wildcard loadgen/museum/web/* app/page/player/*)
$(B)/obj/app/page/page.o: $(filter-out %.png,$(wildcard app/page/web/* app/page/player/*)) $(wildcard /usr/share/javascript/d3/d3.min.js)
.PRECIOUS: $(B)/obj/%.o

# -- running --------------------------------------------------------------------------------------
demo: all ## one sale under seven guards, with a verdict
	$(Q)$(B)/loadgen demo --seckilld $(B)/seckilld --json $(B)/demo/report.json --html $(B)/demo/report.html
serve: all $(if $(FOLLOW),site) ## the live page, until Ctrl-C; LISTEN=HOST:PORT; FOLLOW=1 or HOST:PORT: for a class
	-$(Q).ci/install-packages $(PKGS_lab) # without a server go its guards alone
	$(Q)$(B)/loadgen serve --seckilld $(B)/seckilld --dir $(B)/serve $(addprefix --listen=,$(LISTEN)) \
	    $(if $(FOLLOW),--site=$(B)/site --follow$(addprefix =,$(filter-out 1,$(FOLLOW))))
lab: all deps-lab ## makes each lock fail: build/lab/matrix.html; LAB_REPEAT=1
	$(Q)$(B)/hazards run --seckilld $(B)/seckilld --repeat $(or $(LAB_REPEAT),1) \
	    --json $(B)/lab/matrix.json --html $(B)/lab/matrix.html

site: all ## the museum, from make lab and make demo: build/site/index.html
	$(Q)test -f $(B)/lab/matrix.json || $(MAKE) lab || test -f $(B)/lab/matrix.json
	$(Q)test -f $(B)/demo/report.json || $(MAKE) demo || test -f $(B)/demo/report.json
	$(Q)test -f $(B)/levels.json || $(B)/loadgen levels --seckilld $(B)/seckilld --json $(B)/levels.json
	$(Q)$(B)/loadgen site --lab $(B)/lab/matrix.json --demo $(B)/demo/report.json --levels $(B)/levels.json \
	    --out $(B)/site

# -- testing --------------------------------------------------------------------------------------
include tests/tests.mk
run_tests = $(Q)BUILD=$(B) TEST_TIMEOUT_S=$(TEST_TIMEOUT_S) TEST_JOBS=$(TEST_JOBS) tests/run.sh $(1)
test: deps-build deps-test ## all tests on real servers; TEST_FULL=1: the long sizes
	$(Q)$(SUB) $(BINS) $(TESTS)
	$(call run_tests,$(TESTS))
conformance: deps-build deps-test ## tests each guard against each claim, the store on each engine: two tables
	$(Q)$(SUB) $(CONFORMANCE) $(STORE_CLAIMS)
	$(call run_tests,$(CONFORMANCE) $(STORE_CLAIMS)) && tests/conformance_table.sh $(CONFORMANCE) && \
	    tests/store_table.sh $(STORE_CLAIMS)
check-asan: deps-lint ## the tests with address and undefined behaviour checks, as CI runs them
	$(Q)$(MAKE) --no-print-directory test OPT='-O1 -g1' SAN=address,undefined B=$(B)/asan CC=clang SUITE=asan
check-ubsan: deps-lint ## the same tests with undefined behaviour checks alone
	$(Q)$(MAKE) --no-print-directory test OPT='-O1 -g1' SAN=undefined B=$(B)/ubsan CC=clang SUITE=asan
check-tsan: ## the tests with data race checks, as CI runs them
	$(Q)TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 suppressions=.tsan" \
	    $(MAKE) --no-print-directory test OPT='-O2 -g1' SAN=thread B=$(B)/tsan SUITE=tsan
coverage: deps-build deps-test ## counts what the tests reach, per room; SUBSET='app/section db'; SHOW=FILE lists gaps
	-$(Q)CFLAGS='--coverage -fprofile-update=atomic -include tests/measure/coverage.h' LDFLAGS=--coverage \
	    $(MAKE) --no-print-directory test OPT='-O0 -g' B=$(B)/coverage SUITE=asan
	$(Q)tests/measure/coverage.py $(B)/coverage --json $(B)/coverage.json $(if $(SUBSET),,--all) $(SHOW)
mutants: deps-build deps-test deps-lint ## breaks lines of sources, to see that tests notice; FILES='app/lanes/lanes.c'; LIMIT=N of each
	$(Q)set -e; tests=$$(tests/measure/mutants.py $(B) --programs $(FILES)); \
	$(SUB) $(BINS) $$(printf '$(B)/tests/%s ' $$tests); \
	$(SUB) SAN=address,undefined B=$(B)/asan CC=clang $$(printf '$(B)/asan/tests/%s ' $$tests); \
	tests/measure/mutants.py $(B) --json $(B)/mutants.json --limit $(or $(LIMIT),0) $(FILES)
sim: deps-build deps-test ## simulates the service on a virtual clock; SEEDS=2000; TEST_SEED=N replays one
	$(Q)$(SUB) $(SIM_T)
	$(Q)SIM_SEEDS=$(or $(SEEDS),2000) SIM_SECONDS=86400 SIM_JSON=$(B)/sim.json $(SIM_T)
plants: deps-build deps-test ## plants mistakes, and counts the seeds until the simulation finds each: build/plants.json
	$(Q)$(SUB) $(SIM_T)
	$(Q)B=$(B) tests/sim/plants.py
torture: all deps-test ## lets faults strike real servers: MINUTES=10 or HOURS=8; sums grow in build/torture-rounds/
	$(Q)$(B)/torture --dir $(B)/torture-rounds --duration $(if $(HOURS),$(HOURS)h,$(or $(MINUTES),10)m)
bench: all deps-bench ## measures what a lock, an order and a guard cost: build/bench/
	$(Q)$(SUB) $(BENCHES)
	$(Q)BUILD=$(B) tests/bench.sh $(BENCHES)
fuzz: deps-build deps-lint ## fuzzes each parser that hears a stranger: tests/fuzz/; FUZZ_S=60 in all
	$(Q)$(SUB) $(FUZZ_FLAGS) $(FUZZERS)
	$(Q)BUILD=$(B) FUZZ_S=$(FUZZ_S) TEST_JOBS=$(TEST_JOBS) tests/fuzz/run.sh $(FUZZERS)
fuzz-corpus: deps-build deps-lint ## replaces tests/fuzz/corpus by the fewest files that reach as much
	$(Q)$(SUB) $(FUZZ_FLAGS) $(FUZZERS)
	$(Q)BUILD=$(B) tests/fuzz/run.sh --corpus $(FUZZERS)
lint: deps-lint ## checks layers, headers, layout, cppcheck; clang's warnings; tests without assertions
	$(Q)CFLAGS='$(CFLAGS)' ROOMS='$(ROOMS)' .ci/lint
	$(Q)$(SUB) CC=clang OPT=-O1 B=$(B)/clang bins $(patsubst %.c,$(B)/clang/read/%,$(READ_SRC))
	$(Q)$(MAKE) --no-print-directory CC=clang B=$(B)/clang install DESTDIR=$(abspath $(B))/installed PREFIX=/usr
	$(Q)CC=clang .ci/check-installed $(B)/clang $(B)/installed
	$(Q)$(SUB) NDEBUG=1 B=$(B)/ndebug $(NDEBUG_T)
	$(Q)BUILD=$(B)/ndebug TEST_JOBS=$(JOBS) tests/run.sh $(NDEBUG_T)
format: deps-lint ## lays all C code out (clang-format)
	$(Q)git ls-files '*.[ch]' | xargs clang-format -i

# -- installing and the rest ------------------------------------------------------------------------
install: all ## installs programs, library, headers, man pages; PREFIX=/usr/local, DESTDIR
	$(Q)B=$(B) VERSION=$(VERSION) REQUIRES='$(LIBS_LOCKKIT)' LIBS='$(LIB_ZOOKEEPER)' .ci/install '$(DESTDIR)' '$(PREFIX)'
uninstall: ## removes what install has installed
	$(Q).ci/uninstall '$(DESTDIR)$(PREFIX)'
clean: ## removes build/
	$(Q)rm -rf $(B)
help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#=]*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20
deps-build deps-lab deps-test deps-lint deps-bench: deps-%:
	$(Q).ci/install-packages $(PKGS_$*)
.PHONY: all bins demo serve lab site test conformance check-asan check-ubsan check-tsan coverage mutants sim plants torture bench fuzz fuzz-corpus \
        lint format install uninstall clean help deps-build deps-lab deps-test deps-lint deps-bench
