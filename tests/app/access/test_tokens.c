/* The tokens of a service: the file, its form and its mode, what is found, and a new file while
 * others ask. */
#include "process.h"
#include "tests.h"
#include "tokens_private.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nettle/base16.h>

/* SHA-256 of "abc": FIPS 180-2, B.1 */
#define OF_ABC       "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define OF_ABC_UPPER "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"
/* The first half is that of "abc". */
#define LIKE_ABC "ba7816bf8f01cfea414140de5dae222300000000000000000000000000000000"
#define OTHER    "0000000000000000000000000000000000000000000000000000000000000001"

static char path[] = "/tmp/test_tokens.XXXXXX", message[TOKENS_MESSAGE_MAX];
static struct tokens *tokens;

static int make_file(void **state)
{
    (void)state;
    const int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static struct tokens *open_file(bool open)
{
    const struct tokens_source source = {.file = path, .operator_sha256 = "", .open = open};
    message[0] = '\0';
    return tokens_open(&source, message, sizeof message);
}

static int close_tokens(void **state)
{
    (void)state;
    tokens_close(tokens);
    tokens = NULL;
    return 0;
}

static enum tokens_found find(const char *token, struct caller *ret)
{
    return tokens_find(tokens, token, token != NULL ? strlen(token) : 0, ret);
}

GROUP_FIXTURE(make_file, remove_file);
TEST_FIXTURE(NULL, close_tokens);

TEST_THAT(a_token_is_found_by_its_hash)
{
    static const char *const files[] = {
        "buyer ann " OF_ABC "\n",
        "# comment\n\n  buyer\tann  " OF_ABC_UPPER " \r\n#\n",
        "operator olga " OTHER "\nbuyer ann " OF_ABC,
        "buyer bob " LIKE_ABC "\nbuyer ann " OF_ABC "\nbuyer ann " OTHER "\n",
    };
    static const char *const unknown[] = {"", "ab", "abcd", "Abc", OF_ABC};
    struct caller caller;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        write_file(files[i]);
        tokens = open_file(false);
        if (tokens == NULL)
            fail_msg("%s", message);
        assert_int_equal(find("abc", &caller), TOKENS_OK);
        assert_int_equal(caller.role, ROLE_BUYER);
        assert_string_equal(caller.name, "ann");
        for (size_t k = 0; k < sizeof unknown / sizeof unknown[0]; k++)
            assert_int_equal(find(unknown[k], &caller), TOKENS_UNKNOWN);
        assert_int_equal(find(NULL, &caller), TOKENS_NONE);
        close_tokens(state);
    }
}

/* Not even 128 bits of the hash are enough. */
TEST_THAT(the_whole_hash_counts)
{
    struct caller caller;
    write_file("operator olga " LIKE_ABC "\n");
    tokens = open_file(false);
    assert_non_null(tokens);
    assert_int_equal(find("abc", &caller), TOKENS_UNKNOWN);
}

TEST_THAT(each_of_many_is_found)
{
    enum { MANY = 1024 }; /* the list is exactly full */
    char text[32], hex[BASE16_ENCODE_LENGTH(SHA256_DIGEST_SIZE) + 1] = "";
    uint8_t hash[SHA256_DIGEST_SIZE];
    FILE *file = fopen(path, "we");
    for (int i = 0; i < MANY; i++) {
        struct sha256_ctx context;
        snprintf(text, sizeof text, "token-%d", i);
        sha256_init(&context);
        sha256_update(&context, strlen(text), (const uint8_t *)text);
        sha256_digest(&context, sizeof hash, hash);
        base16_encode_update(hex, sizeof hash, hash);
        fprintf(file, "buyer u%d %s\n", i, hex);
    }
    fclose(file);
    tokens = open_file(false);
    assert_non_null(tokens);
    assert_int_equal(tokens_count(tokens), MANY);
    for (int i = 0; i < MANY; i++) {
        struct caller caller;
        char name[32];
        snprintf(text, sizeof text, "token-%d", i);
        snprintf(name, sizeof name, "u%d", i);
        assert_int_equal(find(text, &caller), TOKENS_OK);
        assert_string_equal(caller.name, name);
    }
}

