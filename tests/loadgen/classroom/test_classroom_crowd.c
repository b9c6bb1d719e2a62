/* The server of a class, over real sockets: clients that wait are told, and a client that is slow
 * or silent, or has many connections, does not hold others. */
#include "class_rig.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <unistd.h>

enum { SILENT = 40, FOLLOWERS = 5 };

GROUP_FIXTURE(class_make_site, class_remove_site);
TEST_FIXTURE(class_open, class_close);

TEST_THAT(a_waiting_phone_is_told_each_change)
{
    char line[100];
    assert_int_equal(class_get("/class/state"), 200);
    for (int step = 0; step < 3; step++) {
        snprintf(line, sizeof line, "GET /class/state?after=%lld", class_number("seq"));
        int fd = class_send(class.port, line, class.host, "", NULL);
        assert_int_equal(class_move(step), 200);
        raw_free(&class.reply);
        assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &class.reply), 200);
        close(fd);
        assert_int_equal(class_number("step"), step);
    }
}

/* Without cookies, each of these is another client of one address. */
TEST_THAT(an_address_has_few_clients)
{
    for (int i = 0; i < ROOM_PER_ADDRESS_MAX; i++)
        assert_int_equal(class_get("/class/state"), 200);
    assert_int_equal(class_get("/class/state"), 503);
    assert_int_equal(class_get("/index.html"), 200);
}

/* Silent, in the middle of a request, and not reading the answer. */
TEST_THAT(who_is_slow_or_silent_does_not_hold_others)
{
    int silent[SILENT], followers[FOLLOWERS];
    char line[100];
    for (int i = 0; i < SILENT; i++) {
        silent[i] = raw_connect(class.port);
        assert_true(silent[i] >= 0);
        if (i % 3 == 1)
            raw_send_text(silent[i], "GET /index.html HTTP/1.1\r\nHo");
        if (i % 3 == 2)
            raw_send_text(silent[i],
                          "POST /class/vote HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
    }
    assert_int_equal(class_get("/class/state"), 200);
    snprintf(line, sizeof line, "GET /class/state?after=%lld", class_number("seq"));
    for (int i = 0; i < FOLLOWERS; i++)
        followers[i] = class_send(class.port, line, class.host, "", NULL);
    assert_int_equal(class_move(9), 200);
    for (int i = 0; i < FOLLOWERS; i++) {
        raw_free(&class.reply);
        assert_int_equal(raw_read(followers[i], 0, RAW_WAIT_MS, &class.reply), 200);
        close(followers[i]);
    }
    assert_int_equal(class_number("step"), 9);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
}

TEST_THAT(an_address_has_few_connections)
{
    int fds[CLASSROOM_PER_ADDRESS_MAX + 1];
    for (int i = 0; i <= CLASSROOM_PER_ADDRESS_MAX; i++)
        fds[i] = raw_connect(class.port);
    assert_int_equal(raw_closed(fds[CLASSROOM_PER_ADDRESS_MAX], RAW_WAIT_MS), 1);
    assert_int_equal(raw_closed(fds[0], 0), 0);
    assert_int_equal(class_move(1), 200); /* the presenter's address is another one */
    for (int i = 0; i <= CLASSROOM_PER_ADDRESS_MAX; i++)
        close(fds[i]);
}

/* The library would give each of these another 30 s with each byte. */
TEST_THAT(a_connection_that_takes_too_long_is_closed)
{
    class_close(state);
    class_start(&(struct classroom_times){.connection_ms = 300, .wait_ms = 100});
    int fd = raw_connect(class.port);
    raw_send_text(fd, "GET /index.html HTTP/1.1\r\nHo");
    assert_int_equal(raw_closed(fd, RAW_WAIT_MS), 1);
    close(fd);
}

TEST_THAT(a_wait_ends_with_the_state_as_it_is)
{
    char line[100];
    class_close(state);
    class_start(
        &(struct classroom_times){.connection_ms = CLASSROOM_CONNECTION_MS, .wait_ms = 100});
    assert_int_equal(class_get("/class/state"), 200);
    const long long seq = class_number("seq");
    snprintf(line, sizeof line, "GET /class/state?after=%lld", seq);
    assert_int_equal(class_ask(class.port, line, class.host, "", NULL), 200);
    assert_true(class_number("seq") == seq);
}

TEST_THAT(it_ends_while_phones_wait)
{
    char line[100];
    assert_int_equal(class_get("/class/state"), 200);
    snprintf(line, sizeof line, "GET /class/state?after=%lld", class_number("seq"));
    int fd = class_send(class.port, line, class.host, "", NULL);
    class_close(state);
    assert_int_equal(raw_closed(fd, RAW_WAIT_MS), 1);
    close(fd);
}
