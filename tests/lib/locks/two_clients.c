#include "two_clients.h"
#include "lock_world.h"

lk_client *client, *other;

int two_clients_open(const char *guard)
{
    world->wipe();
    client = world_client(guard, &world_patient);
    other = world_client(guard, &world_patient);
    return client != NULL && other != NULL ? 0 : -1;
}

int two_clients_close(void **state)
{
    (void)state;
    lk_close(client);
    lk_close(other);
    return 0;
}
