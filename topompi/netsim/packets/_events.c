#include "_events.h"

/* Reallocate the items of a pool with more room. */
void *
grown(Sim *s, void *old, int64_t *most, size_t item)
{
    int64_t wanted = *most ? *most * 2 : 1024;
    void *found = wanted < (int64_t)1 << 31 ? realloc(old, (size_t)wanted * item) : NULL;
    if (found == NULL)
        longjmp(s->no_memory, 1);
    *most = wanted;
    return found;
}

void
into_heap(Sim *s, int64_t key, Index what)
{
    if (s->num_heap == s->most_heap)
        s->heap = grown(s, s->heap, &s->most_heap, sizeof(Event));
    int64_t place = s->num_heap++;
    for (; place && s->heap[(place - 1) / 2].key > key; place = (place - 1) / 2)
        s->heap[place] = s->heap[(place - 1) / 2];
    s->heap[place] = (Event){key, what, NONE};
}

static Event
from_heap(Sim *s)
{
    Event top = s->heap[0], last = s->heap[--s->num_heap];
    int64_t place = 0, child;
    while ((child = 2 * place + 1) < s->num_heap) {
        child += child + 1 < s->num_heap && s->heap[child + 1].key < s->heap[child].key;
        if (s->heap[child].key >= last.key)
            break;
        s->heap[place] = s->heap[child];
        place = child;
    }
    s->heap[place] = last;
    return top;
}

/* The next bucket with an event, or -1. */
static int64_t
next_bucket(const Sim *s)
{
    int64_t from = s->now_bucket + 1;
    for (int64_t at = from; at < from + BUCKETS;) {
        Index place = (Index)at & (BUCKETS - 1);
        uint64_t word = s->filled[place / 64] >> (place % 64);
        if (word)
            return at + __builtin_ctzll(word);
        at += 64 - place % 64;
    }
    return -1;
}

/* Sort stably by key: by insertion if there are few events, else by merging. */
static void
sort_current(Sim *s)
{
    int64_t count = s->num_current;
    if (count <= 48) {
        for (int64_t at = 1; at < count; at++) {
            Event one = s->current[at];
            int64_t place = at;
            for (; place && s->current[place - 1].key > one.key; place--)
                s->current[place] = s->current[place - 1];
            s->current[place] = one;
        }
        return;
    }
    while (s->most_spare < s->most_current)
        s->spare = grown(s, s->spare, &s->most_spare, sizeof(Event));
    for (int64_t run = 1; run < count; run *= 2) {
        for (int64_t from = 0; from < count; from += 2 * run) {
            int64_t middle = from + run < count ? from + run : count;
            int64_t to = from + 2 * run < count ? from + 2 * run : count;
            int64_t left = from, right = middle;
            for (int64_t place = from; place < to; place++) {
                int first = left < middle && (right == to || s->current[left].key <= s->current[right].key);
                s->spare[place] = s->current[first ? left++ : right++];
            }
        }
        Event *events = s->current;
        int64_t most = s->most_current;
        s->current = s->spare, s->most_current = s->most_spare;
        s->spare = events, s->most_spare = most;
    }
}

/* Make the events of the next bucket current; 0 if there are none. */
int
refill(Sim *s)
{
    s->at = s->num_current = 0;
    int64_t next = next_bucket(s);
    if (s->num_heap && (next < 0 || s->heap[0].key >> s->shift < next))
        next = s->heap[0].key >> s->shift;
    if (next < 0)
        return 0;
    s->now_bucket = next;
    while (s->num_heap && (s->heap[0].key >> s->shift) - next < BUCKETS) {
        Event one = from_heap(s);
        into_bucket(s, one.key, one.what);
    }
    Index place = (Index)next & (BUCKETS - 1);
    for (Index at = s->bucket[place]; at != NONE;) {
        Index after = s->pool[at].next;
        if (s->num_current == s->most_current)
            s->current = grown(s, s->current, &s->most_current, sizeof(Event));
        s->current[s->num_current++] = s->pool[at];
        s->pool[at].next = s->free_event;
        s->free_event = at;
        at = after;
    }
    s->bucket[place] = NONE;
    s->filled[place / 64] &= ~((uint64_t)1 << (place % 64));
    for (int64_t low = 0, high = s->num_current - 1; low < high; low++, high--) { /* the list has the latest first */
        Event one = s->current[low];
        s->current[low] = s->current[high];
        s->current[high] = one;
    }
    sort_current(s);
    return 1;
}

/* The key of the next event, INT64_MAX if there is none; changes nothing. */
int64_t
next_key(const Sim *s)
{
    if (s->at < s->num_current)
        return s->current[s->at].key;
    int64_t next = next_bucket(s), least = s->num_heap ? s->heap[0].key : INT64_MAX;
    if (next >= 0 && next <= least >> s->shift)
        for (Index at = s->bucket[next & (BUCKETS - 1)]; at != NONE; at = s->pool[at].next)
            least = s->pool[at].key < least ? s->pool[at].key : least;
    return least;
}

/* Set the current time; no event before it may be left. The next event then finds its bucket. */
void
pass_time(Sim *s, Time until)
{
    int64_t bucket = ((2 * until) >> s->shift) - 1;
    s->now = until;
    if (s->at == s->num_current && bucket > s->now_bucket) {
        s->at = s->num_current = 0;
        s->now_bucket = bucket;
    }
}
