/* Events: a wheel of buckets, each sorted when its time comes, and a heap for events far ahead. */

#ifndef TOPOMPI_NETSIM_EVENTS_H
#define TOPOMPI_NETSIM_EVENTS_H

#include "_sim.h"

void *grown(Sim *s, void *old, int64_t *most, size_t item);
void into_heap(Sim *s, int64_t key, Index what);
int refill(Sim *s);
int64_t next_key(const Sim *s);
void pass_time(Sim *s, Time until);

static inline void
into_bucket(Sim *s, int64_t key, Index what)
{
    Index found = s->free_event;
    if (found != NONE)
        s->free_event = s->pool[found].next;
    else {
        if (s->num_pool == s->most_pool)
            s->pool = grown(s, s->pool, &s->most_pool, sizeof(Event));
        found = (Index)s->num_pool++;
    }
    Index place = (Index)(key >> s->shift) & (BUCKETS - 1);
    s->pool[found] = (Event){key, what, s->bucket[place]};
    s->bucket[place] = found;
    s->filled[place / 64] |= (uint64_t)1 << (place % 64);
}

static inline void
into_current(Sim *s, int64_t key, Index what)
{
    if (s->num_current == s->most_current)
        s->current = grown(s, s->current, &s->most_current, sizeof(Event));
    int64_t place = s->num_current++;
    while (place > s->at && s->current[place - 1].key > key) {
        s->current[place] = s->current[place - 1];
        place--;
    }
    s->current[place] = (Event){key, what, NONE};
}

static inline void
push(Sim *s, Time time, int kind, Index number)
{
    int64_t key = 2 * time + (kind == WAKE), ahead = (key >> s->shift) - s->now_bucket;
    Index what = (Index)kind << 28 | number;
    if (ahead <= 0)
        into_current(s, key, what);
    else if (ahead < BUCKETS)
        into_bucket(s, key, what);
    else
        into_heap(s, key, what);
}

#endif
