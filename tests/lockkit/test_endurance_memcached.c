/* memcached for longer: see endurance.h. */
#include "../lib/endurance.h"

int main(void)
{
    return endurance_main(&family_memcached, ENDURE_ALL);
}
