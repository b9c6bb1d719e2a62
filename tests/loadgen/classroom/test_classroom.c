/* The server of a class, over real sockets: what it serves, what it refuses, and that nobody who is
 * slow or silent holds others. */
#include "classroom.h"
#include "process.h"
#include "raw_http.h"
#include "room.h"
#include "tests.h"

#include <qrencode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SILENT = 40, FOLLOWERS = 5, ADDRESS_MAX = 300 };

static char folder[] = "/tmp/classroom-XXXXXX";
static struct classroom *classroom;
static int port, presenter_port;                       /* both on 127.0.0.1 */
static char host[ADDRESS_MAX], presenter[ADDRESS_MAX]; /* HOST:PORT */
static char key[ROOM_ID_MAX];
static struct raw_reply reply;

/* -- the site and the server ------------------------------------------------------------------- */

static void write_file(const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static int make_site(void **state)
{
    char path[600];
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/zh", folder);
    mkdir(path, 0700);
    write_file("index.html", "the first page");
    write_file("zh/index.html", "the first page, in Chinese");
    write_file("style.css", "body {}");
    write_file("notes.txt", "not a page");
    write_file(".hidden.html", "not a page");
    snprintf(path, sizeof path, "%s/link.html", folder);
    return symlink("/etc/passwd", path);
}

static int remove_site(void **state)
{
    static const char *const names[] = {"index.html",   "zh/index.html", "style.css", "notes.txt",
                                        ".hidden.html", "link.html",     "zh",        ""};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    return 0;
}

static void start(const struct classroom_times *times)
{
    char message[CLASSROOM_MESSAGE_MAX];
    if (classroom_open(folder, "127.0.0.1:0", times, &classroom, message) != 0)
        fail_msg("%s", message);
    assert_int_equal(sscanf(classroom_url(classroom), "http://%299[^/]", host), 1);
    assert_int_equal(sscanf(classroom_presenter_url(classroom), "http://%299[^/]", presenter), 1);
    port = atoi(strrchr(host, ':') + 1);
    presenter_port = atoi(strrchr(presenter, ':') + 1);
    snprintf(key, sizeof key, "%s", strstr(classroom_presenter_url(classroom), "key=") + 4);
}

static int open_class(void **state)
{
    (void)state;
    start(NULL);
    return 0;
}

static int close_class(void **state)
{
    (void)state;
    raw_free(&reply);
    reply = (struct raw_reply){0};
    classroom_close(classroom);
    classroom = NULL;
    return 0;
}

/* -- requests ---------------------------------------------------------------------------------- */

/* A connection with this request; body NULL: none. more: further headers, each with its CRLF. */
static int send_request(int to, const char *line, const char *at, const char *more,
                        const char *body)
{
    char text[4096];
    int fd = raw_connect(to);
    assert_true(fd >= 0);
    if (body != NULL)
        snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %zu\r\n\r\n%s",
                 line, at, more, strlen(body), body);
    else
        snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", line, at, more);
    assert_int_equal(raw_send_text(fd, text), 0);
    return fd;
}

static int ask(int to, const char *line, const char *at, const char *more, const char *body)
{
    int fd = send_request(to, line, at, more, body);
    raw_free(&reply);
    raw_read(fd, 0, RAW_WAIT_MS, &reply);
    close(fd);
    return reply.status;
}

static int get(const char *path)
{
    char line[200];
    snprintf(line, sizeof line, "GET %s", path);
    return ask(port, line, host, "", NULL);
}

/* As the presenter's page does; with another key or none, as nobody else may. */
static int present(const char *path, const char *with, const char *body)
{
    char line[100], more[400];
    snprintf(line, sizeof line, "POST %s", path);
    snprintf(more, sizeof more, "Origin: http://%s\r\n%s%s%s", presenter,
             with != NULL ? "X-Class-Key: " : "", with != NULL ? with : "",
             with != NULL ? "\r\n" : "");
    return ask(presenter_port, line, presenter, more, body);
}

static int move(int step)
{
    char body[120];
    snprintf(body, sizeof body, "{\"page\":\"index.html\",\"scene\":\"late\",\"step\":%d}", step);
    return present("/class/position", key, body);
}

static int question(const char *body)
{
    return present("/class/question", key, body);
}

#define ASK "{\"act\":\"ask\",\"scene\":\"late\",\"choices\":3}"

