#include "sim_shrink.h"
#include "sim_rounds.h"

/* With less, chance falls differently. So a smaller run gets so many chances to fail, too. */
enum { CHANCES = 6 };

static bool still_fails(const struct sim_settings *drawn, struct sim_less *less, sim_try *try_run,
                        double until_s, uint32_t *runs)
{
    const uint32_t first = less->run;
    for (uint32_t i = 0; i < CHANCES && sim_real_s() < until_s; i++) {
        less->run = first + i;
        ++*runs;
        if (try_run(drawn->seed, less))
            return true;
    }
    return false;
}

/* Lowers one value: at once to the least, else by halves. Returns whether it is lower. */
static bool lower(const struct sim_settings *drawn, struct sim_shrunk *best, int i,
                  sim_try *try_run, double until_s)
{
    struct sim_settings now = *drawn;
    sim_less_apply(&best->less, &now);
    const uint32_t value = sim_less_value(&now, i);
    uint32_t least = sim_less_least(i);
    for (; least < value && sim_real_s() < until_s; least += (value - least + 1) / 2) {
        struct sim_less less = best->less;
        less.set[i] = true;
        less.values[i] = least;
        if (still_fails(drawn, &less, try_run, until_s, &best->runs)) {
            best->less = less;
            return true;
        }
    }
    return false;
}

void sim_shrink(const struct sim_settings *drawn, const struct sim_less *begin, sim_try *try_run,
                double most_s, struct sim_shrunk *ret)
{
    const double until_s = sim_real_s() + most_s;
    bool lowered = true;
    *ret = (struct sim_shrunk){.less = *begin};
    while (lowered && sim_real_s() < until_s) {
        lowered = false;
        for (int i = 0; i < SIM_LESS_MAX; i++)
            lowered = lower(drawn, ret, i, try_run, until_s) || lowered;
    }
}
