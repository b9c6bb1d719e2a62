#include "proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS_MAX = 64, PIECE_MAX = 64 * 1024, TEXT_MAX = 64, LOOK_MS = 1 };

/* Both ends of one connection. */
struct pair {
    int client, server; /* -1: none */
    bool doomed;        /* the next answer is lost */
    bool silent;        /* and so are all after it */
    bool mutable;       /* has sent the text of proxy_mute() */
};

struct proxy {
    pthread_t thread;
    int listener, port, server_port;
    struct pair pairs[PAIRS_MAX];

    pthread_mutex_t mutex; /* guards the rest */
    char lose_text[TEXT_MAX], mute_text[TEXT_MAX];
    int lose_in; /* matching pieces until one is doomed; 0: none */
    enum proxy_then then;
    int lost, muted;
    bool mute, cut, stop;
};

static int listen_on_free_port(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        close(fd);
        return -1;
    }
    *ret_port = ntohs(address.sin_port);
    return fd;
}

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

/* A client's piece: marked before it is passed on, so that its answer finds the mark. */
static bool ask(struct proxy *proxy, struct pair *pair, const char *bytes, size_t n)
{
    pthread_mutex_lock(&proxy->mutex);
    if (proxy->lose_in > 0 && memmem(bytes, n, proxy->lose_text, strlen(proxy->lose_text)) &&
        --proxy->lose_in == 0)
        pair->doomed = true;
    if (proxy->mute_text[0] != '\0' &&
        memmem(bytes, n, proxy->mute_text, strlen(proxy->mute_text)) != NULL)
        pair->mutable = true;
    pthread_mutex_unlock(&proxy->mutex);
    return send_all(pair->server, bytes, n);
}

static bool answer(struct proxy *proxy, struct pair *pair, const char *bytes, size_t n)
{
    pthread_mutex_lock(&proxy->mutex);
    bool muted = proxy->mute && pair->mutable;
    bool doomed = pair->doomed, cuts = doomed && proxy->then == PROXY_CUT;
    proxy->lost += doomed;
    proxy->muted += muted;
    pthread_mutex_unlock(&proxy->mutex);
    pair->doomed = false;
    pair->silent = pair->silent || doomed;
    if (cuts)
        return false;
    return muted || pair->silent || send_all(pair->client, bytes, n);
}

/* Passes on what is there in one direction; false: the connection is over. */
static bool pass(struct proxy *proxy, struct pair *pair, bool from_client)
{
    static _Thread_local char bytes[PIECE_MAX];
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
    for (int i = 0; i < PAIRS_MAX && server >= 0; i++)
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

/* False: to stop. */
static bool obey(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    bool stop = proxy->stop, cut_all = proxy->cut;
    proxy->cut = false;
    pthread_mutex_unlock(&proxy->mutex);
    for (int i = 0; i < PAIRS_MAX && (stop || cut_all); i++)
        if (proxy->pairs[i].client >= 0)
            cut(&proxy->pairs[i]);
    return !stop;
}

static void *run(void *arg)
{
    struct proxy *proxy = arg;
    while (obey(proxy)) {
        struct pollfd fds[1 + 2 * PAIRS_MAX] = {{.fd = proxy->listener, .events = POLLIN}};
        for (int i = 0; i < PAIRS_MAX; i++) { /* poll(2) passes over negative descriptors */
            fds[1 + 2 * i] = (struct pollfd){.fd = proxy->pairs[i].client, .events = POLLIN};
            fds[2 + 2 * i] = (struct pollfd){.fd = proxy->pairs[i].server, .events = POLLIN};
        }
        if (poll(fds, 1 + 2 * PAIRS_MAX, LOOK_MS) <= 0)
            continue;
        for (int i = 0; i < PAIRS_MAX; i++) {
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

struct proxy *proxy_open(int server_port)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);
    if (proxy == NULL)
        return NULL;
    proxy->server_port = server_port;
    pthread_mutex_init(&proxy->mutex, NULL);
    for (int i = 0; i < PAIRS_MAX; i++)
        proxy->pairs[i] = (struct pair){.client = -1, .server = -1};
    proxy->listener = listen_on_free_port(&proxy->port);
    if (proxy->listener >= 0 && pthread_create(&proxy->thread, NULL, run, proxy) == 0)
        return proxy;
    if (proxy->listener >= 0)
        close(proxy->listener);
    free(proxy);
    return NULL;
}

void proxy_close(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->stop = true;
    pthread_mutex_unlock(&proxy->mutex);
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}

int proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

void proxy_lose_answer(struct proxy *proxy, const char *text, int nth, enum proxy_then then)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->then = then;
    strncpy(proxy->lose_text, text, sizeof proxy->lose_text - 1);
    proxy->lose_in = nth;
    pthread_mutex_unlock(&proxy->mutex);
}

int proxy_lost(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    int lost = proxy->lost;
    pthread_mutex_unlock(&proxy->mutex);
    return lost;
}

void proxy_mute(struct proxy *proxy, const char *text, bool on)
{
    pthread_mutex_lock(&proxy->mutex);
    strncpy(proxy->mute_text, text, sizeof proxy->mute_text - 1);
    proxy->mute = on;
    pthread_mutex_unlock(&proxy->mutex);
}

int proxy_muted(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    int muted = proxy->muted;
    pthread_mutex_unlock(&proxy->mutex);
    return muted;
}

void proxy_cut(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->cut = true;
    pthread_mutex_unlock(&proxy->mutex);
}
