/* A TCP server that is not what its port promises. */
#ifndef TEST_IMPOSTOR_H
#define TEST_IMPOSTOR_H

enum impostor_manner {
    IMPOSTOR_GARBAGE,  /* answers whatever it is sent with a line of another protocol */
    IMPOSTOR_BAD_TYPE, /* answers with well-formed replies that make no sense */
    IMPOSTOR_HUGE,     /* announces an answer of a terabyte */
    IMPOSTOR_ENDLESS,  /* answers with a line that never ends */
    IMPOSTOR_SILENT,   /* accepts and reads, never answers */
    IMPOSTOR_HANGS_UP, /* accepts and closes */
    IMPOSTOR_SAYS      /* answers whatever it is sent with a text, see impostor_say() */
};

struct impostor;
/* Listens on the loopback port, in a thread of its own. NULL on failure. */
struct impostor *impostor_open(int port, enum impostor_manner manner);
/* The same, with an answer of the test's own, which is borrowed. */
struct impostor *impostor_say(int port, const char *answer);
/* Closes all its connections; the port is free again. Returns how many it had accepted. */
int impostor_close(struct impostor *impostor);

#endif
