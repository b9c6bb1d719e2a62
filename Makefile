# A part is a folder, a room a folder in it: see .layers. "make help" lists the targets.
# Variables: B=build folder, CC=gcc|clang, SAN=address|undefined|thread[,...], V=1 to see commands,
#            WITHOUT=zookeeper: programs and library without that client (not the tests).
#            NDEBUG=1: lockkit without its assertions. LAB=0: the service without the hazard lab.

B       ?= build
LAB     ?= 1
SAN     ?=
CC      ?= gcc
PREFIX  ?= /usr/local
JOBS    ?= $(shell nproc)
TEST_TIMEOUT_S ?= $(if $(TEST_FULL),3600,300)
TEST_JOBS ?= $(JOBS)

# -- packages (the one list) ----------------------------------------------------------------------
PKGS_BUILD := gcc make libc6-dev pkg-config libmicrohttpd-dev libhiredis-dev libsqlite3-dev libpq-dev \
              libzookeeper-mt-dev libjansson-dev uthash-dev libjs-d3 redis-server redis-tools
PKGS_TEST  := libcmocka-dev postgresql-15 memcached libzookeeper-java openjdk-17-jdk-headless \
              libslf4j-java liblog4j1.2-java chromium chromium-driver fonts-wqy-microhei \
              libcurator-recipes-java python3-kazoo python3-redis python3-pymemcache python3-psycopg2
AXE_CORE   := 4.10.3
AXE_SHA256 := 880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb
PKGS_LINT  := clang libclang-rt-14-dev clang-format clang-tidy cppcheck
PKGS_BENCH := wrk hey python3-redis chromium chromium-driver

# -- flags ----------------------------------------------------------------------------------------
LIBS_LOCKKIT := hiredis sqlite3 libpq
LIBS_DB      := sqlite3 libpq
LIBS_APP     := libmicrohttpd jansson
LIBS_LOADGEN := jansson
pkg = $(shell pkg-config $(1) $(2) 2>/dev/null)

WARN   := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wconversion -Wno-sign-conversion \
          -Wmissing-prototypes -Wvla
OPT    ?= -O2 -g
CFLAGS += -std=c11 -D_GNU_SOURCE $(OPT) $(WARN) -fPIC -pthread \
          $(call pkg,--cflags,$(LIBS_LOCKKIT) $(LIBS_DB) $(LIBS_APP))
LDLIBS := -pthread -lm
LIB_ZOOKEEPER := -lzookeeper_mt # which has no pkg-config file
LK_VERSION    := $(shell sed -n 's/^.define LK_VERSION "\(.*\)"/\1/p' lockkit/lockkit.h)
ifneq ($(filter zookeeper,$(WITHOUT)),)
PKGS_BUILD := $(filter-out libzookeeper-mt-dev,$(PKGS_BUILD))
LIB_ZOOKEEPER :=
CFLAGS += -DLK_WITHOUT_ZOOKEEPER
endif
ifneq ($(SAN),)
CFLAGS  += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
LDFLAGS += -fsanitize=$(SAN)
endif
Q := $(if $(V),,@)
comma := ,

