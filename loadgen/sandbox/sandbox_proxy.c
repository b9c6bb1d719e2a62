#include "sandbox_proxy.h"
#include "sandbox_proxy_flow.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

struct proxy *proxy_open(int server_port)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);
    if (proxy == NULL)
        return NULL;
    proxy->server_port = server_port;
    pthread_mutex_init(&proxy->mutex, NULL);
    pthread_cond_init(&proxy->has_cut, NULL);
    for (int i = 0; i < PROXY_PAIRS_MAX; i++)
        proxy->pairs[i] = (struct pair){.client = -1, .server = -1};
    proxy->listener = listen_on_free_port(&proxy->port);
    if (proxy->listener >= 0 && pthread_create(&proxy->thread, NULL, proxy_flow, proxy) == 0)
        return proxy;
    if (proxy->listener >= 0)
        close(proxy->listener);
    pthread_cond_destroy(&proxy->has_cut);
    pthread_mutex_destroy(&proxy->mutex);
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
    pthread_cond_destroy(&proxy->has_cut);
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}

int proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

static int count(struct proxy *proxy, const int *counter)
{
    pthread_mutex_lock(&proxy->mutex);
    int n = *counter;
    pthread_mutex_unlock(&proxy->mutex);
    return n;
}

static void lose(struct proxy *proxy, const char *text, int nth, bool request, enum proxy_then then)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->then = then;
    proxy->lose_request = request;
    strncpy(proxy->lose_text, text, sizeof proxy->lose_text - 1);
    proxy->lose_in = nth;
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_lose_answer(struct proxy *proxy, const char *text, int nth, enum proxy_then then)
{
    lose(proxy, text, nth, false, then);
}

void proxy_lose_request(struct proxy *proxy, const char *text, int nth)
{
    lose(proxy, text, nth, true, PROXY_CUT);
}

int proxy_lost(struct proxy *proxy)
{
    return count(proxy, &proxy->lost);
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
    return count(proxy, &proxy->muted);
}

void proxy_hold(struct proxy *proxy, const char *text, int nth)
{
    pthread_mutex_lock(&proxy->mutex);
    strncpy(proxy->hold_text, text, sizeof proxy->hold_text - 1);
    proxy->hold_in = nth;
    pthread_mutex_unlock(&proxy->mutex);
}

int proxy_held(struct proxy *proxy)
{
    return count(proxy, &proxy->held);
}

void proxy_let_go(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->let_go = true;
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_hang_up(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->hang_up = true;
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_delay(struct proxy *proxy, int64_t delay_ms)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->delay_ms = delay_ms;
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_drop(struct proxy *proxy, enum proxy_way way, bool on)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->drop[way] = on;
    pthread_mutex_unlock(&proxy->mutex);
}

int proxy_dropped(struct proxy *proxy)
{
    return count(proxy, &proxy->dropped);
}

void proxy_cut(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->cut = true;
    while (proxy->cut)
        pthread_cond_wait(&proxy->has_cut, &proxy->mutex);
    pthread_mutex_unlock(&proxy->mutex);
}
