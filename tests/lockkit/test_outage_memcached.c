/* memcached while it fails: see outage.h. */
#include "../lib/outage.h"

int main(void)
{
    return outage_main(&family_memcached);
}
