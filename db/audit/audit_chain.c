/* The chain of hashes of one resource, over all its epochs. Two rows of one step are two heirs of
 * the step before; a row may go on from either. */
#include "audit.h"

#include <string.h>

void audit_chain_start(struct audit_chain *chain, bool whole)
{
    chain->now = 0;
    chain->any = chain->forked = false;
    chain->whole = whole;
    chain->steps[0].rows = chain->steps[1].rows = 0;
}

void audit_chain_carry(struct audit_chain *chain, const struct audit_head *head)
{
    struct audit_hashes *step = &chain->steps[chain->now];
    step->epoch = head->carried_epoch;
    step->version_before = head->carried_version;
    step->rows = 1;
    memcpy(step->hash[0], head->carried_hash, sizeof step->hash[0]);
    chain->any = true;
}

static bool follows(const struct audit_hashes *before, const db_ledger_row *row)
{
    char hash[DB_HASH_LENGTH + 1];
    if (before->rows > AUDIT_FORK_WIDTH_MAX)
        return true;
    for (int64_t i = 0; i < before->rows; i++) {
        db_ledger_hash(row, before->hash[i], hash);
        if (strcmp(hash, row->hash) == 0)
            return true;
    }
    return false;
}

/* The first row follows nothing. The first row that is read of a later epoch is its reset: its
 * predecessor is not read. */
static bool begins(const struct audit_chain *chain, const db_ledger_row *row)
{
    char hash[DB_HASH_LENGTH + 1];
    if (!chain->whole && row->epoch > 1)
        return row->kind == DB_KIND_RESET;
    db_ledger_hash(row, "", hash);
    return strcmp(hash, row->hash) == 0;
}

static void next_step(struct audit_chain *chain, const db_ledger_row *row)
{
    chain->now = 1 - chain->now;
    chain->steps[chain->now].epoch = row->epoch;
    chain->steps[chain->now].version_before = row->version_before;
    chain->steps[chain->now].rows = 0;
}

bool audit_chain_add(struct audit_chain *chain, const db_ledger_row *row)
{
    struct audit_hashes *step = &chain->steps[chain->now];
    const bool first = !chain->any, late = !first && row->epoch != step->epoch;
    const bool was_forked = chain->forked;
    if (late)
        chain->forked = false;
    if (first || late || row->version_before != step->version_before)
        next_step(chain, row);
    else
        chain->forked = true;
    step = &chain->steps[chain->now];
    const struct audit_hashes *before = &chain->steps[1 - chain->now];
    if (step->rows < AUDIT_FORK_WIDTH_MAX)
        memcpy(step->hash[step->rows], row->hash, sizeof step->hash[0]);
    step->rows++;
    chain->any = true;
    if (before->rows == 0)
        return begins(chain, row);
    /* After a fork the late writer's row may be the last one, whatever its version. */
    return follows(before, row) || (late && was_forked && row->kind == DB_KIND_RESET);
}

bool audit_chain_ends(const struct audit_chain *chain, const char *hash)
{
    const struct audit_hashes *step = &chain->steps[chain->now];
    return chain->forked || (chain->any && strcmp(step->hash[0], hash) == 0);
}
