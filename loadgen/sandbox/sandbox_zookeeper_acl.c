/*
 * The access rights of a new ZooKeeper, over its own protocol: the sandbox is linked without its
 * client library. Source: zookeeper.jute, and the protocol that its clients speak.
 *
 * A record is its length and its fields, big-endian. The requests are sent together and answered in
 * their order: session, login, an ACL for each path, end of the session.
 */
#include "sandbox_process.h"

#include <stdio.h>
#include <string.h>

enum {
    ANSWER_MS = 5000,
    SESSION_MS = 10000,
    QUESTION_MAX = 1024,
    ANSWER_MAX = 1024,
    LOGIN_XID = -4,
    LOGIN = 100, /* kinds of request */
    SET_ACL = 7,
    END_SESSION = -11,
    ALL_RIGHTS = 31,
    ANY_VERSION = -1,
    REPLY_CODE = 12, /* bytes of a reply before its code: number and zxid */
    NUMBER = 4       /* bytes of a number */
};

static const char *const paths[] = {"/zookeeper/quota", "/zookeeper", "/"};
enum { PATHS = sizeof paths / sizeof paths[0] };

struct text {
    unsigned char bytes[QUESTION_MAX];
    size_t length;
};

static void put_number(struct text *text, int32_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        text->bytes[text->length++] = (unsigned char)((uint32_t)number >> shift);
}

static void put_bytes(struct text *text, const void *bytes, size_t length)
{
    put_number(text, (int32_t)length);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void put_words(struct text *text, const char *words)
{
    put_bytes(text, words, strlen(words));
}

/* Appends the record, with its length before it. */
static void put_record(struct text *all, const struct text *record)
{
    put_bytes(all, record->bytes, record->length);
}

static void put_session(struct text *all)
{
    static const unsigned char no_password[16], writes_too[1];
    struct text record = {.length = 0};
    put_number(&record, 0); /* version of the protocol */
    put_number(&record, 0); /* the last change that was seen: none */
    put_number(&record, 0);
    put_number(&record, SESSION_MS);
    put_number(&record, 0); /* a new session */
    put_number(&record, 0);
    put_bytes(&record, no_password, sizeof no_password);
    memcpy(record.bytes + record.length, writes_too, sizeof writes_too);
    record.length += sizeof writes_too;
    put_record(all, &record);
}

static void put_login(struct text *all)
{
    struct text record = {.length = 0};
    char login[128];
    snprintf(login, sizeof login, SANDBOX_USER ":%s", sandbox_password());
    put_number(&record, LOGIN_XID);
    put_number(&record, LOGIN);
    put_number(&record, 0);
    put_words(&record, "digest");
    put_words(&record, login);
    put_record(all, &record);
}

/* To the logins of this session. */
static void put_acl(struct text *all, int number, const char *path)
{
    struct text record = {.length = 0};
    put_number(&record, number);
    put_number(&record, SET_ACL);
    put_words(&record, path);
    put_number(&record, 1);
    put_number(&record, ALL_RIGHTS);
    put_words(&record, "auth");
    put_words(&record, "");
    put_number(&record, ANY_VERSION);
    put_record(all, &record);
}

static void put_end(struct text *all)
{
    struct text record = {.length = 0};
    put_number(&record, PATHS + 1);
    put_number(&record, END_SESSION);
    put_record(all, &record);
}

static int32_t number_at(const unsigned char *bytes)
{
    return (int32_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
                     bytes[3]);
}

/* Are all answers there, and each reply's code 0? The first answer has no code. */
static bool all_done(const unsigned char *answer, size_t length)
{
    size_t at = 0;
    for (int i = 0; i < 2 + PATHS; i++) {
        if (length - at < NUMBER)
            return false;
        int32_t n = number_at(answer + at);
        at += NUMBER;
        if (n < 0 || length - at < (size_t)n)
            return false;
        if (i > 0 && (n < REPLY_CODE + NUMBER || number_at(answer + at + REPLY_CODE) != 0))
            return false;
        at += (size_t)n;
    }
    return true;
}

bool sandbox_zookeeper_close_tree(const struct sandbox_server *server)
{
    struct text question = {.length = 0};
    char answer[ANSWER_MAX];
    put_session(&question);
    put_login(&question);
    for (int i = 0; i < PATHS; i++)
        put_acl(&question, i + 1, paths[i]);
    put_end(&question);
    size_t length = sandbox_converse(server->port, question.bytes, question.length, answer,
                                     sizeof answer, ANSWER_MS);
    return all_done((const unsigned char *)answer, length);
}
