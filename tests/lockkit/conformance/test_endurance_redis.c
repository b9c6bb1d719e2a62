/* The guards of one Redis for longer: see endurance.h. */
#include "endurance.h"

int main(void)
{
    return endurance_main(&family_redis, ENDURE_CONTENDERS | ENDURE_PAIRS);
}
