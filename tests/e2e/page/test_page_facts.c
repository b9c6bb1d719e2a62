/* What step mode says of a round: the page plays every order of its moves on real servers, and for
 * each one a second reader decides from the service's trace, the answers and the ledger which facts
 * must be said. */
#include "facts_reader.h"
#include "page_rig.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

enum { PLAY_MS = 240000 };

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

GROUP_FIXTURE(page_open_lab, page_close);

TEST_THAT(without_a_lock_what_is_said_is_so)
{
    play_all("{ subject: 'ACCOUNT', guard: 'none', fence: false, vanish: false, n: 2,"
             " points: ['read', 'checked', 'committed'] }",
             70, SHOWN("overwritten", "chained"));
}

TEST_THAT(of_the_last_piece_what_is_said_is_so)
{
    play_all("{ subject: 'ITEM', guard: 'redis-token', fence: true, vanish: false, n: 2,"
             " points: ['read', 'committed'] }",
             6, SHOWN("soldOut", "waited"));
}

TEST_THAT(under_a_version_what_is_said_is_so)
{
    play_all("{ subject: 'ACCOUNT', guard: 'sql-version', fence: false, vanish: false, n: 2,"
             " points: ['read', 'committed'] }",
             6, SHOWN("readAgain", "chained"));
}

TEST_THAT(under_a_fence_what_is_said_of_a_lost_lock_is_so)
{
    play_all("{ subject: 'ACCOUNT', guard: 'redis-token', fence: true, vanish: true, n: 2,"
             " points: ['checked', 'committed'] }",
             6, SHOWN("fenceRefused", "twoInside", "deleted", "waited", "chained"));
}

TEST_THAT(without_a_fence_what_is_said_of_a_lost_lock_is_so)
{
    play_all("{ subject: 'ACCOUNT', guard: 'redis-set', fence: false, vanish: true, n: 2,"
             " points: ['checked', 'committed'] }",
             6, SHOWN("overwritten", "twoInside", "deleted"));
}

TEST_THAT(of_three_with_a_bare_del_what_is_said_is_so)
{
    play_all("{ subject: 'ACCOUNT', guard: 'redis-set', fence: false, vanish: true, n: 3,"
             " points: ['checked'], moves: [...'A×BACBC'] }",
             1, SHOWN("deleted", "foreignRelease", "overwritten", "twoInside"));
}

TEST_THAT(of_three_with_identifiers_what_is_said_is_so)
{
    play_all("{ subject: 'ACCOUNT', guard: 'redis-token', fence: false, vanish: true, n: 3,"
             " points: ['checked'], moves: [...'A×BACBC'] }",
             1, SHOWN("keptOut", "twoInside", "waited"));
}
