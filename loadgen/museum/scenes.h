/*
 * The story: each scene is one run of the lab, and what it tells, as data. A scene is told in
 * beats. A beat is a predicate on an event of the record, and the key of the sentence that is true
 * if it holds. So no sentence is shown that the record does not bear out.
 */
#ifndef SCENES_H
#define SCENES_H

#include <stddef.h>

enum { SCENE_BEATS_MAX = 12 };

/* What the event of a beat must be like, beside its actor and point. of: index of an earlier beat.
 */
enum beat_rule {
    BEAT_ANY,
    BEAT_SAME_VALUE,   /* as the event of the beat */
    BEAT_OTHER_VALUE,  /* than the event of the beat */
    BEAT_HIGHER_FENCE, /* than the event of the beat */
    BEAT_LOWER_FENCE,  /* than the event of the beat: the holder is late */
    BEAT_NEVER         /* no such event comes after the beat before; it shares that beat's event */
};

struct beat {
    const char *actor, *point;
    const char *words; /* key of its sentence: "SCENE.WORDS" */
    enum beat_rule rule;
    int of;
};

/* A beat without a further rule; an event that must not come. */
#define BEAT(actor, point, words)                                                                  \
    {                                                                                              \
        actor, point, words, BEAT_ANY, 0                                                           \
    }
#define NEVER(actor, point, words)                                                                 \
    {                                                                                              \
        actor, point, words, BEAT_NEVER, 0                                                         \
    }

struct scene {
    const char *id; /* the address of its page begins with it; its words have it as a prefix */
    const char *hazard, *guard, *variant; /* variant: as the lab's JSON has it, in English */
    const char *outcome;
    struct beat beats[SCENE_BEATS_MAX]; /* in order of time; ends with actor NULL */
};

extern const struct scene scenes[];
extern const size_t scenes_n;

#endif
