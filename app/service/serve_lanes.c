/* A few operations on each of many resources: one go for the locks, one commit, one go for the
 * releases. Who would have to wait for something is left. */
#include "attempt_steps.h"
#include "point.h"

#include <assert.h>

_Static_assert((int)LANES_TOGETHER <= (int)SECTIONS_MAX &&
                   (int)LANES_TOGETHER <= (int)LOCK_SETS_MAX,
               "more lanes than can be served together");

struct company {
    struct run *runs[LANES_TOGETHER];
    struct section *sections[LANES_TOGETHER]; /* of the same */
    struct lock_set *locks[LANES_TOGETHER];   /* of the same */
    size_t n;
};

static void add(struct company *company, struct run *run)
{
    company->runs[company->n] = run;
    company->sections[company->n] = run->section;
    company->locks[company->n] = &run->section->locks;
    company->n++;
}

static bool fits(const struct run *run)
{
    const struct section *section = run->section;
    return section->n_ops > 0 && section->n_rows == 1 &&
           guard_is_quick_with_many(section->rows[0].guard);
}

/* Those who need no lock, and those who get theirs at once. All locks are those of one guard: of
 * that which the first one needs. */
static void find_company(struct company *ret, struct run *runs, size_t n)
{
    struct company asking = {.n = 0};
    enum problem problems[LANES_TOGETHER];
    const struct guard *lock = NULL;
    ret->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!fits(&runs[i]))
            continue;
        const struct guard *guard = runs[i].section->rows[0].guard;
        if (guard->kind != GUARD_LOCK) {
            add(ret, &runs[i]);
        } else if (!lock || guard == lock) {
            lock = guard;
            add(&asking, &runs[i]);
        }
    }
    if (asking.n > 0)
        lock_sets_try(asking.locks, asking.n, problems);
    for (size_t i = 0; i < asking.n; i++) {
        if (problems[i] == PROBLEM_NONE)
            add(ret, asking.runs[i]);
    }
}

static void take_fences(struct section *section)
{
    int from_store;
    db_status fenced = section_take_fences(section, &from_store);
    assert(fenced == DB_OK && from_store == 0); /* they are the locks' own */
}

static void run_company(struct company *company)
{
    db_status statuses[LANES_TOGETHER];
    struct company done = {.n = 0};
    for (size_t i = 0; i < company->n; i++) {
        run_note_acquired(company->runs[i]);
        take_fences(company->sections[i]);
    }
    section_run_many(company->sections, company->n, statuses);
    for (size_t i = 0; i < company->n; i++) {
        bool settled = run_settle(company->runs[i], statuses[i]);
        if (settled)
            add(&done, company->runs[i]);
        if (!settled || company->sections[i]->undecided)
            section_give_back(company->sections[i]);
    }
    lock_sets_release(done.locks, done.n);
    for (size_t i = 0; i < done.n; i++)
        run_answer(done.runs[i], true);
}

void guarded_run_together(const struct guarded_host *host, struct section *sections,
                          struct lanes_share *shares, size_t n)
{
    struct run runs[LANES_TOGETHER];
    struct company company;
    assert(n >= 1 && n <= LANES_TOGETHER);
    for (size_t i = 0; i < n; i++)
        runs[i] = (struct run){.host = host, .section = &sections[i], .in_company = true};
    if (n == 1) {
        shares->n = run_turns(runs, shares->ops, shares->n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        sections[i].reader = sections[0].reader;
        if (!run_begin(&runs[i], shares[i].ops, shares[i].n)) {
            shares->n = 0; /* there is no reader: the first have been told, the others wait */
            return;
        }
    }
    run_look_up(runs, n);
    find_company(&company, runs, n);
    if (company.n > 0)
        run_company(&company);
    for (size_t i = 0; i < n; i++) {
        shares[i].n = sections[i].n_ops;
        if (i > 0)
            sections[i].reader = NULL;
    }
}
