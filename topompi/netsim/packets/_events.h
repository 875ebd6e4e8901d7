/* Events: a wheel of buckets, each sorted when its time comes, and a heap for events far ahead. */

#ifndef TOPOMPI_NETSIM_EVENTS_H
#define TOPOMPI_NETSIM_EVENTS_H

#include "_sim.h"

void *grown(Sim *s, void *old, int64_t *most, size_t item);
void into_heap(Sim *s, int64_t key, Index what);
int start_events(Sim *s, int shift, int buckets);
int refill(Sim *s);
void leave_heap(Sim *s);
int64_t next_key(const Sim *s);
void pass_time(Sim *s, Time until);

static inline Index
bucket_place(const Sim *s, int64_t bucket)
{
    return (Index)(bucket & (s->num_buckets - 1));
}

static inline void
add_chunk(Sim *s, Slot *slot, Index place)
{
    Index found = s->free_chunk;
    if (found != NONE)
        s->free_chunk = s->pool[found].next;
    else {
        if (s->num_pool == s->most_pool)
            s->pool = grown(s, s->pool, &s->most_pool, sizeof(Chunk));
        found = (Index)s->num_pool++;
    }
    s->pool[found].next = slot->count ? slot->chunk : NONE;
    slot->chunk = found & MOST_CHUNKS;
    slot->count = 0;
    s->filled[place / 64] |= (uint64_t)1 << (place % 64);
}

static inline void
into_bucket(Sim *s, int64_t key, Index what)
{
    Index place = bucket_place(s, key >> s->shift);
    Slot *slot = &s->wheel[place];
    if (slot->count == 0 || slot->count == EVENTS_OF_CHUNK)
        add_chunk(s, slot, place);
    s->pool[slot->chunk].key[slot->count] = key;
    s->pool[slot->chunk].what[slot->count++] = what;
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

/* Whether no event of the current time is left. */
static inline int
is_end_of_instant(const Sim *s)
{
    int64_t key = 2 * s->now + 1;
    return s->at_soon == s->num_soon && (s->at == s->num_current || s->current[s->at].key > key) &&
           key >> s->shift <= s->last_bucket;
}

/* Wake a link now, after all events of the current time that are there. */
static inline void
push_soon(Sim *s, Index link)
{
    if (s->num_soon == s->most_soon)
        s->soon = grown(s, s->soon, &s->most_soon, sizeof(Index));
    s->soon[s->num_soon++] = link;
}

static inline void
push(Sim *s, Time time, int kind, Index number)
{
    int64_t key = 2 * time + (kind == WAKE), bucket = key >> s->shift;
    Index what = (Index)kind << 28 | number;
    if (bucket <= s->last_bucket)
        into_current(s, key, what);
    else if (bucket - s->now_bucket < s->num_buckets)
        into_bucket(s, key, what);
    else
        into_heap(s, key, what);
}

#endif
