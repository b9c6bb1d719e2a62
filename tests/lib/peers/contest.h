/*
 * Another project's client and lockkit contend for one key.
 *
 * Each side makes turns. In a turn, under the lock, a writer reads a number from a file, waits a
 * moment and writes the next number. A reader reads the number, waits, and reads it again. Only the
 * lock orders the accesses. Every fourth turn is long: a side that the lock does not exclude enters
 * then. The peer makes at least TURNS turns, and goes on until SEEN of them have found the number
 * changed by ours. Our side goes on until the peer ends. So the outcome does not depend on which
 * side is faster or starts first.
 *
 * The peer is a program: PROGRAM CLIENT SERVER NAME FILE TURNS SEEN. It prints two numbers: its
 * turns, and those in which, as a reader, it saw the number change. It ends with status 0.
 */
#ifndef TEST_CONTEST_H
#define TEST_CONTEST_H

#include "lockkit.h"

/* PROGRAM CLIENT of the other side, as words of the shell. Run at the top of the checkout. */
#define CONTEST_PYTHON "/usr/bin/python3 tests/lockkit/peers/peer.py"
#define CONTEST_JAVA                                                                               \
    "java -Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '/usr/share/java/*' "               \
    "tests/lockkit/peers/CuratorPeer.java"
#define CONTEST_NODE "node \"$BUILD\"/peers/redlock_peer.mjs"

struct contest {
    const char *guard;
    const char *peer; /* program and client */
    const char *name; /* the peer's name of the key; NULL: the same as ours */
    lk_mode mode;     /* ours */
    bool peer_reads;
    bool walks_in; /* no exclusion: the peer makes all its turns while we hold */
    bool planted;  /* the peer takes no lock: lost writes must be found */
};

#define CONTEST_KEY "lock:item:1"

/* A test of cmocka on the world's servers; state: a struct contest. It fails if:
 *
 * - a side cannot acquire or does not end
 *
 * - writes were lost or reads torn; with planted: if none were
 *
 * - with walks_in: the peer was excluded
 */
void contest_as_promised(void **state);

#define CONTEST(claim, ...)                                                                        \
    {                                                                                              \
        claim, contest_as_promised, NULL, NULL, &(struct contest)                                  \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

#endif