/* A number of the last reply's JSON: "name":NUMBER. -1: there is none. */
static long long number(const char *name)
{
    char field[64];
    snprintf(field, sizeof field, "\"%s\":", name);
    const char *at = reply.body != NULL ? strstr(reply.body, field) : NULL;
    return at != NULL ? atoll(at + strlen(field)) : -1;
}

static void take_cookie(char *ret, size_t size)
{
    char value[200];
    raw_header(&reply, "Set-Cookie", value, sizeof value);
    snprintf(ret, size, "Cookie: %.*s\r\n", (int)strcspn(value, ";"), value);
    assert_non_null(strstr(value, "HttpOnly; SameSite=Strict"));
}

static int vote(const char *cookie, int choice)
{
    char more[400], body[60];
    assert_int_equal(ask(port, "GET /class/state", host, cookie, NULL), 200);
    snprintf(more, sizeof more, "Origin: http://%s\r\n%s", host, cookie);
    snprintf(body, sizeof body, "{\"round\":%lld,\"choice\":%d}",
             number("round") >= 0 ? number("round") : 0, choice);
    return ask(port, "POST /class/vote", host, more, body);
}

/* -- claims ------------------------------------------------------------------------------------ */

GROUP_FIXTURE(make_site, remove_site);
TEST_FIXTURE(open_class, close_class);

TEST_THAT(the_pages_of_the_site_are_served_and_nothing_else)
{
    static const char *const absent[] = {
        "/notes.txt",    "/.hidden.html",      "/link.html", "/../../../etc/passwd",
        "/zh",           "//etc/passwd",       "/%2e%2e/x",  "/class/",
        "/class/qr.svg", "/class/overview?key"};
    char value[400];
    assert_int_equal(get("/index.html"), 200);
    assert_string_equal(reply.body, "the first page");
    raw_header(&reply, "Content-Security-Policy", value, sizeof value);
    assert_non_null(strstr(value, "default-src 'none'"));
    raw_header(&reply, "Referrer-Policy", value, sizeof value);
    assert_string_equal(value, "no-referrer");
    assert_int_equal(get("/style.css"), 200);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_true(get(absent[i]) >= 400);
    assert_int_equal(ask(port, "DELETE /index.html", host, "", NULL), 405);
}

TEST_THAT(a_phone_gets_the_first_page_of_its_language)
{
    char value[200];
    assert_int_equal(get("/"), 302);
    assert_string_equal(raw_header(&reply, "Location", value, sizeof value), "/index.html?follow");
    assert_int_equal(ask(port, "GET /", host, "Accept-Language: zh-CN,zh;q=0.9\r\n", NULL), 302);
    assert_string_equal(raw_header(&reply, "Location", value, sizeof value),
                        "/zh/index.html?follow");
}

TEST_THAT(a_foreign_host_or_origin_is_refused)
{
    char more[400];
    assert_int_equal(ask(port, "GET /index.html", "evil.example", "", NULL), 403);
    assert_int_equal(ask(port, "GET /class/state", "evil.example", "", NULL), 403);
    assert_int_equal(ask(port, "GET /class/state", presenter, "", NULL), 403);
    assert_int_equal(ask(port, "GET /class/state", host, "Origin: http://evil.example\r\n", NULL),
                     403);
    assert_int_equal(ask(port, "GET /class/state", host, "Host: evil.example\r\n", NULL) / 100, 4);
    snprintf(more, sizeof more, "X-Class-Key: %s\r\nOrigin: http://evil.example\r\n", key);
    assert_int_equal(ask(presenter_port, "POST /class/question", presenter, more, ASK), 403);
    snprintf(more, sizeof more, "X-Class-Key: %s\r\n", key);
    assert_int_equal(ask(presenter_port, "POST /class/question", presenter, more, ASK), 403);
    assert_int_equal(ask(port, "POST /class/vote", host, "", "{\"round\":1,\"choice\":0}"), 403);
    assert_int_equal(get("/class/state"), 200);
    assert_int_equal(number("round"), -1);
}

