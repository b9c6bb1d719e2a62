#include "room.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

int room_random_id(char ret[ROOM_ID_MAX])
{
    unsigned char bytes[(ROOM_ID_MAX - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -1;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int room_init(struct room *room)
{
    memset(room, 0, sizeof *room);
    /* A page that was told a number by an earlier room must not take it for the newest. */
    return getrandom(&room->seq, sizeof room->seq, 0) == (ssize_t)sizeof room->seq ? 0 : -1;
}

/* -- clients ----------------------------------------------------------------------------------- */

static struct room_client *find_client(struct room *room, const char *id, const char *address)
{
    for (int i = 0; id != NULL && i < room->n_clients; i++)
        if (strcmp(room->clients[i].id, id) == 0 && strcmp(room->clients[i].address, address) == 0)
            return &room->clients[i];
    return NULL;
}

static bool is_gone(const struct room_client *client, int64_t now_ms)
{
    return now_ms - client->seen_ms > ROOM_GONE_MS;
}

/* A place that nobody needs: a free one, or that of the longest absent client. */
static struct room_client *find_place(struct room *room, int64_t now_ms)
{
    struct room_client *oldest = &room->clients[0];
    if (room->n_clients < ROOM_CLIENTS_MAX)
        return &room->clients[room->n_clients++];
    for (int i = 1; i < room->n_clients; i++)
        if (room->clients[i].seen_ms < oldest->seen_ms)
            oldest = &room->clients[i];
    return is_gone(oldest, now_ms) ? oldest : NULL;
}

static int clients_of(const struct room *room, const char *address, int64_t now_ms)
{
    int n = 0;
    for (int i = 0; i < room->n_clients; i++)
        n += strcmp(room->clients[i].address, address) == 0 && !is_gone(&room->clients[i], now_ms);
    return n;
}

struct room_client *room_enter(struct room *room, const char *id, const char *address,
                               int64_t now_ms)
{
    struct room_client *client = find_client(room, id, address);
    struct room_client fresh = {.choice = -1};
    if (client == NULL) {
        if (strlen(address) >= sizeof fresh.address || room_random_id(fresh.id) != 0 ||
            clients_of(room, address, now_ms) >= ROOM_PER_ADDRESS_MAX ||
            (client = find_place(room, now_ms)) == NULL)
            return NULL;
        snprintf(fresh.address, sizeof fresh.address, "%s", address);
        *client = fresh;
    }
    client->seen_ms = now_ms;
    return client;
}

int room_followers(const struct room *room, int64_t now_ms)
{
    int n = 0;
    for (int i = 0; i < room->n_clients; i++)
        n += now_ms - room->clients[i].seen_ms <= ROOM_HERE_MS;
    return n;
}

/* -- the position ------------------------------------------------------------------------------ */

static bool is_name(const char *text, size_t length)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    return length > 0 && strspn(text, allowed) >= length && strstr(text, "..") == NULL;
}

static bool is_page(const char *page)
{
    static const char folder[] = "lesson/", end[] = ".html";
    const size_t length = strlen(page);
    if (length >= ROOM_PAGE_MAX)
        return false;
    if (strcmp(page, "index.html") == 0)
        return true;
    return length > strlen(folder) + strlen(end) && strncmp(page, folder, strlen(folder)) == 0 &&
           strcmp(page + length - strlen(end), end) == 0 &&
           is_name(page + strlen(folder), length - strlen(folder));
}

static bool is_scene(const char *scene)
{
    return strlen(scene) < ROOM_SCENE_MAX && is_name(scene, strlen(scene));
}

bool room_move(struct room *room, const char *page, const char *scene, int step)
{
    if (!is_page(page) || !is_scene(scene) || step < 0 || step > ROOM_STEP_MAX)
        return false;
    snprintf(room->page, sizeof room->page, "%s", page);
    snprintf(room->scene, sizeof room->scene, "%s", scene);
    room->step = step;
    room->shown = true;
    room->seq++;
    return true;
}

/* -- the question ------------------------------------------------------------------------------ */

bool room_ask(struct room *room, const char *scene, int choices)
{
    if (!is_scene(scene) || choices < 2 || choices > ROOM_CHOICES_MAX)
        return false;
    snprintf(room->about, sizeof room->about, "%s", scene);
    memset(room->counts, 0, sizeof room->counts);
    room->choices = choices;
    room->asked = room->open = true;
    room->round++;
    room->seq++;
    return true;
}

bool room_close(struct room *room)
{
    if (!room->open)
        return false;
    room->open = false;
    room->seq++;
    return true;
}

void room_clear(struct room *room)
{
    room->asked = room->open = false;
    room->seq++;
}

bool room_vote(struct room *room, struct room_client *client, uint32_t round, int choice)
{
    if (!room->open || round != room->round || choice < 0 || choice >= room->choices)
        return false;
    if (client->round == round)
        room->counts[client->choice]--;
    client->round = round;
    client->choice = choice;
    room->counts[choice]++;
    return true;
}

/* -- as JSON ----------------------------------------------------------------------------------- */

static json_t *counts_json(const struct room *room)
{
    json_t *counts = json_array();
    for (int i = 0; i < room->choices; i++)
        json_array_append_new(counts, json_integer(room->counts[i]));
    return counts;
}

static json_t *question_json(const struct room *room)
{
    return json_pack("{s:I, s:s, s:i, s:b}", "round", (json_int_t)room->round, "scene", room->about,
                     "choices", room->choices, "open", room->open);
}

json_t *room_told(const struct room *room, const struct room_client *client)
{
    json_t *told = json_pack("{s:I}", "seq", (json_int_t)room->seq);
    if (room->shown)
        json_object_set_new(told, "at",
                            json_pack("{s:s, s:s, s:i}", "page", room->page, "scene", room->scene,
                                      "step", room->step));
    if (room->asked) {
        json_t *question = question_json(room);
        if (client->round == room->round)
            json_object_set_new(question, "mine", json_integer(client->choice));
        if (!room->open)
            json_object_set_new(question, "counts", counts_json(room));
        json_object_set_new(told, "question", question);
    }
    return told;
}

json_t *room_overview(const struct room *room, int64_t now_ms)
{
    json_t *overview = json_pack("{s:i}", "followers", room_followers(room, now_ms));
    if (room->asked) {
        json_t *question = question_json(room);
        json_object_set_new(question, "counts", counts_json(room));
        json_object_set_new(overview, "question", question);
    }
    return overview;
}
