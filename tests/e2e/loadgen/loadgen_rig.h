/* The load generator as a child process, against a service of its own. */
#ifndef LOADGEN_RIG_H
#define LOADGEN_RIG_H

#include "process.h"
#include "program.h"
#include "shop.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 24, ENDS_WITHIN_MS = 200000 };

static struct shop shop;
static char output[SANDBOX_TEXT_MAX + 16], messages[SANDBOX_TEXT_MAX + 16];

static inline int open_shop(void **state)
{
    (void)state;
    if (shop_open(&shop, (const char *const[]){"--wait-ms", "20000", NULL}) != 0)
        return -1;
    snprintf(output, sizeof output, "%s/output", sandbox_dir(shop.sandbox));
    snprintf(messages, sizeof messages, "%s/messages", sandbox_dir(shop.sandbox));
    return 0;
}

static inline int close_shop(void **state)
{
    (void)state;
    bool well = shop_stop(shop.service);
    shop_close(&shop);
    return well ? 0 : -1;
}

static inline pid_t start(const char *const *args)
{
    const char *argv[ARGS_MAX + 1] = {shop_binary("loadgen")};
    size_t n = 1;
    for (; *args != NULL && n < ARGS_MAX; args++)
        argv[n++] = *args;
    return program_start(argv, output, messages);
}

static inline char *content_of(const char *path)
{
    static char text[20000];
    FILE *file = fopen(path, "r");
    size_t length = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    if (file != NULL)
        fclose(file);
    return text;
}

static inline void expect_exit(pid_t pid, int expected)
{
    int status;
    if (!program_ends(pid, ENDS_WITHIN_MS, &status))
        fail_msg("loadgen does not end");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected) {
        print_error("%s", content_of(output));
        print_error("%s", content_of(messages));
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
}

#define RUN(status, ...) expect_exit(start((const char *const[]){__VA_ARGS__, NULL}), status)

#endif
