/*
 * What a class shares: where its presenter is, the question that is asked, and who follows. Memory
 * only; it knows nothing of HTTP. One thread uses a room.
 *
 * A client is a cookie that the room has given to one address. Its vote counts once per question:
 * another vote replaces it. An address has at most ROOM_PER_ADDRESS_MAX clients, so that is what a
 * phone which forgets its cookie can vote. A machine with several IPv6 addresses can do so from
 * each.
 */
#ifndef ROOM_H
#define ROOM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ROOM_CLIENTS_MAX = 500,
    ROOM_PER_ADDRESS_MAX = 8,
    ROOM_HERE_MS = 30000, /* a client that asked within this time follows */
    ROOM_GONE_MS = 60000, /* after this time another client may have its place */
    ROOM_ID_MAX = 33,     /* bytes of a cookie, with its NUL */
    ROOM_ADDRESS_MAX = 48,
    ROOM_PAGE_MAX = 96,
    ROOM_SCENE_MAX = 96,
    ROOM_STEP_MAX = 100000,
    ROOM_CHOICES_MAX = 6
};

struct room_client {
    char id[ROOM_ID_MAX], address[ROOM_ADDRESS_MAX];
    int64_t seen_ms;
    uint32_t round; /* of its vote */
    int choice;
};

struct room {
    uint32_t seq; /* changes with the position and the question; starts anywhere */
    bool shown;   /* else there is no position */
    char page[ROOM_PAGE_MAX], scene[ROOM_SCENE_MAX];
    int step;

    uint32_t round; /* of the question; 0: none was asked */
    bool asked, open;
    char about[ROOM_SCENE_MAX]; /* its scene */
    int choices, counts[ROOM_CHOICES_MAX];

    struct room_client clients[ROOM_CLIENTS_MAX];
    int n_clients;
};

/* 32 hexadecimal digits of the system's random numbers. -1: there are none. */
int room_random_id(char ret[ROOM_ID_MAX]);
/* -1: no random numbers. */
int room_init(struct room *room);

/* The client of this cookie and address; a new one if there is none (id: NULL, or unknown). NULL:
 * the room is full, or the address has its most. now_ms: steady_ms(). */
struct room_client *room_enter(struct room *room, const char *id, const char *address,
                               int64_t now_ms);
int room_followers(const struct room *room, int64_t now_ms);

/* page: "index.html" or "lesson/NAME.html". Returns false, and changes nothing: not a place of a
 * site. */
bool room_move(struct room *room, const char *page, const char *scene, int step);
/* Asks anew: the votes begin at zero. False: no such scene name or number of choices. */
bool room_ask(struct room *room, const char *scene, int choices);
/* No more votes. False: no question is open. */
bool room_close(struct room *room);
/* The question is gone. */
void room_clear(struct room *room);
/* False: that question is not open, or has no such choice. */
bool room_vote(struct room *room, struct room_client *client, uint32_t round, int choice);

/* For the page of a client: position, question, its own vote; the counts once it is closed. NULL:
 * no memory. */
json_t *room_told(const struct room *room, const struct room_client *client);
/* For the presenter: followers, and the counts while it is open. */
json_t *room_overview(const struct room *room, int64_t now_ms);

#endif