# -- sources: a room is a folder; .layers says whose headers it may include -----------------------
include .layers
TEST_ROOMS := $(sort $(dir $(wildcard tests/*/*.[ch] tests/*/*/*.[ch])))
obj   = $(patsubst %.c,$(B)/obj/%.o,$(1))
room  = $(patsubst %/,%,$(dir $(1)))
src   = $(wildcard $(addsuffix /*.c,$(filter $(1) $(1)/%,$(ROOMS))))
MAINS := app/seckilld.c loadgen/cli/main.c loadgen/cli/hazards_main.c loadgen/sandbox/clockshim.c
SANDBOX_O := $(call obj,$(filter-out $(MAINS),$(call src,loadgen/sandbox)))
LOCKKIT_CMD_O := $(call obj,$(call src,lockkit/cmd)) # the command, beside the library
NO_ZOOKEEPER := $(if $(LIB_ZOOKEEPER),,$(call obj,$(call src,lockkit/zookeeper) $(wildcard lockkit/guards/zk_*.c)))
LOCKKIT_O := $(filter-out $(LOCKKIT_CMD_O) $(NO_ZOOKEEPER),$(call obj,$(call src,lockkit)))
DB_O      := $(call obj,$(call src,db))
NO_LAB_O  := $(call obj,app/lab_none.c) # linked first, it keeps the lab in libapp.a out of the service
APP_O     := $(filter-out $(NO_LAB_O),$(call obj,$(filter-out $(MAINS),$(call src,app))))
LOADGEN_O := $(filter-out $(SANDBOX_O),$(call obj,$(filter-out $(MAINS),$(call src,loadgen))))
TEST_O    := $(call obj,$(filter-out %/stub_service.c,$(wildcard tests/lib/*/*.c)))
TEST_SRC  := $(wildcard tests/*/test_*.c tests/*/*/test_*.c)
TESTS     := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_SRC))
# They compile, and have nothing to sanitize.
TESTS     := $(filter-out $(if $(SAN),%/test_recipes %/test_recipes_loadgen),$(TESTS))
# In one thread: nothing for ThreadSanitizer, which takes each of their fibers for a thread.
TESTS     := $(filter-out $(if $(filter thread,$(SAN)),%/test_wake_interleavings %/test_sim),$(TESTS))
BINS      := $(B)/seckilld $(B)/loadgen $(B)/hazards $(B)/lockkit

L_LOCKKIT := $(B)/liblockkit.a
L_APP     := $(B)/libapp.a $(L_LOCKKIT) $(B)/libdb.a
L_LOADGEN := $(B)/libloadgen.a $(B)/libsandbox.a $(L_LOCKKIT)
D_LOCKKIT := $(call pkg,--libs,$(LIBS_LOCKKIT)) $(LIB_ZOOKEEPER)
D_APP     := $(D_LOCKKIT) $(call pkg,--libs,$(LIBS_DB) $(LIBS_APP))
D_LOADGEN := $(D_LOCKKIT) $(call pkg,--libs,$(LIBS_LOADGEN))
D_LOCKKIT_CMD := $(D_LOCKKIT) $(call pkg,--libs,jansson)

.PHONY: help all demo serve lab test sim conformance bench fuzz lint format check-asan check-ubsan check-tsan \
        install uninstall clean deps-build deps-test deps-lint deps-bench
all: deps-build
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) bins
.PHONY: bins
bins: $(BINS) $(B)/liblockkit.so
	@:

LINK_SECKILLD = $(Q)mkdir -p $(@D) && $(CC) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(D_APP) $(LDLIBS)
$(B)/seckilld: $(call obj,app/seckilld.c) $(if $(filter 0,$(LAB)),$(NO_LAB_O)) $(L_APP) $(B)/lab.$(LAB)
	$(LINK_SECKILLD)
$(B)/nolab/seckilld: $(call obj,app/seckilld.c) $(NO_LAB_O) $(L_APP)
	$(LINK_SECKILLD)
$(B)/lab.$(LAB): # linked anew when this changes
	$(Q)mkdir -p $(@D) && rm -f $(B)/lab.? && touch $@
$(B)/loadgen: $(call obj,loadgen/cli/main.c) $(L_LOADGEN)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(D_LOADGEN) $(LDLIBS)
$(B)/libclockshim.so: loadgen/sandbox/clockshim.c # into servers that know no sanitizer
	$(Q)mkdir -p $(@D) && $(CC) -std=c11 -D_GNU_SOURCE $(OPT) $(WARN) -fPIC -shared -o $@ $<
$(B)/hazards $(B)/tests/lockkit/redis/test_redis_fence: | $(B)/libclockshim.so
$(B)/hazards: $(call obj,loadgen/cli/hazards_main.c) $(L_LOADGEN)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(D_LOADGEN) $(LDLIBS)
$(B)/lockkit: $(LOCKKIT_CMD_O) $(L_LOCKKIT)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(D_LOCKKIT_CMD) $(LDLIBS)
$(LOCKKIT_O): CFLAGS += -fvisibility=hidden $(if $(NDEBUG),-DNDEBUG) # lockkit.h says what is public
$(B)/liblockkit.so: $(LOCKKIT_O)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,liblockkit.so.0 -o $@ $^ $(D_LOCKKIT) $(LDLIBS)
$(B)/liblockkit.a: $(LOCKKIT_O)
$(B)/libdb.a: $(DB_O)
$(B)/libapp.a: $(APP_O)
$(B)/libloadgen.a: $(LOADGEN_O)
$(B)/libsandbox.a: $(SANDBOX_O)
$(B)/libtest.a: $(TEST_O)
$(B)/%.a:
	$(Q)rm -f $@ && ar rcs $@ $^