TEST_THAT(wrong_files_are_refused_by_line)
{
    static const struct {
        const char *text, *what;
    } bad[] = {
        {"buyer ann\n", ":1: not of the form"},
        {"# one\nbuyer ann " OF_ABC " more\n", ":2: not of the form"},
        {"admin ann " OF_ABC "\n", ":1: a role is"},
        {"Buyer ann " OF_ABC "\n", ":1: a role is"},
        {"buyer a.b " OF_ABC "\n", ":1: a name is"},
        {"buyer 0123456789012345678901234567890123456789012345678901234567890123x " OF_ABC "\n",
         ":1: a name is"},
        {"buyer task " OF_ABC "\n", ":1: the service itself"},
        {"operator reset " OF_ABC "\n", ":1: the service itself"},
        {"operator setting " OF_ABC "\n", ":1: the service itself"},
        {"buyer ann " OF_ABC "0\n", ":1: the hash is not"},
        {"buyer ann g" OTHER "\n", ":1: the hash is not"},
        {"buyer ann zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n",
         ":1: the hash is not"},
        {"buyer ann abc\n", ":1: the hash is not"},
        {"buyer ann " OF_ABC "\noperator ann " OTHER "\n", "both buyer and operator"},
        {"buyer ann " OTHER "\noperator bob " OF_ABC "\noperator ann " LIKE_ABC "\n",
         "both buyer and operator"},
        {"buyer ann " OF_ABC "\nbuyer bob " OF_ABC_UPPER "\n", "the same token"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(bad[i].text);
        tokens = open_file(false);
        if (tokens != NULL || strstr(message, bad[i].what) == NULL)
            fail_msg("%s: \"%s\", not \"%s\"", bad[i].text, message, bad[i].what);
    }
}

TEST_THAT(long_lines_are_refused)
{
    FILE *file = fopen(path, "we");
    fprintf(file, "# %0300d\n", 0);
    fclose(file);
    tokens = open_file(false);
    assert_null(tokens);
    assert_non_null(strstr(message, "line too long"));
}

TEST_THAT(files_that_others_may_open_are_refused)
{
    static const mode_t open_modes[] = {0604, 0602, 0644, 0660 | S_IXOTH};
    static const mode_t good_modes[] = {0400, 0600, 0640};
    write_file("buyer ann " OF_ABC "\n");
    for (size_t i = 0; i < sizeof open_modes / sizeof open_modes[0]; i++) {
        assert_int_equal(chmod(path, open_modes[i]), 0);
        tokens = open_file(false);
        assert_null(tokens);
        assert_non_null(strstr(message, "other users"));
    }
    for (size_t i = 0; i < sizeof good_modes / sizeof good_modes[0]; i++) {
        assert_int_equal(chmod(path, good_modes[i]), 0);
        tokens = open_file(false);
        assert_non_null(tokens);
        close_tokens(state);
    }
    assert_int_equal(chmod(path, 0600), 0);
}

TEST_THAT(what_is_no_file_is_refused)
{
    static const char *const files[] = {"/nonexistent/tokens", "/tmp", "/dev/null"};
    static const char *const whats[] = {"No such file", "not a regular file", "not a regular file"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const struct tokens_source source = {.file = files[i], .operator_sha256 = ""};
        message[0] = '\0';
        tokens = tokens_open(&source, message, sizeof message);
        assert_null(tokens);
        assert_non_null(strstr(message, files[i]));
        assert_non_null(strstr(message, whats[i]));
    }
}

/* To open one waits for a writer, and nobody writes: the start of the service would hang. */
TEST_THAT(a_pipe_is_refused_at_once)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    tokens = open_file(false);
    assert_null(tokens);
    assert_non_null(strstr(message, "not a regular file"));
    assert_int_equal(unlink(path), 0);
    write_file("");
    assert_int_equal(chmod(path, 0600), 0);
}

TEST_THAT(the_longest_name_is_taken_and_none_is_not)
{
    static const char name[] = "0123456789012345678901234567890123456789012345678901234567890123";
    char text[256], *empty[] = {"token", "buyer", ""};
    struct caller caller;
    assert_int_equal(strlen(name), TOKENS_NAME_MAX);
    snprintf(text, sizeof text, "buyer %s %s\n", name, OF_ABC);
    write_file(text);
    tokens = open_file(false);
    assert_non_null(tokens);
    assert_int_equal(find("abc", &caller), TOKENS_OK);
    assert_string_equal(caller.name, name);
    assert_int_equal(tokens_make(3, empty), 2);
}

TEST_THAT(both_names_of_a_shared_token_are_told)
{
    write_file("buyer ann " OF_ABC "\nbuyer bob " OF_ABC "\n");
    tokens = open_file(false);
    assert_null(tokens);
    assert_non_null(strstr(message, "ann"));
    assert_non_null(strstr(message, "bob"));
}

