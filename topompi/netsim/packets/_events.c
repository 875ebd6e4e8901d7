#include "_events.h"

/* Reallocate the items of a pool with more room, so that items of 32 or 64 bytes lie in one line of the cache each. */
void *
grown(Sim *s, void *old, int64_t *most, size_t item)
{
    int64_t wanted = *most ? *most * 2 : 1024;
    void *found = wanted < (int64_t)1 << 31 ? aligned_memory((size_t)wanted * item) : NULL;
    if (found == NULL)
        longjmp(s->no_memory, 1);
    if (old != NULL)
        memcpy(found, old, (size_t)*most * item);
    free(old);
    *most = wanted;
    return found;
}

/* Make the buckets, whose width and number are given as powers of two; 0 without memory. */
int
start_events(Sim *s, int shift, int buckets)
{
    s->wheel = calloc((size_t)1 << buckets, sizeof *s->wheel);
    s->shift = shift, s->num_buckets = 1 << buckets;
    s->filled = calloc(((size_t)1 << buckets) / 64, sizeof *s->filled);
    return s->wheel != NULL && s->filled != NULL;
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
    int64_t from = s->last_bucket + 1;
    for (int64_t at = from; at < from + s->num_buckets;) {
        Index place = bucket_place(s, at);
        uint64_t word = s->filled[place / 64] >> (place % 64);
        if (word)
            return at + __builtin_ctzll(word);
        at += 64 - place % 64;
    }
    return -1;
}

/* Sort current events from a place on stably by key: by insertion if there are few, else by merging. */
static void
sort_current(Sim *s, int64_t first)
{
    int64_t count = s->num_current;
    if (count - first <= 48) {
        for (int64_t at = first + 1; at < count; at++) {
            Event one = s->current[at];
            int64_t place = at;
            for (; place > first && s->current[place - 1].key > one.key; place--)
                s->current[place] = s->current[place - 1];
            s->current[place] = one;
        }
        return;
    }
    while (s->most_spare < s->most_current)
        s->spare = grown(s, s->spare, &s->most_spare, sizeof(Event));
    memcpy(s->spare, s->current, (size_t)first * sizeof(Event));
    for (int64_t run = 1; run < count - first; run *= 2) {
        for (int64_t from = first; from < count; from += 2 * run) {
            int64_t middle = from + run < count ? from + run : count;
            int64_t to = from + 2 * run < count ? from + 2 * run : count;
            int64_t left = from, right = middle;
            for (int64_t place = from; place < to; place++) {
                int left_first = left < middle && (right == to || s->current[left].key <= s->current[right].key);
                s->spare[place] = s->current[left_first ? left++ : right++];
            }
        }
        Event *events = s->current;
        int64_t most = s->most_current;
        s->current = s->spare, s->most_current = s->most_spare;
        s->spare = events, s->most_spare = most;
    }
}

/* Move the events of a bucket behind the current ones. */
static void
empty_bucket(Sim *s, int64_t number)
{
    Index place = bucket_place(s, number);
    Slot *slot = &s->wheel[place];
    int64_t first = s->num_current;
    int count = (int)slot->count;
    for (Index at = count ? slot->chunk : NONE, after; at != NONE; at = after, count = EVENTS_OF_CHUNK) {
        Chunk *chunk = &s->pool[at];
        if (s->num_current + EVENTS_OF_CHUNK > s->most_current)
            s->current = grown(s, s->current, &s->most_current, sizeof(Event));
        while (count--)
            s->current[s->num_current++] = (Event){chunk->key[count], chunk->what[count], NONE};
        after = chunk->next;
        chunk->next = s->free_chunk;
        s->free_chunk = at;
    }
    slot->count = 0;
    s->filled[place / 64] &= ~((uint64_t)1 << (place % 64));
    for (int64_t low = first, high = s->num_current - 1; low < high; low++, high--) { /* the list has the latest first */
        Event one = s->current[low];
        s->current[low] = s->current[high];
        s->current[high] = one;
    }
    sort_current(s, first);
    s->last_bucket = number;
}

/* Move events of the heap that are no longer far ahead to their buckets. */
void
leave_heap(Sim *s)
{
    while (s->num_heap && (s->heap[0].key >> s->shift) - s->now_bucket < s->num_buckets) {
        Event one = from_heap(s);
        into_bucket(s, one.key, one.what);
    }
}

/* Make the events of the next buckets current, some dozens if there are as many; 0 if there are none. */
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
    leave_heap(s);
    empty_bucket(s, next);
    while (s->is_large && s->num_current < FORESEEN && (next = next_bucket(s)) >= 0) {
        __builtin_prefetch(&s->pool[s->wheel[bucket_place(s, next + 16)].chunk]);
        empty_bucket(s, next);
    }
    return 1;
}

/* The key of the next event, INT64_MAX if there is none; changes nothing. */
int64_t
next_key(const Sim *s)
{
    if (s->at < s->num_current)
        return s->current[s->at].key;
    int64_t next = next_bucket(s), least = s->num_heap ? s->heap[0].key : INT64_MAX;
    if (next < 0 || next > least >> s->shift)
        return least;
    const Slot *slot = &s->wheel[bucket_place(s, next)];
    Index count = slot->count;
    for (Index at = slot->chunk; at != NONE; at = s->pool[at].next, count = EVENTS_OF_CHUNK)
        while (count--)
            least = s->pool[at].key[count] < least ? s->pool[at].key[count] : least;
    return least;
}

/* Set the current time; no event before it may be left. The next event then finds its bucket. */
void
pass_time(Sim *s, Time until)
{
    int64_t bucket = ((2 * until) >> s->shift) - 1;
    s->now = until;
    s->now_bucket = bucket > s->now_bucket ? bucket : s->now_bucket;
    s->last_bucket = bucket > s->last_bucket ? bucket : s->last_bucket;
}
