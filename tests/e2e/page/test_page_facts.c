/* What step mode says of a round: the page plays every order of its moves on real servers, and for
 * each one a second reader decides from the service's trace, the answers and the ledger which facts
 * must be said. */
#include "page_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PLAY_MS = 240000, ACTORS_MAX = 3, FACTS_MAX = 40, FACT_LONGEST = 64 };

static struct browser *const browser = &page.browser;

/* The page's own search, which goes on after an order that does harm, and keeps all of them. */
static const char play[] =
    "window.played = undefined;"
    "const modules = ['schedule', 'lab', 'facts', 'row', 'stream'].map(m => "
    "import(`/web/${m}.js`));"
    "Promise.all(modules).then(async ([{ Search }, { Actor }, { recordOf, factsOf }, row, { ask "
    "}]) => {"
    "  const { subject, guard, fence, vanish, points, n, moves } = arguments_, outcomes = [];"
    "  class All extends Search {"
    "    constructor(options) {"
    "      super(options);"
    "      this.actors = options.subject.amounts.slice(0, options.n).map(([name, amount]) =>"
    "        new Actor(`find-${options.session}`, name, amount, options.points));"
    "    }"
    "    async run() {" /* all orders, or this one */
    "      if (!moves) return super.run();"
    "      for (const actor of this.actors) await actor.arm(0);"
    "      await this.row.put(guard, fence);"
    "      await ask('/v1/lab/trace', { method: 'DELETE' });"
    "      Object.assign(this, { lines: [], robbed: new Set() });"
    "      for (const actor of this.actors) actor.reset();"
    "      for (const move of moves) await this.move(move);"
    "      await this.judge();"
    "      for (const actor of this.actors) await actor.leave();"
    "    }"
    "    async one(path) {"
    "      await ask('/v1/lab/trace', { method: 'DELETE' });"
    "      return super.one(path);"
    "    }"
    "    stands(actor) {"
    "      if (actor.state !== 'waiting') return actor.state !== 'moving';"
    "      return this.actors.some(other => other !== actor && other.inside && "
    "!this.robbed.has(other));"
    "    }"
    "    async judge() {"
    "      const [{ events }, lock, audit] = await Promise.all("
    "        [ask('/v1/lab/trace'), this.row.lock(), this.row.audit()]);"
    "      const actors = this.actors.map(({ name, amount, key, answers }) => ({ name, amount, "
    "key, answers }));"
    "      const record = recordOf(events, actors, { isLock: lock.key !== '', lease_ms: {}, lock: "
    "lock.key });"
    "      outcomes.push({ events, actors, lock: lock.key, forks: audit.forks.length,"
    "        said: factsOf(record).map(({ id, values }) => [id, values.name, values.other ?? '',"
    "          values.third ?? ''].join(' ').trim()) });"
    "      return { ...(await super.judge()), lost: 0 };"
    "    }"
    "  }"
    "  await new All({ subject: row[subject], session: crypto.randomUUID(), guard, fence, vanish, "
    "points,"
    "    n, onOrder: () => {} }).run();"
    "  window.played = outcomes;"
    "}).catch(error => { window.played = String(error); });";

/* -- the second reader ---------------------------------------------------------------------------
 */

struct actor {
    const char *name, *key, *problem;
    bool ok;
    int got, waits, frees, freed, checked, decided, committed,
        end;               /* place in the trace; -1: never */
    int reads[8], n_reads; /* their places */
    json_int_t read, left, fence;
};

