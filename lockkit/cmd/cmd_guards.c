/* lockkit guards: what is built in, and what each claims. */
#include "cmd.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { KEY_JSON = 256 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key != KEY_JSON)
        return ARGP_ERR_UNKNOWN;
    *(bool *)state->input = true;
    return 0;
}

static void print_text(void)
{
    const lk_provider_info *guard;
    const lk_cap_info *caps = lk_cap_list();
    for (size_t i = 0; (guard = lk_provider_at(i)) != NULL; i++) {
        printf("%s%s\n   ", i > 0 ? "\n" : "", guard->name);
        for (size_t j = 0; j < LK_CAP_COUNT; j++)
            if ((guard->caps & caps[j].bit) != 0)
                printf(" %s", caps[j].name);
        printf("\n    how:  %s\n    gives: %s\n    weak: %s\n", guard->algorithm, guard->guarantee,
               guard->weakness);
    }
    printf("\nWhat the words claim:\n");
    for (size_t j = 0; j < LK_CAP_COUNT; j++)
        printf("    %-13s %s\n", caps[j].name, caps[j].text);
}

static void print_json(void)
{
    const lk_provider_info *guard;
    const lk_cap_info *caps = lk_cap_list();
    json_t *all = json_array();
    for (size_t i = 0; (guard = lk_provider_at(i)) != NULL; i++) {
        json_t *claims = json_array();
        for (size_t j = 0; j < LK_CAP_COUNT; j++)
            if ((guard->caps & caps[j].bit) != 0)
                json_array_append_new(claims, json_string(caps[j].name));
        json_array_append_new(all, json_pack("{s:s,s:o,s:s,s:s,s:s,s:s}", "guard", guard->name,
                                             "claims", claims, "algorithm", guard->algorithm,
                                             "guarantee", guard->guarantee, "weakness",
                                             guard->weakness, "source", guard->source));
    }
    json_dumpf(all, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(all);
}

static const struct argp_option own_options[] = {{"json", KEY_JSON, NULL, 0, "As JSON", 0}, {0}};
static const struct argp guards_argp = {
    .options = own_options,
    .parser = parse,
    .doc =
        "Shows the kinds of locks built in: what each claims, how it works and where it is weak.\v"
        "Exit status: 0, 64 usage, 70 other failures."};

int cmd_guards(int argc, char **argv)
{
    bool json = false;
    cmd_parse(&guards_argp, argc, argv, &json);
    if (json)
        print_json();
    else
        print_text();
    return CMD_OK;
}
