/* memcached for longer: see endurance.h. */
#include "endurance.h"

int main(void)
{
    return endurance_main(&family_memcached, ENDURE_ALL);
}
