/* The choice of a job's nodes: first available, and Algorithm 1 of Pollard et al. (allocation/isolated.py). The sums of
   each pod are updated at every start and end, so that no search looks at all leaves. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "_engine.h"

int
jobs_kind(const Engine *e, int32_t size)
{
    return size <= e->leaf_size ? SMALL : size <= e->pod_size ? MEDIUM : LARGE;
}

void
jobs_set_up(Engine *e)
{
    View *now = &e->now;
    for (int32_t pod = 0; pod < e->pods; pod++)
        for (int32_t leaf = e->pod_start[pod]; leaf < e->pod_start[pod + 1]; leaf++) {
            int32_t size = e->leaf_start[leaf + 1] - e->leaf_start[leaf];
            e->pod_of[leaf] = pod;
            now->leaf_free[leaf] = size;
            now->pod_free[pod] += size;
            now->pod_usable[pod] += size;
            now->pod_most[pod] = size > now->pod_most[pod] ? size : now->pod_most[pod];
            for (int32_t node = e->leaf_start[leaf]; node < e->leaf_start[leaf + 1]; node++)
                e->leaf_of[node] = leaf;
        }
    e->leaf_of[e->nodes] = e->leaves - 1;
    e->free = now->open = e->nodes;
}

/* ---- views ---- */

static int32_t
most_free(const Engine *e, const View *view, int32_t pod)
{
    int32_t most = 0;
    for (int32_t leaf = e->pod_start[pod]; leaf < e->pod_start[pod + 1]; leaf++)
        most = view->leaf_free[leaf] > most ? view->leaf_free[leaf] : most;
    return most;
}

/* Add to the free nodes of a leaf, and to its number of medium and large jobs. */
static void
change_leaf(const Engine *e, View *view, int32_t leaf, int32_t nodes, int wide)
{
    int32_t pod = e->pod_of[leaf], before = view->leaf_free[leaf], after = before + nodes;
    int32_t usable = -(view->leaf_wide[leaf] == 0 ? before : 0);
    view->leaf_free[leaf] = after;
    view->leaf_wide[leaf] += wide;
    usable += view->leaf_wide[leaf] == 0 ? after : 0;
    view->pod_free[pod] += nodes;
    view->pod_usable[pod] += usable;
    if (view->pod_large[pod] == 0)
        view->open += usable;
    if (after >= view->pod_most[pod])
        view->pod_most[pod] = after;
    else if (before == view->pod_most[pod])
        view->pod_most[pod] = most_free(e, view, pod);
}

static void
change_large(View *view, int32_t pod, int sign)
{
    int before = view->pod_large[pod], after = before + sign;
    if (before == 0)
        view->open -= view->pod_usable[pod];
    else if (after == 0)
        view->open += view->pod_usable[pod];
    view->pod_large[pod] = after;
}

/* Record the start (sign 1) or the end (-1) of a job, whose nodes are sorted leaf by leaf, and pod by pod. */
void
jobs_change(const Engine *e, View *view, int32_t job, int sign)
{
    int of = jobs_kind(e, e->size[job]);
    const int32_t *node = e->list + e->offset[job], *end = node + e->size[job];
    int32_t pod = -1;
    while (node < end) {
        int32_t leaf = e->leaf_of[*node], count = 0;
        for (; node < end && e->leaf_of[*node] == leaf; node++)
            count++;
        if (e->policy == FIRST) {
            view->leaf_free[leaf] -= sign * count;
            view->pod_free[e->pod_of[leaf]] -= sign * count;
            continue;
        }
        if (of == LARGE && e->pod_of[leaf] != pod) {
            pod = e->pod_of[leaf];
            change_large(view, pod, sign);
        }
        change_leaf(e, view, leaf, -sign * count, of == SMALL ? 0 : sign);
    }
}

void
jobs_copy_view(const Engine *e, View *to, const View *from)
{
    /* One copy is enough, because all arrays of a view are in one block of memory. */
    memcpy(to->leaf_free, from->leaf_free, (2 * (size_t)e->leaves + 4 * (size_t)e->pods) * sizeof(int32_t));
    to->open = from->open;
}

int32_t
jobs_room(const Engine *e, const View *view, int of)
{
    const int32_t *room = of == SMALL ? view->pod_most : view->pod_usable;
    int32_t most = 0;
    if (of == LARGE)
        return view->open;
    for (int32_t pod = 0; pod < e->pods; pod++)
        most = room[pod] > most ? room[pod] : most;
    return most;
}

int
jobs_room_after(const Engine *e, const View *view, int32_t ended, int32_t size)
{
    int of = jobs_kind(e, size);
    const int32_t *room = of == SMALL ? view->pod_most : view->pod_usable;
    if (of == LARGE)
        return view->open >= size;
    const int32_t *node = e->list + e->offset[ended], *end = node + e->size[ended];
    for (int32_t pod = -1; node < end; node++)
        if (e->pod_of[e->leaf_of[*node]] != pod) {
            pod = e->pod_of[e->leaf_of[*node]];
            if (room[pod] >= size)
                return 1;
        }
    return 0;
}

/* ---- nodes ---- */

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

/* Sort the indices first..last-1 by key, largest first; equal keys keep their order. */
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
        if (e->now.leaf_wide[order[at]] == 0)
            left -= take(e, order[at], left);
    return left;
}

static int
place_large(Engine *e, int32_t size)
{
    if (e->now.open < size)
        return 0;
    sort_down(e->order, e->now.pod_free, 0, e->pods);
    for (int32_t at = 0; size && at < e->pods; at++)
        if (!e->now.pod_large[e->order[at]])
            size = take_leaves(e, e->order[at], size);
    return 1;
}

/* Append nodes for a job of this size to the list; returns 1 if there are any. */
static int
place_isolated(Engine *e, int32_t size)
{
    int of = jobs_kind(e, size);
    if (of == LARGE)
        return place_large(e, size);
    const View *now = &e->now;
    const int32_t *room = of == SMALL ? now->pod_most : now->pod_usable;
    int32_t fullest = -1, best = -1; /* the pod, and the leaf, with the fewest free nodes among those with room */
    for (int32_t pod = 0; pod < e->pods; pod++)
        if (room[pod] >= size && (fullest < 0 || now->pod_free[pod] < now->pod_free[fullest]))
            fullest = pod;
    if (fullest < 0)
        return 0;
    if (of == MEDIUM) {
        take_leaves(e, fullest, size);
        return 1;
    }
    for (int32_t leaf = e->pod_start[fullest]; leaf < e->pod_start[fullest + 1]; leaf++)
        if (now->leaf_free[leaf] >= size && (best < 0 || now->leaf_free[leaf] < now->leaf_free[best]))
            best = leaf;
    take(e, best, size);
    return 1;
}

static void
place_first(Engine *e, int32_t size)
{
    int32_t node = e->hint;
    while (size) {
        int32_t leaf = e->leaf_of[node], pod = e->pod_of[leaf];
        if (e->now.pod_free[pod] == 0 || e->now.leaf_free[leaf] == 0) {
            node = e->leaf_start[e->now.pod_free[pod] == 0 ? e->pod_start[pod + 1] : leaf + 1];
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

int
jobs_place(Engine *e, int32_t job)
{
    int32_t size = e->size[job];
    if (size > e->free)
        return 0;
    if (e->policy == COUNTS)
        return 1;
    if (!make_room(e, size))
        return -1;
    e->offset[job] = e->list_len;
    if (e->policy == HALVES)
        return halves_place(e, job);
    if (e->policy == ISOLATED)
        return place_isolated(e, size);
    place_first(e, size);
    return 1;
}
