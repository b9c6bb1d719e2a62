/* The commit was not answered; the lock is given back all the same, and nobody asks. */
#include "keeper.h"
#include "lab_slips.h"

void lab_slip_given_back(void)
{
    keeper_forget_all();
}
