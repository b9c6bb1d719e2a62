#include "config_keys.h"
#include "listen.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct config, member), sizeof(((struct config *)0)->member)

const struct config_key config_keys[] = {
    {"listen", CONFIG_TEXT, AT(listen), 0, 0, "127.0.0.1:8080", "HOST:PORT; port 0: any free one"},
    {"allow-host", CONFIG_TEXT, AT(allow_host), 0, 0, "",
     "NAME[,NAME...]: names of this service in Host, besides its address and loopback"},
    {"db", CONFIG_TEXT, AT(db), 0, 0, "sqlite:seckill.db",
     "sqlite:FILE or postgres://USER@HOST:PORT/DATABASE"},
    {"db-shared", CONFIG_FLAG, AT(db_shared), 0, 0, "off",
     "the SQLite file is used by several instances (lessons only)"},
    {"sync", CONFIG_SYNC, AT(sync_normal), 0, 0, "full",
     "full: an answered order survives power loss; normal: faster"},
    {"guard", CONFIG_TEXT, AT(guard), 0, 0, "redis-token", "default guard; GET /v1/guards lists"},
    {"redis", CONFIG_TEXT, AT(redis), 0, 0, "redis://127.0.0.1:6379",
     "URL[,URL...]: redis-* guards use the first, redlock all of them"},
    {"redis-replicas", CONFIG_NUMBER, AT(redis_replicas), 0, 100, "0",
     "a redis-* lock counts once so many replicas have it; 0: not asked"},
    {"zookeeper", CONFIG_TEXT, AT(zookeeper), 0, 0, "", "HOST:PORT[,HOST:PORT...]"},
    {"memcached", CONFIG_TEXT, AT(memcached), 0, 0, "", "HOST:PORT or unix:///PATH"},
    {"lock-db", CONFIG_TEXT, AT(lock_db), 0, 0, "",
     "database of the guards sql-unique* and pg-advisory*; default: the store's PostgreSQL, or "
     "FILE-locks beside its SQLite file"},
    {"lease-ms", CONFIG_NUMBER, AT(lease_ms), 10, 86400000, "30000", "lease of a lock"},
    {"wait-ms", CONFIG_NUMBER, AT(wait_ms), 0, 600000, "10000", "wait for a lock at most"},
    {"watchdog", CONFIG_SWITCH, AT(watchdog), 0, 0, "on", "renew leases of live holders"},
    {"max-hold-ms", CONFIG_NUMBER, AT(max_hold_ms), 0, 86400000, "0",
     "the watchdog renews a lock no longer than this; 0: ten leases"},
    {"fence", CONFIG_SWITCH, AT(fence), 0, 0, "on", "refuse writes with a stale fence"},
    {"fence-source", CONFIG_SOURCE, AT(fence_database), 0, 0, "lock",
     "where a lock's fence comes from: its server, if it has one; or the store"},
    {"lock-queue", CONFIG_SWITCH, AT(lock_queue), 0, 0, "on",
     "of the requests that wait for one lock only the first polls; off with --lab"},
    {"lanes", CONFIG_SWITCH, AT(lanes), 0, 0, "on", "one lock per batch instead of per request"},
    {"batch", CONFIG_NUMBER, AT(batch), 1, 4096, "128", "operations per batch of a lane at most"},
    {"lane-turns", CONFIG_NUMBER, AT(lane_turns), 1, 1000, "8",
     "batches of a lane under one lock at most; with --lab 1 unless given"},
    {"workers", CONFIG_NUMBER, AT(workers), 1, 1024, "16", "threads that run operations"},
    {"queue-max", CONFIG_NUMBER, AT(queue_max), 1, 1000000, "20000",
     "operations waiting at most; beyond: 503"},
    {"connections", CONFIG_NUMBER, AT(connections), 1, 1000000, "10000",
     "open connections at most"},
    {"connections-per-address", CONFIG_NUMBER, AT(connections_per_address), 0, 1000000, "0",
     "of them from one address at most; 0: 1000, and any number from loopback"},
    {"instance", CONFIG_TEXT, AT(instance), 0, 0, "", "name of this instance; default HOST-PID"},
    {"lab", CONFIG_FLAG, AT(lab), 0, 0, "off", "pause points; loopback only"},
    {"lab-slip", CONFIG_TEXT, AT(lab_slip), 0, 0, "", "with --lab: make this mistake on purpose"},
    {"lab-clock-ms", CONFIG_NUMBER, AT(lab_clock_ms), -86400000, 86400000, "0",
     "with --lab: the locks' clock is ahead by this much"},
    {"demo", CONFIG_FLAG, AT(demo), 0, 0, "off", "demo routes; loopback only"},
    {"demo-peers", CONFIG_TEXT, AT(demo_peers), 0, 0, "",
     "with --demo: URL[,URL...] of further instances on this store, for sales over all of them"},
    {"tokens", CONFIG_TEXT, AT(tokens), 0, 0, "",
     "file of bearer tokens: lines ROLE NAME SHA256HEX; see 'seckilld token'"},
    {"operator-token-sha256", CONFIG_TEXT, AT(operator_token_sha256), 0, 0, "",
     "hash of one more token, of the operator \"operator\""},
    {"open", CONFIG_FLAG, AT(open), 0, 0, "off",
     "answer without a token, too; loopback only, and there the default without tokens"},
    {"drain-delay-ms", CONFIG_NUMBER, AT(drain_delay_ms), 0, 600000, "0",
     "after SIGTERM so long not ready, but serving, until balancers have noticed"},
    {"key-retention-s", CONFIG_NUMBER, AT(key_retention_s), 0, 3155760000, "604800",
     "the answers of idempotency keys are kept so long; 0: for ever"},
    {"refusals-max", CONFIG_NUMBER, AT(refusals_max), 1, 1000000000, "100000",
     "stored refusals at most; the oldest go first and may be decided anew"},
    {"close-orders-ms", CONFIG_NUMBER, AT(close_orders_ms), 10, 3600000, "5000",
     "period of the task that closes unpaid orders"},
};
const size_t config_n_keys = sizeof(config_keys) / sizeof(config_keys[0]);
static_assert(sizeof(config_keys) / sizeof(config_keys[0]) <= CONFIG_KEYS_MAX, "raise the bound");

