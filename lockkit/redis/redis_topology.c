#include "redis_topology.h"

#include "number.h"
#include "provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_MAX = 1024, PORT_MAX = 65535 };

static const char sentinel_scheme[] = "redis+sentinel://", cluster_scheme[] = "redis+cluster://";

/* Builds "redis://" + login + host + "/db" for the parser of one node's URL. */
static lk_status parse_piece(const char *login, size_t n_login, const char *host, size_t n_host,
                             const char *db, lk_redis_url *ret, lk_error *error)
{
    char url[PIECE_MAX];
    int length =
        snprintf(url, sizeof url, "redis://%.*s%.*s%s", (int)n_login, login, (int)n_host, host, db);
    if (length < 0 || (size_t)length >= sizeof url)
        return lk_fail(error, LK_INVALID, "the Redis endpoint is too long");
    return lk_redis_url_parse(url, ret, error);
}

/* "host[:port],host[:port]"; a host without a port gets default_port. */
static lk_status parse_seeds(const char *text, size_t length, int default_port,
                             lk_redis_topology *ret, lk_error *error)
{
    for (const char *end = text + length, *next; text <= end; text = next + 1) {
        next = memchr(text, ',', (size_t)(end - text));
        if (next == NULL)
            next = end;
        if (ret->n_seeds == LK_REDIS_SEEDS_MAX)
            return lk_fail(error, LK_INVALID, "more than %d hosts in the Redis endpoint",
                           LK_REDIS_SEEDS_MAX);
        lk_redis_url *seed = &ret->seed[ret->n_seeds++];
        size_t n = (size_t)(next - text);
        lk_status status = parse_piece("", 0, text, n, "", seed, error);
        if (status != LK_OK)
            return status;
        bool has_port = n > 0 && text[n - 1] != ']' && memrchr(text, ':', n) != NULL;
        if (!has_port)
            seed->port = default_port;
    }
    return LK_OK;
}

/* Takes "login@" off the front of the hosts and parses it together with the database. */
static lk_status parse_login(const char **text, size_t *length, const char *db,
                             lk_redis_topology *ret, lk_error *error)
{
    const char *at = memrchr(*text, '@', *length);
    size_t n_login = at == NULL ? 0 : (size_t)(at + 1 - *text);
    lk_status status = parse_piece(*text, n_login, "node", 4, db, &ret->node, error);
    *text += n_login;
    *length -= n_login;
    return status;
}

static lk_status parse_sentinel(const char *text, lk_redis_topology *ret, lk_error *error)
{
    enum { SENTINEL_PORT = 26379 };
    size_t n_hosts = strcspn(text, "/");
    const char *name = text + n_hosts + (text[n_hosts] == '/');
    size_t n_name = strcspn(name, "/");
    if (n_name == 0 || n_name > LK_REDIS_MASTER_MAX)
        return lk_fail(error, LK_INVALID,
                       "the Sentinel endpoint needs the master's name, at most %d bytes: "
                       "redis+sentinel://host:port,host:port/NAME[/db]",
                       LK_REDIS_MASTER_MAX);
    memcpy(ret->master, name, n_name);
    ret->kind = LK_REDIS_SENTINEL;
    lk_status status = parse_login(&text, &n_hosts, name + n_name, ret, error);
    return status == LK_OK ? parse_seeds(text, n_hosts, SENTINEL_PORT, ret, error) : status;
}

static lk_status parse_cluster(const char *text, lk_redis_topology *ret, lk_error *error)
{
    enum { NODE_PORT = 6379 };
    size_t n_hosts = strcspn(text, "/");
    if (text[n_hosts] != '\0')
        return lk_fail(error, LK_INVALID,
                       "a cluster has no databases: redis+cluster://host:port,host:port");
    ret->kind = LK_REDIS_CLUSTER;
    lk_status status = parse_login(&text, &n_hosts, "", ret, error);
    return status == LK_OK ? parse_seeds(text, n_hosts, NODE_PORT, ret, error) : status;
}

static lk_status parse(const char *text, lk_redis_topology *ret, lk_error *error)
{
    if (text != NULL && strncmp(text, sentinel_scheme, sizeof sentinel_scheme - 1) == 0)
        return parse_sentinel(text + sizeof sentinel_scheme - 1, ret, error);
    if (text != NULL && strncmp(text, cluster_scheme, sizeof cluster_scheme - 1) == 0)
        return parse_cluster(text + sizeof cluster_scheme - 1, ret, error);
    return lk_redis_url_parse(text, &ret->node, error);
}

