/* Passes over the queue: they choose the waiting jobs that start, by the rules of queueing/. */

#include <string.h>

#include "_engine.h"

/* Start jobs from the head of the queue as long as they find nodes; returns 1 if a job that finds none is left. */
static int
start_heads(Engine *e, int64_t now)
{
    for (; e->head < e->tail; e->head++) {
        int32_t job = e->queue[e->head];
        if (job < 0) {
            e->holes--;
            continue;
        }
        int placed = jobs_place(e, job);
        if (placed <= 0)
            return placed < 0 ? -1 : 1;
        jobs_start(e, job, now);
    }
    return 0;
}

/* The shadow time, at which the head can start at the latest; extra is the number of nodes left over at that time. */
static int64_t
shadow_by_count(const Engine *e, int32_t *extra)
{
    int32_t size = e->size[e->queue[e->head]], free = e->free, at = 0;
    int64_t when = 0;
    while (at < e->running_len && (free < size || e->running[at].end == when)) {
        when = e->running[at].end;
        free += e->size[e->running[at++].job];
    }
    *extra = free - size;
    return when;
}

/* The shadow time, at which the head can start at the latest; ``later`` becomes the state then, without the head. */
static int64_t
shadow_isolated(Engine *e)
{
    int32_t size = e->size[e->queue[e->head]], at = 0;
    jobs_copy_view(e, &e->later, &e->now);
    while (at < e->running_len) {
        int64_t when = e->running[at].end;
        int fits = 0;
        for (; at < e->running_len && e->running[at].end == when; at++) {
            jobs_change(e, &e->later, e->running[at].job, -1);
            fits = fits || jobs_room_after(e, &e->later, e->running[at].job, size);
        }
        if (fits)
            return when;
    }
    return INT64_MAX; /* unreachable, because every job fits the empty cluster */
}

static int64_t
shadow(Engine *e, int64_t now, int32_t *extra)
{
    if (e->policy == HALVES)
        return halves_shadow(e, now);
    return e->policy == ISOLATED ? shadow_isolated(e) : shadow_by_count(e, extra);
}

/* Whether a waiting job that has found nodes may start now without delaying the head. */
static int
harmless(Engine *e, int32_t job, int64_t now, int64_t when, int32_t *extra)
{
    if (now + e->estimate[job] <= when)
        return 1;
    if (e->policy == HALVES) {
        int32_t first = e->queue[e->head];
        halves_change(e, &e->later_halves, job, 1);
        if (halves_room(e, &e->later_halves, first) >= e->size[first])
            return 1;
        halves_change(e, &e->later_halves, job, -1);
        return 0;
    }
    if (e->policy != ISOLATED) {
        if (e->size[job] > *extra)
            return 0;
        *extra -= e->size[job];
        return 1;
    }
    jobs_change(e, &e->later, job, 1);
    int32_t head = e->size[e->queue[e->head]];
    if (jobs_room(e, &e->later, jobs_kind(e, head)) >= head)
        return 1;
    jobs_change(e, &e->later, job, -1);
    return 0;
}

static void
largest_rooms(const Engine *e, int32_t room[3])
{
    for (int of = SMALL; of <= LARGE; of++)
        room[of] = e->policy == ISOLATED ? jobs_room(e, &e->now, of) : e->free;
}

static int32_t
largest(const int32_t room[3])
{
    int32_t most = room[SMALL] > room[MEDIUM] ? room[SMALL] : room[MEDIUM];
    return room[LARGE] > most ? room[LARGE] : most;
}

/* Whether a job of at least this size and estimate could start; a quick test before the search for nodes. */
static int
may_start(const Engine *e, int32_t most, int32_t size, int64_t estimate, int64_t spare, int32_t extra)
{
    if (size > most)
        return 0;
    return e->policy >= ISOLATED || spare < 0 || size <= extra || estimate <= spare;
}