TEST_THAT(a_position_without_the_key_is_refused)
{
    static const char body[] = "{\"page\":\"index.html\",\"scene\":\"late\",\"step\":3}";
    char other[ROOM_ID_MAX], more[400];
    snprintf(other, sizeof other, "%s", key);
    other[5] = other[5] == '0' ? '1' : '0';
    assert_int_equal(present("/class/position", NULL, body), 403);
    assert_int_equal(present("/class/position", other, body), 403);
    assert_int_equal(present("/class/position", "", body), 403);
    /* Nor at the class's address, whoever has the key. */
    snprintf(more, sizeof more, "Origin: http://%s\r\nX-Class-Key: %s\r\n", host, key);
    assert_int_equal(ask(port, "POST /class/position", host, more, body), 403);
    assert_int_equal(ask(port, "POST /class/question", host, more, ASK), 403);
    assert_int_equal(ask(port, "GET /class/overview", host, more, NULL), 403);
    assert_int_equal(get("/class/state"), 200);
    assert_int_equal(number("step"), -1);
    assert_int_equal(present("/class/position", key, body), 200);
    assert_int_equal(get("/class/state"), 200);
    assert_int_equal(number("step"), 3);
}

TEST_THAT(what_is_no_position_or_question_is_refused)
{
    static const char *const bodies[] = {
        "",
        "{",
        "[]",
        "{\"page\":\"index.html\"}",
        "{\"page\":\"//evil.example/\",\"scene\":\"late\",\"step\":3}",
        "{\"page\":\"index.html\",\"scene\":\"late\",\"step\":3,\"more\":1}"};
    char large[CLASSROOM_BODY_MAX + 2];
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        assert_int_equal(present("/class/position", key, bodies[i]), 400);
        assert_int_equal(question(bodies[i]), 400);
    }
    assert_int_equal(question("{\"act\":\"close\"}"), 400);
    memset(large, ' ', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    assert_int_equal(present("/class/position", key, large), 413);
    assert_int_equal(ask(port, "GET /index.html", host, "", large), 413);
}

TEST_THAT(a_waiting_phone_is_told_each_change)
{
    char line[100];
    assert_int_equal(get("/class/state"), 200);
    for (int step = 0; step < 3; step++) {
        snprintf(line, sizeof line, "GET /class/state?after=%lld", number("seq"));
        int fd = send_request(port, line, host, "", NULL);
        assert_int_equal(move(step), 200);
        raw_free(&reply);
        assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 200);
        close(fd);
        assert_int_equal(number("step"), step);
    }
}

TEST_THAT(two_votes_of_one_phone_count_once_and_a_closed_vote_refuses)
{
    char one[200], other[200];
    assert_int_equal(get("/class/state"), 200);
    take_cookie(one, sizeof one);
    assert_int_equal(get("/class/state"), 200);
    take_cookie(other, sizeof other);
    assert_string_not_equal(one, other);
    assert_int_equal(vote(one, 0), 409);
    assert_int_equal(question(ASK), 200);
    assert_int_equal(vote(one, 1), 200);
    assert_int_equal(vote(one, 2), 200);
    assert_int_equal(vote(other, 0), 200);
    assert_int_equal(vote(other, 3), 409);
    assert_int_equal(question("{\"act\":\"close\"}"), 200);
    assert_non_null(strstr(reply.body, "\"counts\":[1,0,1]"));
    assert_int_equal(vote(one, 0), 409);
    assert_int_equal(ask(port, "GET /class/state", host, one, NULL), 200);
    assert_non_null(strstr(reply.body, "\"counts\":[1,0,1]"));
    assert_int_equal(number("mine"), 2);
}

/* Without cookies, each of these is another client of one address. */
TEST_THAT(an_address_has_few_clients)
{
    for (int i = 0; i < ROOM_PER_ADDRESS_MAX; i++)
        assert_int_equal(get("/class/state"), 200);
    assert_int_equal(get("/class/state"), 503);
    assert_int_equal(get("/index.html"), 200);
}

