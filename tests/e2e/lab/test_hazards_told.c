/* What the lab tells of its runs, on real servers: each sentence is compared with the record. A
 * second reader of the record decides here which facts must be told. All rows: TEST_FULL=1. */
#include "hazards_rig.h"
#include "process.h"

enum { SECTION_MAX = 1 << 14, TEXT_LONGEST = 1 << 21, IDS_MAX = 24 };

struct event {
    const char *actor, *point;
    bool has_value;
    json_int_t value, fence;
};

static struct event events[200];
static int n_events;
static const json_t *result, *outcome;

static json_int_t number(const char *name)
{
    return json_integer_value(json_object_get(outcome, name));
}

static void read_record(const json_t *from)
{
    const json_t *timeline = json_object_get(from, "timeline");
    result = from;
    outcome = json_object_get(from, "outcome");
    n_events = 0;
    for (size_t i = 0; i < json_array_size(timeline); i++) {
        const json_t *one = json_array_get(timeline, i), *value = json_object_get(one, "value");
        events[n_events++] = (struct event){
            .actor = json_string_value(json_object_get(one, "actor")),
            .point = json_string_value(json_object_get(one, "point")),
            .has_value = json_is_integer(value),
            .value = json_integer_value(value),
            .fence = json_integer_value(json_object_get(one, "fence")),
        };
    }
}

static bool is(int i, const char *actor, const char *point)
{
    return strcmp(events[i].actor, actor) == 0 && strcmp(events[i].point, point) == 0;
}

static const char *named(const char *name)
{
    return json_string_value(json_object_get(result, name));
}

/* -- the second reader: is this so? ------------------------------------------------------------ */

/* Since its last request: changes made, locks taken and released, where it stands at the end. */
struct state {
    int changes, refusals;
    const char *answer;
    json_int_t delta; /* of the last change decided */
};

static struct state state_of(const char *actor)
{
    struct state state = {.answer = ""};
    json_int_t read = 0;
    for (int i = 0; i < n_events; i++) {
        if (is(i, actor, "sends"))
            state.changes = state.refusals = 0;
        else if (is(i, actor, "read"))
            read = events[i].value;
        else if (is(i, actor, "decided") && events[i].has_value)
            state.delta = events[i].value - read;
        else if (is(i, actor, "committed"))
            state.changes += events[i].has_value && events[i].value != read;
        else if (is(i, actor, "rejected"))
            state.refusals++;
        else if (strcmp(events[i].actor, actor) == 0 &&
                 (strncmp(events[i].point, "answer", 6) == 0 ||
                  strcmp(events[i].point, "no answer") == 0))
            state.answer = events[i].point;
    }
    return state;
}

static bool went_in_beside(const char *other, const char *one)
{
    const char *last = ""; /* what `one` did last with its lock */
    for (int i = 0; i < n_events; i++) {
        if (strcmp(events[i].actor, one) == 0 || is(i, "watchdog", "lock.release")) {
            static const char *const turns[] = {"lock.acquired", "lock.release", "killed",
                                                "rejected", "lost"};
            for (size_t t = 0; t < sizeof turns / sizeof turns[0]; t++)
                if (strcmp(events[i].point, turns[t]) == 0)
                    last = turns[t];
        }
        if (is(i, other, "lock.acquired") && strcmp(last, "lock.acquired") == 0)
            return true;
    }
    return false;
}

static bool committed_without_lock(const char *actor)
{
    int held = 0, taken = 0;
    json_int_t read = 0;
    for (int i = 0; i < n_events; i++) {
        if (is(i, actor, "sends"))
            held = taken = 0;
        else if (is(i, actor, "lock.acquired"))
            held++, taken++;
        else if (is(i, actor, "lock.released") && held > 0)
            held--;
        else if (is(i, actor, "read"))
            read = events[i].value;
        else if (is(i, actor, "committed") && taken > 0 && held == 0 &&
                 (!events[i].has_value || events[i].value != read))
            return true;
    }
    return false;
}

static bool was_refused_by_fence(const char *actor)
{
    bool checked = false, lost_itself = false;
    json_int_t newest = 0;
    if (!json_is_true(json_object_get(result, "fence")))
        return false;
    for (int i = 0; i < n_events; i++) {
        const bool own = strcmp(events[i].actor, actor) == 0;
        if (own && strcmp(events[i].point, "lost") == 0)
            lost_itself |= !checked;
        else if (own && strcmp(events[i].point, "checked") == 0)
            checked = true;
        else if (own &&
                 (strcmp(events[i].point, "read") == 0 || strcmp(events[i].point, "decided") == 0))
            checked = false;
        else if (!own && strcmp(events[i].point, "committed") == 0 && events[i].fence > newest)
            newest = events[i].fence;
        else if (own && strcmp(events[i].point, "rejected") == 0 && events[i].fence > 0 &&
                 events[i].fence < newest && !lost_itself)
            return true;
    }
    return false;
}