static int
backfill(Engine *e, int64_t now)
{
    int32_t extra = 0, room[3];
    int64_t when = -1;
    largest_rooms(e, room);
    for (int32_t at = e->head + 1; at < e->tail && jobs_least_waiting(e) <= e->free; at++) {
        const Bound *bound = e->bound + at / BLOCK;
        int64_t spare = when < 0 ? -1 : when - now;
        if (!may_start(e, largest(room), bound->size, bound->estimate, spare, extra)) {
            at |= BLOCK - 1;
            continue;
        }
        int32_t job = e->queue[at], hint = e->hint;
        if (job < 0 || !may_start(e, room[jobs_kind(e, e->size[job])], e->size[job], e->estimate[job], spare, extra))
            continue;
        if (when < 0)
            when = shadow(e, now, &extra);
        int64_t length = e->list_len;
        int placed = jobs_place(e, job);
        if (placed < 0)
            return -1;
        if (placed && harmless(e, job, now, when, &extra)) {
            jobs_start(e, job, now);
            jobs_dequeue(e, at);
            largest_rooms(e, room);
        } else {
            e->list_len = length;
            e->hint = hint;
        }
    }
    return 0;
}

/* ---- timeline ---- */

static void
draw_line(Engine *e, int64_t now)
{
    e->times[0] = now;
    e->free_at[0] = e->free;
    e->line_len = 1;
    for (int32_t at = 0; at < e->running_len; at++) {
        /* A job with estimate 0 holds its nodes until the next pass. */
        int64_t end = e->running[at].end > now ? e->running[at].end : now + 1;
        if (end > e->times[e->line_len - 1]) {
            e->times[e->line_len] = end;
            e->free_at[e->line_len] = e->free_at[e->line_len - 1];
            e->line_len++;
        }
        e->free_at[e->line_len - 1] += e->size[e->running[at].job];
    }
}

/* The earliest point of the timeline from which enough nodes are free for the job's whole time; with only_now, no point
   but the first counts. */
static int32_t
find_slot(const Engine *e, int32_t size, int64_t length, int only_now)
{
    int32_t from = 0, at = 0;
    for (; at < e->line_len && (at == from || e->times[at] < e->times[from] + length); at++)
        if (e->free_at[at] < size) {
            if (only_now)
                return -1;
            from = at + 1;
        }
    return from;
}

static int32_t
split_line(Engine *e, int64_t when, int32_t at)
{
    while (at < e->line_len && e->times[at] < when)
        at++;
    if (at == e->line_len || e->times[at] > when) {
        memmove(e->times + at + 1, e->times + at, (e->line_len - at) * sizeof *e->times);
        memmove(e->free_at + at + 1, e->free_at + at, (e->line_len - at) * sizeof *e->free_at);
        e->times[at] = when;
        e->free_at[at] = e->free_at[at - 1];
        e->line_len++;
    }
    return at;
}

static void
reserve(Engine *e, int32_t from, int32_t size, int64_t length)
{
    int32_t to = split_line(e, e->times[from] + length, from);
    for (int32_t at = from; at < to; at++)
        e->free_at[at] -= size;
}

/* Start the jobs that can start now, and make new reservations for the first others, in the queue's order. */
static int
plan(Engine *e, int64_t now)
{
    int32_t keep = e->head, at = keep, blocked = 0;
    if (jobs_least_waiting(e) > e->free)
        return 0;
    draw_line(e, now);
    for (; at < e->tail && jobs_least_waiting(e) <= e->free; at++) {
        int32_t job = e->queue[at], size = e->size[job];
        int64_t length = e->estimate[job] > 0 ? e->estimate[job] : 1;
        int promised = e->depth < 0 || blocked < e->depth;
        int32_t slot = find_slot(e, size, length, !promised);
        if (slot == 0) {
            if (jobs_place(e, job) < 0)
                return -1;
            jobs_start(e, job, now);
        } else {
            e->queue[keep++] = job;
            blocked++;
        }
        if (slot == 0 || promised)
            reserve(e, slot, size, length);
    }
    memmove(e->queue + keep, e->queue + at, (e->tail - at) * sizeof *e->queue);
    e->tail -= at - keep;
    return 0;
}

int
jobs_pass(Engine *e, int64_t now)
{
    jobs_tidy(e);
    if (e->depth > 1 || e->depth < 0)
        return plan(e, now);
    int blocked = start_heads(e, now);
    return blocked == 1 && e->depth == 1 ? backfill(e, now) : blocked < 0 ? -1 : 0;
}
