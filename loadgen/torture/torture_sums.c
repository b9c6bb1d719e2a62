#include "torture_sums.h"
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

int torture_sums_add_file(struct torture_sums *sums, const char *path)
{
    json_error_t error;
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return 0;
    json_t *json = json_load_file(path, 0, &error);
    if (!json_is_object(json)) {
        fprintf(stderr, "torture: %s: line %d: %s\n", path, error.line, error.text);
        json_decref(json);
        return -1;
    }
#define TORTURE_SUM_ADD(name, text) sums->name += json_integer_value(json_object_get(json, #name));
    TORTURE_SUM_MAP(TORTURE_SUM_ADD)
#undef TORTURE_SUM_ADD
    const json_t *faults = json_object_get(json, "faults");
    for (int i = 0; i < TORTURE_FAULTS; i++)
        sums->faults[i] += json_integer_value(json_object_get(faults, torture_faults[i].name));
    uint64_t next = (uint64_t)json_integer_value(json_object_get(json, "next_seed"));
    sums->next_seed = next > sums->next_seed ? next : sums->next_seed;
    json_decref(json);
    return 0;
}

int torture_sums_write(const struct torture_sums *sums, const char *path)
{
    json_t *json = json_object(), *faults = json_object();
#define TORTURE_SUM_SET(name, text) json_object_set_new(json, #name, json_integer(sums->name));
    TORTURE_SUM_MAP(TORTURE_SUM_SET)
#undef TORTURE_SUM_SET
    for (int i = 0; i < TORTURE_FAULTS; i++)
        json_object_set_new(faults, torture_faults[i].name, json_integer(sums->faults[i]));
    json_object_set_new(json, "faults", faults);
    json_object_set_new(json, "next_seed", json_integer((json_int_t)sums->next_seed));
    return output_json("torture", path, json);
}

void torture_sums_print(const struct torture_sums *sums, FILE *out)
{
    fprintf(out, "%s: %" PRId64 " violation%s in %" PRId64 " round%s\n",
            sums->failed_rounds == 0 ? "holds" : "BROKEN", sums->violations,
            sums->violations == 1 ? "" : "s", sums->rounds, sums->rounds == 1 ? "" : "s");
#define TORTURE_SUM_PRINT(name, text) fprintf(out, "%12" PRId64 "  %s\n", sums->name, text);
    TORTURE_SUM_MAP(TORTURE_SUM_PRINT)
#undef TORTURE_SUM_PRINT
    fputs("faults that bit:\n", out);
    for (int i = 0; i < TORTURE_FAULTS; i++)
        fprintf(out, "%12" PRId64 "  %s\n", sums->faults[i], torture_faults[i].name);
}

static void count_locks_kill(struct torture_sums *sums, const struct torture_settings *is)
{
    switch (is->guard->servers) {
    case SERVERS_ZOOKEEPER:
        sums->zookeeper_kills++;
        break;
    case SERVERS_MEMCACHED:
        sums->memcached_kills++;
        break;
    case SERVERS_POSTGRES:
        sums->postgres_kills++;
        break;
    default:
        sums->redis_kills++;
        break;
    }
}

void torture_sums_failovers(struct torture_sums *sums, const struct torture_settings *is, int n)
{
    sums->sentinel_failovers += is->topology == SENTINEL ? n : 0;
    sums->cluster_failovers += is->topology == CLUSTER ? n : 0;
    sums->zookeeper_failovers += is->topology == THREE ? n : 0;
}

void torture_sums_count(struct torture_sums *sums, const struct torture_settings *is,
                        enum torture_fault fault)
{
    sums->bitten++;
    sums->faults[fault]++;
    switch (fault) {
    case TORTURE_KILL:
        sums->service_kills++;
        break;
    case TORTURE_DOUBLE_KILL:
        sums->service_kills++;
        sums->double_kills++;
        break;
    case TORTURE_PAUSE:
        sums->pauses++;
        break;
    case TORTURE_LOCKS_KILL:
    case TORTURE_FAILOVER:
        count_locks_kill(sums, is);
        break;
    case TORTURE_FLUSH:
    case TORTURE_DELETE:
    case TORTURE_EVICT:
        sums->lost_locks++;
        break;
    case TORTURE_STORE_KILL:
    case TORTURE_STORE_IMMEDIATE:
        sums->postgres_kills++;
        break;
    default:
        break;
    }
}

void torture_sums_verdict(struct torture_sums *sums, const struct torture_settings *is,
                          const struct torture_verdict *verdict)
{
    sums->rounds++;
    sums->acknowledged += verdict->decided;
    sums->attempts += verdict->attempts;
    sums->safe_rounds += is->claims_safe;
    sums->trusting_rounds += is->claims_safe && is->guard->a_lock && !torture_is_fenced(is);
    sums->weak_rounds += !is->claims_safe;
    sums->weak_lost += !is->claims_safe && verdict->losses > 0;
    sums->undecided_checks += verdict->undecided_checks;
    sums->violations += verdict->violations;
    sums->failed_rounds += verdict->violations > 0;
}
