# Tests and benchmarks. tests/PART/.../test_NAME.c becomes the program build/tests/PART/.../test_NAME.

TEST_SRC := $(sort $(shell find tests -name "test_*.c"))
# SUITE=asan, tsan or plain: what tests/suites wants in that run of CI. SUBSET: folders and programs. Without: all.
TESTS    := $(patsubst tests/%.c,$(B)/tests/%,$(if $(SUITE),$(shell tests/suite.sh $(SUITE) $(TEST_SRC)),$(TEST_SRC)))
ifneq ($(SUBSET),)
TESTS    := $(filter $(foreach one,$(SUBSET),$(B)/tests/$(one) $(B)/tests/$(one)/%),$(TESTS))
endif
READ_SRC := $(filter-out tests/fuzz/% tests/bench/peers/%,$(shell find tests -name "*.c")) # clang builds the fuzzers
CONFORMANCE := $(filter $(B)/tests/lockkit/conformance/test_conformance_%,$(TESTS))
STORE_CLAIMS := $(filter $(patsubst tests/%.c,$(B)/tests/%,$(shell grep -l ON_BOTH_ENGINES tests/db/*.c)),$(TESTS))
$(B)/libtest.a: $(call obj,$(filter-out %/stub_service.c,$(wildcard tests/lib/*/*.c)))

# What the programs of a part are linked with.
links/app     := test sandbox app lockkit db
links/lockkit := test sandbox lockkit
links/db      := test sandbox db
links/loadgen := test loadgen sandbox lockkit
links/e2e     := test loadgen sandbox lockkit
of = $(filter $(B)/tests/$(1)/%,$(TESTS))
HTTP_T := $(filter $(B)/tests/app/http/test_http_%,$(TESTS)) # a stub stands in for the service
$(HTTP_T): $(call obj,tests/lib/service/stub_service.c)
define test_programs
$(call of,$(1)): $(B)/tests/%: $(B)/obj/tests/%.o $(call lib,$(links/$(1)))
	$$(LINK) -lcmocka
endef
$(foreach part,app lockkit db loadgen e2e,$(eval $(call test_programs,$(part))))

# -- what single programs need besides --------------------------------------------------------------
$(call of,e2e): $(BINS)
$(addprefix $(B)/tests/app/,http/test_http_process http/test_http_manager test_promises test_roles test_callers): \
        | $(B)/seckilld
$(B)/tests/app/test_hardened: | $(B)/seckilld
$(B)/tests/app/test_without_lab: | $(B)/nolab/seckilld $(B)/seckilld
$(addprefix $(B)/tests/,lockkit/redis/test_redis_clock lockkit/redis/test_redis_fence e2e/test_archive): \
        | $(B)/libclockshim.so
$(filter %/test_scarce_memory,$(TESTS)): private LDFLAGS += $(call wrap,malloc calloc realloc strdup asprintf open_memstream \
                                             getline fopen pthread_create poll ppoll __ppoll_chk) # scarce.h
$(filter %/test_no_thread,$(TESTS)): LDFLAGS += $(call wrap,pthread_create)
$(B)/tests/loadgen/cli/test_scarce_memory: | $(B)/seckilld
$(filter %/test_undecided %/test_keeper %/test_store_fails,$(TESTS)): LDFLAGS += $(call wrap,db_open) # undecided_plan.h
$(filter %/test_every_call,$(TESTS)): LDFLAGS += $(call wrap,open64 fcntl64 pread64 pwrite64) # faulty_calls.h
# Stops the thread that reads the answers of a batch before it wakes the threads that asked.
$(filter %/test_redis_batches,$(TESTS)): LDFLAGS += $(call wrap,lk_event_set_signal)
# The accessibility checker and Node's lock clients, which are in no Debian package.
$(B)/tests/e2e/page/test_page_accessible $(addprefix $(B)/tests/e2e/museum/,test_museum test_levels test_in_class test_follow): | $(B)/axe.min.js
$(B)/axe.min.js: .ci/install-axe
	$(Q).ci/install-axe $@
# The schema that openapi.json must obey.
$(B)/tests/e2e/openapi/test_openapi_answers: | $(B)/openapi-3.1.json
$(B)/openapi-3.1.json: .ci/install-openapi-schema
	$(Q).ci/install-openapi-schema $@
$(B)/tests/lockkit/conformance/test_contest_redis: | $(B)/peers/installed
$(B)/peers/installed: $(wildcard tests/lockkit/peers/*.json tests/lockkit/peers/*.mjs)
	$(Q).ci/install-node-peers $(@D) $^

# -- the service on fibers: these calls of our objects go to tests/sim/machine/ -----------------
SIM_CALLS := $(addprefix pthread_,create join setname_np self sigmask once $(addprefix mutex_,init destroy lock trylock \
                 unlock) $(addprefix cond_,init destroy wait timedwait clockwait signal broadcast)) \
             sem_init sem_destroy sem_wait sem_post syscall sched_yield prctl clock_gettime time nanosleep getrandom \
             open64 __open64_2 fcntl64 pread64 pwrite64 fsync close poll ppoll __ppoll_chk epoll_create1 epoll_ctl epoll_wait eventfd eventfd_write read write socket connect getsockopt setsockopt sendmsg send recv \
             redisConnectWithTimeout redisConnectNonBlock redisFreeKeepFd redisFree lk_open \
             $(addprefix PQ,connectStartParams connectPoll status socket errorMessage finish setErrorVerbosity \
                 setNoticeReceiver setnonblocking enterPipelineMode exitPipelineMode backendPID host port sendPrepare sendQuery \
                 sendQueryParams sendQueryPrepared \
                 pipelineSync flush isBusy consumeInput getResult cmdTuples resultErrorField) \
             $(addprefix zoo,keeper_init2 keeper_close _recv_timeout _set_servers_resolution_delay _acreate2 _adelete \
                 _aget _aget_children _async) \
             db_run_many $(addprefix db_tx_put_,item account order)
SIM_T := $(filter %/test_sim,$(TESTS))
$(SIM_T): LDFLAGS += $(call wrap,$(SIM_CALLS))
$(SIM_T): $(B)/tests/%: $(B)/obj/tests/%.o $(call obj,tests/lib/tools/tests.c $(wildcard tests/sim/sim_*.c tests/sim/*/sim_*.c)) $(L_APP)
	$(LINK) -lcmocka -llua5.1
