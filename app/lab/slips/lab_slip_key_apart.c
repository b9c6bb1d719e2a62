/* The effect is committed first. The row by which a retry is recognized is committed later. */
#include "lab_slips.h"
#include "point.h"
#include "section.h"

#include <stdio.h>

static db_status write_answer(db_tx *tx, void *arg)
{
    return db_tx_insert_answer(tx, arg);
}

static void insert_answer(struct op *op)
{
    db_answer row = {.http_status = op->answer.status, .at_us = wall_us()};
    snprintf(row.key, sizeof row.key, "%s", op->key);
    snprintf(row.request, sizeof row.request, "%s", op->request);
    snprintf(row.body, sizeof row.body, "%s", op->answer.body);
    db_run(op->section->db, write_answer, &row, NULL);
}

static void at(struct op *op, enum op_point point)
{
    if (point == OP_DECIDED)
        op->answer.decided = false; /* so that the section does not write it */
    if (point == OP_RELEASED && op->answer.problem == PROBLEM_NONE)
        insert_answer(op);
}

void lab_slip_key_apart(struct seams *seams)
{
    (void)seams;
    lab_at(at);
}