# A room sees its own headers and those of the rooms that .layers names; the tests see all.
sees = $(addprefix -I,$(if $(filter tests/%,$(1)),$(ROOMS) $(TEST_ROOMS),$(room) $(sees/$(room)) $(upward/$(room))))
$(B)/obj/%.o: %.c Makefile .layers
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(call sees,$<) -MMD -MP -c -o $@ $<
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

# -- tests: tests/<part>/test_<name>.c -> build/tests/<part>/test_<name> ---------------------------
of = $(filter $(B)/tests/$(1)/%,$(TESTS))
LINK_TEST = $(Q)mkdir -p $(@D) && $(CC) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) -lcmocka $(D_APP) $(LDLIBS)
STUB_O    := $(B)/obj/tests/lib/service/stub_service.o # stands in for the service in tests of the HTTP side
HTTP_T    := $(filter $(B)/tests/app/http/test_http_%,$(TESTS))
$(HTTP_T): $(B)/tests/%: $(B)/obj/tests/%.o $(STUB_O) $(B)/libtest.a $(B)/libsandbox.a $(L_APP)
	$(LINK_TEST)
$(filter-out $(HTTP_T),$(call of,app)): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/libtest.a $(B)/libsandbox.a $(L_APP)
	$(LINK_TEST)
$(call of,lockkit): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/libtest.a $(B)/libsandbox.a $(L_LOCKKIT)
	$(LINK_TEST)
$(call of,db): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/libtest.a $(B)/libsandbox.a $(B)/libdb.a
	$(LINK_TEST)
$(call of,loadgen): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/libtest.a $(L_LOADGEN)
	$(LINK_TEST)
$(call of,e2e): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/libtest.a $(L_LOADGEN) $(BINS)
	$(LINK_TEST)
$(B)/tests/app/http/test_http_process $(B)/tests/app/test_promises: | $(B)/seckilld
$(B)/tests/app/test_without_lab: | $(B)/nolab/seckilld $(B)/seckilld
# Tests in which memory runs out: see tests/lib/tools/scarce.h.
SCARCE_T  := $(filter %/test_scarce_memory,$(TESTS))
$(SCARCE_T): LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc realloc strdup poll ppoll)
# Tests that plan what becomes of a commit: see undecided_plan.h.
$(filter %/test_undecided %/test_keeper,$(TESTS)): LDFLAGS += -Wl,--wrap=db_open
# Where the reader of a batch is stopped before it wakes those whom it has answered.
$(filter %/test_redis_batches,$(TESTS)): LDFLAGS += -Wl,--wrap=lk_event_set_signal
# The service on fibers: these calls of our objects go to tests/sim/sim_wrap.c and sim_files.c.
SIM_CALLS := $(addprefix pthread_,create join setname_np self sigmask once $(addprefix mutex_,init destroy lock trylock \
                 unlock) $(addprefix cond_,init destroy wait timedwait clockwait signal broadcast)) \
             sem_init sem_destroy sem_wait sem_post syscall sched_yield prctl clock_gettime time nanosleep getrandom \
             open64 fcntl64 pread64 pwrite64 close
SIM_T     := $(filter %/test_sim,$(TESTS))
$(SIM_T): LDFLAGS += $(patsubst %,-Wl$(comma)--wrap=%,$(SIM_CALLS))
$(SIM_T): $(B)/tests/%: $(B)/obj/tests/%.o $(call obj,$(wildcard tests/sim/sim_*.c)) $(L_APP)
	$(LINK_TEST)
sim: deps-build deps-test
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) $(SIM_T)
	$(Q)SIM_SEEDS=$(or $(SEEDS),2000) SIM_SECONDS=86400 SIM_JSON=$(B)/sim.json $(SIM_T)
