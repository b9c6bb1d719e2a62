/*
 * Who is let in, and who gives way, so that one client cannot hold every connection.
 *
 * An address has so many connections at most (--connections-per-address); beyond, a new one is
 * closed at once. An IPv6 client has a whole /64, so that counts as one address.
 *
 * While there are more connections than --connections, some give way, in this order: connections
 * that have sent nothing for a second; kept connections between two requests, the longest idle
 * first; requests that have not arrived whole within a second. Answers on their way, streams
 * and requests that wait for the service stay; each has its own limit.
 */
#include "hash_map.h"
#include "http_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_PER_ADDRESS = 1000 /* of an address that is not loopback */
};

struct peer {
    uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d; of IPv6 the first 8 bytes */
    int64_t n;           /* its open connections */
    UT_hash_handle hh;
};

/* False: it is not counted. */
static bool address_of(const struct http *http, const struct conn *conn, uint8_t ret[16])
{
    struct in6_addr ip = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (conn->from.sin6_family == AF_INET)
        memcpy(&ip.s6_addr[12], &((const struct sockaddr_in *)(const void *)&conn->from)->sin_addr,
               4);
    else
        ip = conn->from.sin6_addr;
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&ip);
    memset(ret, 0, 16);
    memcpy(ret, ip.s6_addr, mapped ? 16 : 8);
    return http->config->connections_per_address != 0 ||
           !(IN6_IS_ADDR_LOOPBACK(&ip) || (mapped && ip.s6_addr[12] == 127));
}

/* FNV-1a, G. Fowler, L. C. Noll, K.-P. Vo, from a seed. */
static uint8_t line_of(uint32_t hash, const uint8_t address[16])
{
    for (int i = 0; i < 16; i++)
        hash = (hash ^ address[i]) * 16777619U;
    return (uint8_t)((hash ^ hash >> 16) % DOOR_LINES);
}

bool peers_enter(struct http *http, struct conn *conn)
{
    const int64_t set = http->config->connections_per_address;
    struct peer *peer;
    uint8_t address[16];
    const bool counted = address_of(http, conn, address);
    conn->line = line_of(http->line_seed, address);
    if (!counted)
        return true;
    HASH_FIND(hh, http->peers, address, 16, peer);
    if (peer == NULL) {
        peer = calloc(1, sizeof(*peer));
        if (peer == NULL)
            return true; /* it is not counted */
        memcpy(peer->address, address, sizeof(address));
        HASH_ADD(hh, http->peers, address, sizeof(address), peer);
        if (peer->hh.tbl == NULL) {
            free(peer);
            return true;
        }
    }
    if (peer->n >= (set > 0 ? set : DEFAULT_PER_ADDRESS)) {
        http->metrics.refused_connections++;
        return false;
    }
    peer->n++;
    conn->peer = peer;
    return true;
}

void peers_leave(struct http *http, struct conn *conn)
{
    struct peer *peer = conn->peer;
    if (peer == NULL || --peer->n > 0)
        return;
    HASH_DEL(http->peers, peer);
    free(peer);
}

/* -- giving way ------------------------------------------------------------------------------- */

static int64_t too_many(const struct http *http)
{
    int64_t n = atomic_load(&http->open_conns) - http->config->connections;
    for (const struct conn *conn = http->phases[PHASE_ENDING].first; n > 0 && conn != NULL;
         conn = conn->next)
        n--;
    return n;
}

static void end_incomplete(struct http *http, struct conn *conn)
{
    const int64_t read_us = http->limits.read_ms * 1000;
    char detail[128];
    snprintf(detail, sizeof detail,
             "all connections are taken, and this request was not complete within %lld ms",
             (long long)http->limits.whole_ms);
    answer_straight(http, conn, PROBLEM_OVERLOADED, detail, http_now_us() - conn->due_us + read_us);
    http->metrics.gave_way++;
    conn_shutdown(http, conn);
}

static int64_t whole_by_us(const struct http *http, const struct conn *conn)
{
    return conn->due_us + (http->limits.whole_ms - http->limits.read_ms) * 1000;
}

static struct conn *next_to_go(const struct http *http, int64_t now_us)
{
    struct conn *silent = http->phases[PHASE_SILENT].first, *idle = http->phases[PHASE_IDLE].first,
                *reading = http->phases[PHASE_READING].first;
    if (silent != NULL && whole_by_us(http, silent) <= now_us)
        return silent;
    if (idle != NULL)
        return idle;
    return reading == NULL || (silent != NULL && silent->due_us < reading->due_us) ? silent
                                                                                   : reading;
}

int64_t peers_give_way(struct http *http, int64_t now_us)
{
    long left = conn_ended_max(http);
    for (int64_t n = too_many(http); n > 0; n--) {
        struct conn *conn = next_to_go(http, now_us);
        if (conn == NULL)
            break;
        if (left-- == 0)
            return now_us;
        if (conn->phase == PHASE_IDLE) {
            http->metrics.gave_way++;
            conn_shutdown(http, conn);
            continue;
        }
        if (whole_by_us(http, conn) > now_us)
            return whole_by_us(http, conn);
        end_incomplete(http, conn);
    }
    return INT64_MAX;
}