TEST_THAT(files_are_closed)
{
    const int before = process_count_fds();
    write_file("buyer ann " OF_ABC "\n");
    tokens = open_file(false);
    assert_non_null(tokens);
    close_tokens(state);
    write_file("nothing\n");
    assert_null(open_file(false));
    assert_int_equal(chmod(path, 0644), 0);
    assert_null(open_file(false));
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(process_count_fds(), before);
}

TEST_THAT(the_operator_of_the_environment_is_one_more)
{
    struct tokens_source source = {.file = "", .operator_sha256 = OF_ABC};
    struct caller caller;
    tokens = tokens_open(&source, message, sizeof message);
    assert_non_null(tokens);
    assert_int_equal(find("abc", &caller), TOKENS_OK);
    assert_int_equal(caller.role, ROLE_OPERATOR);
    assert_string_equal(caller.name, "operator");
    close_tokens(state);
    source.operator_sha256 = "abc";
    tokens = tokens_open(&source, message, sizeof message);
    assert_null(tokens);
    assert_non_null(strstr(message, "operator-token-sha256"));
}

TEST_THAT(without_tokens_an_open_service_looks_at_none)
{
    struct caller caller;
    write_file("# none\n");
    assert_int_equal(find("anything", &caller), TOKENS_OK); /* tokens is NULL */
    assert_int_equal(caller.role, ROLE_OPERATOR);
    tokens = open_file(true);
    assert_int_equal(find("anything", &caller), TOKENS_OK);
    assert_int_equal(caller.role, ROLE_OPERATOR);
    assert_string_equal(caller.name, "");
    close_tokens(state);
    tokens = open_file(false); /* all were taken away: nobody is let in */
    assert_int_equal(find("anything", &caller), TOKENS_UNKNOWN);
    assert_int_equal(find(NULL, &caller), TOKENS_NONE);
    close_tokens(state);
    write_file("buyer ann " OF_ABC "\n");
    tokens = open_file(true);
    assert_int_equal(find(NULL, &caller), TOKENS_OK);
    assert_int_equal(find("anything", &caller), TOKENS_UNKNOWN);
    assert_int_equal(find("abc", &caller), TOKENS_OK);
    assert_int_equal(caller.role, ROLE_BUYER);
}

TEST_THAT(a_wrong_file_leaves_the_tokens_as_they_were)
{
    struct caller caller;
    write_file("buyer ann " OF_ABC "\n");
    tokens = open_file(false);
    write_file("buyer ann\n");
    assert_int_equal(tokens_load(tokens, message, sizeof message), -1);
    assert_int_equal(find("abc", &caller), TOKENS_OK);
    write_file("operator olga " OF_ABC "\n");
    assert_int_equal(tokens_load(tokens, message, sizeof message), 0);
    assert_int_equal(find("abc", &caller), TOKENS_OK);
    assert_string_equal(caller.name, "olga");
    write_file("buyer bob " OTHER "\n");
    assert_int_equal(tokens_load(tokens, message, sizeof message), 0);
    assert_int_equal(find("abc", &caller), TOKENS_UNKNOWN);
}

static atomic_bool asking_ends;

static void *ask_on(void *arg)
{
    long *ret_wrong = arg;
    while (!atomic_load(&asking_ends)) {
        struct caller caller;
        const bool found = find("abc", &caller) == TOKENS_OK;
        *ret_wrong += !found || (strcmp(caller.name, "ann") != 0 && strcmp(caller.name, "bo") != 0);
    }
    return NULL;
}

/* A sanitizer sees a use after free, or a race. */
TEST_THAT(tokens_may_be_replaced_while_others_ask)
{
    enum { ASKERS = 3, LOADS = 200 };
    pthread_t threads[ASKERS];
    long wrong[ASKERS] = {0};
    write_file("buyer ann " OF_ABC "\n");
    tokens = open_file(false);
    atomic_store(&asking_ends, false);
    for (int i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_on, &wrong[i]), 0);
    for (int i = 0; i < LOADS; i++) {
        write_file(i % 2 == 0 ? "buyer bo " OF_ABC "\nbuyer x " OTHER "\n"
                              : "buyer ann " OF_ABC "\n");
        assert_int_equal(tokens_load(tokens, message, sizeof message), 0);
    }
    atomic_store(&asking_ends, true);
    for (int i = 0; i < ASKERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}