# The accessibility checker, which is in no Debian package.
$(B)/tests/e2e/page/test_page_accessible: | $(B)/axe.min.js
$(B)/axe.min.js: Makefile
	$(Q)command -v npm >/dev/null || .ci/install-packages npm
	$(Q)npm install --loglevel=error --no-save --no-package-lock --prefix $(B)/npm axe-core@$(AXE_CORE) >/dev/null
	$(Q)cd $(B)/npm/node_modules/axe-core && echo "$(AXE_SHA256)  axe.min.js" | sha256sum --check --quiet
	$(Q)cp $(B)/npm/node_modules/axe-core/axe.min.js $@
$(B)/tests/lockkit/redis/test_redis_clock: | $(B)/libclockshim.so
# Node's lock clients, in no Debian package either; package-lock.json has their hashes.
$(B)/tests/lockkit/conformance/test_contest_redis: | $(B)/peers/installed
$(B)/peers/installed: tests/lockkit/peers/package.json tests/lockkit/peers/package-lock.json \
                      tests/lockkit/peers/redlock_peer.mjs
	$(Q)command -v npm >/dev/null || .ci/install-packages npm
	$(Q)mkdir -p $(@D) && cp $^ $(@D) && cd $(@D) && npm ci --no-audit --no-fund --loglevel=error >&2 && touch $(@F)
