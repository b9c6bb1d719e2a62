/*
 * The memcached of the simulation answers as memcached does: random commands go to both, and each
 * answer is compared. TEST_SEED=N: another sequence.
 */
#include "memcached.h"
#include "sandbox_process.h"
#include "sim_memcached.h"
#include "tests.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { COMMANDS = 20000, TEXT_MAX = 1024, NEAR_S = 60, KEYS = 4, LONG_S = 100000 };

static struct sandbox *sandbox;
static const struct sandbox_server *server;
static int real;
static struct sim_memcached model;
static int64_t model_s = 2; /* the time of its clock */
static uint64_t chance;
static uint64_t numbers[KEYS][2]; /* that gets gave for each key: memcached's, the model's */

int64_t sim_memcached_now_s(const struct sim_memcached *of)
{
    (void)of;
    return model_s;
}

static uint32_t below(uint32_t n)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % n;
}

/* -- asking ----------------------------------------------------------------------------------- */

/* All of an answer to these commands is there. */
static bool is_whole(const char *text)
{
    size_t bytes, n = strlen(text);
    const char *line = strstr(text, "\r\n");
    if (!line)
        return false;
    if (sscanf(text, "VA %zu", &bytes) == 1)
        return n >= (size_t)(line - text) + 2 + bytes + 2;
    return strncmp(text, "VALUE", 5) != 0 || (n >= 5 && strcmp(text + n - 5, "END\r\n") == 0);
}

static void ask_real(const char *command, char ret[TEXT_MAX])
{
    size_t n = 0;
    assert_int_equal(send(real, command, strlen(command), MSG_NOSIGNAL), strlen(command));
    do {
        ssize_t more = recv(real, ret + n, TEXT_MAX - 1 - n, 0);
        assert_true(more > 0);
        n += (size_t)more;
        ret[n] = '\0';
    } while (!is_whole(ret));
}

/* In two parts: the first is no whole command, and is not answered. */
static void ask_model(const char *command, char ret[TEXT_MAX])
{
    struct sim_bytes asked = {0}, answer = {0};
    const size_t n = strlen(command), first = below((uint32_t)n);
    sim_bytes_add(&asked, command, first);
    assert_false(sim_memcached_run(&model, &asked, &answer));
    sim_bytes_add(&asked, command + first, n - first);
    assert_true(sim_memcached_run(&model, &asked, &answer));
    assert_int_equal(asked.n, 0);
    snprintf(ret, TEXT_MAX, "%.*s", (int)answer.n, answer.at);
    free(asked.at);
    free(answer.at);
}

/* -- comparing -------------------------------------------------------------------------------- */

/* Takes the number of gets, and the seconds of mg, out of the text. Returns it, or -1. */
static int64_t take_number(char *text, const char *format, int skip)
{
    int at = 0, end = 0;
    char *line = strstr(text, "\r\n");
    for (int i = 0; i < skip; i++)
        at += (int)strcspn(text + at, " ") + 1;
    int64_t number = -1;
    if (!line || text + at > line || sscanf(text + at, format, &number, &end) != 1)
        return -1;
    memmove(text + at, text + at + end, strlen(text + at + end) + 1);
    return number;
}

static void compare(const char *for_real, const char *for_model, int key)
{
    char text[2][TEXT_MAX];
    int64_t number[2];
    ask_real(for_real, text[0]);
    ask_model(for_model, text[1]);
    const bool gives_number = strncmp(text[0], "VALUE", 5) == 0;
    const bool gives_time = strncmp(text[0], "VA ", 3) == 0;
    for (int i = 0; i < 2 && (gives_number || gives_time); i++)
        number[i] = gives_number ? take_number(text[i], "%" SCNd64 "%n", 4)
                                 : take_number(text[i], "t%" SCNd64 "%n", 2);
    if (strcmp(text[0], text[1]) != 0)
        fail_msg("%s\n  memcached: %s\n  model: %s", for_real, text[0], text[1]);
    for (int i = 0; i < 2 && gives_number; i++)
        numbers[key][i] = (uint64_t)number[i];
    if (gives_time && (llabs(number[0] - number[1]) > NEAR_S || (number[0] < 0) != (number[1] < 0)))
        fail_msg("%s: %" PRId64 " s left, and %" PRId64 " s", for_real, number[0], number[1]);
}

