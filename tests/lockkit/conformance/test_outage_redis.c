/* The guards of one Redis while it fails: see outage.h. */
#include "outage.h"

int main(void)
{
    return outage_main(&family_redis);
}
