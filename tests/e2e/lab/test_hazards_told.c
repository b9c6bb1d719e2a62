/* What the lab tells of its runs, on real servers: each sentence is compared with the record. A
 * second reader of the record decides here which facts must be told. All rows: TEST_FULL=1. */
#include "hazards_rig.h"
#include "process.h"
#include "told_reader.h"

enum { SECTION_MAX = 1 << 14, TEXT_LONGEST = 1 << 21 };

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

GROUP_FIXTURE(open_folder, close_folder);

TEST_THAT(what_is_told_of_accounts_is_in_the_record)
{
    each_sentence_is_so((const char *const[]){
        RUN, "-z", "lost-update", "-z", "paused-holder", "-z", "unlock-before-commit", "-z",
        "result-ignored", "-g", "none", "-g", "redis-set", "-g", "redis-token", NULL});
    each_sentence_is_so((const char *const[]){RUN, "-z", "wrong-delete", "-z", "duplicate-request",
                                              "-z", "opposite-order", "-g", "redis-set", "-g",
                                              "redis-token", NULL});
}

TEST_THAT(what_is_told_of_items_and_tasks_is_in_the_record)
{
    each_sentence_is_so((const char *const[]){RUN, "-z", "off-by-one", "-z", "double-task", "-z",
                                              "late-payment", "-z", "zk-herd", "-g", "none", "-g",
                                              "redis-token", "-g", "zk-ephemeral", NULL});
}

TEST_THAT(what_is_told_of_a_lock_that_is_lost_is_in_the_record)
{
    const char *const few[] = {RUN,           "-z", "commit-unknown", "-z", "renewal-lost", "-g",
                               "redis-token", NULL},
                      *const all[] = {RUN, NULL};
    each_sentence_is_so(test_size(0, 1) == 1 ? all : few);
}

/* Every line but the names of commands, points, guards and files. */
TEST_THAT(nothing_is_told_in_english_in_chinese)
{
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
