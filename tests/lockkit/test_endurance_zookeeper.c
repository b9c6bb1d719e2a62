/* The guards of ZooKeeper for longer: see endurance.h. */
#include "../lib/endurance.h"

int main(void)
{
    return endurance_main(&family_zookeeper, ENDURE_ALL);
}
