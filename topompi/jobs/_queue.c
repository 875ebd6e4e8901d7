/* The waiting jobs in the queue's order. In EASY, a started job leaves a hole (-1); holes are closed when they are half
   of the places. Each block of places has lower bounds of its jobs' sizes and estimates, so that a scan can skip it. */

#include <string.h>

#include "_engine.h"

/* Compute the bounds of the blocks from a place on, without the holes. */
static void
bound_blocks(Engine *e, int32_t from, int32_t to)
{
    for (int32_t block = from / BLOCK; block <= (to - 1) / BLOCK && from < to; block++) {
        Bound *bound = e->bound + block;
        int32_t last = (block + 1) * BLOCK < e->tail ? (block + 1) * BLOCK : e->tail;
        *bound = (Bound){INT64_MAX, INT32_MAX};
        for (int32_t at = block * BLOCK; at < last; at++) {
            int32_t job = at < e->head ? -1 : e->queue[at];
            if (job < 0)
                continue;
            bound->size = e->size[job] < bound->size ? e->size[job] : bound->size;
            bound->estimate = e->estimate[job] < bound->estimate ? e->estimate[job] : bound->estimate;
        }
    }
}

/* Close the holes, and move the queue to the front. */
static void
close_holes(Engine *e)
{
    int32_t keep = 0;
    for (int32_t at = e->head; at < e->tail; at++)
        if (e->queue[at] >= 0)
            e->queue[keep++] = e->queue[at];
    e->head = e->holes = 0;
    e->tail = keep;
    bound_blocks(e, 0, e->tail);
}

void
jobs_enqueue(Engine *e, int32_t job)
{
    e->waiting_of_size[e->size[job]]++;
    if (e->size[job] < e->least)
        e->least = e->size[job];
    if (e->tail > e->head && e->rank[e->last] > e->rank[job]) {
        if (e->holes)
            close_holes(e);
        int32_t low = e->head, high = e->tail;
        while (low < high) {
            int32_t middle = (low + high) / 2;
            if (e->rank[e->queue[middle]] < e->rank[job])
                low = middle + 1;
            else
                high = middle;
        }
        memmove(e->queue + low + 1, e->queue + low, (e->tail++ - low) * sizeof *e->queue);
        e->queue[low] = job;
        bound_blocks(e, low, e->tail);
        e->last = e->queue[e->tail - 1];
        return;
    }
    Bound *bound = e->bound + e->tail / BLOCK;
    if (e->tail % BLOCK == 0 || e->tail == e->head)
        *bound = (Bound){INT64_MAX, INT32_MAX};
    bound->size = e->size[job] < bound->size ? e->size[job] : bound->size;
    bound->estimate = e->estimate[job] < bound->estimate ? e->estimate[job] : bound->estimate;
    e->queue[e->tail++] = e->last = job;
}

void
jobs_dequeue(Engine *e, int32_t at)
{
    e->queue[at] = -1;
    e->holes++;
    bound_blocks(e, at, at + 1);
}

void
jobs_tidy(Engine *e)
{
    if (e->holes > BLOCK && e->holes > (e->tail - e->head) / 2)
        close_holes(e);
    else if (e->head > (1 << 16) && e->head > e->tail / 2)
        close_holes(e);
}

int32_t
jobs_least_waiting(Engine *e)
{
    while (e->least <= e->nodes && e->waiting_of_size[e->least] == 0)
        e->least++;
    return e->least;
}
