/* The Nth piece of memory is refused, for every N: the caller is told, and nothing is freed twice.
 */
#include "compare.h"
#include "history.h"
#include "scarce.h"
#include "tests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECES_MAX = 100000, RESOURCES = 1100, KEYS = 1100 }; /* past the first room of each table */

static void write_history(char *path)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    for (int i = 0; i < RESOURCES; i++)
        fprintf(file, "{\"event\":\"resource\",\"resource\":\"account:%d\",\"initial\":5}\n", i);
    for (int i = 0; i < KEYS; i++)
        fprintf(file,
                "{\"event\":\"invoke\",\"at_us\":1,\"key\":\"k%d\",\"path\":\"/v1/transfers\","
                "\"body\":{\"from\":\"1\",\"to\":\"2\",\"amount\":1}}\n",
                i);
    assert_int_equal(fclose(file), 0);
}

TEST_THAT(history_without_memory_is_told)
{
    char path[] = "/tmp/test-scarce-XXXXXX", message[512];
    int refused = 1, failures = 0;
    write_history(path);
    /* The tables grow rarely, the entries always: nearly all pieces are alike. */
    for (int n = 1; refused > 0 && n < PIECES_MAX; n += n < 40 ? 1 : 13) {
        struct history history = {0};
        strcpy(message, "");
        scarce_from(n, false);
        int result = history_read(path, &history, message, sizeof message);
        refused = scarce_end();
        failures += result != 0;
        if (refused > 0 && (result != -1 || strstr(message, "memory") == NULL))
            fail_msg("piece %d: %d '%s'", n, result, message);
        if (result == 0) {
            assert_int_equal(history.n_ops, KEYS);
            history_free(&history);
        }
    }
    unlink(path);
    assert_int_equal(refused, 0);
    assert_true(failures > 100);
}

TEST_THAT(comparison_without_memory_is_told)
{
    static struct compare_group groups[COMPARE_GROUPS_MAX];
    const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12};
    struct ranks_ratio ratio = {.ratio = 7};
    int n = 1, refused = 1;
    for (; refused > 0; n++) {
        scarce_from(n, true);
        double p = ranks_p(a, 6, b, 6);
        refused = scarce_end();
        assert_true(refused > 0 ? isnan(p) : p < 0.01);
    }
    assert_int_equal(n, 6); /* two of the ranking, two of the ways to choose */
    for (n = 1, refused = 1; refused > 0; n++) {
        scarce_from(n, true);
        bool done = ranks_ratio(a, 6, b, 6, 0.05, &ratio);
        refused = scarce_end();
        assert_true(done == (refused == 0));
        assert_true(done || ratio.ratio == 7);
    }
    assert_true(ratio.ratio > 2);
    json_t *report = json_pack("{s:[{s:s, s:s, s:f}]}", "runs", "workload", "sale", "guard", "none",
                               "throughput_rps", 5.0);
    for (n = 1, refused = 1; refused > 0; n++) {
        scarce_from(n, true);
        int found = compare_groups(report, groups);
        refused = scarce_end();
        assert_int_equal(found, refused > 0 ? -1 : 1);
        assert_true(groups[0].samples[0] == NULL || found == 1);
    }
    assert_int_equal(n, COMPARE_METRICS + 2);
    compare_groups_free(groups, 1);
    json_decref(report);
}