static int fail(struct config_draft *draft, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int fail(struct config_draft *draft, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(draft->message, sizeof(draft->message), format, args);
    va_end(args);
    return -1;
}

int config_key_find(const char *name, size_t length)
{
    for (size_t i = 0; i < config_n_keys; i++)
        if (strlen(config_keys[i].name) == length && memcmp(config_keys[i].name, name, length) == 0)
            return (int)i;
    return -1;
}

void config_draft_defaults(struct config_draft *draft)
{
    memset(draft, 0, sizeof(*draft));
    for (size_t i = 0; i < config_n_keys; i++)
        snprintf(draft->value[i], sizeof(draft->value[i]), "%s", config_keys[i].fallback);
    char host[24] = "";
    gethostname(host, sizeof(host) - 1);
    for (char *c = host; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '-')
            *c = '_';
    int instance = config_key_find("instance", strlen("instance"));
    assert(instance >= 0);
    snprintf(draft->value[instance], sizeof(draft->value[instance]), "%.20s-%d", host,
             (int)getpid());
}

int config_draft_set(struct config_draft *draft, size_t key, const char *value,
                     enum config_source source)
{
    assert(key < config_n_keys);
    if (source < draft->source[key])
        return 0;
    size_t room = config_keys[key].type == CONFIG_TEXT ? config_keys[key].size : CONFIG_TEXT_MAX;
    if (strlen(value) >= room)
        return fail(draft, "%s: longer than %zu characters", config_keys[key].name, room - 1);
    snprintf(draft->value[key], sizeof(draft->value[key]), "%s", value);
    draft->source[key] = source;
    return 0;
}

int config_draft_environment(struct config_draft *draft, char **environment)
{
    static const char prefix[] = "SECKILL_", of_clients[] = "SECKILL_TOKEN=";
    for (char **entry = environment; *entry != NULL; entry++) {
        if (strncmp(*entry, prefix, sizeof(prefix) - 1) != 0 ||
            strncmp(*entry, of_clients, sizeof(of_clients) - 1) == 0)
            continue;
        const char *name = *entry + sizeof(prefix) - 1;
        size_t length = strcspn(name, "=");
        char key[64];
        if (length < sizeof(key)) {
            for (size_t i = 0; i < length; i++)
                key[i] = name[i] == '_' ? '-' : (char)tolower((unsigned char)name[i]);
        }
        int found = length < sizeof(key) ? config_key_find(key, length) : -1;
        if (found < 0)
            return fail(draft, "environment: unknown setting %.*s",
                        (int)(length + sizeof(prefix) - 1), *entry);
        if (name[length] == '\0')
            return fail(draft, "environment: %.100s has no value; give %.100s=VALUE", *entry,
                        *entry);
        if (config_draft_set(draft, (size_t)found, name + length + 1, CONFIG_ENVIRONMENT) != 0)
            return -1;
    }
    return 0;
}

/* Reads a bool that is one of two words. */
static int take_word(struct config_draft *draft, size_t key, const char *no, const char *yes,
                     char *at)
{
    const char *value = draft->value[key];
    const bool result = strcmp(value, yes) == 0;
    if (!result && strcmp(value, no) != 0)
        return fail(draft, "%s: \"%s\" is neither %s nor %s", config_keys[key].name, value, yes,
                    no);
    memcpy(at, &result, sizeof(result));
    return 0;
}

static int convert(struct config_draft *draft, size_t key, struct config *config)
{
    const struct config_key *k = &config_keys[key];
    const char *value = draft->value[key];
    char *at = (char *)config + k->offset;

    switch (k->type) {
    case CONFIG_TEXT:
        memcpy(at, value, strlen(value) + 1);
        return 0;
    case CONFIG_NUMBER: {
        char *end;
        errno = 0;
        long long number = strtoll(value, &end, 10);
        if (end == value || *end != '\0' || errno != 0 || number < k->min || number > k->max)
            return fail(draft, "%s: \"%s\" is not a whole number from %lld to %lld", k->name, value,
                        (long long)k->min, (long long)k->max);
        const int64_t result = number;
        memcpy(at, &result, sizeof(result));
        return 0;
    }
    case CONFIG_SYNC:
        return take_word(draft, key, "full", "normal", at);
    case CONFIG_SOURCE:
        return take_word(draft, key, "lock", "database", at);
    case CONFIG_SWITCH:
    case CONFIG_FLAG:
        return take_word(draft, key, "off", "on", at);
    }
    assert(false); /* every type is handled */
    return -1;
}

/* Off loopback nobody is answered without a token. */
static int finish_access(struct config_draft *draft, struct config *config)
{
    struct listen_address address;
    char message[LISTEN_MESSAGE_MAX];
    if (listen_parse(config->listen, &address, message, sizeof(message)) != 0)
        return fail(draft, "listen: %s", message);
    const bool loopback = listen_is_loopback(&address);
    const bool tokens = config->tokens[0] != '\0' || config->operator_token_sha256[0] != '\0';
    if (!loopback && (config->lab || config->demo || config->open))
        return fail(draft,
                    "listen: %s is not a loopback address; --lab, --demo and --open need one",
                    config->listen);
    if (!loopback && !tokens)
        return fail(draft,
                    "listen: %s is not a loopback address; give --tokens, or anybody could move "
                    "stock and money ('seckilld token operator NAME' makes a token)",
                    config->listen);
    config->open = config->open || !tokens;
    if (!config->open && (config->lab || config->demo))
        return fail(draft, "lab, demo: with tokens they need --open as well");
    return 0;
}

int config_draft_finish(struct config_draft *draft, struct config *ret)
{
    struct config config = {0};
    for (size_t i = 0; i < config_n_keys; i++)
        if (convert(draft, i, &config) != 0)
            return -1;
    static const char id[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    if (config.instance[0] == '\0' || config.instance[strspn(config.instance, id)] != '\0')
        return fail(draft, "instance: \"%s\" is not of [A-Za-z0-9_-]", config.instance);
    if (config.guard[0] == '\0' || config.db[0] == '\0')
        return fail(draft, "%s: must not be empty", config.guard[0] == '\0' ? "guard" : "db");

    if (!config.lab && (config.lab_slip[0] != '\0' || config.lab_clock_ms != 0))
        return fail(draft, "lab-slip, lab-clock-ms: only with --lab");
    if (!config.demo && config.demo_peers[0] != '\0')
        return fail(draft, "demo-peers: only with --demo");

    const int turns = config_key_find("lane-turns", strlen("lane-turns"));
    assert(turns >= 0);
    if (config.lab && draft->source[turns] == CONFIG_DEFAULT)
        config.lane_turns = 1; /* so that lessons see each lock */

    if (finish_access(draft, &config) != 0)
        return -1;
    *ret = config;
    return 0;
}

void config_draft_print(const struct config_draft *draft, FILE *out)
{
    char shown[2 * CONFIG_TEXT_MAX];
    for (size_t i = 0; i < config_n_keys; i++) {
        config_mask(draft->value[i], shown, sizeof(shown));
        fprintf(out, "%s = %s\n", config_keys[i].name, shown);
    }
}
