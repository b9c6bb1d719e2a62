#include "exhibit.h"
#include "hazard.h"
#include "lockkit.h"
#include "trace.h"
#include "words.h"

#include <ctype.h>
#include <string.h>

enum { CLIENTS_MAX = 6 };

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

static json_int_t figure(const json_t *record, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(record, "outcome"), name));
}

static bool is(const json_t *record, const char *name, const char *text)
{
    return strcmp(text_of(record, name), text) == 0;
}

/* Letters, digits and single dashes. */
static size_t add_to_slug(const char *text, size_t n, char out[EXHIBIT_SLUG_MAX])
{
    for (; *text != '\0' && n < EXHIBIT_SLUG_MAX - 2; text++)
        if (isalnum((unsigned char)*text))
            out[n++] = (char)tolower((unsigned char)*text);
        else if (n > 0 && out[n - 1] != '-' && out[n - 1] != '.')
            out[n++] = '-';
    return n > 0 && out[n - 1] == '-' ? n - 1 : n;
}

void exhibit_slug(const json_t *record, char out[EXHIBIT_SLUG_MAX])
{
    size_t n = add_to_slug(text_of(record, "guard"), 0, out);
    out[n++] = '.';
    n = add_to_slug(text_of(record, "variant"), n, out);
    out[out[n - 1] == '.' ? n - 1 : n] = '\0';
}

/* -- the data of the player ----------------------------------------------------------------------
 */

/* The case of the catalogue that was recorded; NULL: this program does not know it. */
static const struct hazard_case *case_of(const json_t *record, const struct hazard *hazard)
{
    const struct hazard_case *one = hazard != NULL ? hazard->cases : NULL;
    for (; one != NULL && one->guard != NULL; one++)
        if (is(record, "guard", one->guard) &&
            is(record, "variant", one->as[EN] != NULL ? one->as[EN] : ""))
            return one;
    return NULL;
}

/* The values are those of one row, and all of its writes are in the record. A transfer has two
 * rows, an order has a state, and of a crowd only the last events are kept. */
static bool has_row(const struct hazard *hazard)
{
    return hazard != NULL && hazard->subject != TRANSFER && hazard->reserve_s == 0 &&
           hazard->crowd == 0;
}

/* The actors of the record, each once, in the order of their first act. Some have no column. */
static void add_actors(const json_t *record, json_t *clients, json_t *others)
{
    static const char *const without_column[] = {"locks",       "store", "watchdog",
                                                 "lease timer", "crowd", "readers"};
    json_t *seen = json_object();
    for (size_t i = 0; i < json_array_size(json_object_get(record, "timeline")); i++) {
        struct trace_event event;
        bool apart = false;
        trace_event(record, i, &event);
        for (size_t k = 0; k < sizeof without_column / sizeof *without_column; k++)
            apart |= strcmp(event.who, without_column[k]) == 0;
        if (json_object_get(seen, event.who) != NULL)
            continue;
        json_object_set_new(seen, event.who, json_true());
        json_array_append_new(apart || json_array_size(clients) == CLIENTS_MAX ? others : clients,
                              json_string(event.who));
    }
    json_decref(seen);
}

static json_t *events_json(const json_t *record)
{
    json_t *events = json_array();
    for (size_t i = 0; i < json_array_size(json_object_get(record, "timeline")); i++) {
        struct trace_event event;
        trace_event(record, i, &event);
        json_t *json =
            json_pack("[I, s, s, o, I]", event.t_us, event.who, event.point,
                      event.has_value ? json_integer(event.value) : json_null(), event.fence);
        if (event.landed)
            json_array_append_new(json, json_string(event.parts[0]));
        json_array_append_new(events, json);
    }
    return events;
}