/* Silent, in the middle of a request, and not reading the answer. */
TEST_THAT(who_is_slow_or_silent_does_not_hold_others)
{
    int silent[SILENT], followers[FOLLOWERS];
    char line[100];
    for (int i = 0; i < SILENT; i++) {
        silent[i] = raw_connect(port);
        assert_true(silent[i] >= 0);
        if (i % 3 == 1)
            raw_send_text(silent[i], "GET /index.html HTTP/1.1\r\nHo");
        if (i % 3 == 2)
            raw_send_text(silent[i],
                          "POST /class/vote HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n");
    }
    assert_int_equal(get("/class/state"), 200);
    snprintf(line, sizeof line, "GET /class/state?after=%lld", number("seq"));
    for (int i = 0; i < FOLLOWERS; i++)
        followers[i] = send_request(port, line, host, "", NULL);
    assert_int_equal(move(9), 200);
    for (int i = 0; i < FOLLOWERS; i++) {
        raw_free(&reply);
        assert_int_equal(raw_read(followers[i], 0, RAW_WAIT_MS, &reply), 200);
        close(followers[i]);
    }
    assert_int_equal(number("step"), 9);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
}

TEST_THAT(an_address_has_few_connections)
{
    int fds[CLASSROOM_PER_ADDRESS_MAX + 1];
    for (int i = 0; i <= CLASSROOM_PER_ADDRESS_MAX; i++)
        fds[i] = raw_connect(port);
    assert_int_equal(raw_closed(fds[CLASSROOM_PER_ADDRESS_MAX], RAW_WAIT_MS), 1);
    assert_int_equal(raw_closed(fds[0], 0), 0);
    assert_int_equal(move(1), 200); /* the presenter's address is another one */
    for (int i = 0; i <= CLASSROOM_PER_ADDRESS_MAX; i++)
        close(fds[i]);
}

/* The library would give each of these another 30 s with each byte. */
TEST_THAT(a_connection_that_takes_too_long_is_closed)
{
    close_class(state);
    start(&(struct classroom_times){.connection_ms = 300, .wait_ms = 100});
    int fd = raw_connect(port);
    raw_send_text(fd, "GET /index.html HTTP/1.1\r\nHo");
    assert_int_equal(raw_closed(fd, RAW_WAIT_MS), 1);
    close(fd);
}

TEST_THAT(a_wait_ends_with_the_state_as_it_is)
{
    char line[100];
    close_class(state);
    start(&(struct classroom_times){.connection_ms = CLASSROOM_CONNECTION_MS, .wait_ms = 100});
    assert_int_equal(get("/class/state"), 200);
    const long long seq = number("seq");
    snprintf(line, sizeof line, "GET /class/state?after=%lld", seq);
    assert_int_equal(ask(port, line, host, "", NULL), 200);
    assert_true(number("seq") == seq);
}

TEST_THAT(it_ends_while_phones_wait)
{
    char line[100];
    assert_int_equal(get("/class/state"), 200);
    snprintf(line, sizeof line, "GET /class/state?after=%lld", number("seq"));
    int fd = send_request(port, line, host, "", NULL);
    close_class(state);
    assert_int_equal(raw_closed(fd, RAW_WAIT_MS), 1);
    close(fd);
}

/* The picture has the modules of the code, and its address is the class's. */
TEST_THAT(the_code_is_that_of_the_class)
{
    char more[100];
    snprintf(more, sizeof more, "X-Class-Key: %s\r\n", key);
    assert_int_equal(ask(presenter_port, "GET /class/qr.svg", presenter, more, NULL), 200);
    QRcode *code = QRcode_encodeString8bit(classroom_url(classroom), 0, QR_ECLEVEL_M);
    assert_non_null(code);
    int dark = 0;
    for (int i = 0; i < code->width * code->width; i++) {
        char module[40];
        snprintf(module, sizeof module, "M%d %dh1v1h-1z", i % code->width + 4, i / code->width + 4);
        assert_true(((code->data[i] & 1) != 0) == (strstr(reply.body, module) != NULL));
        dark += code->data[i] & 1;
    }
    assert_true(dark > 100);
    QRcode_free(code);
}

TEST_THAT(a_folder_without_a_site_and_a_taken_port_are_refused_with_a_reason)
{
    char message[CLASSROOM_MESSAGE_MAX];
    struct classroom *other = NULL;
    assert_int_equal(classroom_open("/nowhere", "127.0.0.1:0", NULL, &other, message), -1);
    assert_non_null(strstr(message, "/nowhere"));
    assert_int_equal(classroom_open("/proc/self/fd", "127.0.0.1:0", NULL, &other, message), -1);
    assert_non_null(strstr(message, "make site"));
    assert_int_equal(classroom_open(folder, host, NULL, &other, message), -1);
    assert_non_null(strstr(message, "cannot listen at 127.0.0.1"));
}
