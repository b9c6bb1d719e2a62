/* redlock for longer: see endurance.h. */
#include "../lib/endurance.h"

int main(void)
{
    return endurance_main(&family_redlock, ENDURE_ALL);
}