/* What kind of lock it is, from its own claims. */
static void add_lock(json_t *json, const json_t *record, const struct hazard_setting *with)
{
    const char *guard = text_of(record, "guard");
    const lk_provider_info *lock = lk_provider_find(guard);
    const uint32_t caps = lock != NULL ? lock->caps : 0;
    json_object_set_new(json, "lock", json_boolean(lock != NULL));
    json_object_set_new(json, "owner", json_boolean(caps & LK_CAP_OWNER));
    json_object_set_new(json, "shared", json_boolean(caps & (LK_CAP_SHARED | LK_CAP_PERMITS)));
    json_object_set_new(
        json, "local",
        json_boolean(lock != NULL && !(caps & LK_CAP_DISTRIBUTED) && with->instances > 1));
    json_object_set_new(json, "lease_ms",
                        json_integer(caps & LK_CAP_ATOMIC_LEASE ? (json_int_t)with->lease_ms : 0));
    json_object_set_new(json, "instances", json_integer(with->instances));
}

/* A grant of this lock has a fence, and the store looked at it. */
static bool is_fenced(const json_t *record)
{
    bool has_fence = false;
    for (size_t i = 0; i < json_array_size(json_object_get(record, "timeline")); i++) {
        const json_t *event = json_array_get(json_object_get(record, "timeline"), i);
        has_fence |= json_integer_value(json_object_get(event, "fence")) != 0;
    }
    return has_fence && json_is_true(json_object_get(record, "fence"));
}

/* The commands behind the points: of the lock, and of the store, with or without a fence. A mistake
 * made on purpose has others. */
static json_t *commands_json(const struct page *page, const json_t *record, bool fenced)
{
    const json_t *all = page->site->commands;
    const json_t *unit = json_object_get(json_object_get(record, "outcome"), "unit");
    const bool sold = unit != NULL && strcmp(json_string_value(unit), "sold") == 0;
    const char *store =
        sold ? (fenced ? "item fenced" : "item") : (fenced ? "account fenced" : "account");
    json_t *commands = json_copy(json_object_get(json_object_get(all, "store"), store));
    json_t *own = json_object_get(json_object_get(all, "guards"), text_of(record, "guard"));
    if (own != NULL)
        json_object_update(commands, own);
    const char *point;
    json_t *command;
    json_object_foreach(commands, point, command)
    {
        json_object_set_new(commands, point, words_code(page->words, json_string_value(command)));
    }
    return commands;
}

static void write_data(const struct page *page, const json_t *record)
{
    const struct hazard *hazard = hazard_find(text_of(record, "hazard"));
    const struct hazard_case *one = case_of(record, hazard);
    const struct hazard_setting with =
        one != NULL ? hazard_setting_of(hazard, one) : (struct hazard_setting){.instances = 1};
    json_t *clients = json_array(), *others = json_array();
    add_actors(record, clients, others);
    json_t *json = json_pack(
        "{s:O, s:o, s:O, s:I, s:b, s:o, s:o, s:o}", "guard", json_object_get(record, "guard"),
        "fence", json_boolean(is_fenced(record)), "observed", json_object_get(record, "observed"),
        "initial", figure(record, "initial"), "row", has_row(hazard), "clients", clients, "others",
        others, "events", events_json(record));
    add_lock(json, record, &with);
    json_object_set_new(json, "commands",
                        with.slip == NULL ? commands_json(page, record, is_fenced(record))
                                          : json_object());
    fputs("<script type=\"application/json\" class=\"record\">", page->out);
    page_json(json, page->out);
    fputs("</script>\n", page->out);
    json_decref(json);
}

/* -- links ------------------------------------------------------------------------------------- */

const char *exhibit_variant(const struct page *page, const json_t *record)
{
    const struct hazard_case *one = case_of(record, hazard_find(text_of(record, "hazard")));
    if (one == NULL)
        return text_of(record, "variant");
    return one->as[page->language] != NULL ? one->as[page->language] : "";
}

const char *exhibit_sign(const char *outcome)
{
    static const char *const signs[][2] = {
        {"safe", "✓"}, {"unsafe", "✗"}, {"stuck", "■"}, {"refused", "⊘"}, {"slow", "…"}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcmp(signs[i][0], outcome) == 0)
            return signs[i][1];
    return "?";
}

static void write_case(const struct page *page, const json_t *record)
{
    const char *variant = exhibit_variant(page, record);
    html_escape(text_of(record, "guard"), page->out);
    fputs(variant[0] != '\0' ? " " : "", page->out);
    html_escape(variant, page->out);
}

