/* The HTTP side with a loop that stands when a test wants it, and what the loop saw at the end of
 * its last turn. */
#ifndef DOOR_RIG_H
#define DOOR_RIG_H

#include "http_fixture.h"
#include "http_internal.h"
#include "process.h"
#include "tests.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fixture fixture;
static sem_t may_turn;
static atomic_bool is_to_stand, stands;
static atomic_long overtook_by; /* operations submitted when it had its answer; -1: not yet */
static atomic_long inside;      /* connections that were let in by then */
static atomic_long n_gave_way;

static inline bool any_answered(const struct http_metrics *metrics)
{
    for (size_t route = 0; route <= n_routes; route++)
        for (size_t status = 0; status < METRICS_STATUS_MAX; status++)
            if (metrics->requests[route][status] > 0)
                return true;
    return false;
}

/* Called at the end of each turn, by the loop. */
static inline void look(void)
{
    atomic_store(&n_gave_way, (long)fixture.http->metrics.gave_way);
    if (atomic_load(&overtook_by) < 0 && any_answered(&fixture.http->metrics)) {
        atomic_store(&inside, atomic_load(&fixture.http->open_conns) - fixture.http->door.n);
        atomic_store(&overtook_by, stub_submitted(fixture.service));
    }
    if (!atomic_load(&is_to_stand))
        return;
    atomic_store(&stands, true);
    sem_wait(&may_turn);
    atomic_store(&stands, false);
}

static inline int start_with(int64_t connections, void **state)
{
    static const struct extra_routes extra = {.tick = look};
    fixture.extra = &extra;
    fixture.config.connections = connections;
    sem_init(&may_turn, 0, 0);
    atomic_store(&is_to_stand, false);
    atomic_store(&stands, false);
    atomic_store(&overtook_by, -1);
    fixture_start(&fixture);
    stub_mode(fixture.service, STUB_HOLD);
    *state = &fixture;
    return 0;
}

static inline bool loop_stands(void *arg)
{
    (void)arg;
    return atomic_load(&stands);
}

/* Returns a connection that has woken the loop for its last turn. */
static inline int stop_the_loop(void)
{
    atomic_store(&is_to_stand, true);
    const int waker = raw_connect(fixture.port);
    assert_true(wait_until(loop_stands, NULL, RAW_WAIT_MS));
    fixture.http->line_seed = 1; /* the line of 127.0.0.1 is between those of .2 and .3 */
    return waker;
}

static inline void let_it_turn(void)
{
    atomic_store(&is_to_stand, false);
    sem_post(&may_turn);
}

static inline int connect_from(const char *from)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                        .sin_port = htons((uint16_t)fixture.port)};
    struct sockaddr_in mine = {.sin_family = AF_INET};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inet_pton(AF_INET, from, &mine.sin_addr), 1);
    assert_int_equal(bind(fd, (const struct sockaddr *)&mine, sizeof(mine)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static inline void answered(int fd, int status)
{
    struct raw_reply reply;
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), status);
    raw_free(&reply);
    close(fd);
}

#endif
