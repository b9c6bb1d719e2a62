/* The fences of a section's rows: the locks' own, or the store's. */
#include "section.h"

#include <string.h>

/* Rows that share a counter share a fence. */
static db_status fence_from_store(struct section *section, struct section_row *row,
                                  int *ret_from_store)
{
    for (const struct section_row *other = section->rows; other < row; other++) {
        if (strcmp(other->counter, row->counter) == 0 && other->fence > row->seen_fence) {
            row->fence = other->fence;
            return DB_OK;
        }
    }
    section->error.message[0] = '\0';
    db_status status =
        db_next_fence(section->db, row->counter, row->seen_fence, &row->fence, &section->error);
    *ret_from_store += status == DB_OK;
    return status == DB_UNKNOWN ? DB_UNAVAILABLE : status; /* a number that nobody uses */
}

db_status section_take_fences(struct section *section, int *ret_from_store)
{
    db_status status = DB_OK;
    section->lost = NULL;
    section->refused = NULL;
    *ret_from_store = 0;
    for (size_t i = 0; i < section->n_rows && status == DB_OK; i++) {
        struct section_row *row = &section->rows[i];
        if (!row->hold)
            continue;
        if (!section->config->fence_database)
            row->fence = (int64_t)row->hold->fence;
        else if (section->config->fence)
            status = fence_from_store(section, row, ret_from_store);
    }
    return status;
}
