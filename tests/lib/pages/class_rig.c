#include "class_rig.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct class_rig class = {.folder = "/tmp/classroom-XXXXXX"};

/* -- the site and the server ------------------------------------------------------------------- */

static void write_file(const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", class.folder, name);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

int class_make_site(void **state)
{
    char path[600];
    (void)state;
    if (mkdtemp(class.folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/zh", class.folder);
    mkdir(path, 0700);
    write_file("index.html", "the first page");
    write_file("zh/index.html", "the first page, in Chinese");
    write_file("style.css", "body {}");
    write_file("notes.txt", "not a page");
    write_file(".hidden.html", "not a page");
    snprintf(path, sizeof path, "%s/link.html", class.folder);
    return symlink("/etc/passwd", path);
}

int class_remove_site(void **state)
{
    static const char *const names[] = {"index.html",   "zh/index.html", "style.css", "notes.txt",
                                        ".hidden.html", "link.html",     "zh",        ""};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", class.folder, names[i]);
        remove(path);
    }
    return 0;
}

void class_start(const struct classroom_times *times)
{
    char message[CLASSROOM_MESSAGE_MAX];
    if (classroom_open(class.folder, "127.0.0.1:0", times, &class.classroom, message) != 0)
        fail_msg("%s", message);
    assert_int_equal(sscanf(classroom_url(class.classroom), "http://%299[^/]", class.host), 1);
    assert_int_equal(
        sscanf(classroom_presenter_url(class.classroom), "http://%299[^/]", class.presenter), 1);
    class.port = atoi(strrchr(class.host, ':') + 1);
    class.presenter_port = atoi(strrchr(class.presenter, ':') + 1);
    snprintf(class.key, sizeof class.key, "%s",
             strstr(classroom_presenter_url(class.classroom), "key=") + 4);
}

int class_open(void **state)
{
    (void)state;
    class_start(NULL);
    return 0;
}

int class_close(void **state)
{
    (void)state;
    raw_free(&class.reply);
    class.reply = (struct raw_reply){0};
    classroom_close(class.classroom);
    class.classroom = NULL;
    return 0;
}

/* -- requests ---------------------------------------------------------------------------------- */

int class_send(int to, const char *line, const char *at, const char *more, const char *body)
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

int class_ask(int to, const char *line, const char *at, const char *more, const char *body)
{
    int fd = class_send(to, line, at, more, body);
    raw_free(&class.reply);
    raw_read(fd, 0, RAW_WAIT_MS, &class.reply);
    close(fd);
    return class.reply.status;
}

int class_get(const char *path)
{
    char line[200];
    snprintf(line, sizeof line, "GET %s", path);
    return class_ask(class.port, line, class.host, "", NULL);
}

int class_present(const char *path, const char *with, const char *body)
{
    char line[100], more[400];
    snprintf(line, sizeof line, "POST %s", path);
    snprintf(more, sizeof more, "Origin: http://%s\r\n%s%s%s", class.presenter,
             with != NULL ? "X-Class-Key: " : "", with != NULL ? with : "",
             with != NULL ? "\r\n" : "");
    return class_ask(class.presenter_port, line, class.presenter, more, body);
}

int class_move(int step)
{
    char body[120];
    snprintf(body, sizeof body, "{\"page\":\"index.html\",\"scene\":\"late\",\"step\":%d}", step);
    return class_present("/class/position", class.key, body);
}

int class_question(const char *body)
{
    return class_present("/class/question", class.key, body);
}

long long class_number(const char *name)
{
    char field[64];
    snprintf(field, sizeof field, "\"%s\":", name);
    const char *at = class.reply.body != NULL ? strstr(class.reply.body, field) : NULL;
    return at != NULL ? atoll(at + strlen(field)) : -1;
}

void class_cookie(char *ret, size_t size)
{
    char value[200];
    raw_header(&class.reply, "Set-Cookie", value, sizeof value);
    snprintf(ret, size, "Cookie: %.*s\r\n", (int)strcspn(value, ";"), value);
    assert_non_null(strstr(value, "HttpOnly; SameSite=Strict"));
}

int class_vote(const char *cookie, int choice)
{
    char more[400], body[60];
    assert_int_equal(class_ask(class.port, "GET /class/state", class.host, cookie, NULL), 200);
    snprintf(more, sizeof more, "Origin: http://%s\r\n%s", class.host, cookie);
    snprintf(body, sizeof body, "{\"round\":%lld,\"choice\":%d}",
             class_number("round") >= 0 ? class_number("round") : 0, choice);
    return class_ask(class.port, "POST /class/vote", class.host, more, body);
}
