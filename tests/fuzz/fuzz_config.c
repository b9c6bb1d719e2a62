/*
 * The settings of the service: file, environment and command line, as the program loads them. Each
 * line of the input is one setting: "KEY = VALUE" for the file; "SECKILL_KEY=VALUE" for the
 * environment; "--KEY=VALUE" for the command line. What is printed of the result is loaded again
 * and must give the same; a password in a URL is never shown.
 */
#include "config_keys.h"
#include "fuzz.h"
#include "listen.h"
#include "memory_file.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>

enum { LINES_MAX = 64, SHOWN_ROOM = 4096 };

extern char **environ;

/* No name server is asked. */
int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret)
{
    struct addrinfo numeric = *hints;
    numeric.ai_flags |= AI_NUMERICHOST;
    return __real_getaddrinfo(name, service, &numeric, ret);
}

/* -- one setting ------------------------------------------------------------------------------- */

/* A number that is taken is one of digits, with blanks or a sign before them, and in range. */
static void check_numbers(const struct config_draft *draft, const struct config *config)
{
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct config_key *key = &config_keys[i];
        if (key->type != CONFIG_NUMBER || strcmp(key->name, "lane-turns") == 0)
            continue;
        int64_t number;
        const char *digits = draft->value[i] + strspn(draft->value[i], " \t\n\v\f\r");
        memcpy(&number, (const char *)config + key->offset, sizeof number);
        digits += *digits == '-' || *digits == '+';
        FUZZ_CHECK(strlen(digits) > 0 && strspn(digits, "0123456789") == strlen(digits));
        FUZZ_CHECK(number >= key->min && number <= key->max);
        errno = 0;
        FUZZ_CHECK(strtoll(draft->value[i], NULL, 10) == number && errno == 0);
    }
}

static void check_listen(const char *text)
{
    struct listen_address address;
    char message[LISTEN_MESSAGE_MAX], again[LISTEN_HOST_MAX + 16];
    if (listen_parse(text, &address, message, sizeof message) != 0) {
        FUZZ_CHECK(message[0] != '\0');
        return;
    }
    FUZZ_CHECK(address.port >= 0 && address.port <= 65535 && address.host[0] != '\0');
    struct listen_address same;
    const bool v6 = strchr(address.host, ':') != NULL;
    snprintf(again, sizeof again, "%s%s%s:%d", v6 ? "[" : "", address.host, v6 ? "]" : "",
             address.port);
    FUZZ_CHECK(listen_parse(again, &same, message, sizeof message) == 0);
    FUZZ_CHECK(same.port == address.port && strcmp(same.host, address.host) == 0);
}

/* Whatever stands before and behind it, the password is not shown. */
static void check_mask(const char *text)
{
    char url[SHOWN_ROOM], shown[SHOWN_ROOM], cut[20];
    const size_t half = strlen(text) / 2;
    if (half > SHOWN_ROOM / 16 || strstr(text, "SeCrEt") != NULL)
        return;
    snprintf(url, sizeof url, "%.*sredis://u:SeCrEt@h%s", (int)half, text, text + half);
    config_mask(url, shown, sizeof shown);
    FUZZ_CHECK(strstr(shown, "SeCrEt") == NULL);
    config_mask(url, cut, sizeof cut);
    FUZZ_CHECK(strlen(cut) < sizeof cut && strncmp(shown, cut, strlen(cut)) == 0);
}

/* -- the whole --------------------------------------------------------------------------------- */

/* Only what argp takes: on anything else it ends the program. */
static bool is_flag(const char *line)
{
    const char *equals = strchr(line, '=');
    const int key = equals != NULL ? config_key_find(line + 2, (size_t)(equals - line - 2)) : -1;
    return key >= 0 && config_keys[key].type != CONFIG_FLAG &&
           strlen(equals + 1) <
               (config_keys[key].type == CONFIG_TEXT ? config_keys[key].size : CONFIG_TEXT_MAX);
}

