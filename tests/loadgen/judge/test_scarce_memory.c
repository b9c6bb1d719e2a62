/* The Nth piece of memory is refused, for every N: the caller is told, and nothing is freed twice.
 */
#include "history.h"
#include "scarce.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
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

static void history_without_memory_is_told(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_without_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
