#include "tally.h"
#include "answer_problem.h"
#include "splitmix.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETRY_MIN_MS = 20, /* without Retry-After: a random time in this range */
    RETRY_MAX_MS = 120,
    RETRY_SPREAD_MS = 250 /* at most; added to Retry-After, so that retries do not come together */
};

enum use { USE_IS_DUPLICATE = 0x100, USE_WHICH, USE_RETRY };

int tally_init(struct tally *tally, uint64_t n, uint64_t seed, double duplicates_pct,
               int64_t patience_ms)
{
    memset(tally, 0, sizeof *tally);
    tally->entries = calloc(n == 0 ? 1 : n, sizeof *tally->entries);
    if (tally->entries == NULL)
        return -1;
    tally->n = n;
    tally->seed = seed;
    tally->duplicates_pct = duplicates_pct;
    tally->patience_ms = patience_ms;
    pthread_mutex_init(&tally->lock, NULL);
    return 0;
}

void tally_free(struct tally *tally)
{
    if (tally->entries == NULL)
        return;
    pthread_mutex_destroy(&tally->lock);
    free(tally->entries);
    tally->entries = NULL;
}

uint64_t tally_random(const struct tally *tally, uint64_t seq, unsigned use)
{
    return splitmix(splitmix(splitmix(tally->seed) + seq) + use);
}

uint64_t tally_origin(const struct tally *tally, uint64_t seq)
{
    double share = tally->duplicates_pct / 100;
    while (seq > 0 && (double)(tally_random(tally, seq, USE_IS_DUPLICATE) >> 11) * 0x1p-53 < share)
        seq = tally_random(tally, seq, USE_WHICH) % seq;
    return seq;
}

/* FNV-1a. */
static uint64_t hash_answer(int status, const char *body)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)status;
    for (; *body != '\0'; body++)
        hash = (hash ^ (uint8_t)*body) * 0x100000001b3u;
    return hash == 0 ? 1 : hash;
}

void tally_count_problem(struct tally *tally, const char *name)
{
    pthread_mutex_lock(&tally->lock);
    size_t i = 0;
    while (i < tally->n_problems && strcmp(tally->problems[i].name, name) != 0)
        i++;
    if (i == tally->n_problems && i < TALLY_PROBLEMS_MAX) {
        snprintf(tally->problems[i].name, sizeof tally->problems[i].name, "%s", name);
        tally->n_problems++;
    }
    if (i < TALLY_PROBLEMS_MAX)
        tally->problems[i].count++;
    pthread_mutex_unlock(&tally->lock);
}

static void keep_first(struct tally *tally, char kept[TALLY_ANSWER_TEXT_MAX], int status,
                       const char *body)
{
    char detail[ANSWER_DETAIL_MAX + 1];
    pthread_mutex_lock(&tally->lock);
    if (kept[0] == '\0') {
        answer_problem_detail(body, detail);
        snprintf(kept, TALLY_ANSWER_TEXT_MAX, "%d %s", status, detail);
    }
    pthread_mutex_unlock(&tally->lock);
}

static void raise_end(struct tally *tally, uint64_t end)
{
    uint64_t old = atomic_load_explicit(&tally->end, memory_order_relaxed);
    while (old < end && !atomic_compare_exchange_weak_explicit(
                            &tally->end, &old, end, memory_order_relaxed, memory_order_relaxed))
        continue;
}

bool tally_decide(struct tally *tally, uint64_t seq, int status, const char *body)
{
    struct tally_entry *entry = &tally->entries[seq];
    char problem[TALLY_PROBLEM_TEXT_MAX];
    raise_end(tally, seq + 1);
    answer_problem_name(body, problem, sizeof problem);
    bool running = status == 409 && strcmp(problem, "in-flight") == 0;
    /* 5xx: perhaps done; only the stored answer of the key decides. 429 and 408: not done yet. */
    if (running || status < 200)
        return false;
    if (status >= 500 || status == 429 || status == 408) {
        keep_first(tally, tally->refused_for_now, status, body);
        return false;
    }
    if (status < 300) {
        entry->state = TALLY_ACCEPTED;
    } else if (status == 409) {
        entry->state = TALLY_REFUSED;
    } else {
        entry->state = TALLY_FAILED;
        keep_first(tally, tally->failure, status, body);
    }
    entry->answer_hash = hash_answer(status, body);
    return true;
}

static int64_t retry_delay_ms(const struct tally *tally, uint64_t seq,
                              const struct load_answer *answer)
{
    uint64_t dice = tally_random(tally, seq ^ (uint64_t)answer->sent_us << 20, USE_RETRY);
    if (answer->retry_after_ms > 0)
        return answer->retry_after_ms + (int64_t)(dice % RETRY_SPREAD_MS);
    return RETRY_MIN_MS + (int64_t)(dice % (RETRY_MAX_MS - RETRY_MIN_MS));
}

int64_t tally_outcome(struct tally *tally, uint64_t seq, const struct load_answer *answer)
{
    struct tally_entry *entry = &tally->entries[seq];
    assert(seq < tally->n);
    raise_end(tally, seq + 1);
    if (entry->first_us == 0)
        entry->first_us = answer->sent_us;
    if (answer->end != LOAD_NOT_SENT && entry->state == TALLY_UNSENT)
        entry->state = TALLY_UNKNOWN;

    if (answer->end == LOAD_ANSWERED) {
        char problem[TALLY_PROBLEM_TEXT_MAX];
        answer_problem_name(answer->body, problem, sizeof problem);
        if (problem[0] != '\0')
            tally_count_problem(tally, problem);
        if (tally_decide(tally, seq, answer->status, answer->body))
            return -1;
    } else if (answer->end != LOAD_NOT_SENT) {
        return -1; /* unknown: resolved after the load by its key */
    }
    bool stopped = tally->stop != NULL && atomic_load(tally->stop);
    int64_t left_us = tally->patience_ms * 1000 - (answer->sent_us - entry->first_us);
    if (stopped || left_us < 0)
        return -1;
    /* A server may say "Retry-After: 3600". Wait only for the patience, then try once more. */
    int64_t delay_ms = retry_delay_ms(tally, seq, answer);
    return delay_ms <= left_us / 1000 ? delay_ms : left_us / 1000 + 1;
}

uint64_t tally_end(const struct tally *tally)
{
    return atomic_load_explicit(&tally->end, memory_order_relaxed);
}

void tally_settle(struct tally *tally)
{
    for (uint64_t seq = 0; seq < tally_end(tally); seq++) {
        struct tally_entry *origin = &tally->entries[tally_origin(tally, seq)];
        const struct tally_entry *entry = &tally->entries[seq];
        if (entry->state > origin->state && origin->state <= TALLY_UNKNOWN) {
            origin->state = entry->state;
            origin->answer_hash = entry->answer_hash;
        }
    }
}

uint64_t tally_count(const struct tally *tally, enum tally_state state)
{
    uint64_t count = 0;
    for (uint64_t seq = 0; seq < tally_end(tally); seq++)
        count += tally->entries[seq].state == state && tally_origin(tally, seq) == seq;
    return count;
}

uint64_t tally_differing(const struct tally *tally)
{
    uint64_t count = 0;
    for (uint64_t seq = 0; seq < tally_end(tally); seq++) {
        uint64_t origin = tally->entries[tally_origin(tally, seq)].answer_hash;
        uint64_t own = tally->entries[seq].answer_hash;
        count += own != 0 && origin != 0 && own != origin;
    }
    return count;
}
