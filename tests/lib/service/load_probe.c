#include "load_probe.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t write_request(void *ctx, uint64_t seq, const struct load_target *target, char *out,
                            size_t size)
{
    struct probe *probe = ctx;
    if (seq >= probe->max)
        return 0;
    probe->entries[seq].requests++;
    return (size_t)snprintf(out, size, "GET /%llu HTTP/1.1\r\nHost: %s\r\n\r\n",
                            (unsigned long long)seq, target->host);
}

static int64_t take_outcome(void *ctx, uint64_t seq, const struct load_answer *answer)
{
    struct probe *probe = ctx;
    struct probe_entry *entry = &probe->entries[seq];
    if (entry->outcomes++ == 0)
        entry->first_sent_us = answer->sent_us;
    entry->end = answer->end;
    entry->status = answer->status;
    entry->target = answer->target;
    entry->sent_us = answer->sent_us;
    entry->answered_us = answer->answered_us;
    entry->retry_after_ms = answer->retry_after_ms;
    entry->replayed = answer->replayed;
    entry->body_length = answer->body_length;
    assert(strlen(answer->body) <= answer->body_length);
    snprintf(entry->body, sizeof entry->body, "%s", answer->body);
    bool again = probe->retry_ms > 0 && entry->outcomes < probe->sendings_max &&
                 (answer->end != LOAD_ANSWERED || answer->status != 200);
    return again ? probe->retry_ms : -1;
}

void probe_init(struct probe *probe, uint64_t max)
{
    *probe = (struct probe){.max = max};
    probe->entries = calloc(max, sizeof *probe->entries);
    assert(probe->entries != NULL);
}

void probe_free(struct probe *probe)
{
    free(probe->entries);
    *probe = (struct probe){0};
}

struct load_workload probe_workload(struct probe *probe)
{
    return (struct load_workload){.request = write_request, .outcome = take_outcome, .ctx = probe};
}

struct load_options probe_options(const char *url)
{
    char message[256];
    struct load_options options = {
        .n_targets = 1, .mode = LOAD_CLOSED, .connections = 4, .threads = 1, .timeout_ms = 5000};
    int error = load_target_parse(url, &options.targets[0], message, sizeof message);
    assert(error == 0);
    return options;
}

struct load_result probe_run(const struct load_options *options, struct probe *probe)
{
    char message[256];
    struct load_result result;
    struct load_workload workload = probe_workload(probe);
    if (load_run(options, &workload, &result, message, sizeof message) != 0) {
        fprintf(stderr, "load_run: %s\n", message);
        abort();
    }
    return result;
}