SIM_REDIS_T := $(filter %/test_redis_model %/test_redis_cluster_model,$(TESTS)) # beside a real Redis, without the rest
$(B)/tests/sim/test_redis_cluster_model: $(call obj,tests/sim/servers/sim_redis_cluster.c)
$(SIM_REDIS_T): $(B)/tests/%: $(B)/obj/tests/%.o $(call obj,tests/sim/redis_beside.c $(addprefix tests/sim/servers/sim_,$(addsuffix .c,bytes redis_commands \
                    redis_data redis_lua redis_sets resp))) $(call lib,test sandbox lockkit)
	$(LINK) -lcmocka -llua5.1
SIM_MEMCACHED_T := $(filter %/test_memcached_model,$(TESTS)) # likewise
$(SIM_MEMCACHED_T): $(B)/tests/%: $(B)/obj/tests/%.o $(call obj,$(addprefix tests/sim/servers/,sim_bytes.c sim_memcached.c)) $(call lib,test sandbox lockkit)
	$(LINK) -lcmocka

# -- fuzzing: tests/fuzz/fuzz_NAME.c becomes build/fuzz/NAME. Every room is built for it in build/fuzz -------
FUZZ_SRC   := $(wildcard tests/fuzz/fuzz_*.c)
FUZZERS    := $(patsubst tests/fuzz/fuzz_%.c,$(B)/fuzz/%,$(FUZZ_SRC))
FUZZ_FLAGS := CC=clang OPT='-O1 -g $(FUZZ_OPT)' SAN=address,undefined,fuzzer-no-link B=$(B)/fuzz
FUZZ_S     ?= 60
$(patsubst tests/fuzz/fuzz_%.c,$(B)/%,$(FUZZ_SRC)): $(B)/%: $(B)/obj/tests/fuzz/fuzz_%.o \
        $(call lib,app db loadgen sandbox lockkit)
	$(LINK) -fsanitize=fuzzer
$(B)/http: $(B)/obj/tests/fuzz/answered.o
$(addprefix $(B)/,redis memcached postgres): $(B)/obj/tests/fuzz/wire.o
$(B)/config $(B)/url: LDFLAGS += $(call wrap,getaddrinfo)
$(B)/http: LDFLAGS += $(call wrap,pthread_create getrandom)
$(B)/postgres: LDFLAGS += $(call wrap,db_sleep_us)

# -- benchmarks: medians of interleaved runs; JSON to build/bench, tables on the terminal -----------------
BENCHES := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(B)/libtest.a $(L_LOADGEN) $(B)/libdb.a
	$(LINK)
$(B)/bench/bench_scene: $(B)/obj/tests/bench/bench_scene.o $(B)/libtest.a $(L_LOADGEN) # starts programs as the tests do
	$(LINK) -lcmocka
$(B)/bench/bench_locks: $(B)/obj/lockkit/cmd/cmd_measure.o | $(B)/bench/peers/bare_redis $(B)/lockkit
$(B)/bench/bench_limit: | $(B)/bench/peers/bare_limit
$(B)/bench/bench_footprint: | $(B)/bench/peers/liballocs.so
$(B)/bench/peers/liballocs.so: tests/bench/peers/allocs.c tests/bench/peers/allocs.h
	$(PRELOADED)
# Peers in other languages run from the build folder. Without node 20 and npm their benchmarks fail.
PEER_FILES := $(patsubst tests/%,$(B)/%,$(wildcard tests/bench/peers/*.py))
$(B)/bench/bench_peers $(B)/bench/bench_locks: | $(PEER_FILES) $(B)/bench/peers/node/installed
$(B)/bench/peers/node/installed: $(wildcard tests/bench/peers/node/*)
	-$(Q).ci/install-node-peers $(@D) $^
$(PEER_FILES): $(B)/bench/peers/%: tests/bench/peers/%
	$(Q)mkdir -p $(@D) && cp $< $@
# The service without one part: a stub is linked before the libraries.
WITHOUT_PARTS := $(patsubst tests/%.c,$(B)/%,$(wildcard tests/bench/without/*.c))
$(B)/bench/bench_parts: | $(WITHOUT_PARTS) $(B)/seckilld
$(WITHOUT_PARTS): $(B)/bench/without/%: $(call obj,app/seckilld.c) $(B)/obj/tests/bench/without/%.o $(L_APP)
	$(LINK)

# Other projects may build lockkit without assertions.
NDEBUG_T := $(patsubst $(B)/%,$(B)/ndebug/%,$(filter $(addprefix %/test_,acquire each hold limits many mutex session \
    conformance_redis conformance_sqlite conformance_memcached conformance_redlock),$(call of,lockkit)))
