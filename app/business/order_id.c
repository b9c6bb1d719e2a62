#include "order_id.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <sys/types.h>

enum { TIME_DIGITS = 10, PROCESS_DIGITS = 8, COUNT_DIGITS = 8 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t process;
static atomic_uint_fast64_t counter;

static void choose_process(void)
{
    ssize_t n = getrandom(&process, sizeof process, 0);
    assert(n == (ssize_t)sizeof process); /* cannot fail for so few bytes */
}

static char *put(char *out, int digits, uint64_t value)
{
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    for (int i = digits - 1; i >= 0; i--) {
        out[i] = alphabet[value & 31];
        value >>= 5;
    }
    return out + digits;
}

void order_id_make(char ret[ORDER_ID_LENGTH + 1], int64_t now_wall_us)
{
    pthread_once(&once, choose_process);
    char *at = put(ret, TIME_DIGITS, (uint64_t)now_wall_us / 1000);
    at = put(at, PROCESS_DIGITS, process);
    at = put(at, COUNT_DIGITS, atomic_fetch_add(&counter, 1));
    *at = '\0';
}