/* Its text is all of "✗ redis-token (fence off): unsafe"; the matrix shows the sign only. */
void exhibit_link(const struct page *page, const json_t *record)
{
    const char *outcome = text_of(record, "observed");
    char slug[EXHIBIT_SLUG_MAX];
    exhibit_slug(record, slug);
    fprintf(page->out, " <a class=\"sign %s\" href=\"lesson/%s.html#%s\" title=\"", outcome,
            text_of(record, "hazard"), slug);
    write_case(page, record);
    fprintf(page->out, "\">%s<span class=\"says\"> ", exhibit_sign(outcome));
    write_case(page, record);
    fputs(words_get(page->words, "colon"), page->out);
    html_escape(words_of(page->words, "short", outcome), page->out);
    fputs("</span></a>", page->out);
}

/* -- words ---------------------------------------------------------------------------------------
 */

static json_t *outcome_args(const json_t *record)
{
    static const char *const names[] = {"initial", "final", "oversold"};
    const json_int_t final = figure(record, "final"), wanted = figure(record, "expected_final");
    const struct hazard *hazard = hazard_find(text_of(record, "hazard"));
    const struct hazard_case *one = case_of(record, hazard);
    json_t *args = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        args_count(args, names[i], figure(record, names[i]));
    args_count(args, "expected", wanted);
    args_count(args, "lost", final > wanted ? final - wanted : wanted - final);
    args_count(args, "wait", figure(record, "measure_ms"));
    args_count(args, "lease", one != NULL ? hazard_setting_of(hazard, one).lease_ms : 0);
    return args;
}

/* How the lab words a wrong balance (hazard_facts.c); NULL: the run has no such fact. */
static const char *withdrawal_key(const json_t *record)
{
    static const struct {
        const char *id, *key;
    } known[] = {{"not-deducted", "verdict.not-deducted"},
                 {"too-little", "verdict.too-little"},
                 {"too-much", "verdict.too-much"}};
    const json_t *facts = json_object_get(record, "facts");
    for (size_t i = 0; i < json_array_size(facts); i++)
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (is(json_array_get(facts, i), "id", known[k].id))
                return known[k].key;
    return NULL;
}

static const char *verdict_key(const json_t *record)
{
    const json_int_t final = figure(record, "final"), wanted = figure(record, "expected_final");
    const json_t *unit = json_object_get(json_object_get(record, "outcome"), "unit");
    const bool sold = unit != NULL && strcmp(json_string_value(unit), "sold") == 0;
    if (is(record, "observed", "unsafe")) {
        if (figure(record, "oversold") > 0)
            return "verdict.oversold";
        if (final != wanted && !sold) {
            const char *key = withdrawal_key(record);
            return key != NULL ? key : final > wanted ? "verdict.high" : "verdict.low";
        }
        return "verdict.unsafe";
    }
    if (is(record, "observed", "safe"))
        return sold ? "verdict.safe-sold" : "verdict.safe";
    return is(record, "observed", "stuck")     ? "verdict.stuck"
           : is(record, "observed", "refused") ? "verdict.refused"
                                               : "verdict.slow";
}

/* One sentence on what came of it. */
static void write_verdict(const struct page *page, const json_t *record)
{
    json_t *args = outcome_args(record);
    words_fill(words_get(page->words, verdict_key(record)), args, page->out);
    json_decref(args);
}

static void write_time(int64_t t_us, FILE *out)
{
    fprintf(out, "<span class=\"t\">%lld.%lld ms</span> ", (long long)(t_us / 1000),
            (long long)(t_us / 100 % 10));
}

/* How many of a long fence's last digits are shown: all before them are the same in all fences of
 * the record. As Museum.fence() in app/page/player/view.js. */
static int fence_digits(const json_t *record)
{
    const json_t *events = json_object_get(record, "timeline");
    json_int_t unit = 10000, first = 0; /* what the lowest digit that is not shown is worth */
    int digits = 4;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_int_t fence =
            json_integer_value(json_object_get(json_array_get(events, i), "fence"));
        first = first == 0 ? fence : first;
        for (; fence != 0 && unit <= INT64_MAX / 10 && fence / unit != first / unit; digits++)
            unit *= 10;
    }
    return digits;
}