static struct actor actors[ACTORS_MAX];
static int n_actors;
static const json_t *events, *outcome;

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void read_actor(const json_t *from, struct actor *actor)
{
    const json_t *answer = json_array_get(json_object_get(from, "answers"), 0), *event;
    size_t i;
    *actor = (struct actor){.name = text_of(from, "name"),
                            .key = text_of(from, "key"),
                            .problem = text_of(answer, "problem"),
                            .ok = json_is_true(json_object_get(answer, "ok")),
                            .got = -1,
                            .waits = -1,
                            .frees = -1,
                            .freed = -1,
                            .checked = -1,
                            .decided = -1,
                            .committed = -1,
                            .end = -1};
    json_array_foreach(events, i, event)
    {
        const char *point = text_of(event, "point");
        const int at = (int)i;
        const json_int_t value = json_integer_value(json_object_get(event, "value"));
        const struct {
            const char *point;
            int *at;
        } places[] = {{"lock.acquired", &actor->got},  {"lock.wait", &actor->waits},
                      {"lock.release", &actor->frees}, {"lock.released", &actor->freed},
                      {"checked", &actor->checked},    {"decided", &actor->decided},
                      {"released", &actor->end},       {"rejected", &actor->end}};
        if (strcmp(text_of(event, "key"), actor->key) != 0)
            continue;
        for (size_t k = 0; k < sizeof places / sizeof places[0]; k++)
            if (strcmp(point, places[k].point) == 0)
                *places[k].at = at;
        if (strcmp(point, "read") == 0) {
            actor->reads[actor->n_reads++] = at;
            actor->read = value;
        }
        if (strcmp(point, "committed") == 0) {
            actor->committed = at;
            actor->left = value;
        }
        if (json_integer_value(json_object_get(event, "fence")) != 0)
            actor->fence = json_integer_value(json_object_get(event, "fence"));
    }
}

static bool wrote(const struct actor *actor)
{
    return actor->ok && actor->committed >= 0 && actor->left != actor->read;
}

static int last_read(const struct actor *actor)
{
    return actor->n_reads > 0 ? actor->reads[actor->n_reads - 1] : -1;
}

/* Where it leaves: it begins to release, or has its answer. */
static int leaves(const struct actor *actor)
{
    return actor->frees >= 0 ? actor->frees : actor->end;
}

/* Who is the first to come in while this one is inside; NULL: nobody. */
static const struct actor *intruder_of(const struct actor *one)
{
    const struct actor *first = NULL;
    for (int i = 0; i < n_actors && one->got >= 0; i++) {
        const struct actor *other = &actors[i];
        if (other != one && other->got > one->got && other->got < leaves(one) &&
            (first == NULL || other->got < first->got))
            first = other;
    }
    return first;
}

static bool was_deleted_between(int from, int to)
{
    for (int i = from; i < to; i++)
        if (strcmp(text_of(json_array_get(events, (size_t)i), "point"), "lock.freed") == 0)
            return true;
    return false;
}

struct facts {
    char list[FACTS_MAX][FACT_LONGEST];
    int n;
};

static void want(struct facts *facts, bool so, const char *id, const char *name, const char *other)
{
    if (so)
        snprintf(facts->list[facts->n++], FACT_LONGEST, "%s %s%s%s", id, name, *other ? " " : "",
                 other);
}

static void want_of_pair(struct facts *facts, const struct actor *one, const struct actor *other)
{
    const bool both = wrote(one) && wrote(other);
    bool direct = true; /* nobody wrote between the one's write and the other's read */
    for (int i = 0; i < n_actors; i++)
        direct &= &actors[i] == one || &actors[i] == other || !wrote(&actors[i]) ||
                  actors[i].committed < one->committed || actors[i].committed > last_read(other);
    want(facts,
         both && last_read(other) < one->committed && one->committed < other->committed &&
             other->read != one->left,
         "overwritten", one->name, other->name);
    want(facts,
         wrote(one) && other->n_reads > 0 && other->read == one->left &&
             last_read(other) > one->decided && direct,
         "chained", one->name, other->name);
    want(facts,
         strcmp(one->problem, "lock-lost") == 0 && one->checked > one->decided && other->ok &&
             other->fence > one->fence && other->committed >= 0 && other->committed < one->end,
         "fenceRefused", one->name, other->name);
}

/* Whom it waits for: of those who are inside then, the one that came last. */
static const struct actor *holder_at(int at, const struct actor *but)
{
    const struct actor *last = NULL;
    for (int i = 0; i < n_actors; i++)
        if (&actors[i] != but && actors[i].got >= 0 && actors[i].got < at &&
            leaves(&actors[i]) > at && (last == NULL || actors[i].got > last->got))
            last = &actors[i];
    return last;
}

