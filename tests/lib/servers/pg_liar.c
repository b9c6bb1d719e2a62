#include "pg_liar.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A suppression for LeakSanitizer. libpq leaks an unfinished result if a lie makes the sync point
 * follow at once (pqParseInput3). Other tests check the results that we own. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libpq.so";
}

enum { PAIRS_MAX = 32, ROOM = 256 * 1024, HEAD = 5, LOOK_MS = 1 };

/* Both ends of one connection. */
struct pair {
    int client, server; /* -1: none */
    size_t n;
    char bytes[ROOM]; /* received from the server, up to a complete message */
};

struct pg_liar {
    pthread_t thread;
    int listener, port, server_port;
    struct pair *pairs[PAIRS_MAX];

    pthread_mutex_t mutex; /* guards the rest */
    enum pg_lie lie;
    int in, told;
    bool stop;
};

static int open_socket(int port, bool listens, int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    struct sockaddr *any = (struct sockaddr *)&address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && (listens ? bind(fd, any, size) == 0 && listen(fd, 64) == 0 &&
                                        getsockname(fd, any, &size) == 0
                                  : connect(fd, any, size) == 0);
    if (ok && ret_port)
        *ret_port = ntohs(address.sin_port);
    if (!ok && fd >= 0)
        close(fd);
    return ok ? fd : -1;
}

static bool send_all(int fd, const char *bytes, size_t n)
{
    for (ssize_t sent; n > 0; bytes += sent, n -= (size_t)sent)
        if ((sent = send(fd, bytes, n, MSG_NOSIGNAL)) <= 0)
            return false;
    return true;
}

/* -- messages: a letter, the length (of itself and the rest), the rest --------------------------
 */

static uint32_t length_of(const char *message)
{
    uint32_t length;
    memcpy(&length, message + 1, sizeof length);
    return ntohl(length) + 1;
}

static bool send_message(int fd, char letter, const char *rest, size_t n)
{
    char head[HEAD] = {letter};
    uint32_t length = htonl((uint32_t)n + 4);
    memcpy(head + 1, &length, sizeof length);
    return send_all(fd, head, sizeof head) && send_all(fd, rest, n);
}

static bool send_error(int fd, bool fatal)
{
    static const char end[] = "SFATAL\0VFATAL\0C57P01\0Mterminating connection\0",
                      error[] = "SERROR\0VERROR\0CXX000\0Ma lie\0";
    return fatal ? send_message(fd, 'E', end, sizeof end)
                 : send_message(fd, 'E', error, sizeof error);
}

/* A row with as many columns as this one, each of `size` bytes; -1: NULL. */
static bool send_row(int fd, const char *row, int size)
{
    char rest[1024];
    uint16_t columns;
    memcpy(&columns, row + HEAD, sizeof columns);
    size_t n = sizeof columns;
    memcpy(rest, &columns, sizeof columns);
    for (int i = 0; i < ntohs(columns); i++) {
        uint32_t length = htonl((uint32_t)size);
        memcpy(rest + n, &length, sizeof length);
        n += sizeof length;
        if (size > 0)
            rest[n++] = 'x';
    }
    return send_message(fd, 'D', rest, n);
}

static bool send_other_values(int fd, char *row)
{
    uint16_t columns;
    memcpy(&columns, row + HEAD, sizeof columns);
    char *at = row + HEAD + sizeof columns;
    for (int i = 0; i < ntohs(columns); i++) {
        uint32_t length;
        memcpy(&length, at, sizeof length);
        length = ntohl(length);
        at += sizeof length;
        if (length != UINT32_MAX) {
            memset(at, 0x7e, length);
            at += length;
        }
    }
    return send_all(fd, row, length_of(row));
}

/* Sends the lie. False: the connection must be closed. */
static bool tell(int fd, enum pg_lie lie, char *message)
{
    switch (lie) {
    case PG_LIE_FATAL_BEFORE:
        return send_error(fd, true) && false;
    case PG_LIE_HANG_UP:
        return false;
    case PG_LIE_ERROR:
        return send_error(fd, false);
    case PG_LIE_TWICE:
        return send_all(fd, message, length_of(message)) &&
               send_all(fd, message, length_of(message));
    case PG_LIE_NO_ROW:
        return true;
    case PG_LIE_NO_COLUMNS:
        return send_message(fd, 'D', "\0", 2);
    case PG_LIE_NULL_COLUMNS:
        return send_row(fd, message, -1);
    case PG_LIE_SHORT_COLUMNS:
        return send_row(fd, message, 1);
    case PG_LIE_OTHER_VALUES:
        return send_other_values(fd, message);
    case PG_LIE_COPY_OUT:
        return send_message(fd, 'H', "\0\0", 3);
    case PG_LIES:
        break;
    }
    return false;
}

/* Lies about rows replace rows only. An error must not replace a synchronisation point, or the
 * client would wait for one for ever. */
static bool is_about(enum pg_lie lie, char letter)
{
    if (lie >= PG_LIE_TWICE && lie <= PG_LIE_OTHER_VALUES)
        return letter == 'D';
    return lie != PG_LIE_ERROR || letter != 'Z';
}