static const char *expect_figures(void)
{
    static const char *const actors[] = {"A", "B", "C"};
    const json_int_t off = number("final") - number("expected_final");
    bool one = false;
    if (strcmp(json_string_value(json_object_get(outcome, "unit")), "sold") == 0)
        return number("oversold") > 0 ? "oversold" : off != 0 ? "sold-wrong" : "sold-right";
    if (off == 0)
        return "balance-right";
    for (int i = 0; i < 3; i++) {
        const struct state state = state_of(actors[i]);
        one |= strcmp(state.answer, "answer 201") == 0 && state.delta == -off;
    }
    return off < 0                              ? "too-much"
           : one && number("lost_updates") == 1 ? "not-deducted"
                                                : "too-little";
}

static bool was_paid_after_it_was_closed(void)
{
    bool closed = false, paid = false;
    for (int i = 0; i < n_events; i++) {
        closed |= is(i, "tasks", "A's order is closed");
        paid |= closed && is(i, "A", "answer 201");
    }
    return paid;
}

static bool is_timed(const char *hazard)
{
    static const char *const timed[] = {"lost-wake-up", "silent-subscription",
                                        "reply-of-acquire-lost", "reply-of-release-lost",
                                        "redlock-orphan"};
    bool found = false;
    for (size_t i = 0; i < sizeof timed / sizeof timed[0]; i++)
        found |= strcmp(hazard, timed[i]) == 0;
    return found;
}

struct ids {
    const char *list[IDS_MAX];
    int n;
};

static void want(struct ids *ids, bool so, const char *id)
{
    if (so)
        ids->list[ids->n++] = id;
}

static void expect_ids(struct ids *ids)
{
    static const char *const actors[] = {"A", "B", "C"};
    const json_t *pair = json_object_get(outcome, "counterexample");
    *ids = (struct ids){.n = 0};
    want(ids, true, expect_figures());
    want(ids, was_paid_after_it_was_closed(), "paid-and-closed");
    want(ids, number("duplicates") > 0, "twice");
    want(ids, number("lost_updates") > 0, "overwritten");
    want(ids,
         json_equal(json_object_get(json_array_get(pair, 0), "version_before"),
                    json_object_get(json_array_get(pair, 1), "version_before")) &&
             json_array_size(pair) == 2,
         "fork");
    for (int i = 0; i < 3; i++)
        want(ids, committed_without_lock(actors[i]), "released-early");
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            want(ids,
                 i != j && strcmp(named("hazard"), "opposite-order") != 0 &&
                     went_in_beside(actors[j], actors[i]),
                 "two-holders");
    for (int i = 0; i < 3; i++)
        want(ids, was_refused_by_fence(actors[i]), "fence-refused");
    for (int i = 0; i < 3; i++) {
        const struct state state = state_of(actors[i]);
        const bool late = strstr(state.answer, "lock-timeout") != NULL;
        want(ids, late, "timed-out");
        want(ids, strcmp(state.answer, "no answer") == 0, "no-answer");
        want(ids,
             strncmp(state.answer, "answer ", 7) == 0 && strcmp(state.answer, "answer 201") != 0 &&
                 !late && state.refusals > 0 && state.changes == 0,
             "refused");
    }
    want(ids, json_object_get(outcome, "wake_ups_per_release") != NULL, "woken");
    want(ids, json_object_get(outcome, "overtakings") != NULL, "overtaken");
    want(ids, is_timed(named("hazard")), "late");
}

/* Said exactly as often as it is so. */
static void facts_are_those_of_the_record(void)
{
    const json_t *facts = json_object_get(result, "facts"), *fact;
    struct ids ids;
    size_t i;
    expect_ids(&ids);
    json_array_foreach(facts, i, fact)
    {
        const char *id = json_string_value(json_object_get(fact, "id"));
        int k = 0;
        while (k < ids.n && strcmp(ids.list[k], id) != 0)
            k++;
        if (k == ids.n)
            fail_msg("%s %s (%s): told, and not so: %s", named("hazard"), named("guard"),
                     named("variant"), json_string_value(json_object_get(fact, "en")));
        ids.list[k] = ids.list[--ids.n];
    }
    if (ids.n > 0)
        fail_msg("%s %s (%s): so, and not told: %s", named("hazard"), named("guard"),
                 named("variant"), ids.list[0]);
}

/* -- the narration ----------------------------------------------------------------------------- */

static bool read_and_decided(const char *actor, long long read, long long written)
{
    for (int i = 0; i < n_events; i++)
        for (int k = i;
             is(i, actor, "read") && events[i].has_value && events[i].value == read && k < n_events;
             k++)
            if (is(k, actor, "decided") && events[k].value == written)
                return true;
    return false;
}

/* Of a run with a crowd the record does not keep every event. */
static bool has_crowd(void)
{
    return json_object_get(outcome, "failed") != NULL;
}

static void line_is_so(const char *line)
{
    char actor[2] = {line[2], '\0'};
    const char *values = strstr(line, "it read ");
    long long read, written;
    if (values != NULL &&
        sscanf(values, "it read %lld and will write %lld", &read, &written) == 2 && !has_crowd() &&
        !read_and_decided(actor, read, written))
        fail_msg("%s: not in the record: %s", named("hazard"), line);
    if (strstr(line, "has released the lock, and has not committed") != NULL &&
        !committed_without_lock(actor))
        fail_msg("%s %s: not in the record: %s", named("hazard"), named("guard"), line);
}

