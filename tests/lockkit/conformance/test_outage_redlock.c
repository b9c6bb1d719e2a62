/* redlock while its nodes fail: see outage.h. */
#include "outage.h"

int main(void)
{
    return outage_main(&family_redlock);
}
