/* The books of a store before two auditors that are not ours: hledger(1) and bean-check(1). */
#ifndef TEST_JOURNAL_JUDGES_H
#define TEST_JOURNAL_JUDGES_H

#include <stdbool.h>

struct journal_verdict {
    bool written; /* seckilld export --journal succeeded */
    bool hledger, beancount;
};

/* Exports the store at url into folder, and asks both. No service may have an SQLite store open. */
struct journal_verdict journal_judge(const char *url, const char *folder);
/* True if the journal was written and both accept it; else prints what they say. */
bool journal_accepted(const char *url, const char *folder);

#endif
