#include "sim_redis.h"
#include "sim_threads.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    PORT = 6379,
    SENTINEL_PORT = 26379,
    WORDS_MAX = 32,
    CHANNELS_MAX = 32,
    SENTINELS = 2,
    SENTINEL_LATE_US = 200000,
    COPY_AGAIN_US = 10000
};

/* What the server has of one connection. */
struct session {
    char *channels[CHANNELS_MAX];
    size_t n_channels;
    int64_t waits_until_us; /* in WAIT: nothing more is read from it */
};

struct sentinel {
    struct sim_host host;
    int master; /* the number of the node that it takes for the master */
};

static struct {
    struct sim_redis nodes[SIM_REDIS_NODES_MAX];
    size_t n;
    struct sentinel sentinels[SENTINELS];
} at;

int64_t sim_redis_now_us(const struct sim_redis *redis)
{
    return sim_wall_begin_us + sim_now_us() + redis->ahead_us;
}

size_t sim_redis_count(void)
{
    return at.n;
}

struct sim_redis *sim_redis_node(size_t i)
{
    return &at.nodes[i];
}

/* -- commands as bytes ------------------------------------------------------------------------ */

/* "$3\r\nGET\r\n". Returns what follows, or NULL: it has not arrived as a whole. */
static char *parse_word(char *from, const char *end, char **ret)
{
    char *line_end = from < end ? memchr(from, '\n', (size_t)(end - from)) : NULL;
    if (!line_end)
        return NULL;
    assert(*from == '$');
    long n = strtol(from + 1, NULL, 10);
    if (end - (line_end + 1) < n + 2)
        return NULL;
    *ret = line_end + 1;
    return *ret + n + 2;
}

