/* A TCP server that does not speak the protocol that clients expect at its port. */
#ifndef TEST_IMPOSTOR_H
#define TEST_IMPOSTOR_H

enum impostor_manner {
    IMPOSTOR_GARBAGE,  /* answers everything with a line of another protocol */
    IMPOSTOR_BAD_TYPE, /* answers with well-formed replies that make no sense */
    IMPOSTOR_HUGE,     /* announces an answer of a terabyte */
    IMPOSTOR_ENDLESS,  /* answers with a line that never ends */
    IMPOSTOR_SILENT,   /* accepts and reads, never answers */
    IMPOSTOR_HANGS_UP, /* accepts and closes */
    IMPOSTOR_SAYS      /* answers everything with the text of impostor_say() */
};

struct impostor;
/* Listens on the loopback port, in a thread of its own. NULL on failure. */
struct impostor *impostor_open(int port, enum impostor_manner manner);
/* The same with IMPOSTOR_SAYS and this answer (borrowed). */
struct impostor *impostor_say(int port, const char *answer);
/* Closes all its connections and frees the port. Returns how many connections it had accepted. */
int impostor_close(struct impostor *impostor);

#endif
