/*
 * A proxy before a real PostgreSQL that understands the server's messages and puts another one in
 * the place of the nth: what a server says that hangs up in an orderly way, and what none should.
 * The client must not ask for TLS (sslmode=disable). PostgreSQL documentation, "Message Formats".
 * Threading: one thread uses a liar at a time.
 */
#ifndef PG_LIAR_H
#define PG_LIAR_H

struct pg_liar;

#define PG_LIE_MAP(X)                                                                              \
    X(FATAL_BEFORE)  /* a FATAL error, and the end; the message itself does not arrive */          \
    X(HANG_UP)       /* the end, without a word */                                                 \
    X(ERROR)         /* an error in its place, and on it goes */                                   \
    X(TWICE)         /* a row comes twice */                                                       \
    X(NO_ROW)        /* a row is left out */                                                       \
    X(NO_COLUMNS)    /* a row without columns */                                                   \
    X(NULL_COLUMNS)  /* a row of NULLs */                                                          \
    X(SHORT_COLUMNS) /* a row whose columns have one byte each */                                  \
    X(OTHER_VALUES)  /* a row whose columns have other bytes, as many */                           \
    X(COPY_OUT)      /* the server begins to copy a table out */

enum pg_lie {
#define PG_LIE_ENUM(name) PG_LIE_##name,
    PG_LIE_MAP(PG_LIE_ENUM)
#undef PG_LIE_ENUM
        PG_LIES
};

/* Listens on a free loopback port, in a thread of its own. NULL on failure. */
struct pg_liar *pg_liar_open(int server_port);
void pg_liar_close(struct pg_liar *liar);
int pg_liar_port(const struct pg_liar *liar);

/* The nth message (1: the next) from the server, of those the lie is about, becomes the lie. */
void pg_liar_arm(struct pg_liar *liar, enum pg_lie lie, int n);
/* Lies told since it was armed, 0 or 1; none is told from now on. */
int pg_liar_disarm(struct pg_liar *liar);

#endif
