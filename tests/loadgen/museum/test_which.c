/* Which lock? Each answer is a guard whose own claims allow what was asked. */
#include "lockkit.h"
#include "scenes.h"
#include "tests.h"
#include "web_files.h"
#include "which.h"
#include "words.h"

#include <string.h>

static json_t *which;

static int open_rules(void **state)
{
    (void)state;
    which = json_loads(web_find("which.json"), JSON_REJECT_DUPLICATES, NULL);
    return which != NULL ? 0 : -1;
}

static int close_rules(void **state)
{
    (void)state;
    json_decref(which);
    return 0;
}

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    assert_non_null(text);
    return text;
}

static bool is(const json_t *json, const char *name, const char *text)
{
    return strcmp(text_of(json, name), text) == 0;
}

static bool starts(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Calls each(answers) for all combinations. Returns how many there are. */
static int walk(size_t question, json_t *answers, void (*each)(const json_t *answers))
{
    const json_t *questions = json_object_get(which, "questions");
    const json_t *one = json_array_get(questions, question);
    int n = 0;
    if (one == NULL) {
        each(answers);
        return 1;
    }
    for (size_t i = 0; i < json_array_size(json_object_get(one, "answers")); i++) {
        json_object_set(answers, text_of(one, "id"),
                        json_array_get(json_object_get(one, "answers"), i));
        n += walk(question + 1, answers, each);
    }
    return n;
}

static int walk_all(void (*each)(const json_t *answers))
{
    json_t *answers = json_object();
    const int n = walk(0, answers, each);
    json_decref(answers);
    return n;
}

/* An in-store guard has no lock, so nothing of it can end too early: the store itself decides. */
static void keeps_what_was_asked(const json_t *answers)
{
    const json_t *rule = which_rule(which, answers);
    assert_non_null(rule);
    const char *guard = text_of(rule, "guard");
    const lk_provider_info *lock = lk_provider_find(guard);
    if (is(answers, "database", "no"))
        assert_false(starts(guard, "sql-") || starts(guard, "pg-"));
    if (starts(guard, "redis-"))
        assert_true(is(answers, "servers", "redis"));
    if (starts(guard, "zk-"))
        assert_true(is(answers, "servers", "zookeeper"));
    if (lock == NULL) {
        assert_true(starts(guard, "sql-")); /* of the app, and in which.json */
        return;
    }
    assert_true(lock->caps & LK_CAP_EXCLUSIVE);
    /* What may end while its holder works needs a fence. What cannot, ends with the process. */
    if (is(answers, "loss", "never") && lock->caps & (LK_CAP_LEASE | LK_CAP_SESSION))
        assert_true(lock->caps & LK_CAP_FENCE);
    if (is(answers, "work", "long") && lock->caps & LK_CAP_LEASE)
        assert_true(lock->caps & LK_CAP_RENEW);
    if (is(answers, "waiters", "many"))
        assert_true(lock->caps & LK_CAP_FAIR);
    assert_true(lock->caps & LK_CAP_OWNER); /* a late release frees nobody else's lock */
    if (!(lock->caps &
          LK_CAP_DISTRIBUTED)) /* only where there is nothing that several could share */
        assert_true(is(answers, "servers", "none") && is(answers, "database", "no"));
}

GROUP_FIXTURE(open_rules, close_rules);

TEST_THAT(each_answer_is_a_guard_that_claims_what_was_asked)
{
    assert_int_equal(walk_all(keeps_what_was_asked), 48);
}

static json_t *used;

static void note_use(const json_t *answers)
{
    json_object_set_new(used, text_of(which_rule(which, answers), "id"), json_true());
}

TEST_THAT(each_rule_is_the_answer_to_something_and_is_told)
{
    size_t i;
    json_t *rule;
    used = json_object();
    walk_all(note_use);
    json_array_foreach(json_object_get(which, "rules"), i, rule)
    {
        bool is_scene = false;
        assert_true(json_is_true(json_object_get(used, text_of(rule, "id"))));
        for (size_t k = 0; k < scenes_n; k++)
            is_scene |= strcmp(scenes[k].id, text_of(rule, "scene")) == 0;
        assert_true(is_scene);
        assert_non_null(json_object_get(json_object_get(which, "guards"), text_of(rule, "guard")));
    }
    json_decref(used);
}

/* The scene that would break the runner-up shows that guard, or one that is weaker in nothing else.
 */
TEST_THAT(the_scene_breaks_the_runner_up)
{
    size_t i;
    json_t *rule;
    json_array_foreach(json_object_get(which, "rules"), i, rule)
    {
        const char *guard = NULL;
        for (size_t k = 0; k < scenes_n; k++)
            if (is(rule, "scene", scenes[k].id)) {
                guard = scenes[k].guard;
                assert_string_not_equal(scenes[k].outcome, "safe");
            }
        assert_string_equal(guard, text_of(rule, "runner_up"));
    }
}

/* Those in the store are the app's. */
TEST_THAT(each_guard_is_described_as_it_describes_itself)
{
    const char *guard;
    json_t *own, *words = words_open("en");
    int n = 0;
    json_object_foreach(json_object_get(which, "guards"), guard, own)
    {
        const lk_provider_info *lock = lk_provider_find(guard);
        char prefix[64];
        snprintf(prefix, sizeof prefix, "guard.%s", guard);
        if (lock == NULL)
            continue;
        assert_string_equal(words_of(words, prefix, "how"), lock->algorithm);
        assert_string_equal(words_of(words, prefix, "gives"), lock->guarantee);
        assert_string_equal(words_of(words, prefix, "weak"), lock->weakness);
        n++;
    }
    json_decref(words);
    assert_int_equal(n, 6);
}