static void want_of_intruder(struct facts *facts, const struct actor *one)
{
    const struct actor *other = intruder_of(one), *third = NULL, *waiter = NULL;
    char names[2 * FACT_LONGEST / 8];
    if (other == NULL)
        return;
    want(facts, true, "twoInside", one->name, other->name);
    const bool deleted = was_deleted_between(one->got, other->got);
    for (int i = 0; i < n_actors; i++) {
        const struct actor *each = &actors[i];
        if (each == one || each == other)
            continue;
        if (each->got >= 0 && each->got < one->got && each->frees > one->got &&
            each->frees < other->got)
            third = each;
        if (each->waits > one->freed && each->waits < leaves(other) &&
            !(each->got >= 0 && each->got < leaves(other)))
            waiter = each;
    }
    want(facts, deleted, "deleted", one->name, other->name);
    if (!deleted && third != NULL) {
        snprintf(names, sizeof names, "%s %s", other->name, third->name);
        want(facts, true, "foreignRelease", one->name, names);
    }
    want(facts,
         one->frees >= 0 && one->freed > other->got && one->freed < leaves(other) && waiter != NULL,
         "keptOut", one->name, other->name);
}

static void expect_facts(struct facts *facts)
{
    *facts = (struct facts){.n = 0};
    for (int i = 0; i < n_actors; i++) {
        const struct actor *one = &actors[i], *holder;
        for (int k = 0; k < n_actors; k++)
            if (k != i)
                want_of_pair(facts, one, &actors[k]);
        want_of_intruder(facts, one);
        holder = one->waits >= 0 ? holder_at(one->waits, one) : NULL;
        want(facts, holder != NULL, "waited", one->name, holder ? holder->name : "");
        want(facts,
             strcmp(one->problem, "lock-lost") == 0 && one->decided >= 0 &&
                 one->checked < one->decided,
             "checkRefused", one->name, "");
        want(facts, one->ok && one->n_reads > 1, "readAgain", one->name, "");
        want(facts, strcmp(one->problem, "sold-out") == 0, "soldOut", one->name, "");
    }
}

static void print_order(void)
{
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        fprintf(stderr, "  %2zu %s %s %lld %lld\n", i, text_of(event, "key"),
                text_of(event, "point"),
                (long long)json_integer_value(json_object_get(event, "value")),
                (long long)json_integer_value(json_object_get(event, "fence")));
    }
}

/* Said exactly as often as it is so. kinds counts the orders in which each kind of fact is said. */
static void check_order(const json_t *from)
{
    const json_t *list = json_object_get(from, "actors"), *said = json_object_get(from, "said");
    struct facts facts;
    bool overwritten = false;
    size_t i;
    json_t *one;
    outcome = from;
    events = json_object_get(from, "events");
    n_actors = 0;
    json_array_foreach(list, i, one)
    {
        assert_int_equal(json_array_size(json_object_get(one, "answers")), 1);
        read_actor(one, &actors[n_actors++]);
    }
    expect_facts(&facts);
    json_array_foreach(said, i, one)
    {
        int k = 0;
        overwritten |= strncmp(json_string_value(one), "overwritten", 11) == 0;
        while (k < facts.n && strcmp(facts.list[k], json_string_value(one)) != 0)
            k++;
        if (k == facts.n) {
            print_order();
            fail_msg("said, and not so: %s", json_string_value(one));
        }
        facts.n--;
        memmove(facts.list[k], facts.list[facts.n], FACT_LONGEST);
    }
    if (facts.n > 0) {
        print_order();
        fail_msg("so, and not said: %s", facts.list[0]);
    }
    /* the ledger's word on the same */
    assert_true(overwritten == (json_integer_value(json_object_get(from, "forks")) > 0));
}

static bool is_said(const json_t *outcomes, const char *id)
{
    size_t i, k;
    json_t *one, *fact;
    json_array_foreach(outcomes, i, one)
    {
        json_array_foreach(json_object_get(one, "said"), k, fact)
        {
            if (strncmp(json_string_value(fact), id, strlen(id)) == 0)
                return true;
        }
    }
    return false;
}