static bool is_printable_again(const struct config_draft *draft)
{
    for (size_t i = 0; i < config_n_keys; i++) {
        const char *value = draft->value[i];
        char shown[2 * CONFIG_TEXT_MAX];
        config_mask(value, shown, sizeof shown);
        if (strcmp(shown, value) != 0 || strpbrk(value, "\n") != NULL ||
            (value[0] != '\0' && isspace((unsigned char)value[0])) ||
            (value[0] != '\0' && isspace((unsigned char)value[strlen(value) - 1])))
            return false;
    }
    return true;
}

/* What --print-config shows is a settings file. */
static void print_and_load(const struct config_draft *draft, const struct config *config)
{
    static struct config_draft again;
    static struct memory_file file;
    struct config same;
    char *text = NULL;
    size_t size;
    if (!is_printable_again(draft))
        return;
    FILE *out = open_memstream(&text, &size);
    config_draft_print(draft, out);
    fclose(out);
    const char *path = memory_file(&file, text, size);
    free(text);
    config_draft_defaults(&again);
    FUZZ_CHECK(config_draft_file(&again, path) == 0 && config_draft_finish(&again, &same) == 0);
    if (config->lab) /* by default a lesson has other lanes; what is said stays */
        same.lane_turns = config->lane_turns;
    FUZZ_CHECK(memcmp(&same, config, sizeof same) == 0);
}

static void load(char **lines, int n, const char *file, size_t file_size)
{
    static struct config_draft draft;
    static struct memory_file settings;
    memory_file(&settings, file, file_size);
    char *flags[LINES_MAX + 4] = {"seckilld", "--config", settings.path},
                            *environment[LINES_MAX + 2] = {0};
    int n_flags = 3, n_environment = 0;
    for (int i = 0; i < n; i++) {
        check_listen(lines[i]);
        check_mask(lines[i]);
        if (strncmp(lines[i], "--", 2) == 0 && is_flag(lines[i]))
            flags[n_flags++] = lines[i];
        else if (strncmp(lines[i], "SECKILL_", 8) == 0)
            environment[n_environment++] = lines[i];
    }
    char **before = environ;
    struct config config, same;
    environ = environment;
    const int status = config_load(n_flags, flags, true, &config);
    environ = before;
    FUZZ_CHECK(status == -1 || status == 2);
    config_draft_defaults(&draft);
    for (int i = 3; i < n_flags; i++) {
        char *equals = strchr(flags[i], '=');
        const int key = config_key_find(flags[i] + 2, (size_t)(equals - flags[i] - 2));
        FUZZ_CHECK(config_draft_set(&draft, (size_t)key, equals + 1, CONFIG_FROM_FLAG) == 0);
    }
    const bool good = config_draft_file(&draft, settings.path) == 0 &&
                      config_draft_environment(&draft, environment) == 0 &&
                      config_draft_finish(&draft, &same) == 0;
    FUZZ_CHECK(strlen(draft.message) < sizeof draft.message && (good || draft.message[0] != '\0'));
    FUZZ_CHECK(status == 2 || good);
    if (!good)
        return;
    check_numbers(&draft, &same);
    print_and_load(&draft, &same);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    char *text = fuzz_text(input, size), *lines[LINES_MAX], *file = malloc(size + 1);
    size_t file_size = 0;
    int n = 0;
    FUZZ_CHECK(file != NULL);
    for (char *line = text, *end; line < text + size && n < LINES_MAX; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + size - line));
        if (end == NULL)
            end = text + size;
        *end = '\0';
        if (strncmp(line, "--", 2) != 0 && strncmp(line, "SECKILL_", 8) != 0) { /* with its NULs */
            memcpy(file + file_size, line, (size_t)(end - line));
            file_size += (size_t)(end - line);
            if (end < text + size)
                file[file_size++] = '\n';
        } else {
            lines[n++] = line;
        }
    }
    load(lines, n, file, file_size);
    if (file_size > 0) {
        char *all = fuzz_text(file, file_size);
        check_listen(all);
        check_mask(all);
        free(all);
    }
    free(file);
    free(text);
    return 0;
}
