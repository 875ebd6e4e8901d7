/* The event loop of engine.py for allocators that need no Python: nodes counted, first available, and the isolated one.
   Its rules are those of queueing/; a test compares the two job by job. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { COUNTS, FIRST, ISOLATED };           /* policies */
enum { SMALL, MEDIUM, LARGE };              /* jobs of one leaf, of one pod, of several */
enum { EVENTS_A_REPORT = 1 << 17 };

/* What isolated placement reads: per leaf free nodes and jobs of more than one leaf, per pod free nodes and large jobs. */
typedef struct {
    int32_t *leaf_free, *leaf_medium, *leaf_large, *pod_free, *pod_large;
} View;

typedef struct {
    int64_t end;
    int32_t job;
} Ending;

typedef struct {
    int32_t jobs, nodes, leaves, pods, leaf_size, pod_size;
    int policy, depth;
    const int64_t *submit, *duration, *estimate, *rank;
    const int32_t *size, *leaf_start, *pod_start; /* first node of each leaf, first leaf of each pod; one more at the end */
    int64_t *start, *pass_of, passes; /* in seconds and in passes; the number of the present one */
    int32_t *leaf_of, *pod_of; /* leaf of a node, pod of a leaf */
    char *busy;
    int32_t free, hint; /* no node below the hint is free */
    View now, later;
    int32_t *order; /* scratch for sorted leaves and pods */
    Ending *heap;   /* running jobs by their end */
    int32_t heap_len;
    Ending *running; /* the same by their estimated end, ascending */
    int32_t running_len;
    int32_t *queue, head, tail; /* waiting jobs by rank */
    int32_t *waiting_of_size, least; /* no waiting job is smaller than this */
    int64_t *offset;                 /* of a job's nodes in the list below */
    int32_t *list;
    int64_t list_len, list_room;
    int64_t *times; /* a timeline: from times[i] on free_at[i] nodes are free */
    int32_t *free_at, line_len;
} Engine;

static int
kind(const Engine *e, int32_t size)
{
    return size <= e->leaf_size ? SMALL : size <= e->pod_size ? MEDIUM : LARGE;
}

/* ---- nodes ---- */

/* Add a job's nodes to a view, or with sign -1 take them out; they stand leaf by leaf. */
static void
change(const Engine *e, View *view, int32_t job, int sign)
{
    int of = kind(e, e->size[job]);
    const int32_t *node = e->list + e->offset[job], *end = node + e->size[job];
    int32_t leaf = -1, pod = -1;
    for (; node < end; node++) {
        int32_t here = e->leaf_of[*node];
        view->leaf_free[here] -= sign;
        view->pod_free[e->pod_of[here]] -= sign;
        if (here == leaf || of == SMALL)
            continue;
        leaf = here;
        if (of == MEDIUM)
            view->leaf_medium[leaf] += sign;
        else {
            view->leaf_large[leaf] += sign;
            if (e->pod_of[leaf] != pod) {
                pod = e->pod_of[leaf];
                view->pod_large[pod] += sign;
            }
        }
    }
}

/* Free nodes that a job of a kind could get together in one pod (one leaf, or for large ones everywhere). */
static int32_t
room_in_pod(const Engine *e, const View *view, int32_t pod, int of)
{
    int32_t room = 0;
    for (int32_t leaf = e->pod_start[pod]; leaf < e->pod_start[pod + 1]; leaf++) {
        int32_t free = view->leaf_free[leaf];
        if (of == SMALL)
            room = free > room ? free : room;
        else if (view->leaf_medium[leaf] == 0 && view->leaf_large[leaf] == 0)
            room += free;
    }
    return of == LARGE && view->pod_large[pod] ? 0 : room;
}

static int
feasible(const Engine *e, const View *view, int32_t size)
{
    int of = kind(e, size);
    int32_t room = 0;
    for (int32_t pod = 0; pod < e->pods; pod++) {
        int32_t here = room_in_pod(e, view, pod, of);
        room = of == LARGE ? room + here : here > room ? here : room;
    }
    return room >= size;
}

static void
largest_rooms(const Engine *e, int32_t room[3])
{
    for (int of = SMALL; of <= LARGE; of++) {
        room[of] = 0;
        for (int32_t pod = 0; pod < e->pods; pod++) {
            int32_t here = room_in_pod(e, &e->now, pod, of);
            room[of] = of == LARGE ? room[of] + here : here > room[of] ? here : room[of];
        }
    }
}

