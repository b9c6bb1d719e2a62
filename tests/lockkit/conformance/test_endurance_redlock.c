/* redlock for longer: see endurance.h. */
#include "endurance.h"

int main(void)
{
    return endurance_main(&family_redlock, ENDURE_ALL);
}