static void narration_is_that_of_the_record(char *section)
{
    static const char *const words[] = {"safe", "unsafe", "stuck", "refused", "slow"};
    static const char *const told[] = {
        "  SAFE: ", "  UNSAFE: ", "  STUCK: ", "  REFUSED: ", "  SLOW: "};
    const json_t *facts = json_object_get(result, "facts");
    size_t n_facts = 0, n_verdicts = 0;
    bool unlocked = false;
    for (char *line = strtok(section, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, "  - ", 4) == 0) {
            assert_true(n_facts < json_array_size(facts));
            const char *text =
                json_string_value(json_object_get(json_array_get(facts, n_facts++), "en"));
            assert_string_equal(line + 4, text);
        }
        for (int i = 0; i < 5; i++)
            if (strncmp(line, told[i], strlen(told[i])) == 0) {
                assert_string_equal(named("observed"), words[i]);
                n_verdicts++;
            }
        unlocked |= strstr(line, "A has released the lock, and has not committed") != NULL;
        line_is_so(line);
    }
    assert_int_equal(n_facts, json_array_size(facts));
    assert_int_equal(n_verdicts, 1);
    assert_true(unlocked == (strcmp(named("variant"), "unlock, then commit") == 0));
}

static char *read_output(void)
{
    static char text[TEXT_LONGEST];
    FILE *file = fopen(output, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The narration of the ith run: from its guard to what helps. */
static void take_section(const char **rest, char section[SECTION_MAX])
{
    const char *from = strstr(*rest, "\nguard "),
               *to = from ? strstr(from, "\n  What helps: ") : NULL;
    assert_true(from != NULL && to != NULL && to - from < SECTION_MAX - 1);
    snprintf(section, SECTION_MAX, "%.*s", (int)(to - from), from);
    *rest = to + 1;
}

static void each_sentence_is_so(const char *const *args)
{
    static char section[SECTION_MAX];
    size_t i;
    json_t *one;
    const int status = hazards(args); /* a run that did not go as expected is told truly, too */
    if (status != EXIT_SUCCESS && status != MISMATCH)
        fail_msg("hazards ended with %d", status);
    json_t *json = load_report();
    const char *rest = read_output();
    assert_true(json_array_size(json_object_get(json, "results")) > 0);
    json_array_foreach(json_object_get(json, "results"), i, one)
    {
        read_record(one);
        facts_are_those_of_the_record();
        take_section(&rest, section);
        narration_is_that_of_the_record(section);
    }
    json_decref(json);
}

#define RUN "run", "--narrate", "--json", report

static void what_is_told_of_accounts_is_in_the_record(void **state)
{
    (void)state;
    each_sentence_is_so((const char *const[]){
        RUN, "-z", "lost-update", "-z", "paused-holder", "-z", "unlock-before-commit", "-z",
        "result-ignored", "-g", "none", "-g", "redis-set", "-g", "redis-token", NULL});
    each_sentence_is_so((const char *const[]){RUN, "-z", "wrong-delete", "-z", "duplicate-request",
                                              "-z", "opposite-order", "-g", "redis-set", "-g",
                                              "redis-token", NULL});
}

static void what_is_told_of_items_and_tasks_is_in_the_record(void **state)
{
    (void)state;
    each_sentence_is_so((const char *const[]){RUN, "-z", "off-by-one", "-z", "double-task", "-z",
                                              "late-payment", "-z", "zk-herd", "-g", "none", "-g",
                                              "redis-token", "-g", "zk-ephemeral", NULL});
}

static void what_is_told_of_a_lock_that_is_lost_is_in_the_record(void **state)
{
    (void)state;
    const char *const few[] = {RUN,           "-z", "commit-unknown", "-z", "renewal-lost", "-g",
                               "redis-token", NULL},
                      *const all[] = {RUN, NULL};
    each_sentence_is_so(test_size(0, 1) == 1 ? all : few);
}

/* Every line but the names of commands, points, guards and files. */
static void nothing_is_told_in_english_in_chinese(void **state)
{
    (void)state;
    expect((const char *const[]){"run", "--narrate", "--lang", "zh", "-z", "paused-holder", "-z",
                                 "late-payment", "-g", "redis-token", NULL},
           EXIT_SUCCESS);
    static const char *const english[] = {"What", " the ",    " is ",     " and ",  "guard ",
                                          "safe", "answered", "expected", "Reports"};
    for (size_t i = 0; i < sizeof english / sizeof english[0]; i++)
        if (file_has(output, english[i]))
            fail_msg("there is \"%s\" in the Chinese narration", english[i]);
    assert_true(file_has(output, "对策："));
    assert_true(file_has(output, "符合预期"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_of_accounts_is_in_the_record),
        cmocka_unit_test(what_is_told_of_items_and_tasks_is_in_the_record),
        cmocka_unit_test(what_is_told_of_a_lock_that_is_lost_is_in_the_record),
        cmocka_unit_test(nothing_is_told_in_english_in_chinese),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
