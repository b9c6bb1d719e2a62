/* The commit has no answer. The lock is released anyway, and the store is not asked. */
#include "lab_slips.h"

void lab_slip_given_back(struct seams *seams)
{
    seams->forgets_unknown = true;
}
