/*
 * A proxy before a real PostgreSQL. It parses the server's messages and replaces the nth by another
 * one: a message of an orderly shutdown, or one that no correct server sends. The client must not
 * ask for TLS (sslmode=disable). PostgreSQL documentation, "Message Formats".
 * Threading: one thread uses a liar at a time.
 */
#ifndef PG_LIAR_H
#define PG_LIAR_H

struct pg_liar;

#define PG_LIE_MAP(X)                                                                              \
    X(FATAL_BEFORE)  /* a FATAL error instead of the message, then the connection is closed */     \
    X(HANG_UP)       /* the connection is closed without a message */                              \
    X(ERROR)         /* an error instead of the message; the connection stays open */              \
    X(TWICE)         /* a row comes twice */                                                       \
    X(NO_ROW)        /* a row is left out */                                                       \
    X(NO_COLUMNS)    /* a row without columns */                                                   \
    X(NULL_COLUMNS)  /* a row of NULLs */                                                          \
    X(SHORT_COLUMNS) /* a row whose columns have one byte each */                                  \
    X(OTHER_VALUES)  /* a row whose columns have other bytes of the same number */                 \
    X(COPY_OUT)      /* the server starts to copy a table out */

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

/* Replaces the server's nth message (1: the next) of the kind that the lie concerns. */
void pg_liar_arm(struct pg_liar *liar, enum pg_lie lie, int n);
/* Disarms it. Returns how many lies were told since it was armed, 0 or 1. */
int pg_liar_disarm(struct pg_liar *liar);

#endif
