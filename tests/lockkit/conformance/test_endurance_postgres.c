/* The guards of PostgreSQL for longer: see endurance.h. */
#include "endurance.h"

int main(void)
{
    return endurance_main(&family_postgres, ENDURE_ALL);
}
