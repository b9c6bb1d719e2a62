/* The proxy's thread: passes bytes and makes the faults. */
#include "sandbox_proxy_flow.h"
#include "steady.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE_MAX = 64 * 1024, LOOK_MS = 1 };

static int dial(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void cut(struct pair *pair)
{
    close(pair->client);
    close(pair->server);
    free(pair->parked[PROXY_TO_SERVER].bytes);
    free(pair->parked[PROXY_TO_CLIENT].bytes);
    *pair = (struct pair){.client = -1, .server = -1};
}

static bool send_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Sends the piece now, or parks it. False: the connection is over. */
static bool forward(struct proxy *proxy, struct pair *pair, enum proxy_way way, const char *bytes,
                    size_t n, bool hold)
{
    pthread_mutex_lock(&proxy->mutex);
    int64_t delay_ms = proxy->delay_ms;
    pthread_mutex_unlock(&proxy->mutex);
    if (!hold && delay_ms == 0)
        return send_all(way == PROXY_TO_SERVER ? pair->server : pair->client, bytes, n);
    struct parked *parked = &pair->parked[way];
    *parked =
        (struct parked){.bytes = malloc(n), .n = n, .due_ms = steady_ms() + delay_ms, .held = hold};
    if (parked->bytes == NULL)
        return false;
    memcpy(parked->bytes, bytes, n);
    return true;
}

/* Sends parked pieces that are due. False: the connection is over. */
static bool send_due(struct pair *pair, bool let_go)
{
    for (enum proxy_way way = PROXY_TO_SERVER; way <= PROXY_TO_CLIENT; way++) {
        struct parked *parked = &pair->parked[way];
        bool due = parked->held ? let_go : steady_ms() >= parked->due_ms;
        if (parked->bytes == NULL || !due)
            continue;
        bool sent = send_all(way == PROXY_TO_SERVER ? pair->server : pair->client, parked->bytes,
                             parked->n);
        free(parked->bytes);
        parked->bytes = NULL;
        if (!sent || pair->client_gone)
            return false;
    }
    return true;
}

/* Handles a client's piece. It is marked before it is sent, so that its answer finds the mark. */
static bool ask(struct proxy *proxy, struct pair *pair, const char *bytes, size_t n)
{
    pthread_mutex_lock(&proxy->mutex);
    bool hit = proxy->lose_in > 0 &&
               memmem(bytes, n, proxy->lose_text, strlen(proxy->lose_text)) != NULL &&
               --proxy->lose_in == 0;
    bool lost = hit && proxy->lose_request;
    pair->loses_answer = pair->loses_answer || (hit && !lost);
    proxy->lost += lost;
    if (proxy->mute_text[0] != '\0' &&
        memmem(bytes, n, proxy->mute_text, strlen(proxy->mute_text)) != NULL)
        pair->may_be_muted = true;
    bool hold = proxy->hold_in > 0 &&
                memmem(bytes, n, proxy->hold_text, strlen(proxy->hold_text)) != NULL &&
                --proxy->hold_in == 0;
    bool drop = proxy->drop[PROXY_TO_SERVER];
    proxy->dropped += drop;
    pthread_mutex_unlock(&proxy->mutex);
    return !lost && (drop || forward(proxy, pair, PROXY_TO_SERVER, bytes, n, hold));
}

static bool answer(struct proxy *proxy, struct pair *pair, const char *bytes, size_t n)
{
    pthread_mutex_lock(&proxy->mutex);
    bool muted = proxy->mute && pair->may_be_muted;
    bool loses_answer = pair->loses_answer, cuts = loses_answer && proxy->then != PROXY_SILENCE;
    bool half = loses_answer && proxy->then == PROXY_HALF;
    bool drop = proxy->drop[PROXY_TO_CLIENT];
    proxy->dropped += drop;
    proxy->lost += loses_answer;
    proxy->muted += muted;
    pthread_mutex_unlock(&proxy->mutex);
    pair->loses_answer = false;
    pair->silent = pair->silent || loses_answer;
    if (half)
        send_all(pair->client, bytes, n / 2);
    if (cuts)
        return false;
    return muted || drop || pair->silent || forward(proxy, pair, PROXY_TO_CLIENT, bytes, n, false);
}

/* Passes on available data in one direction. False: the connection is over. */
static bool pass(struct proxy *proxy, struct pair *pair, bool from_client)
{
    static _Thread_local char bytes[PIECE_MAX];
    if (pair->parked[from_client ? PROXY_TO_SERVER : PROXY_TO_CLIENT].bytes != NULL) {
        pair->client_gone = from_client; /* it has hung up; parked data still arrives */
        return from_client;
    }
    ssize_t n = recv(from_client ? pair->client : pair->server, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n <= 0)
        return false;
    return from_client ? ask(proxy, pair, bytes, (size_t)n) : answer(proxy, pair, bytes, (size_t)n);
}

static void take_connection(struct proxy *proxy)
{
    int on = 1, client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    int server = dial(proxy->server_port);
    for (int i = 0; i < PROXY_PAIRS_MAX && server >= 0; i++)
        if (proxy->pairs[i].client < 0) {
            setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            proxy->pairs[i] = (struct pair){.client = client, .server = server};
            return;
        }
    close(client);
    if (server >= 0)
        close(server);
}

/* False: stop. */
static bool take_orders(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    bool stop = proxy->stop, cut_all = proxy->cut, let_go = proxy->let_go;
    bool hang_up = proxy->hang_up;
    proxy->let_go = proxy->hang_up = false;
    pthread_mutex_unlock(&proxy->mutex);
    int held = 0;
    for (int i = 0; i < PROXY_PAIRS_MAX; i++) {
        struct pair *pair = &proxy->pairs[i];
        if (pair->client >= 0 && (stop || cut_all || !send_due(pair, let_go)))
            cut(pair);
        bool is_held =
            pair->parked[PROXY_TO_SERVER].bytes != NULL && pair->parked[PROXY_TO_SERVER].held;
        if (is_held && hang_up) {
            shutdown(pair->client, SHUT_RDWR);
            pair->client_gone = true;
        }
        held += is_held;
    }
    pthread_mutex_lock(&proxy->mutex);
    proxy->held = held;
    if (cut_all) {
        proxy->cut = false;
        pthread_cond_signal(&proxy->has_cut);
    }
    pthread_mutex_unlock(&proxy->mutex);
    return !stop;
}

/* The events to wait for at one end: only its hang-up while its last piece is parked. */
static struct pollfd look_at(const struct pair *pair, enum proxy_way way)
{
    bool parked = pair->parked[way].bytes != NULL;
    int fd = way == PROXY_TO_SERVER ? pair->client : pair->server;
    return (struct pollfd){.fd = pair->client_gone && way == PROXY_TO_SERVER ? -1 : fd,
                           .events = parked ? POLLRDHUP : POLLIN};
}

void *proxy_flow(void *arg)
{
    struct proxy *proxy = arg;
    while (take_orders(proxy)) {
        struct pollfd fds[1 + 2 * PROXY_PAIRS_MAX] = {{.fd = proxy->listener, .events = POLLIN}};
        for (int i = 0; i < PROXY_PAIRS_MAX; i++) { /* poll(2) ignores negative descriptors */
            fds[1 + 2 * i] = look_at(&proxy->pairs[i], PROXY_TO_SERVER);
            fds[2 + 2 * i] = look_at(&proxy->pairs[i], PROXY_TO_CLIENT);
        }
        if (poll(fds, 1 + 2 * PROXY_PAIRS_MAX, LOOK_MS) <= 0)
            continue;
        for (int i = 0; i < PROXY_PAIRS_MAX; i++) {
            struct pair *pair = &proxy->pairs[i];
            bool stays = fds[1 + 2 * i].revents == 0 || pass(proxy, pair, true);
            if (stays && fds[2 + 2 * i].revents != 0)
                stays = pass(proxy, pair, false);
            if (!stays)
                cut(pair);
        }
        if (fds[0].revents != 0)
            take_connection(proxy);
    }
    return NULL;
}