$(B)/obj/app/page/openapi.o: app/openapi.json
$(B)/obj/app/page/page.o: $(filter-out %.png,$(wildcard app/page/web/*)) $(wildcard /usr/share/javascript/d3/d3.min.js)
.PRECIOUS: $(B)/obj/%.o

test: deps-build deps-test
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) $(BINS) $(TESTS)
	$(Q)BUILD=$(B) TEST_TIMEOUT_S=$(TEST_TIMEOUT_S) TEST_JOBS=$(TEST_JOBS) tests/run.sh $(TESTS)
# The claims of all guards on their real servers, and one table of what was seen.
CONFORMANCE := $(filter $(B)/tests/lockkit/conformance/test_conformance_%,$(TESTS))
conformance: deps-build deps-test
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) $(CONFORMANCE)
	$(Q)BUILD=$(B) TEST_TIMEOUT_S=$(TEST_TIMEOUT_S) TEST_JOBS=$(JOBS) tests/run.sh $(CONFORMANCE); ok=$$?; \
	    awk '/^guard +servers/ { on = 1; if (headed++) next } /^yes: / { on = 0; legend = $$0 } on; \
	        END { print legend }' \
	    $(addsuffix .log,$(CONFORMANCE)); exit $$ok
check-asan: deps-lint # undefined behaviour in the same run
	$(Q)$(MAKE) --no-print-directory test SAN=address,undefined B=$(B)/asan CC=clang
check-ubsan: deps-lint
	$(Q)$(MAKE) --no-print-directory test SAN=undefined B=$(B)/ubsan CC=clang
check-tsan:
	$(Q)TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 suppressions=.tsan" \
	    $(MAKE) --no-print-directory test SAN=thread B=$(B)/tsan

# -- help -----------------------------------------------------------------------------------------
define HELP
make                 the programs and the lock library, in $(B)/
make demo            one sale under seven guards, with a verdict
make serve           the live page, until Ctrl-C; LISTEN=127.0.0.1:8080
make lab             each lock made to fail: $(B)/lab/matrix.html
make test            the whole suite on real servers; TEST_FULL=1: the long sizes
make sim             the service on a virtual clock, many seeds; SEEDS=2000; TEST_SEED=N replays one
make conformance     each guard against each claim
make lint format     layout, layers, cppcheck, clang
make check-asan      the suite with address and undefined behaviour checks (check-ubsan, check-tsan)
make fuzz            the HTTP parser of the load generator; FUZZ_S=60
make bench           what a lock, an order and a guard cost: $(B)/bench/
make install         programs, library, header, man pages; PREFIX=/usr/local (uninstall)
make clean           removes $(B)/
endef
export HELP
help:
	@echo "$$HELP"

# -- running --------------------------------------------------------------------------------------
demo: all
	$(Q)$(B)/loadgen demo --seckilld $(B)/seckilld --json $(B)/demo/report.json --html $(B)/demo/report.html
serve: all
	$(Q)$(B)/loadgen serve --seckilld $(B)/seckilld --dir $(B)/serve $(addprefix --listen=,$(LISTEN))

lab: all deps-test
	$(Q)$(B)/hazards run --seckilld $(B)/seckilld --repeat $(or $(LAB_REPEAT),1) \
	    --json $(B)/lab/matrix.json --html $(B)/lab/matrix.html

# -- benchmarks: medians of interleaved runs; JSON to build/bench, tables on the terminal ------------
BENCHES := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
$(B)/bench/bench_locks: $(B)/obj/lockkit/cmd/cmd_measure.o
$(B)/bench/bench_limit: | $(B)/bench/peers/bare_limit
# Peers in other languages run from the build folder, the Node ones with their packages beside them:
# they want node 20 or later and npm, from wherever the machine has them.
BENCHES_BY_THEMSELVES := $(filter-out %/bench_peers %/bench_locks,$(BENCHES))
PEER_FILES := $(patsubst tests/%,$(B)/%,$(wildcard tests/bench/peers/*.py tests/bench/peers/node/*))
$(B)/bench/bench_peers $(B)/bench/bench_locks: | $(PEER_FILES) $(B)/bench/peers/node/installed
$(B)/bench/bench_locks: | $(B)/bench/peers/bare_redis $(B)/lockkit
# The service without a part, whose stand-in comes before the libraries.
WITHOUT_PARTS := $(patsubst tests/%.c,$(B)/%,$(wildcard tests/bench/without/*.c))
$(B)/bench/bench_parts: | $(WITHOUT_PARTS) $(B)/seckilld
$(WITHOUT_PARTS): $(B)/bench/without/%: $(call obj,app/seckilld.c) $(B)/obj/tests/bench/without/%.o $(L_APP)
	$(Q)mkdir -p $(@D) && $(CC) $(LDFLAGS) -o $@ $^ $(D_APP) $(LDLIBS)
$(B)/bench/bench_footprint: | $(B)/bench/peers/liballocs.so
$(B)/bench/peers/liballocs.so: tests/bench/peers/allocs.c tests/bench/peers/allocs.h
	$(Q)mkdir -p $(@D) && $(CC) -std=c11 -D_GNU_SOURCE $(OPT) $(WARN) -fPIC -shared -o $@ $<
$(B)/bench/peers/node/installed: $(filter %.json,$(PEER_FILES))
	$(Q)cd $(@D) && npm ci --no-audit --no-fund >&2 && touch $(@F) || \
	    echo "benchmarks beside Node will fail without its packages" >&2
$(PEER_FILES): $(B)/bench/peers/%: tests/bench/peers/%
	$(Q)mkdir -p $(@D) && cp $< $@
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(B)/libtest.a $(L_LOADGEN) $(B)/libdb.a
	$(Q)mkdir -p $(@D) && $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(D_APP) $(LDLIBS)
bench: all deps-bench
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) $(BENCHES)
	$(Q)ok=0; for b in $(BENCHES); do echo "-- $${b##*/}"; BUILD=$(B) $$b > $$b.json || { \
	    echo "$$b failed"; ok=1; }; done; exit $$ok

fuzz: deps-lint
	$(Q)mkdir -p $(B)/fuzz && clang -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined \
	    -Iloadgen/engine -Iloadgen/base tests/fuzz/fuzz_http_parse.c loadgen/engine/http_parse.c -o $(B)/fuzz/http_parse
	$(Q)$(B)/fuzz/http_parse -max_total_time=$(or $(FUZZ_S),60)

# -- style ----------------------------------------------------------------------------------------
C_FILES := $(wildcard $(addsuffix /*.[ch],$(ROOMS)) tests/*/*.[ch] tests/*/*/*.[ch])
format:
	$(Q)clang-format -i $(C_FILES)
# lockkit is for others, too, who may build it without assertions.
NDEBUG_T := $(patsubst $(B)/%,$(B)/ndebug/%,$(filter $(addprefix %/test_,acquire each hold limits many mutex session \
    conformance_redis conformance_sqlite conformance_memcached conformance_redlock),$(call of,lockkit)))
lint: deps-lint
	$(Q).ci/check-layers
	$(Q)CFLAGS='$(CFLAGS)' .ci/check-headers
	$(Q)! grep -l '#include <uthash.h>' $(filter-out %/table.h %/hash_table.h %/lanes_private.h,$(C_FILES)) || { \
	    echo "include table.h: uthash ends the process without memory" >&2; false; }
	$(Q)clang-format --dry-run --Werror $(C_FILES)
	$(Q)cppcheck --quiet --enable=warning,performance,portability --error-exitcode=1 --std=c11 \
	    --inline-suppr --suppressions-list=.cppcheck --library=posix $(addprefix -I,$(ROOMS)) app lockkit db loadgen
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) CC=clang B=$(B)/clang bins \
	    $(patsubst $(B)/%,$(B)/clang/%,$(TESTS) $(BENCHES_BY_THEMSELVES))
	$(Q)$(MAKE) --no-print-directory CC=clang B=$(B)/clang install DESTDIR=$(abspath $(B))/installed PREFIX=/usr
	$(Q)CC=clang .ci/check-installed $(B)/clang $(B)/installed
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) NDEBUG=1 B=$(B)/ndebug $(NDEBUG_T)
	$(Q)BUILD=$(B)/ndebug TEST_JOBS=$(JOBS) tests/run.sh $(NDEBUG_T)