static bool is_due(struct pg_liar *liar, char letter, enum pg_lie *ret_lie)
{
    pthread_mutex_lock(&liar->mutex);
    bool due = liar->in > 0 && is_about(liar->lie, letter) && --liar->in == 0;
    *ret_lie = liar->lie;
    liar->told += due;
    pthread_mutex_unlock(&liar->mutex);
    return due;
}

/* -- passing on ---------------------------------------------------------------------------------
 */

/* Passes on what the server sends. False: the connection has ended. */
static bool from_server(struct pg_liar *liar, struct pair *pair)
{
    ssize_t n = recv(pair->server, pair->bytes + pair->n, ROOM - pair->n, 0);
    if (n <= 0)
        return false;
    pair->n += (size_t)n;
    size_t at = 0;
    bool goes_on = true;
    while (goes_on && pair->n - at >= HEAD && pair->n - at >= length_of(pair->bytes + at)) {
        char *message = pair->bytes + at;
        enum pg_lie lie;
        at += length_of(message);
        goes_on = is_due(liar, message[0], &lie)
                      ? tell(pair->client, lie, message)
                      : send_all(pair->client, message, length_of(message));
    }
    memmove(pair->bytes, pair->bytes + at, pair->n - at);
    pair->n -= at;
    return goes_on;
}

static bool from_client(const struct pair *pair)
{
    char bytes[4096];
    ssize_t n = recv(pair->client, bytes, sizeof bytes, 0);
    return n > 0 && send_all(pair->server, bytes, (size_t)n);
}

static void end(struct pair **pair)
{
    close((*pair)->client);
    close((*pair)->server);
    free(*pair);
    *pair = NULL;
}

static void take(struct pg_liar *liar)
{
    int client = accept(liar->listener, NULL, NULL), i = 0;
    while (i < PAIRS_MAX && liar->pairs[i])
        i++;
    struct pair *pair = i < PAIRS_MAX ? calloc(1, sizeof *pair) : NULL;
    if (pair)
        *pair =
            (struct pair){.client = client, .server = open_socket(liar->server_port, false, NULL)};
    if (pair && pair->client >= 0 && pair->server >= 0) {
        setsockopt(pair->client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        setsockopt(pair->server, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        liar->pairs[i] = pair;
        return;
    }
    close(client);
    free(pair);
}

static void *run(void *arg)
{
    struct pg_liar *liar = arg;
    for (bool stop = false; !stop;) {
        struct pollfd fds[1 + 2 * PAIRS_MAX] = {{.fd = liar->listener, .events = POLLIN}};
        for (int i = 0; i < PAIRS_MAX; i++)
            for (int side = 0; side < 2; side++)
                fds[1 + 2 * i + side] = (struct pollfd){.fd = !liar->pairs[i] ? -1
                                                              : side ? liar->pairs[i]->server
                                                                     : liar->pairs[i]->client,
                                                        .events = POLLIN};
        poll(fds, 1 + 2 * PAIRS_MAX, LOOK_MS);
        for (int i = 0; i < PAIRS_MAX; i++) {
            if ((fds[1 + 2 * i].revents && !from_client(liar->pairs[i])) ||
                (fds[2 + 2 * i].revents && !from_server(liar, liar->pairs[i])))
                end(&liar->pairs[i]);
        }
        if (fds[0].revents)
            take(liar);
        pthread_mutex_lock(&liar->mutex);
        stop = liar->stop;
        pthread_mutex_unlock(&liar->mutex);
    }
    return NULL;
}

/* -- life ----------------------------------------------------------------------------------------
 */

struct pg_liar *pg_liar_open(int server_port)
{
    struct pg_liar *liar = calloc(1, sizeof *liar);
    if (!liar)
        return NULL;
    liar->server_port = server_port;
    liar->listener = open_socket(0, true, &liar->port);
    pthread_mutex_init(&liar->mutex, NULL);
    if (liar->listener >= 0 && pthread_create(&liar->thread, NULL, run, liar) == 0)
        return liar;
    if (liar->listener >= 0)
        close(liar->listener);
    free(liar);
    return NULL;
}

void pg_liar_close(struct pg_liar *liar)
{
    pthread_mutex_lock(&liar->mutex);
    liar->stop = true;
    pthread_mutex_unlock(&liar->mutex);
    pthread_join(liar->thread, NULL);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (liar->pairs[i])
            end(&liar->pairs[i]);
    close(liar->listener);
    pthread_mutex_destroy(&liar->mutex);
    free(liar);
}

int pg_liar_port(const struct pg_liar *liar)
{
    return liar->port;
}

void pg_liar_arm(struct pg_liar *liar, enum pg_lie lie, int n)
{
    pthread_mutex_lock(&liar->mutex);
    liar->lie = lie;
    liar->in = n;
    liar->told = 0;
    pthread_mutex_unlock(&liar->mutex);
}

int pg_liar_disarm(struct pg_liar *liar)
{
    pthread_mutex_lock(&liar->mutex);
    int told = liar->told;
    liar->in = 0;
    pthread_mutex_unlock(&liar->mutex);
    return told;
}
