/* Finding out unknown outcomes ends, also when the service hangs. */
#include "run.h"
#include "tests.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUESTS = 20, TIMEOUT_MS = 100, BACKLOG = 64 };

/* A port whose connections the kernel accepts and nobody serves. */
static int listen_deaf(struct load_target *ret)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    char url[64], message[256];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, BACKLOG), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(load_target_parse(url, ret, message, sizeof message), 0);
    return fd;
}

static int count_connections(int listener)
{
    int n = 0;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; n++)
        close(fd);
    return n;
}

TEST_THAT(hanging_service_is_given_up_after_the_first_silence)
{
    static struct options options;
    static struct run run;
    options =
        (struct options){.timeout_ms = TIMEOUT_MS, .n_targets = 1, .buyers = 1, .quiet = true};
    run = (struct run){.workload = &workload_sale, .options = &options};
    int listener = listen_deaf(&options.targets[0]);
    assert_int_equal(tally_init(&run.tally, REQUESTS, 1, 0, 0), 0);
    struct load_answer broken = {.end = LOAD_BROKEN, .body = "", .sent_us = 1};
    for (uint64_t seq = 0; seq < REQUESTS; seq++)
        assert_int_equal(tally_outcome(&run.tally, seq, &broken), -1);
    resolve_unknown(&run);
    assert_int_equal(tally_count(&run.tally, TALLY_UNKNOWN), REQUESTS);
    assert_int_equal(count_connections(listener), 1);
    run_free(&run);
    close(listener);
}