# -- installing: the lock library for others, the service and the load generator ---------------------
install: all
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include
	$(Q)install -m 755 $(BINS) $(DESTDIR)$(PREFIX)/bin
	$(Q)install -m 644 $(B)/liblockkit.a $(DESTDIR)$(PREFIX)/lib
	$(Q)install -m 755 $(B)/liblockkit.so $(DESTDIR)$(PREFIX)/lib/liblockkit.so.0
	$(Q)ln -sf liblockkit.so.0 $(DESTDIR)$(PREFIX)/lib/liblockkit.so
	$(Q)install -m 644 lockkit/lockkit.h $(DESTDIR)$(PREFIX)/include
	$(Q)install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/lockkit lockkit/provider.h
	$(Q)install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig && sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(LK_VERSION)|; s|@REQUIRES@|$(LIBS_LOCKKIT)|; s|@LIBS@|$(LIB_ZOOKEEPER)|' \
	    lockkit/lockkit.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/lockkit.pc
	$(Q)install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 loadgen/loadgen.1 loadgen/hazards.1 lockkit/lockkit.1
	$(Q)install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man8 app/seckilld.8
	$(Q)install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/seckilld app/deploy/* loadgen/report/report.schema.json
	$(Q)sed -i 's|/usr/local/bin|$(PREFIX)/bin|' $(DESTDIR)$(PREFIX)/share/doc/seckilld/seckilld.service
uninstall:
	$(Q)cd $(DESTDIR)$(PREFIX) && rm -f $(BINS:$(B)/%=bin/%) lib/liblockkit.a lib/liblockkit.so \
	    lib/liblockkit.so.0 lib/pkgconfig/lockkit.pc include/lockkit.h include/lockkit/provider.h \
	    share/man/man1/loadgen.1 share/man/man1/hazards.1 share/man/man1/lockkit.1 \
	    share/man/man8/seckilld.8 share/doc/seckilld/* && rmdir share/doc/seckilld include/lockkit 2>/dev/null || :
clean:
	$(Q)rm -rf $(B)

# -- dependencies: installed when missing, through sudo when not root -------------------------------
install_pkgs = missing=$$(for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | \
    grep -q 'ok installed' || echo $$p; done); [ -z "$$missing" ] || .ci/install-packages $$missing
deps-build:
	$(Q)$(call install_pkgs,$(PKGS_BUILD))
deps-test:
	$(Q)$(call install_pkgs,$(PKGS_TEST))
deps-lint:
	$(Q)$(call install_pkgs,$(PKGS_LINT))
deps-bench:
	$(Q)$(call install_pkgs,$(PKGS_BENCH))
