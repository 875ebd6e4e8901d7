/* Jobs on halves of nodes: the choice of halves by the neighbours' programs, and rates that depend on them. The rules are
   those of topompi/colocation/scheduling; a test compares the results job by job. Half 2i and half 2i + 1 are node i. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <string.h>

#include "_engine.h"

enum { FREE = -1 };

/* ---- views ---- */

static void
take_half(HalfView *view, int32_t half, int32_t code)
{
    int32_t other = view->code[half ^ 1];
    if (other == FREE) {
        view->empty--;
        view->single[code]++;
    } else
        view->single[other]--;
    view->code[half] = code;
}

static void
give_half(HalfView *view, int32_t half)
{
    int32_t other = view->code[half ^ 1], code = view->code[half];
    if (other == FREE) {
        view->empty++;
        view->single[code]--;
    } else
        view->single[other]++;
    view->code[half] = FREE;
}

void
halves_change(const Engine *e, HalfView *view, int32_t job, int sign)
{
    const int32_t *half = e->list + e->offset[job];
    for (int32_t at = 0; at < e->size[job]; at++)
        if (sign > 0)
            take_half(view, half[at], e->code[job]);
        else
            give_half(view, half[at]);
}

int32_t
halves_room(const Engine *e, const HalfView *view, int32_t job)
{
    const int32_t *rank = e->neighbour_rank + (size_t)e->code[job] * e->codes;
    int32_t room = 2 * view->empty;
    for (int32_t code = 0; code < e->codes; code++)
        room += rank[code] >= 0 ? view->single[code] : 0;
    return room;
}

int64_t
halves_shadow(Engine *e, int64_t now)
{
    int32_t head = e->queue[e->head], at = 0;
    int64_t when = now;
    HalfView *later = &e->later_halves;
    memcpy(later->code, e->halves.code, (e->nodes + (size_t)e->codes) * sizeof *later->code); /* codes, then single */
    later->empty = e->halves.empty;
    while (at < e->running_len) {
        when = e->running[at].end > now ? e->running[at].end : now + 1;
        for (; at < e->running_len && (e->running[at].end <= when); at++)
            halves_change(e, later, e->running[at].job, -1);
        if (halves_room(e, later, head) >= e->size[head])
            break;
    }
    return when;
}

/* ---- the choice of halves ---- */

/* Share out the wanted halves: quota[r] beside neighbours of rank r, and halves of empty nodes. */
static int32_t
share_out(Engine *e, int32_t code, int32_t wanted)
{
    const int32_t *rank = e->neighbour_rank + (size_t)code * e->codes;
    int32_t fresh = 0;
    memset(e->quota, 0, e->codes * sizeof *e->quota);
    for (int32_t other = 0; other < e->codes; other++)
        if (rank[other] >= 0)
            e->quota[rank[other]] += e->halves.single[other];
    for (int32_t at = 0; at < e->codes; at++) {
        if (at == e->neighbour_last[code])
            wanted -= fresh = wanted < 2 * e->halves.empty ? wanted : 2 * e->halves.empty;
        e->quota[at] = e->quota[at] < wanted ? e->quota[at] : wanted;
        wanted -= e->quota[at];
    }
    if (e->neighbour_last[code] >= e->codes)
        fresh = wanted < 2 * e->halves.empty ? wanted : 2 * e->halves.empty;
    return fresh;
}

/* Put the halves into the list in the order of preference; the quotas have been shared out. */
static void
fill(Engine *e, int32_t code, int32_t fresh)
{
    const int32_t *rank = e->neighbour_rank + (size_t)code * e->codes;
    int32_t base = 0, spread = e->neighbour_spread[code], left = 0;
    int32_t first_fresh = 0, seconds = fresh - e->halves.empty, taken = 0;
    for (int32_t at = 0; at < e->codes; at++) {
        if (at == e->neighbour_last[code]) {
            first_fresh = base;
            base += fresh;
        }
        e->place_of[at] = base;
        base += e->quota[at];
    }
    if (e->neighbour_last[code] >= e->codes) {
        first_fresh = base;
        base += fresh;
    }
    left = base;
    int32_t *list = e->list + e->list_len;
    for (int32_t half = 0; left && half < e->nodes; half += 2) {
        int32_t one = e->halves.code[half], two = e->halves.code[half + 1];
        if (one == FREE && two == FREE) {
            if (spread && taken < fresh && taken < e->halves.empty) {
                list[first_fresh + taken] = half;
                left--;
                if (taken < seconds) {
                    list[first_fresh + e->halves.empty + taken] = half + 1;
                    left--;
                }
                taken++;
            } else if (!spread)
                for (int32_t at = 0; at < 2 && taken < fresh; at++, left--)
                    list[first_fresh + taken++] = half + at;
        } else if (one == FREE || two == FREE) {
            int32_t of = rank[one == FREE ? two : one];
            if (of >= 0 && e->quota[of]) {
                e->quota[of]--;
                list[e->place_of[of]++] = one == FREE ? half : half + 1;
                left--;
            }
        }
    }
    e->list_len += base;
}

/* The job on the other half of a free half, if its rank for jobs of this code is from first to below last; else FREE. */
static int32_t
good_neighbour(const Engine *e, int32_t half, int32_t code, int32_t first, int32_t last)
{
    int32_t other = e->halves.code[half] == FREE ? e->halves.code[half ^ 1] : FREE;
    int32_t rank = other == FREE ? FREE : e->neighbour_rank[(size_t)code * e->codes + other];
    return rank >= first && rank < last ? e->owner[half ^ 1] : FREE;
}

