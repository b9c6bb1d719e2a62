/* The server of a class, over real sockets: what it serves, and what it refuses. For clients that
 * wait, are slow or many see test_classroom_crowd.c. */
#include "class_rig.h"
#include "tests.h"

#include <qrencode.h>
#include <stdio.h>
#include <string.h>

GROUP_FIXTURE(class_make_site, class_remove_site);
TEST_FIXTURE(class_open, class_close);

TEST_THAT(the_pages_of_the_site_are_served_and_nothing_else)
{
    static const char *const absent[] = {
        "/notes.txt",    "/.hidden.html",      "/link.html", "/../../../etc/passwd",
        "/zh",           "//etc/passwd",       "/%2e%2e/x",  "/class/",
        "/class/qr.svg", "/class/overview?key"};
    char value[400];
    assert_int_equal(class_get("/index.html"), 200);
    assert_string_equal(class.reply.body, "the first page");
    raw_header(&class.reply, "Content-Security-Policy", value, sizeof value);
    assert_non_null(strstr(value, "default-src 'none'"));
    raw_header(&class.reply, "Referrer-Policy", value, sizeof value);
    assert_string_equal(value, "no-referrer");
    assert_int_equal(class_get("/style.css"), 200);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_true(class_get(absent[i]) >= 400);
    assert_int_equal(class_ask(class.port, "DELETE /index.html", class.host, "", NULL), 405);
}

TEST_THAT(a_phone_gets_the_first_page_of_its_language)
{
    char value[200];
    assert_int_equal(class_get("/"), 302);
    assert_string_equal(raw_header(&class.reply, "Location", value, sizeof value),
                        "/index.html?follow");
    assert_int_equal(
        class_ask(class.port, "GET /", class.host, "Accept-Language: zh-CN,zh;q=0.9\r\n", NULL),
        302);
    assert_string_equal(raw_header(&class.reply, "Location", value, sizeof value),
                        "/zh/index.html?follow");
}

TEST_THAT(a_foreign_host_or_origin_is_refused)
{
    char more[400];
    assert_int_equal(class_ask(class.port, "GET /index.html", "evil.example", "", NULL), 403);
    assert_int_equal(class_ask(class.port, "GET /class/state", "evil.example", "", NULL), 403);
    assert_int_equal(class_ask(class.port, "GET /class/state", class.presenter, "", NULL), 403);
    assert_int_equal(class_ask(class.port, "GET /class/state", class.host,
                               "Origin: http://evil.example\r\n", NULL),
                     403);
    assert_int_equal(
        class_ask(class.port, "GET /class/state", class.host, "Host: evil.example\r\n", NULL) / 100,
        4);
    snprintf(more, sizeof more, "X-Class-Key: %s\r\nOrigin: http://evil.example\r\n", class.key);
    assert_int_equal(
        class_ask(class.presenter_port, "POST /class/question", class.presenter, more, CLASS_ASK),
        403);
    snprintf(more, sizeof more, "X-Class-Key: %s\r\n", class.key);
    assert_int_equal(
        class_ask(class.presenter_port, "POST /class/question", class.presenter, more, CLASS_ASK),
        403);
    assert_int_equal(
        class_ask(class.port, "POST /class/vote", class.host, "", "{\"round\":1,\"choice\":0}"),
        403);
    assert_int_equal(class_get("/class/state"), 200);
    assert_int_equal(class_number("round"), -1);
}

TEST_THAT(a_position_without_the_key_is_refused)
{
    static const char body[] = "{\"page\":\"index.html\",\"scene\":\"late\",\"step\":3}";
    char other[ROOM_ID_MAX], more[400];
    snprintf(other, sizeof other, "%s", class.key);
    other[5] = other[5] == '0' ? '1' : '0';
    assert_int_equal(class_present("/class/position", NULL, body), 403);
    assert_int_equal(class_present("/class/position", other, body), 403);
    assert_int_equal(class_present("/class/position", "", body), 403);
    /* Nor at the class's address, whoever has the key. */
    snprintf(more, sizeof more, "Origin: http://%s\r\nX-Class-Key: %s\r\n", class.host, class.key);
    assert_int_equal(class_ask(class.port, "POST /class/position", class.host, more, body), 403);
    assert_int_equal(class_ask(class.port, "POST /class/question", class.host, more, CLASS_ASK),
                     403);
    assert_int_equal(class_ask(class.port, "GET /class/overview", class.host, more, NULL), 403);
    assert_int_equal(class_get("/class/state"), 200);
    assert_int_equal(class_number("step"), -1);
    assert_int_equal(class_present("/class/position", class.key, body), 200);
    assert_int_equal(class_get("/class/state"), 200);
    assert_int_equal(class_number("step"), 3);
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
        assert_int_equal(class_present("/class/position", class.key, bodies[i]), 400);
        assert_int_equal(class_question(bodies[i]), 400);
    }
    assert_int_equal(class_question("{\"act\":\"close\"}"), 400);
    memset(large, ' ', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    assert_int_equal(class_present("/class/position", class.key, large), 413);
    assert_int_equal(class_ask(class.port, "GET /index.html", class.host, "", large), 413);
}

TEST_THAT(two_votes_of_one_phone_count_once_and_a_closed_vote_refuses)
{
    char one[200], other[200];
    assert_int_equal(class_get("/class/state"), 200);
    class_cookie(one, sizeof one);
    assert_int_equal(class_get("/class/state"), 200);
    class_cookie(other, sizeof other);
    assert_string_not_equal(one, other);
    assert_int_equal(class_vote(one, 0), 409);
    assert_int_equal(class_question(CLASS_ASK), 200);
    assert_int_equal(class_vote(one, 1), 200);
    assert_int_equal(class_vote(one, 2), 200);
    assert_int_equal(class_vote(other, 0), 200);
    assert_int_equal(class_vote(other, 3), 409);
    assert_int_equal(class_question("{\"act\":\"close\"}"), 200);
    assert_non_null(strstr(class.reply.body, "\"counts\":[1,0,1]"));
    assert_int_equal(class_vote(one, 0), 409);
    assert_int_equal(class_ask(class.port, "GET /class/state", class.host, one, NULL), 200);
    assert_non_null(strstr(class.reply.body, "\"counts\":[1,0,1]"));
    assert_int_equal(class_number("mine"), 2);
}

/* The picture has the modules of the code, and its address is the class's. */
TEST_THAT(the_code_is_that_of_the_class)
{
    char more[100];
    snprintf(more, sizeof more, "X-Class-Key: %s\r\n", class.key);
    assert_int_equal(
        class_ask(class.presenter_port, "GET /class/qr.svg", class.presenter, more, NULL), 200);
    QRcode *code = QRcode_encodeString8bit(classroom_url(class.classroom), 0, QR_ECLEVEL_M);
    assert_non_null(code);
    int dark = 0;
    for (int i = 0; i < code->width * code->width; i++) {
        char module[40];
        snprintf(module, sizeof module, "M%d %dh1v1h-1z", i % code->width + 4, i / code->width + 4);
        assert_true(((code->data[i] & 1) != 0) == (strstr(class.reply.body, module) != NULL));
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
    assert_int_equal(classroom_open(class.folder, class.host, NULL, &other, message), -1);
    assert_non_null(strstr(message, "cannot listen at 127.0.0.1"));
}
