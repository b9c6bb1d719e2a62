/* What is asked, by whom, and the answer. */
#include "classroom_http.h"
#include "steady.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define COOKIE "class"

/* The pages ask for nothing from elsewhere, and stand in frames of their own site only. */
static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
     "frame-ancestors 'self'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Connection", "close"},
};

/* Frees the response. */
static enum MHD_Result send_it(struct visit *visit, unsigned status, const char *type,
                               struct MHD_Response *response)
{
    if (response == NULL)
        return MHD_NO;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    const enum MHD_Result queued = MHD_queue_response(visit->connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

static struct MHD_Response *copied(const char *text)
{
    return MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result send_text(struct visit *visit, unsigned status, const char *text)
{
    struct MHD_Response *response = copied(text);
    if (response != NULL && status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, "Retry-After", "5");
    return send_it(visit, status, "text/plain; charset=utf-8", response);
}

/* Frees json. cookie: a client's; NULL: none. */
static enum MHD_Result send_json(struct visit *visit, json_t *json, const char *cookie)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    struct MHD_Response *response = text != NULL ? copied(text) : NULL;
    if (response != NULL && cookie != NULL) {
        char value[ROOM_ID_MAX + 64];
        snprintf(value, sizeof value, COOKIE "=%s; Path=/class/; HttpOnly; SameSite=Strict",
                 cookie);
        MHD_add_response_header(response, "Set-Cookie", value);
    }
    free(text);
    json_decref(json);
    return send_it(visit, MHD_HTTP_OK, "application/json", response);
}

/* -- who asks ---------------------------------------------------------------------------------- */

struct one_header {
    const char *name, *value;
    int count;
};

static enum MHD_Result look_at(void *cls, enum MHD_ValueKind kind, const char *name,
                               const char *value)
{
    struct one_header *header = cls;
    (void)kind;
    if (strcasecmp(name, header->name) == 0) {
        header->value = value;
        header->count++;
    }
    return MHD_YES;
}

/* NULL: there is none. "": there are several, or it is empty. */
static const char *header_of(const struct visit *visit, const char *name)
{
    struct one_header header = {.name = name};
    MHD_get_connection_values(visit->connection, MHD_HEADER_KIND, look_at, &header);
    if (header.count == 0)
        return NULL;
    return header.count == 1 && header.value != NULL ? header.value : "";
}

static bool is_own_host(const struct visit *visit, const char *host)
{
    const struct lan_address *address = &visit->listener->address;
    char own[LAN_HOST_MAX + 16];
    lan_text(address, false, own, sizeof own);
    if (strcasecmp(host, own) == 0)
        return true;
    lan_text(address, true, own, sizeof own);
    return address->port == 80 && strcasecmp(host, own) == 0;
}

/* A page of another address, also one whose name was bound anew to ours, gets and moves nothing. */
static bool is_own_page(const struct visit *visit, bool must_have_origin)
{
    static const char scheme[] = "http://";
    const char *host = header_of(visit, "Host"), *origin = header_of(visit, "Origin");
    if (host == NULL || !is_own_host(visit, host))
        return false;
    if (origin == NULL)
        return !must_have_origin;
    return strncmp(origin, scheme, strlen(scheme)) == 0 &&
           strcasecmp(origin + strlen(scheme), host) == 0;
}

/* Takes as long whatever the key is. */
static bool has_key(const struct visit *visit)
{
    const char *given = header_of(visit, "X-Class-Key"), *key = visit->listener->classroom->key;
    unsigned differ = 0;
    if (given == NULL || strlen(given) != strlen(key))
        return false;
    for (size_t i = 0; key[i] != '\0'; i++)
        differ |= (unsigned char)(given[i] ^ key[i]);
    return differ == 0;
}

/* NULL: there is no room for it. */
static struct room_client *client_of(const struct visit *visit)
{
    char address[NI_MAXHOST] = "";
    const char *id = visit->has_waited
                         ? visit->id
                         : MHD_lookup_connection_value(visit->connection, MHD_COOKIE_KIND, COOKIE);
    const struct sockaddr *from =
        MHD_get_connection_info(visit->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    const socklen_t length =
        from->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (getnameinfo(from, length, address, sizeof address, NULL, 0, NI_NUMERICHOST) != 0)
        return NULL;
    return room_enter(&visit->listener->classroom->room, id, address, steady_ms());
}

/* -- what is asked ------------------------------------------------------------------------------
 */

static enum MHD_Result bad_request(struct visit *visit)
{
    return send_text(visit, MHD_HTTP_BAD_REQUEST, "The request's JSON is not as it should be.\n");
}

static enum MHD_Result send_full(struct visit *visit)
{
    return send_text(visit, MHD_HTTP_SERVICE_UNAVAILABLE,
                     "The class is full, or too many pages of this phone follow it.\n");
}

/* Waits for another state than the one that the client has. */
static enum MHD_Result get_state(struct visit *visit)
{
    struct classroom *classroom = visit->listener->classroom;
    const char *after =
        MHD_lookup_connection_value(visit->connection, MHD_GET_ARGUMENT_KIND, "after");
    char seq[16];
    const struct room_client *client = client_of(visit);
    if (client == NULL)
        return send_full(visit);
    snprintf(seq, sizeof seq, "%u", classroom->room.seq);
    if (after == NULL || strcmp(after, seq) != 0 || visit->has_waited)
        return send_json(visit, room_told(&classroom->room, client), client->id);
    visit->has_waited = true;
    snprintf(visit->id, sizeof visit->id, "%s", client->id);
    visit->waits_ms = steady_ms() + classroom->times.wait_ms;
    MHD_suspend_connection(visit->connection);
    return MHD_YES;
}

static enum MHD_Result post_vote(struct visit *visit, const json_t *json)
{
    struct room *room = &visit->listener->classroom->room;
    json_int_t round, choice;
    if (json_unpack((json_t *)json, "{s:I, s:I !}", "round", &round, "choice", &choice) != 0 ||
        round < 0 || round > UINT32_MAX || choice < 0 || choice >= ROOM_CHOICES_MAX)
        return bad_request(visit);
    struct room_client *client = client_of(visit);
    if (client == NULL)
        return send_full(visit);
    if (!room_vote(room, client, (uint32_t)round, (int)choice))
        return send_text(visit, MHD_HTTP_CONFLICT, "That question is not open.\n");
    return send_json(visit, room_told(room, client), client->id);
}

static enum MHD_Result done(struct visit *visit)
{
    classroom_wake(visit->listener->classroom);
    return send_json(visit, room_overview(&visit->listener->classroom->room, steady_ms()), NULL);
}

static enum MHD_Result post_position(struct visit *visit, const json_t *json)
{
    const char *page, *scene;
    int step;
    if (json_unpack((json_t *)json, "{s:s, s:s, s:i !}", "page", &page, "scene", &scene, "step",
                    &step) != 0 ||
        !room_move(&visit->listener->classroom->room, page, scene, step))
        return bad_request(visit);
    return done(visit);
}

static enum MHD_Result post_question(struct visit *visit, const json_t *json)
{
    struct room *room = &visit->listener->classroom->room;
    const char *act, *scene = "";
    int choices = 0;
    if (json_unpack((json_t *)json, "{s:s, s?s, s?i !}", "act", &act, "scene", &scene, "choices",
                    &choices) != 0)
        return bad_request(visit);
    if (strcmp(act, "clear") == 0)
        room_clear(room);
    else if (strcmp(act, "ask") == 0 ? !room_ask(room, scene, choices)
                                     : strcmp(act, "close") != 0 || !room_close(room))
        return bad_request(visit);
    return done(visit);
}

static enum MHD_Result get_overview(struct visit *visit, const json_t *json)
{
    (void)json;
    const struct classroom *classroom = visit->listener->classroom;
    json_t *overview = room_overview(&classroom->room, steady_ms());
    json_object_set_new(overview, "url", json_string(classroom->url));
    return send_json(visit, overview, NULL);
}

static enum MHD_Result get_code(struct visit *visit)
{
    return send_it(visit, MHD_HTTP_OK, "image/svg+xml", copied(visit->listener->classroom->qr));
}

/* The first page of a class in the phone's language; that of the presenter. */
static enum MHD_Result send_first_page(struct visit *visit)
{
    const char *languages = header_of(visit, "Accept-Language");
    struct MHD_Response *response = copied("");
    if (response != NULL)
        MHD_add_response_header(response, "Location",
                                visit->listener->presenter ? "/index.html?present"
                                : languages != NULL && strncmp(languages, "zh", 2) == 0
                                    ? "/zh/index.html?follow"
                                    : "/index.html?follow");
    return send_it(visit, MHD_HTTP_FOUND, "text/plain; charset=utf-8", response);
}

static enum MHD_Result send_file(struct visit *visit, const char *path)
{
    const struct site_file *file = site_files_find(&visit->listener->classroom->site, path);
    if (file == NULL)
        return send_text(visit, MHD_HTTP_NOT_FOUND, "There is no such page.\n");
    return send_it(
        visit, MHD_HTTP_OK, file->type,
        MHD_create_response_from_buffer(file->size, file->bytes, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result forbid(struct visit *visit)
{
    return send_text(visit, MHD_HTTP_FORBIDDEN,
                     "Refused: this page or this key is not of this class. Open the address that "
                     "the presenter shows.\n");
}

static const struct post {
    const char *method, *path;
    bool presenter; /* at the presenter's address, with the key */
    enum MHD_Result (*act)(struct visit *visit, const json_t *json);
} acts[] = {{"POST", "/class/vote", false, post_vote},
            {"POST", "/class/position", true, post_position},
            {"POST", "/class/question", true, post_question},
            {"GET", "/class/overview", true, get_overview}};

static enum MHD_Result act(struct visit *visit, const struct post *post)
{
    const bool writes = strcmp(post->method, "POST") == 0;
    if (!is_own_page(visit, writes) ||
        (post->presenter && (!visit->listener->presenter || !has_key(visit))))
        return forbid(visit);
    if (visit->too_long)
        return send_text(visit, MHD_HTTP_CONTENT_TOO_LARGE, "The request is too long.\n");
    json_t *json = json_loadb(visit->body, visit->length, JSON_REJECT_DUPLICATES, NULL);
    const enum MHD_Result result =
        json == NULL && writes ? bad_request(visit) : post->act(visit, json);
    json_decref(json);
    return result;
}

enum MHD_Result classroom_answer(struct visit *visit, const char *method, const char *path)
{
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (strcmp(acts[i].method, method) == 0 && strcmp(acts[i].path, path) == 0)
            return act(visit, &acts[i]);
    if (!is_own_page(visit, false))
        return forbid(visit);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return send_text(visit, MHD_HTTP_METHOD_NOT_ALLOWED, "Pages of a class are only read.\n");
    if (visit->length > 0 || visit->too_long)
        return send_text(visit, MHD_HTTP_CONTENT_TOO_LARGE,
                         "A page is asked for without a body.\n");
    if (strcmp(path, "/") == 0)
        return send_first_page(visit);
    if (strcmp(path, "/favicon.ico") == 0) /* browsers ask for it, and report its absence */
        return send_it(visit, MHD_HTTP_NO_CONTENT, "image/x-icon", copied(""));
    if (strcmp(path, "/class/state") == 0)
        return get_state(visit);
    if (strcmp(path, "/class/qr.svg") == 0 && visit->listener->presenter)
        return get_code(visit);
    return send_file(visit, path + (path[0] == '/'));
}
