/*
 * SQLite's memory, kept by each thread for its next statement.
 *
 * A statement that runs asks for memory for each of its cursors and for each record that it makes,
 * and gives all of it back at its end. SQLite's own remedy, lookaside, is compiled out of Debian's
 * library (OMIT_LOOKASIDE), and its count of all memory in use takes one lock of the whole process
 * each time. So: no count, and what a thread gives back waits for its next statement in a list of
 * its own. All pieces are malloc()'s, so any thread may free them.
 */
#include "db.h"

#include <malloc.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>

enum {
    SMALL_STEP = 64, /* cursors and records */
    SMALL_MAX = 1024,
    LARGE_STEP = 512, /* a page, and what moving cells between pages takes */
    LARGE_MAX = 9216,
    SMALLS = SMALL_MAX / SMALL_STEP,
    SIZES = SMALLS + (LARGE_MAX - SMALL_MAX) / LARGE_STEP,
    KEPT_BYTES_MAX = 128 * 1024 /* by one thread */
};

struct piece {
    struct piece *next;
};

static _Thread_local struct kept {
    struct piece *first[SIZES];
    size_t bytes;
    bool known; /* to the key, so that it is freed when the thread ends */
} kept;

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

/* The size's place in the lists, rounded up; SIZES: too large. */
static size_t place_up(size_t size)
{
    if (size <= SMALL_MAX)
        return size > 0 ? (size - 1) / SMALL_STEP : 0;
    return size <= LARGE_MAX ? SMALLS + (size - SMALL_MAX - 1) / LARGE_STEP : SIZES;
}

static size_t size_at(size_t place)
{
    return place < SMALLS ? (place + 1) * SMALL_STEP
                          : SMALL_MAX + (place - SMALLS + 1) * LARGE_STEP;
}

static size_t rounded(size_t size)
{
    const size_t place = place_up(size);
    return place < SIZES ? size_at(place) : (size + 7) / 8 * 8;
}

static void *take(int size)
{
    const size_t place = place_up((size_t)size);
    struct piece *piece = place < SIZES ? kept.first[place] : NULL;
    if (piece == NULL)
        return malloc(rounded((size_t)size));
    kept.first[place] = piece->next;
    kept.bytes -= size_at(place);
    return piece;
}

static void give_back(void *at)
{
    const size_t usable = malloc_usable_size(at);
    const size_t place = place_up(usable + 1) - 1; /* rounded down: it can hold that for sure */
    struct piece *piece = at;
    if (usable < SMALL_STEP || usable >= LARGE_MAX + LARGE_STEP ||
        kept.bytes + size_at(place) > KEPT_BYTES_MAX ||
        (!kept.known && pthread_setspecific(key, &kept) != 0)) {
        free(at);
        return;
    }
    kept.known = true;
    piece->next = kept.first[place];
    kept.first[place] = piece;
    kept.bytes += size_at(place);
}

static void *resize(void *at, int size)
{
    return (size_t)size <= malloc_usable_size(at) ? at : realloc(at, rounded((size_t)size));
}

static int size_of(void *at)
{
    return (int)malloc_usable_size(at);
}

static int round_up(int size)
{
    return (int)rounded((size_t)size);
}

static int begin(void *arg)
{
    (void)arg;
    return SQLITE_OK;
}

static void end(void *arg)
{
    (void)arg;
}

static void free_kept(void *arg)
{
    struct kept *mine = arg;
    for (size_t i = 0; i < SIZES; i++) {
        for (struct piece *piece = mine->first[i], *next; piece != NULL; piece = next) {
            next = piece->next;
            free(piece);
        }
        mine->first[i] = NULL;
    }
    mine->bytes = 0;
    mine->known = false;
}

static bool key_made;

static void make_key(void)
{
    key_made = pthread_key_create(&key, free_kept) == 0;
}

db_status db_keep_memory(void)
{
    static const sqlite3_mem_methods methods = {.xMalloc = take,
                                                .xFree = give_back,
                                                .xRealloc = resize,
                                                .xSize = size_of,
                                                .xRoundup = round_up,
                                                .xInit = begin,
                                                .xShutdown = end};
    pthread_once(&key_once, make_key);
    const bool done = key_made && sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK &&
                      sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK;
    return done ? DB_OK : DB_INVALID;
}
