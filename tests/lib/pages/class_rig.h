/* A class of loadgen/classroom over real sockets, with the requests of its phones and its
 * presenter. A failed request fails the test. */
#ifndef TEST_CLASS_RIG_H
#define TEST_CLASS_RIG_H

#include "classroom.h"
#include "raw_http.h"
#include "room.h"

enum { CLASS_ADDRESS_MAX = 300 };

extern struct class_rig {
    char folder[32]; /* of the site */
    struct classroom *classroom;
    int port, presenter_port;                                   /* both on 127.0.0.1 */
    char host[CLASS_ADDRESS_MAX], presenter[CLASS_ADDRESS_MAX]; /* HOST:PORT */
    char key[ROOM_ID_MAX];
    struct raw_reply reply; /* the last one */
} class;

/* Around all tests: a site of two pages, with files that are none. */
int class_make_site(void **state);
int class_remove_site(void **state);
/* Around each test. */
int class_open(void **state);
int class_close(void **state);
void class_start(const struct classroom_times *times); /* after class_close() */

/* Sends a request on a new connection, and returns the connection. body NULL: none. more: further
 * headers, each with its CRLF. */
int class_send(int to, const char *line, const char *at, const char *more, const char *body);
/* The same, and reads the answer. Returns its status. */
int class_ask(int to, const char *line, const char *at, const char *more, const char *body);
int class_get(const char *path);

/* A POST as the presenter's page sends it; with NULL: without a key. */
int class_present(const char *path, const char *with, const char *body);
int class_move(int step);
int class_question(const char *body);
#define CLASS_ASK "{\"act\":\"ask\",\"scene\":\"late\",\"choices\":3}"

/* A number of the last reply's JSON: "name":NUMBER. -1: there is none. */
long long class_number(const char *name);
/* The header that sends the last reply's cookie back. */
void class_cookie(char *ret, size_t size);
int class_vote(const char *cookie, int choice);

#endif