/* Plays all orders of this, or the one that it names (two waiters come in by chance). shown: facts
 * that must be said in one of them at least. */
static void play_all(const char *arguments, size_t least, const char *const *shown)
{
    char script[sizeof play + 400];
    size_t i;
    json_t *one;
    assert_true(page_go("/web/steps.html?lang=en"));
    snprintf(script, sizeof script, "const arguments_ = %s; %s", arguments, play);
    json_decref(browser_run(browser, script));
    assert_true(browser_await(browser, "window.played !== undefined", PLAY_MS));
    json_t *outcomes = browser_run(browser, "return window.played;");
    if (!json_is_array(outcomes))
        fail_msg("%s", json_string_value(outcomes));
    assert_true(json_array_size(outcomes) >= least);
    json_array_foreach(outcomes, i, one)
    {
        check_order(one);
    }
    for (; *shown != NULL; shown++)
        if (!is_said(outcomes, *shown))
            fail_msg("%s is never said", *shown);
    json_decref(outcomes);
    browser_errors(browser); /* says that some of them were refused */
}

#define SHOWN(...) ((const char *const[]){__VA_ARGS__, NULL})

static void without_a_lock_what_is_said_is_so(void **state)
{
    (void)state;
    play_all("{ subject: 'ACCOUNT', guard: 'none', fence: false, vanish: false, n: 2,"
             " points: ['read', 'checked', 'committed'] }",
             70, SHOWN("overwritten", "chained"));
}

static void of_the_last_piece_what_is_said_is_so(void **state)
{
    (void)state;
    play_all("{ subject: 'ITEM', guard: 'redis-token', fence: true, vanish: false, n: 2,"
             " points: ['read', 'committed'] }",
             6, SHOWN("soldOut", "waited"));
}

static void under_a_version_what_is_said_is_so(void **state)
{
    (void)state;
    play_all("{ subject: 'ACCOUNT', guard: 'sql-version', fence: false, vanish: false, n: 2,"
             " points: ['read', 'committed'] }",
             6, SHOWN("readAgain", "chained"));
}

static void under_a_fence_what_is_said_of_a_lost_lock_is_so(void **state)
{
    (void)state;
    play_all("{ subject: 'ACCOUNT', guard: 'redis-token', fence: true, vanish: true, n: 2,"
             " points: ['checked', 'committed'] }",
             6, SHOWN("fenceRefused", "twoInside", "deleted", "waited", "chained"));
}

static void without_a_fence_what_is_said_of_a_lost_lock_is_so(void **state)
{
    (void)state;
    play_all("{ subject: 'ACCOUNT', guard: 'redis-set', fence: false, vanish: true, n: 2,"
             " points: ['checked', 'committed'] }",
             6, SHOWN("overwritten", "twoInside", "deleted"));
}

static void of_three_with_a_bare_del_what_is_said_is_so(void **state)
{
    (void)state;
    play_all("{ subject: 'ACCOUNT', guard: 'redis-set', fence: false, vanish: true, n: 3,"
             " points: ['checked'], moves: [...'A×BACBC'] }",
             1, SHOWN("deleted", "foreignRelease", "overwritten", "twoInside"));
}

static void of_three_with_identifiers_what_is_said_is_so(void **state)
{
    (void)state;
    play_all("{ subject: 'ACCOUNT', guard: 'redis-token', fence: false, vanish: true, n: 3,"
             " points: ['checked'], moves: [...'A×BACBC'] }",
             1, SHOWN("keptOut", "twoInside", "waited"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_lock_what_is_said_is_so),
        cmocka_unit_test(of_the_last_piece_what_is_said_is_so),
        cmocka_unit_test(under_a_version_what_is_said_is_so),
        cmocka_unit_test(under_a_fence_what_is_said_of_a_lost_lock_is_so),
        cmocka_unit_test(without_a_fence_what_is_said_of_a_lost_lock_is_so),
        cmocka_unit_test(of_three_with_a_bare_del_what_is_said_is_so),
        cmocka_unit_test(of_three_with_identifiers_what_is_said_is_so),
    };
    return cmocka_run_group_tests(tests, page_open_lab, page_close);
}