lk_status lk_redis_topology_parse(const char *text, lk_redis_topology *ret, lk_error *error)
{
    memset(ret, 0, sizeof *ret);
    lk_status status = parse(text, ret, error);
    if (status == LK_OK)
        status = lk_redis_url_login(&ret->node, LK_REDIS_LOGIN, error);
    for (size_t i = 0; i < ret->n_seeds && ret->kind == LK_REDIS_SENTINEL && status == LK_OK; i++)
        status = lk_redis_url_login(&ret->seed[i], LK_SENTINEL_LOGIN, error);
    return status;
}

/* -- connecting ------------------------------------------------------------------------------- */

int64_t lk_redis_half_way_us(int64_t deadline_us)
{
    int64_t now_us = lk_monotonic_us();
    return now_us + (deadline_us - now_us) / 2;
}

__attribute__((format(printf, 2, 3))) static lk_status away(lk_redis_connection *connection,
                                                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(connection->message, sizeof connection->message, format, args);
    va_end(args);
    lk_redis_connection_close(connection);
    return LK_UNAVAILABLE;
}

/* Asks one Sentinel for the master's address. Closes the connection. */
static lk_status ask_sentinel(const lk_redis_topology *topology, const lk_redis_url *sentinel,
                              lk_redis_connection *connection, int64_t deadline_us,
                              lk_redis_url *ret)
{
    const char *words[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", topology->master};
    redisReply *reply = NULL;
    lk_status status = lk_redis_connection_open(connection, sentinel, deadline_us);
    if (status == LK_OK)
        status = lk_redis_connection_ask(connection, 3, words, deadline_us, &reply);
    if (status != LK_OK)
        goto out; /* the message is there */
    status = LK_UNAVAILABLE;
    if (reply->type == REDIS_REPLY_ERROR) {
        away(connection, "Sentinel %s:%d answered: %.150s%s", sentinel->host, sentinel->port,
             reply->str, strncmp(reply->str, "NOAUTH", 6) == 0 ? LK_REDIS_LOGIN_ADVICE : "");
    } else if (reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
               reply->element[0]->len > LK_REDIS_HOST_MAX ||
               reply->element[1]->type != REDIS_REPLY_STRING) {
        away(connection, "Sentinel %s:%d knows no master named \"%s\"", sentinel->host,
             sentinel->port, topology->master);
    } else {
        *ret = topology->node;
        memcpy(ret->host, reply->element[0]->str, reply->element[0]->len + 1);
        const char *end = lk_digits(reply->element[1]->str, PORT_MAX, &ret->port);
        bool named = end != NULL && *end == '\0' && ret->port > 0;
        status = named ? LK_OK
                       : away(connection, "Sentinel %s:%d named no port", sentinel->host,
                              sentinel->port);
    }
out:
    freeReplyObject(reply);
    lk_redis_connection_close(connection);
    return status;
}

/* A Sentinel may be out of date, so the node is asked for its role. */
static lk_status open_master(const lk_redis_url *url, lk_redis_connection *connection,
                             int64_t deadline_us)
{
    redisReply *reply = NULL;
    lk_status status = lk_redis_connection_open(connection, url, deadline_us);
    if (status == LK_OK)
        status =
            lk_redis_connection_ask(connection, 1, (const char *[]){"ROLE"}, deadline_us, &reply);
    if (status != LK_OK) {
        lk_redis_connection_close(connection);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        status = away(connection, "Redis refuses ROLE: %.150s", reply->str);
    } else if (reply->elements == 0 || reply->element[0]->type != REDIS_REPLY_STRING ||
               strcmp(reply->element[0]->str, "master") != 0) {
        status = away(connection, "Redis at %s:%d is no master", url->host, url->port);
    }
    freeReplyObject(reply);
    return status;
}

lk_status lk_redis_topology_connect(lk_redis_topology *topology, lk_redis_connection *connection,
                                    int64_t deadline_us)
{
    if (topology->kind == LK_REDIS_NODE)
        return lk_redis_connection_open(connection, &topology->node, deadline_us);
    size_t first = atomic_load(&topology->first);
    for (size_t i = 0; i < topology->n_seeds; i++) {
        size_t which = (first + i) % topology->n_seeds;
        lk_redis_url master;
        if (ask_sentinel(topology, &topology->seed[which], connection,
                         lk_redis_half_way_us(deadline_us), &master) == LK_OK &&
            open_master(&master, connection, lk_redis_half_way_us(deadline_us)) == LK_OK) {
            atomic_store(&topology->first, which);
            return LK_OK;
        }
    }
    return LK_UNAVAILABLE; /* the message of the last one stands */
}