/* "WAIT 1 100\r\n" */
static char *parse_inline(char *from, const char *end, int *ret_n, char **words)
{
    char *line_end = memchr(from, '\n', (size_t)(end - from));
    if (!line_end)
        return NULL;
    line_end[-1] = '\0';
    *ret_n = 0;
    for (char *rest, *word = strtok_r(from, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[(*ret_n)++] = word;
    return line_end + 1;
}

/* Returns what follows the command, or NULL: it has not arrived as a whole. */
static char *parse(char *from, const char *end, int *ret_n, char **words)
{
    if (*from != '*')
        return parse_inline(from, end, ret_n, words);
    char *next = memchr(from, '\n', (size_t)(end - from));
    if (!next)
        return NULL;
    long n = strtol(from + 1, NULL, 10);
    assert(n > 0 && n <= WORDS_MAX);
    next++;
    for (long i = 0; i < n && next; i++)
        next = parse_word(next, end, &words[i]);
    for (long i = 0; i < n && next; i++) /* the "\r" behind each */
        words[i][strcspn(words[i], "\r")] = '\0';
    *ret_n = (int)n;
    return next;
}

/* -- connections ------------------------------------------------------------------------------ */

static struct session *session_of(struct sim_wire *wire)
{
    if (!wire->of_host)
        wire->of_host = calloc(1, sizeof(struct session));
    if (!wire->of_host)
        abort();
    return wire->of_host;
}

static void on_end(struct sim_host *host, struct sim_wire *wire)
{
    struct session *session = wire->of_host;
    (void)host;
    for (size_t i = 0; session && i < session->n_channels; i++)
        free(session->channels[i]);
    free(session);
    wire->of_host = NULL;
}

static size_t find_channel(const struct session *session, const char *name)
{
    size_t i = 0;
    while (i < session->n_channels && strcmp(session->channels[i], name) != 0)
        i++;
    return i;
}

static void subscribe(struct sim_wire *wire, const char *verb, const char *name,
                      struct sim_bytes *ret)
{
    struct session *session = session_of(wire);
    bool joins = strcasecmp(verb, "SUBSCRIBE") == 0;
    size_t i = find_channel(session, name);
    if (joins && i == session->n_channels) {
        assert(i < CHANNELS_MAX);
        session->channels[session->n_channels++] = strdup(name);
    } else if (!joins && i < session->n_channels) {
        free(session->channels[i]);
        session->channels[i] = session->channels[--session->n_channels];
    }
    sim_resp_array(ret, 3);
    sim_resp_text(ret, joins ? "subscribe" : "unsubscribe");
    sim_resp_text(ret, name);
    sim_resp_integer(ret, (long long)session->n_channels);
}

struct message {
    const char *channel, *text;
    int heard;
};

static void hear(struct sim_wire *wire, void *arg)
{
    struct message *message = arg;
    const struct session *session = wire->of_host;
    struct sim_bytes answer = {0};
    if (!session || find_channel(session, message->channel) == session->n_channels)
        return;
    sim_resp_array(&answer, 3);
    sim_resp_text(&answer, "message");
    sim_resp_text(&answer, message->channel);
    sim_resp_text(&answer, message->text);
    sim_net_answer(wire, answer.at, answer.n);
    free(answer.at);
    message->heard++;
}

int sim_redis_publish(struct sim_redis *redis, const char *channel, const char *text)
{
    struct message message = {.channel = channel, .text = text};
    sim_net_each(&redis->host, hear, &message);
    return message.heard;
}

/* While it listens to a channel, the answer to PING has another shape. */
static void pong(const struct session *session, struct sim_bytes *ret)
{
    if (session->n_channels == 0) {
        sim_resp_status(ret, "PONG");
        return;
    }
    sim_resp_array(ret, 2);
    sim_resp_text(ret, "pong");
    sim_resp_text(ret, "");
}

static void wait_for_replicas(struct sim_redis *redis, struct sim_wire *wire, const char *ms,
                              struct sim_bytes *ret)
{
    if (!redis->replica || redis->copy_us == 0)
        sim_resp_integer(ret, redis->replica != NULL);
    else
        session_of(wire)->waits_until_us = sim_now_us() + strtoll(ms, NULL, 10) * 1000;
    sim_wake(redis, 1);
}

static void execute(struct sim_redis *redis, struct sim_wire *wire, int n, char **words)
{
    const char *verb = words[0];
    struct sim_bytes answer = {0};
    if (strcasecmp(verb, "SUBSCRIBE") == 0 || strcasecmp(verb, "UNSUBSCRIBE") == 0)
        subscribe(wire, verb, words[1], &answer);
    else if (strcasecmp(verb, "PING") == 0)
        pong(session_of(wire), &answer);
    else if (strcasecmp(verb, "WAIT") == 0)
        wait_for_replicas(redis, wire, words[2], &answer);
    else if (strncasecmp(verb, "EVAL", 4) == 0 || strcasecmp(verb, "SCRIPT") == 0)
        sim_redis_script(redis, n, words, &answer);
    else
        sim_redis_run(redis, n, words, &answer);
    if (answer.n > 0)
        sim_net_answer(wire, answer.at, answer.n);
    free(answer.at);
}

static void on_bytes(struct sim_host *host, struct sim_wire *wire)
{
    struct sim_redis *redis = (struct sim_redis *)host; /* its first member */
    while (wire->asked.n > 0 && session_of(wire)->waits_until_us == 0) {
        char *words[WORDS_MAX], *next;
        int n;
        next = parse(wire->asked.at, wire->asked.at + wire->asked.n, &n, words);
        if (!next)
            return;
        execute(redis, wire, n, words);
        sim_bytes_take(&wire->asked, (size_t)(next - wire->asked.at));
    }
}

/* -- replica: has the state of its master as of a moment ago ---------------------------------- */

void sim_redis_wrote(struct sim_redis *redis)
{
    if (!redis->replica || redis->copy_us > 0)
        return;
    redis->copy_us = sim_now_us() + 100 + (INT64_C(100) << sim_below(10));
    sim_wake(redis, 1);
}

static void end_wait(struct sim_wire *wire, void *arg)
{
    struct sim_redis *redis = (struct sim_redis *)wire->host;
    struct session *session = wire->of_host;
    struct sim_bytes answer = {0};
    const bool *copied = arg;
    if (!session || session->waits_until_us == 0 ||
        (!*copied && sim_now_us() < session->waits_until_us))
        return;
    session->waits_until_us = 0;
    sim_resp_integer(&answer, *copied);
    sim_net_answer(wire, answer.at, answer.n);
    free(answer.at);
    on_bytes(&redis->host, wire);
}

static void *replicate(void *arg)
{
    struct sim_redis *redis = arg;
    for (;;) {
        bool copied = redis->replica && redis->copy_us > 0 && sim_now_us() >= redis->copy_us &&
                      !redis->host.down && !redis->replica->host.down && !redis->host.unreachable &&
                      !redis->replica->host.unreachable;
        if (copied) {
            redis->copy_us = 0;
            sim_redis_copy(&redis->replica->data, &redis->data);
        }
        sim_net_each(&redis->host, end_wait, &copied);
        sim_wait(redis,
                 redis->replica && redis->copy_us > 0 ? sim_now_us() + COPY_AGAIN_US : SIM_FOREVER);
    }
    return NULL;
}

/* -- Sentinels -------------------------------------------------------------------------------- */

/* SENTINEL GET-MASTER-ADDR-BY-NAME name */
static void sentinel_on_bytes(struct sim_host *host, struct sim_wire *wire)
{
    const struct sentinel *sentinel = (struct sentinel *)host;
    char *words[WORDS_MAX], *next;
    int n;
    while (wire->asked.n > 0 &&
           (next = parse(wire->asked.at, wire->asked.at + wire->asked.n, &n, words))) {
        struct sim_bytes answer = {0};
        assert(n == 3 && strcasecmp(words[0], "SENTINEL") == 0);
        sim_resp_array(&answer, 2);
        sim_resp_text(&answer, at.nodes[sentinel->master].name);
        sim_resp_text(&answer, "6379");
        sim_net_answer(wire, answer.at, answer.n);
        free(answer.at);
        sim_bytes_take(&wire->asked, (size_t)(next - wire->asked.at));
    }
}

/* -- faults ----------------------------------------------------------------------------------- */

static void forget(struct sim_redis *redis)
{
    sim_redis_clear(&redis->data);
    sim_redis_forget_scripts(redis);
    redis->copy_us = 0;
}

void sim_redis_kill(struct sim_redis *redis)
{
    redis->host.down = true;
    sim_net_break(&redis->host);
    forget(redis);
}

void sim_redis_restart(struct sim_redis *redis)
{
    redis->host.down = false;
    redis->host.stopped_until_us = 0;
    if (redis->replica)
        sim_redis_wrote(redis); /* the replica of an empty master becomes empty */
}

void sim_redis_reach(struct sim_redis *redis)
{
    redis->host.unreachable = false;
    sim_net_changed();
}

size_t sim_redis_delete(struct sim_redis *redis, const char *part)
{
    size_t deleted = 0;
    for (size_t i = 0; i < redis->data.n;)
        if (strstr(redis->data.keys[i].name, part)) {
            sim_redis_remove(&redis->data, &redis->data.keys[i]);
            deleted++;
        } else {
            i++;
        }
    sim_redis_wrote(redis);
    return deleted;
}

size_t sim_redis_delete_endless(struct sim_redis *redis)
{
    size_t deleted = 0;
    for (size_t i = 0; i < redis->data.n;)
        if (redis->data.keys[i].type == SIM_REDIS_STRING && redis->data.keys[i].until_ms < 0) {
            sim_redis_remove(&redis->data, &redis->data.keys[i]);
            deleted++;
        } else {
            i++;
        }
    sim_redis_wrote(redis);
    return deleted;
}

/* -- failover --------------------------------------------------------------------------------- */

struct sim_redis *sim_redis_master(void)
{
    return &at.nodes[at.sentinels[0].master];
}

void sim_redis_promote(struct sim_redis *next, struct sim_redis *former)
{
    next->is_replica = false;
    former->replica = NULL;
    former->copy_us = 0;
}

void sim_redis_tell_sentinels(const struct sim_redis *master)
{
    const uint32_t first = sim_below(SENTINELS);
    for (uint32_t i = 0; i < SENTINELS; i++) {
        at.sentinels[(first + i) % SENTINELS].master = master->number;
        sim_sleep_us(sim_below(SENTINEL_LATE_US));
    }
}

void sim_redis_demote(struct sim_redis *former, struct sim_redis *next, bool hangs_up)
{
    former->is_replica = true;
    next->replica = former;
    sim_redis_copy(&former->data, &next->data);
    if (hangs_up)
        sim_net_break(&former->host);
    sim_wake(former, 1);
}

/* -- the servers ------------------------------------------------------------------------------ */

void sim_redis_begin(void)
{
    memset(&at, 0, sizeof at);
    sim_net_begin();
}

static void add_node(void)
{
    struct sim_redis *redis = &at.nodes[at.n];
    *redis = (struct sim_redis){.number = (int)at.n};
    snprintf(redis->name, sizeof redis->name, "r%zu", ++at.n);
    redis->host = (struct sim_host){
        .name = redis->name, .port = PORT, .on_bytes = on_bytes, .on_end = on_end};
    sim_net_add(&redis->host);
    sim_spawn(SIM_WORLD, redis->name, replicate, redis);
}

void sim_redis_start(enum sim_redis_kind kind)
{
    static const char *const names[SENTINELS] = {"s1", "s2"};
    const size_t n = kind == SIM_REDIS_FIVE       ? 5
                     : kind == SIM_REDIS_SENTINEL ? 2
                     : kind == SIM_REDIS_ONE      ? 1
                                                  : 0;
    while (at.n < n)
        add_node();
    if (kind != SIM_REDIS_SENTINEL)
        return;
    at.nodes[0].replica = &at.nodes[1];
    at.nodes[1].is_replica = true;
    for (int i = 0; i < SENTINELS; i++) {
        at.sentinels[i].host = (struct sim_host){
            .name = names[i], .port = SENTINEL_PORT, .on_bytes = sentinel_on_bytes};
        sim_net_add(&at.sentinels[i].host);
    }
}

const char *sim_redis_endpoint(enum sim_redis_kind kind)
{
    switch (kind) {
    case SIM_REDIS_FIVE:
        return "redis://r1,redis://r2,redis://r3,redis://r4,redis://r5";
    case SIM_REDIS_SENTINEL:
        return "redis+sentinel://s1,s2/main";
    case SIM_REDIS_NONE:
    case SIM_REDIS_ONE:
        break;
    }
    return "redis://r1";
}