static const char *fence_text(char out[32], json_int_t fence, int digits)
{
    char text[24];
    const int length = snprintf(text, sizeof text, "%lld", (long long)fence);
    const bool is_cut = fence > 999999 && length > digits;
    snprintf(out, 32, "%s%s", is_cut ? "…" : "", text + (is_cut ? length - digits : 0));
    return out;
}

static void write_fence(json_int_t fence, int digits, FILE *out)
{
    char text[32];
    fprintf(out, " <small title=\"%lld\">#%s</small>", (long long)fence,
            fence_text(text, fence, digits));
}

/* The sentences of the scene that this event bears out. */
static void write_beats(const struct page *page, const json_t *record, const struct scene *scene,
                        const struct bound *bound, size_t event)
{
    json_t *args = outcome_args(record);
    const int digits = fence_digits(record);
    for (int i = 0; i < bound->n; i++) {
        struct trace_event one;
        char name[16], fence[32];
        trace_event(record, bound->at[i], &one);
        fence_text(fence, one.fence, digits);
        snprintf(name, sizeof name, "v%d", i);
        args_count(args, name, one.value);
        args_count(args, "v", one.value);
        snprintf(name, sizeof name, "f%d", i);
        args_text(args, name, fence);
        args_text(args, "f", fence);
        if (bound->at[i] == event) {
            words_fill(words_of(page->words, scene->id, scene->beats[i].words), args, page->out);
            fputc(' ', page->out);
        }
    }
    json_decref(args);
}

static bool is_beat(const struct bound *bound, size_t event)
{
    bool found = false;
    for (int i = 0; bound != NULL && i < bound->n; i++)
        found |= bound->at[i] == event;
    return found;
}

/* Without a scene, what changes something is a beat. */
static bool matters(const struct trace_event *event)
{
    static const char *const points[] = {"lock.acquired", "lock.wait", "read",
                                         "committed",     "lost",      "stopped",
                                         "continues",     "killed",    "lock.lost"};
    bool found = event->landed || strcmp(event->who, "locks") == 0 ||
                 strncmp(event->point, "answer", 6) == 0;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        found |= strcmp(event->point, points[i]) == 0;
    return found;
}

static void write_event(const struct page *page, const json_t *record, const struct scene *scene,
                        const struct bound *bound, size_t i)
{
    struct trace_event event;
    trace_event(record, i, &event);
    const bool beat = scene != NULL ? is_beat(bound, i) : matters(&event);
    fprintf(page->out, "<li%s>", beat ? " class=\"beat\"" : "");
    write_time(event.t_us, page->out);
    if (scene != NULL && beat) {
        fputs("<strong class=\"told\">", page->out);
        write_beats(page, record, scene, bound, i);
        fputs("</strong> ", page->out);
    }
    fprintf(page->out, "<span class=\"fact%s\">", scene == NULL && beat ? " told" : "");
    trace_write(&event, page->words, page->out);
    fputs("</span>", page->out);
    if (event.fence != 0)
        write_fence(event.fence, fence_digits(record), page->out);
    fputs("</li>\n", page->out);
}

void exhibit_write(const struct page *page, const json_t *record, const struct scene *scene,
                   const struct bound *bound)
{
    fprintf(page->out,
            "<div class=\"show\"><div class=\"desk\" hidden></div>\n<div "
            "class=\"told-by\"><p class=\"head\">%s</p>\n<ol class=\"trace\" tabindex=\"0\" "
            "aria-label=\"%s\">\n",
            words_get(page->words, "trace"), words_get(page->words, "trace"));
    for (size_t i = 0; i < json_array_size(json_object_get(record, "timeline")); i++)
        write_event(page, record, scene, bound, i);
    fprintf(page->out, "</ol>\n<p class=\"verdict %s\">", text_of(record, "observed"));
    write_verdict(page, record);
    fputs("</p></div></div>\n", page->out);
    write_data(page, record);
}