static int32_t
take(Engine *e, int32_t leaf, int32_t wanted)
{
    int32_t left = wanted;
    for (int32_t node = e->leaf_start[leaf]; left && node < e->leaf_start[leaf + 1]; node++)
        if (!e->busy[node]) {
            e->list[e->list_len++] = node;
            left--;
        }
    return wanted - left;
}

/* Indices first..last-1 by their key, largest first, equal ones in order. */
static void
sort_down(int32_t *order, const int32_t *key, int32_t first, int32_t last)
{
    for (int32_t one = first; one < last; one++) {
        int32_t at = one - first;
        for (; at > 0 && key[order[at - 1]] < key[one]; at--)
            order[at] = order[at - 1];
        order[at] = one;
    }
}

static int32_t
take_leaves(Engine *e, int32_t pod, int32_t left)
{
    int32_t *order = e->order + e->pods, count = e->pod_start[pod + 1] - e->pod_start[pod];
    sort_down(order, e->now.leaf_free, e->pod_start[pod], e->pod_start[pod + 1]);
    for (int32_t at = 0; left && at < count; at++)
        if (e->now.leaf_medium[order[at]] == 0 && e->now.leaf_large[order[at]] == 0)
            left -= take(e, order[at], left);
    return left;
}

/* The pod with the fewest free nodes among those with room. */
static int32_t
fullest_pod(const Engine *e, int32_t size, int of)
{
    int32_t best = -1;
    for (int32_t pod = 0; pod < e->pods; pod++)
        if ((best < 0 || e->now.pod_free[pod] < e->now.pod_free[best]) && room_in_pod(e, &e->now, pod, of) >= size)
            best = pod;
    return best;
}

/* Appends nodes for a job to the list; 1 if there are any. */
static int
place_isolated(Engine *e, int32_t size)
{
    int of = kind(e, size);
    if (of == LARGE) {
        if (!feasible(e, &e->now, size))
            return 0;
        int32_t left = size;
        sort_down(e->order, e->now.pod_free, 0, e->pods);
        for (int32_t at = 0; left && at < e->pods; at++)
            if (!e->now.pod_large[e->order[at]])
                left = take_leaves(e, e->order[at], left);
        return 1;
    }
    int32_t pod = fullest_pod(e, size, of), best = -1;
    if (pod < 0)
        return 0;
    if (of == MEDIUM) {
        take_leaves(e, pod, size);
        return 1;
    }
    for (int32_t leaf = e->pod_start[pod]; leaf < e->pod_start[pod + 1]; leaf++)
        if (e->now.leaf_free[leaf] >= size && (best < 0 || e->now.leaf_free[leaf] < e->now.leaf_free[best]))
            best = leaf;
    take(e, best, size);
    return 1;
}

static void
place_first(Engine *e, int32_t size)
{
    int32_t node = e->hint;
    while (size) {
        if (e->now.leaf_free[e->leaf_of[node]] == 0) {
            node = e->leaf_start[e->leaf_of[node] + 1];
            continue;
        }
        if (!e->busy[node]) {
            e->list[e->list_len++] = node;
            size--;
        }
        node++;
    }
    e->hint = node;
}

static int
make_room(Engine *e, int32_t size)
{
    if (e->list_len + size <= e->list_room)
        return 1;
    int64_t room = 2 * e->list_room + size;
    int32_t *list = PyMem_RawRealloc(e->list, room * sizeof *list);
    if (list == NULL)
        return 0;
    e->list = list;
    e->list_room = room;
    return 1;
}

/* 1 where nodes for the job stand at the end of the list, 0 for none, -1 without memory. */
static int
place(Engine *e, int32_t job)
{
    int32_t size = e->size[job];
    if (size > e->free)
        return 0;
    if (e->policy == COUNTS)
        return 1;
    if (!make_room(e, size))
        return -1;
    e->offset[job] = e->list_len;
    if (e->policy == ISOLATED)
        return place_isolated(e, size);
    place_first(e, size);
    return 1;
}

/* ---- running jobs ---- */

static void
push(Engine *e, int64_t end, int32_t job)
{
    int32_t at = e->heap_len++;
    for (; at > 0 && e->heap[(at - 1) / 2].end > end; at = (at - 1) / 2)
        e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = (Ending){end, job};
}

