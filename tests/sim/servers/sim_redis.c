/* What a Redis server does with the bytes of a connection. */
#include "sim_redis_cluster.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CHANNELS_MAX = 32 };

/* What the server has of one connection. */
struct session {
    char *channels[CHANNELS_MAX];
    size_t n_channels;
    int64_t waits_until_us; /* in WAIT: nothing more is read from it */
    bool asking;            /* ASKING came before */
};

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

char *sim_redis_parse(char *from, const char *end, int *ret_n, char **words)
{
    if (*from != '*')
        return parse_inline(from, end, ret_n, words);
    char *next = memchr(from, '\n', (size_t)(end - from));
    if (!next)
        return NULL;
    long n = strtol(from + 1, NULL, 10);
    assert(n > 0 && n <= SIM_REDIS_WORDS_MAX);
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

void sim_redis_on_end(struct sim_host *host, struct sim_wire *wire)
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
    const int here = message.heard;
    for (size_t i = 0; sim_cluster_is() && i < sim_redis_count(); i++)
        if (sim_cluster_hears(sim_redis_node(i), redis))
            sim_net_each(&sim_redis_node(i)->host, hear, &message);
    if (message.heard > here)
        sim_count(SIM_CLUSTER_HEARD);
    return here;
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

/* What only a node of a cluster answers. False: it runs the command. */
static bool in_cluster(struct sim_redis *redis, struct session *session, int n, char **words,
                       struct sim_bytes *ret)
{
    const bool asked = session->asking;
    session->asking = strcasecmp(words[0], "ASKING") == 0;
    if (session->asking)
        sim_resp_status(ret, "OK");
    else if (strcasecmp(words[0], "CLUSTER") == 0)
        sim_cluster_slots(redis, ret);
    else
        return sim_cluster_redirects(redis, asked, n, words, ret);
    return true;
}

static void execute(struct sim_redis *redis, struct sim_wire *wire, int n, char **words)
{
    const char *verb = words[0];
    struct sim_bytes answer = {0};
    if (sim_cluster_is() && in_cluster(redis, session_of(wire), n, words, &answer)) {
        /* it is answered */
    } else if (strcasecmp(verb, "SUBSCRIBE") == 0 || strcasecmp(verb, "UNSUBSCRIBE") == 0)
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

void sim_redis_on_bytes(struct sim_host *host, struct sim_wire *wire)
{
    struct sim_redis *redis = (struct sim_redis *)host; /* its first member */
    while (wire->asked.n > 0 && session_of(wire)->waits_until_us == 0) {
        char *words[SIM_REDIS_WORDS_MAX], *next;
        int n;
        next = sim_redis_parse(wire->asked.at, wire->asked.at + wire->asked.n, &n, words);
        if (!next)
            return;
        execute(redis, wire, n, words);
        sim_bytes_take(&wire->asked, (size_t)(next - wire->asked.at));
    }
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
    sim_redis_on_bytes(&redis->host, wire);
}

void sim_redis_end_waits(struct sim_redis *redis, bool copied)
{
    sim_net_each(&redis->host, end_wait, &copied);
}
