/* The commit was not answered; the lock is given back all the same, and nobody asks. */
#include "lab_slips.h"

void lab_slip_given_back(struct seams *seams)
{
    seams->forgets_undecided = true;
}