static int32_t
pop(Engine *e)
{
    int32_t job = e->heap[0].job, at = 0, child;
    Ending last = e->heap[--e->heap_len];
    while ((child = 2 * at + 1) < e->heap_len) {
        if (child + 1 < e->heap_len && e->heap[child + 1].end < e->heap[child].end)
            child++;
        if (e->heap[child].end >= last.end)
            break;
        e->heap[at] = e->heap[child];
        at = child;
    }
    e->heap[at] = last;
    return job;
}

/* The first of the running jobs whose estimated end is not below this. */
static int32_t
find_running(const Engine *e, int64_t end)
{
    int32_t low = 0, high = e->running_len;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (e->running[middle].end < end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void
start_job(Engine *e, int32_t job, int64_t now)
{
    e->start[job] = now;
    e->pass_of[job] = e->passes;
    e->free -= e->size[job];
    if (e->policy != COUNTS) {
        for (int32_t at = 0; at < e->size[job]; at++)
            e->busy[e->list[e->offset[job] + at]] = 1;
        change(e, &e->now, job, 1);
    }
    push(e, now + e->duration[job], job);
    int64_t end = now + e->estimate[job];
    int32_t at = find_running(e, end);
    memmove(e->running + at + 1, e->running + at, (e->running_len++ - at) * sizeof *e->running);
    e->running[at] = (Ending){end, job};
    e->waiting_of_size[e->size[job]]--;
}

static void
end_job(Engine *e, int32_t job)
{
    e->free += e->size[job];
    if (e->policy != COUNTS) {
        for (int32_t at = 0; at < e->size[job]; at++) {
            int32_t node = e->list[e->offset[job] + at];
            e->busy[node] = 0;
            e->hint = node < e->hint ? node : e->hint;
        }
        change(e, &e->now, job, -1);
    }
    int32_t at = find_running(e, e->start[job] + e->estimate[job]);
    while (e->running[at].job != job)
        at++;
    memmove(e->running + at, e->running + at + 1, (--e->running_len - at) * sizeof *e->running);
}

/* ---- passes ---- */

static void
enqueue(Engine *e, int32_t job)
{
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
    e->waiting_of_size[e->size[job]]++;
    if (e->size[job] < e->least)
        e->least = e->size[job];
}

static int32_t
least_waiting(Engine *e)
{
    while (e->least <= e->nodes && e->waiting_of_size[e->least] == 0)
        e->least++;
    return e->least;
}

/* Start from the head of the queue as long as jobs fit; 1 where one is left that does not. */
static int
start_heads(Engine *e, int64_t now)
{
    for (; e->head < e->tail; e->head++) {
        int32_t job = e->queue[e->head];
        int placed = place(e, job);
        if (placed <= 0)
            return placed < 0 ? -1 : 1;
        start_job(e, job, now);
    }
    return 0;
}

/* When the head can start at the latest, and what is free then, its own nodes taken off (by count). */
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

static void
copy_view(const Engine *e, View *to, const View *from)
{
    memcpy(to->leaf_free, from->leaf_free, (3 * (size_t)e->leaves + 2 * (size_t)e->pods) * sizeof(int32_t));
}

/* When the head can start at the latest; the later view is then the state at that time, without it. */
static int64_t
shadow_isolated(Engine *e)
{
    int32_t size = e->size[e->queue[e->head]], at = 0, free = e->free;
    copy_view(e, &e->later, &e->now);
    while (at < e->running_len) {
        int64_t when = e->running[at].end;
        for (; at < e->running_len && e->running[at].end == when; at++) {
            change(e, &e->later, e->running[at].job, -1);
            free += e->size[e->running[at].job];
        }
        if (free >= size && feasible(e, &e->later, size))
            return when;
    }
    return INT64_MAX; /* not reached: every job fits the empty cluster */
}

/* Whether a candidate that is placed may start without delaying the head. */
static int
harmless(Engine *e, int32_t job, int64_t now, int64_t when, int32_t *extra)
{
    if (now + e->estimate[job] <= when)
        return 1;
    if (e->policy != ISOLATED) {
        if (e->size[job] > *extra)
            return 0;
        *extra -= e->size[job];
        return 1;
    }
    change(e, &e->later, job, 1);
    if (feasible(e, &e->later, e->size[e->queue[e->head]]))
        return 1;
    change(e, &e->later, job, -1);
    return 0;
}

static int
backfill(Engine *e, int64_t now)
{
    int32_t keep = e->head + 1, at = keep, extra = 0, room[3] = {e->free, e->free, e->free};
    int64_t when = -1;
    int failed = 0;
    if (e->policy == ISOLATED)
        largest_rooms(e, room);
    for (; at < e->tail && least_waiting(e) <= e->free; at++) {
        int32_t job = e->queue[at], size = e->size[job], hint = e->hint;
        int64_t length = e->list_len;
        int starts = size <= room[kind(e, size)];
        if (starts && when < 0)
            when = e->policy == ISOLATED ? shadow_isolated(e) : shadow_by_count(e, &extra);
        if (starts && e->policy != ISOLATED) /* by count, a job that does no harm always has a place */
            starts = size <= e->free && harmless(e, job, now, when, &extra) && (failed = place(e, job)) > 0;
        else if (starts)
            starts = (failed = place(e, job)) > 0 && harmless(e, job, now, when, &extra);
        if (failed < 0)
            return -1;
        if (!starts) {
            e->list_len = length;
            e->hint = hint;
            e->queue[keep++] = job;
            continue;
        }
        start_job(e, job, now);
        if (e->policy == ISOLATED)
            largest_rooms(e, room);
    }
    memmove(e->queue + keep, e->queue + at, (e->tail - at) * sizeof *e->queue);
    e->tail -= at - keep;
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
        /* A job whose estimate is 0 holds its nodes until the next pass. */
        int64_t end = e->running[at].end > now ? e->running[at].end : now + 1;
        if (end > e->times[e->line_len - 1]) {
            e->times[e->line_len] = end;
            e->free_at[e->line_len] = e->free_at[e->line_len - 1];
            e->line_len++;
        }
        e->free_at[e->line_len - 1] += e->size[e->running[at].job];
    }
}

/* The earliest point of the line from which the job fits for all its time; looks at the first point only if so asked. */
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

/* Reservations for the first jobs that cannot start, rebuilt from nothing, in the queue's order. */
static int
plan(Engine *e, int64_t now)
{
    int32_t keep = e->head, at = keep, blocked = 0;
    if (least_waiting(e) > e->free)
        return 0;
    draw_line(e, now);
    for (; at < e->tail && least_waiting(e) <= e->free; at++) {
        int32_t job = e->queue[at], size = e->size[job];
        int64_t length = e->estimate[job] > 0 ? e->estimate[job] : 1;
        int promised = e->depth < 0 || blocked < e->depth;
        int32_t slot = find_slot(e, size, length, !promised);
        if (slot == 0) {
            if (place(e, job) < 0)
                return -1;
            start_job(e, job, now);
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

static int
pass(Engine *e, int64_t now)
{
    if (e->head > (1 << 16) && e->head > e->tail / 2) {
        memmove(e->queue, e->queue + e->head, (e->tail - e->head) * sizeof *e->queue);
        e->tail -= e->head;
        e->head = 0;
    }
    if (e->depth > 1 || e->depth < 0)
        return plan(e, now);
    int blocked = start_heads(e, now);
    return blocked == 1 && e->depth == 1 ? backfill(e, now) : blocked < 0 ? -1 : 0;
}

/* ---- the loop ---- */

static int
report(PyObject *progress, int32_t ended)
{
    if (PyErr_CheckSignals() < 0)
        return -1;
    if (progress == Py_None)
        return 0;
    PyObject *answer = PyObject_CallFunction(progress, "i", (int)ended);
    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

static int
loop(Engine *e, PyObject *progress)
{
    int32_t arrived = 0, ended = 0;
    while (ended < e->jobs) {
        int64_t now = INT64_MAX;
        if (e->heap_len)
            now = e->heap[0].end;
        if (arrived < e->jobs && e->submit[arrived] < now)
            now = e->submit[arrived];
        for (; e->heap_len && e->heap[0].end == now; ended++)
            end_job(e, pop(e));
        for (; arrived < e->jobs && e->submit[arrived] == now; arrived++)
            enqueue(e, arrived);
        if (pass(e, now) < 0) {
            PyErr_NoMemory();
            return -1;
        }
        if (++e->passes % EVENTS_A_REPORT == 0 && report(progress, ended) < 0)
            return -1;
    }
    return 0;
}

/* All zeroed arrays of the engine in one block, freed at once. */
static void *
allocate(Engine *e)
{
    size_t n = e->jobs + 2, nodes = e->nodes + 2, leaves = e->leaves + 1, pods = e->pods + 1;
    size_t view = 3 * leaves + 2 * pods;
    size_t bytes = n * (8 + 8 + 2 * sizeof(Ending) + 4) + 4 * n * 12 + nodes * (4 + 1 + 4) + 8 * nodes;
    bytes += 4 * (leaves + pods + leaves + pods + 2 * view) + 4096;
    char *block = PyMem_RawCalloc(1, bytes), *at = block;
    if (block == NULL)
        return NULL;
#define CUT(pointer, count) ((pointer) = (void *)at, at += ((count) * sizeof *(pointer) + 15) / 16 * 16)
    CUT(e->heap, n);
    CUT(e->running, n);
    CUT(e->offset, n);
    CUT(e->times, 2 * n);
    CUT(e->free_at, 2 * n);
    CUT(e->queue, n);
    CUT(e->leaf_of, nodes);
    CUT(e->pod_of, leaves);
    CUT(e->order, leaves + pods);
    CUT(e->waiting_of_size, nodes);
    for (int later = 0; later < 2; later++) {
        View *one = later ? &e->later : &e->now;
        CUT(one->leaf_free, view);
        one->leaf_medium = one->leaf_free + e->leaves;
        one->leaf_large = one->leaf_medium + e->leaves;
        one->pod_free = one->leaf_large + e->leaves;
        one->pod_large = one->pod_free + e->pods;
    }
    CUT(e->busy, nodes);
#undef CUT
    return block;
}

static void
set_up(Engine *e)
{
    for (int32_t pod = 0; pod < e->pods; pod++)
        for (int32_t leaf = e->pod_start[pod]; leaf < e->pod_start[pod + 1]; leaf++) {
            int32_t size = e->leaf_start[leaf + 1] - e->leaf_start[leaf];
            e->pod_of[leaf] = pod;
            e->now.leaf_free[leaf] = size;
            e->now.pod_free[pod] += size;
            for (int32_t node = e->leaf_start[leaf]; node < e->leaf_start[leaf + 1]; node++)
                e->leaf_of[node] = leaf;
        }
    e->leaf_of[e->nodes] = e->leaves - 1;
    e->free = e->nodes;
    e->least = 1;
}

/* run(policy, depth, (leaf size, pod size), submit, duration, estimate, rank, size, leaf starts, pod starts, start, pass, progress)
   fills start and pass and returns (offsets, nodes) as bytes, both empty where nodes are only counted. */
static PyObject *
run(PyObject *module, PyObject *args)
{
    Engine e = {0};
    Py_buffer in[9];
    PyObject *progress, *answer = NULL;
    if (!PyArg_ParseTuple(args, "ii(ii)y*y*y*y*y*y*y*w*w*O", &e.policy, &e.depth, &e.leaf_size, &e.pod_size, &in[0],
                          &in[1], &in[2], &in[3], &in[4], &in[5], &in[6], &in[7], &in[8], &progress))
        return NULL;
    e.submit = in[0].buf, e.duration = in[1].buf, e.estimate = in[2].buf, e.rank = in[3].buf;
    e.size = in[4].buf, e.leaf_start = in[5].buf, e.pod_start = in[6].buf, e.start = in[7].buf, e.pass_of = in[8].buf;
    e.jobs = (int32_t)(in[0].len / 8);
    e.leaves = (int32_t)(in[5].len / 4) - 1;
    e.pods = (int32_t)(in[6].len / 4) - 1;
    e.nodes = e.leaf_start[e.leaves];
    void *block = allocate(&e);
    if (block == NULL)
        PyErr_NoMemory();
    else {
        set_up(&e);
        if (loop(&e, progress) == 0)
            answer = Py_BuildValue("y#y#", (char *)e.offset, e.policy == COUNTS ? 0 : (Py_ssize_t)e.jobs * 8,
                                   (char *)(e.list ? e.list : e.order), (Py_ssize_t)e.list_len * 4);
    }
    PyMem_RawFree(block);
    PyMem_RawFree(e.list);
    for (int at = 0; at < 9; at++)
        PyBuffer_Release(&in[at]);
    return answer;
}

static PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, "Run a workload; see engine.py."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_engine", "The event loop of many jobs.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__engine(void)
{
    return PyModule_Create(&definition);
}
