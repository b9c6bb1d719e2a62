/*
 * A class that goes along: serves a recorded site to the phones of a class, tells them where the
 * presenter's page is, and counts votes. It has the site, the position and the votes in memory, and
 * nothing else: no route to the service, no token, no file.
 *
 * Two addresses:
 * - The class's. It reads the site, waits for positions, and votes. No more.
 * - The presenter's, on loopback and a free port. It also takes positions and questions. Each of
 *   these requests must have the key of this run (X-Class-Key). The key is in the printed link
 * only.
 *
 * Refused with 403: a Host that is not the address, an Origin that is not the address's (a POST
 * must have one), a position or question without the key or at the class's address.
 *
 * | bound                                | is                          | beyond it              |
 * |--------------------------------------|-----------------------------|------------------------|
 * | clients                              | ROOM_CLIENTS_MAX            | 503, Retry-After       |
 * | clients of one address               | ROOM_PER_ADDRESS_MAX        | 503, Retry-After       |
 * | connections of the class             | CLASSROOM_CONNECTIONS_MAX   | closed                 |
 * | connections of one address           | CLASSROOM_PER_ADDRESS_MAX   | closed                 |
 * | head of a request                    | CLASSROOM_HEAD_BYTES        | refused by the library |
 * | body of a request                    | CLASSROOM_BODY_MAX          | 413                    |
 * | a connection, which has one request  | CLASSROOM_CONNECTION_MS     | closed                 |
 * | wait for the next position           | CLASSROOM_WAIT_MS           | answered as it is      |
 *
 * One thread serves all. It never waits for one client: who reads slowly or not at all is closed at
 * CLASSROOM_CONNECTION_MS, and the others are served meanwhile.
 */
#ifndef CLASSROOM_H
#define CLASSROOM_H

enum {
    CLASSROOM_CONNECTIONS_MAX = 800,
    CLASSROOM_PER_ADDRESS_MAX = 48,
    CLASSROOM_HEAD_BYTES = 16384, /* and buffers of a connection */
    CLASSROOM_BODY_MAX = 512,
    CLASSROOM_CONNECTION_MS = 60000,
    CLASSROOM_WAIT_MS = 20000,
    CLASSROOM_URL_MAX = 400,
    CLASSROOM_MESSAGE_MAX = 800
};

struct classroom;

struct classroom_times {
    int connection_ms, wait_ms;
};

/* times: NULL: CLASSROOM_CONNECTION_MS, CLASSROOM_WAIT_MS. site: a folder that `loadgen site` has
 * made. listen: as lan_choose(). Starts the thread. Returns 0, or -1 with message. */
int classroom_open(const char *site, const char *listen, const struct classroom_times *times,
                   struct classroom **ret, char message[CLASSROOM_MESSAGE_MAX]);
/* Ends the thread and all connections. NULL is allowed. */
void classroom_close(struct classroom *classroom);

/* "http://192.0.2.2:8090/"; what the QR code has. */
const char *classroom_url(const struct classroom *classroom);
/* "http://127.0.0.1:PORT/index.html?present&key=KEY" */
const char *classroom_presenter_url(const struct classroom *classroom);

#endif
