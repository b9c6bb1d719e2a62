/* Tokens without memory: the service is told, and what was loaded before goes on. */
#include "scarce.h"
#include "tests.h"
#include "tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 40 }; /* the list grows twice */

static char path[] = "/tmp/test_tokens.XXXXXX";

static int write_file(void **state)
{
    (void)state;
    FILE *file = fdopen(mkstemp(path), "w");
    if (file == NULL)
        return -1;
    for (int i = 0; i < LINES; i++)
        fprintf(file, "buyer u%d %064d\n", i, i);
    return fclose(file);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

GROUP_FIXTURE(write_file, remove_file);

TEST_THAT(tokens_without_memory_are_not_loaded)
{
    const struct tokens_source source = {.file = path, .operator_sha256 = ""};
    char message[TOKENS_MESSAGE_MAX];
    struct tokens *tokens = NULL;
    int refused = 1, failures = 0;
    for (int n = 1; refused > 0; n++) {
        message[0] = '\0';
        scarce_from(n, false);
        tokens = tokens_open(&source, message, sizeof message);
        refused = (int)scarce_end();
        assert_int_equal(tokens == NULL, refused > 0);
        failures += refused;
        assert_int_equal(message[0] != '\0', refused > 0);
    }
    assert_true(failures >= 3); /* the struct, the file, the list as it grows */
    refused = 1;
    for (int n = 1; refused > 0; n++) {
        scarce_from(n, false);
        const int result = tokens_load(tokens, message, sizeof message);
        refused = (int)scarce_end();
        assert_int_equal(result, refused > 0 ? -1 : 0);
        assert_int_equal(tokens_count(tokens), LINES);
    }
    tokens_close(tokens);
}
