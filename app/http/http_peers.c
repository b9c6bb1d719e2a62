/*
 * Who is let in, and who gives way, so that one client cannot hold every connection.
 *
 * An address has so many connections at most (--connections-per-address); beyond, libmicrohttpd
 * closes a new one at once. An IPv6 client has a whole /64, so that counts as one address.
 *
 * libmicrohttpd accepts a few connections more than --connections. While there are more, those give
 * way that lose least: kept connections between two requests, the longest idle first, then requests
 * that have not arrived whole within a second. Answers on their way, streams and requests that wait
 * for the service stay; each has its own limit.
 */
#include "hash_map.h"
#include "http_internal.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_PER_ADDRESS = 1000, /* of an address that is not loopback */
    WHOLE_WITHIN_US = 1000000
};

struct peer {
    uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d; of IPv6 the first 8 bytes */
    int64_t n;           /* its open connections */
    UT_hash_handle hh;
};

/* False: it is not counted. */
static bool address_of(const struct http *http, const struct sockaddr *from, uint8_t ret[16])
{
    struct in6_addr ip = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (from->sa_family == AF_INET)
        memcpy(&ip.s6_addr[12], &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    else if (from->sa_family == AF_INET6)
        ip = ((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
    else
        return false;
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&ip);
    if (http->config->connections_per_address == 0 &&
        (IN6_IS_ADDR_LOOPBACK(&ip) || (mapped && ip.s6_addr[12] == 127)))
        return false;
    memset(ret, 0, 16);
    memcpy(ret, ip.s6_addr, mapped ? 16 : 8);
    return true;
}

static struct peer *find(const struct http *http, const uint8_t address[16])
{
    struct peer *peer;
    HASH_FIND(hh, http->peers, address, 16, peer);
    return peer;
}

enum MHD_Result peers_admit(void *context, const struct sockaddr *from, socklen_t size)
{
    struct http *http = context;
    const int64_t set = http->config->connections_per_address;
    uint8_t address[16];
    (void)size;
    if (!address_of(http, from, address))
        return MHD_YES;
    const struct peer *peer = find(http, address);
    if (peer == NULL || peer->n < (set > 0 ? set : DEFAULT_PER_ADDRESS))
        return MHD_YES;
    http->metrics.refused_connections++;
    return MHD_NO;
}

void peers_enter(struct http *http, struct conn *conn)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(conn->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    uint8_t address[16];
    if (info == NULL || info->client_addr == NULL || !address_of(http, info->client_addr, address))
        return;
    struct peer *peer = find(http, address);
    if (peer == NULL) {
        peer = calloc(1, sizeof(*peer));
        if (peer == NULL)
            return; /* it is not counted */
        memcpy(peer->address, address, sizeof(address));
        HASH_ADD(hh, http->peers, address, sizeof(address), peer);
        if (peer->hh.tbl == NULL) {
            free(peer);
            return;
        }
    }
    peer->n++;
    conn->peer = peer;
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

int64_t peers_give_way(struct http *http, int64_t now_us)
{
    const int64_t read_us = http->limits.read_ms * 1000;
    for (int64_t n = too_many(http); n > 0; n--) {
        struct conn *conn = http->phases[PHASE_IDLE].first;
        if (conn == NULL) {
            conn = http->phases[PHASE_READING].first;
            if (conn == NULL)
                return INT64_MAX;
            const int64_t due_us = conn->due_us - read_us + WHOLE_WITHIN_US;
            if (due_us > now_us)
                return due_us;
            answer_straight(http, conn, PROBLEM_OVERLOADED,
                            "all connections are taken, and this request was not complete within "
                            "a second",
                            now_us - conn->due_us + read_us);
        }
        http->metrics.gave_way++;
        conn_shutdown(http, conn);
    }
    return INT64_MAX;
}