/* The running job, of these ranks, that suits a job best and has enough free halves beside it, the fewest of equal ones;
   else FREE. */
static int32_t
best_neighbour(Engine *e, int32_t job, int32_t first, int32_t last)
{
    int32_t code = e->code[job], best = FREE, best_rank = 0;
    for (int32_t half = 0; half < e->nodes; half++) {
        int32_t other = good_neighbour(e, half, code, first, last);
        if (other != FREE)
            e->beside[other]++;
    }
    for (int32_t half = 0; half < e->nodes; half++) {
        int32_t other = good_neighbour(e, half, code, first, last);
        if (other == FREE || e->beside[other] < e->size[job] || other == best)
            continue;
        int32_t rank = e->neighbour_rank[(size_t)code * e->codes + e->code[other]];
        if (best == FREE || rank < best_rank || (rank == best_rank && e->beside[other] < e->beside[best])) {
            best = other;
            best_rank = rank;
        }
    }
    for (int32_t half = 0; half < e->nodes; half++)
        if (e->owner[half] != FREE)
            e->beside[e->owner[half]] = 0;
    return best;
}

/* The one job beside which a job goes: one better than empty nodes; if these do not suffice, a worse one; else FREE. */
static int32_t
chosen_neighbour(Engine *e, int32_t job)
{
    int32_t code = e->code[job], last = e->neighbour_last[code], room = 2 * e->halves.empty;
    int32_t found = best_neighbour(e, job, 0, last);
    for (int32_t other = 0; other < e->codes; other++) {
        int32_t rank = e->neighbour_rank[(size_t)code * e->codes + other];
        room += rank >= 0 && rank < last ? e->halves.single[other] : 0;
    }
    return found == FREE && room < e->size[job] ? best_neighbour(e, job, last, e->codes) : found;
}

static void
fill_beside(Engine *e, int32_t job, int32_t neighbour)
{
    int32_t left = e->size[job];
    for (int32_t half = 0; left; half++)
        if (e->halves.code[half] == FREE && e->owner[half ^ 1] == neighbour) {
            e->list[e->list_len++] = half;
            left--;
        }
}

int
halves_place(Engine *e, int32_t job)
{
    if (halves_room(e, &e->halves, job) < e->size[job])
        return 0;
    int32_t neighbour = e->code[job] ? chosen_neighbour(e, job) : FREE;
    if (neighbour != FREE) {
        fill_beside(e, job, neighbour);
        return 1;
    }
    fill(e, e->code[job], share_out(e, e->code[job], e->size[job]));
    return 1;
}

/* ---- rates ---- */

static void
touch(Engine *e, int32_t job)
{
    if (!e->touched[job]) {
        e->touched[job] = 1;
        e->dirty[e->dirty_len++] = job;
    }
}

static void
touch_neighbours(Engine *e, int32_t job)
{
    const int32_t *half = e->list + e->offset[job];
    for (int32_t at = 0; at < e->size[job]; at++) {
        int32_t other = e->owner[half[at] ^ 1];
        if (other != FREE && other != job)
            touch(e, other);
    }
}

void
halves_start(Engine *e, int32_t job, int64_t now)
{
    halves_change(e, &e->halves, job, 1);
    for (int32_t at = 0; at < e->size[job]; at++)
        e->owner[e->list[e->offset[job] + at]] = job;
    touch(e, job);
    touch_neighbours(e, job);
    e->left[job] = (double)e->duration[job];
    e->since[job] = now;
    e->speed[job] = 1.0;
    e->end[job] = now + e->duration[job];
}

void
halves_end(Engine *e, int32_t job)
{
    halves_change(e, &e->halves, job, -1);
    touch_neighbours(e, job);
    for (int32_t at = 0; at < e->size[job]; at++)
        e->owner[e->list[e->offset[job] + at]] = FREE;
    e->speed[job] = 0; /* it no longer runs */
}

static double
rate_of(const Engine *e, int32_t job)
{
    const int32_t *half = e->list + e->offset[job], programs = e->programs;
    const double *row = e->rates + (size_t)e->program[job] * (programs + 2);
    double least = INFINITY;
    for (int32_t at = 0; at < e->size[job]; at++) {
        int32_t other = e->owner[half[at] ^ 1];
        double rate = row[other == FREE ? programs : other == job ? programs + 1 : e->program[other]];
        least = rate < least ? rate : least;
    }
    return least;
}

/* Whole seconds, rounded up; an excess below half a millionth is an error of rounding (loop.py does the same). */
static int64_t
whole_seconds(double seconds)
{
    double whole = floor(seconds);
    return (int64_t)whole + (seconds - whole >= 5e-7);
}

void
halves_change_rates(Engine *e, int64_t now)
{
    for (int32_t at = 0; at < e->dirty_len; at++) {
        int32_t job = e->dirty[at];
        e->touched[job] = 0;
        double before = e->speed[job], rate = before > 0 ? rate_of(e, job) : before;
        if (rate == before)
            continue;
        volatile double done = before * (double)(now - e->since[job]); /* volatile: no fused multiplication */
        double left = e->left[job] - done;
        e->left[job] = left > 0 ? left : 0;
        e->since[job] = now;
        e->speed[job] = rate;
        int64_t end = now + whole_seconds(e->left[job] / rate), limit = e->limit[job];
        if (limit >= 0 && end > e->start[job] + limit)
            end = e->start[job] + limit;
        e->end[job] = end;
        jobs_move_end(e, job, end);
    }
    e->dirty_len = 0;
}