/* K a key, T an expiry, V a text with its length before it, C the key's number or another. */
static const char *const commands[] = {"add K 0 T V", "add K 0 T V", "cas K 0 T V",
                                       "gets K",      "gets K",      "md K C",
                                       "mg K t v u",  "delete K",    "cas K 0 T V"};

/* For memcached (side 0) and for the model. */
static void make(const char *pattern, int key, const char *value, int expiry_s, bool right,
                 int side, char ret[TEXT_MAX])
{
    const uint64_t number = numbers[key][side] + (right ? 0 : 1000000);
    size_t n = 0;
    for (const char *at = pattern; *at; at++) {
        const size_t left = TEXT_MAX - n;
        if (*at == 'K')
            n += (size_t)snprintf(ret + n, left, "k%d", key);
        else if (*at == 'T')
            n += (size_t)snprintf(ret + n, left, "%d", expiry_s);
        else if (*at == 'C')
            n += (size_t)snprintf(ret + n, left, "C%" PRIu64, number);
        else if (*at == 'V' && pattern[0] == 'c')
            n += (size_t)snprintf(ret + n, left, "%zu %" PRIu64 "\r\n%s", strlen(value), number,
                                  value);
        else if (*at == 'V')
            n += (size_t)snprintf(ret + n, left, "%zu\r\n%s", strlen(value), value);
        else
            n += (size_t)snprintf(ret + n, left, "%c", *at);
    }
    snprintf(ret + n, TEXT_MAX - n, "\r\n");
}

TEST_THAT(random_commands_are_answered_alike)
{
    static const char *const values[] = {"x", "yy", "with blanks", "", "two\r\nlines"};
    static const int expiries_s[] = {0, LONG_S, LONG_S + 1, -1};
    const char *seed = getenv("TEST_SEED");
    char text[2][TEXT_MAX];
    chance = seed && *seed ? strtoull(seed, NULL, 10) : 1;
    for (int i = 0; i < COMMANDS; i++) {
        const char *pattern = commands[below(sizeof commands / sizeof commands[0])];
        const char *value = values[below(5)];
        const int key = (int)below(KEYS), expiry_s = expiries_s[below(4)];
        const bool right = below(4) > 0;
        for (int side = 0; side < 2; side++)
            make(pattern, key, value, expiry_s, right, side, text[side]);
        compare(text[0], text[1], key);
    }
}

/* -- time ------------------------------------------------------------------------------------- */

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* The guard counts on this: a second less, and no more. */
TEST_THAT(a_key_ends_at_most_a_second_early)
{
    char line[MEMCACHED_LINE_MAX], text[TEXT_MAX];
    const int64_t begin_us = now_us();
    assert_true(memcached_ask(server, line, "add t 0 2 1\r\nx\r\n"));
    assert_string_equal(line, "STORED");
    do
        assert_true(memcached_ask(server, line, "mg t v\r\n"));
    while (strcmp(line, "EN") != 0);
    assert_true(now_us() - begin_us >= 1000000);

    model_s = 100; /* its clock ticks just after */
    ask_model("add t 0 2 1\r\nx\r\n", text);
    assert_string_equal(text, "STORED\r\n");
    model_s = 101;
    ask_model("gets t\r\n", text);
    assert_int_equal(strncmp(text, "VALUE", 5), 0);
    model_s = 102;
    ask_model("gets t\r\n", text);
    assert_string_equal(text, "END\r\n");
}

/* -- the servers ------------------------------------------------------------------------------ */

static int open_both(void **state)
{
    const int on = 1;
    (void)state;
    server = sandbox_open(&sandbox) == 0 ? sandbox_memcached(sandbox, NULL) : NULL;
    if (!server)
        return -1;
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)server->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    real = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(real, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(real, (const struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    char login[SANDBOX_MEMCACHED_LOGIN_MAX], text[TEXT_MAX];
    sandbox_memcached_login(login);
    ask_real(login, text);
    return strcmp(text, SANDBOX_MEMCACHED_LOGGED_IN) == 0 ? 0 : -1;
}

static int close_both(void **state)
{
    (void)state;
    close(real);
    sandbox_close(sandbox);
    return 0;
}

GROUP_FIXTURE(open_both, close_both);
