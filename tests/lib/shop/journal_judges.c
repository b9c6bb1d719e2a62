#include "journal_judges.h"
#include "program.h"
#include "shop.h"

#include <stdio.h>
#include <unistd.h>

enum { PROGRAM_MS = 120000, PATH_BYTES = 512 };

static bool succeeds(const char *const *argv, const char *output, const char *messages)
{
    int status;
    return program_ends(program_start(argv, output, messages), PROGRAM_MS, &status) && status == 0;
}

struct journal_verdict journal_judge(const char *url, const char *folder)
{
    char journal[PATH_BYTES], said[PATH_BYTES + 16], db[PATH_BYTES];
    snprintf(journal, sizeof journal, "%s/journal.beancount", folder);
    snprintf(said, sizeof said, "%s.said", journal);
    snprintf(db, sizeof db, "--db=%s", url);
    const char *const export[] = {shop_binary("seckilld"), "export", "--journal", db, NULL};
    const char *const hledger[] = {"/usr/bin/hledger", "-f", journal, "check", NULL};
    const char *const beancount[] = {"/usr/bin/bean-check", "--no-cache", journal, NULL};
    struct journal_verdict verdict = {.written = succeeds(export, journal, said)};
    verdict.hledger = verdict.written && succeeds(hledger, said, NULL);
    verdict.beancount = verdict.written && succeeds(beancount, said, NULL);
    unlink(journal);
    unlink(said);
    return verdict;
}

bool journal_accepted(const char *url, const char *folder)
{
    struct journal_verdict verdict = journal_judge(url, folder);
    if (!verdict.written || !verdict.hledger || !verdict.beancount)
        fprintf(stderr, "journal of %s: written %d, hledger %d, bean-check %d\n", url,
                verdict.written, verdict.hledger, verdict.beancount);
    return verdict.written && verdict.hledger && verdict.beancount;
}
