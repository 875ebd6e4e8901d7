/* Flows on their links; see _fair.h. */

#include "_fair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int
fair_init(Fair *all)
{
    size_t links = (size_t)all->links + 1;
    all->link_room = all->links;
    all->link = calloc(links, sizeof *all->link);
    all->looked = calloc(links, sizeof *all->looked);
    return all->link && all->looked;
}

void
fair_free(Fair *all)
{
    for (int32_t link = 0; all->link != NULL && link < all->links; link++)
        free(all->link[link].flows);
    free(all->flow);
    free(all->path);
    free(all->where);
    free(all->unused);
    free(all->link);
    free(all->filled);
    free(all->lacking);
    free(all->changed);
    free(all->looked);
    free(all->shares);
}

/* Reallocate ``array``, or return 0 from the calling function. */
#define RESIZE(array, count)                                             \
    do {                                                                 \
        void *larger_ = realloc(array, (size_t)(count) * sizeof *(array)); \
        if (larger_ == NULL)                                             \
            return 0;                                                    \
        (array) = larger_;                                               \
    } while (0)

/* Make room for more flows; 0 without memory. */
static int
grow(Fair *all)
{
    int64_t room = all->room ? 2 * (int64_t)all->room : 256;
    if (room * all->longest > INT32_MAX)
        return 0;
    RESIZE(all->flow, room);
    RESIZE(all->path, room * all->longest);
    RESIZE(all->where, room * all->longest);
    RESIZE(all->unused, room);
    RESIZE(all->changed, room);
    RESIZE(all->filled, room);
    RESIZE(all->lacking, room);
    RESIZE(all->shares, room + all->link_room);
    all->room = (int32_t)room;
    return 1;
}

/* Add links up to a number; 0 without memory. */
int
fair_widen(Fair *all, int32_t links)
{
    if (links > all->link_room) {
        int32_t room = links > all->link_room + all->link_room / 4 ? links : all->link_room + all->link_room / 4;
        RESIZE(all->link, (int64_t)room + 1);
        RESIZE(all->looked, (int64_t)room + 1);
        RESIZE(all->shares, (int64_t)all->room + room);
        memset(all->link + all->link_room + 1, 0, (size_t)(room - all->link_room) * sizeof *all->link);
        all->link_room = room;
    }
    all->links = links;
    return 1;
}

/* Make room for longer paths; 0 without memory. */
int
fair_lengthen(Fair *all, int32_t longest)
{
    int32_t before = all->longest;
    if (longest <= before)
        return 1;
    if ((int64_t)all->room * longest > INT32_MAX)
        return 0;
    if (all->room) {
        RESIZE(all->path, (int64_t)all->room * longest);
        RESIZE(all->where, (int64_t)all->room * longest);
    }
    for (int64_t one = all->flows - 1; one > 0; one--)
        for (int32_t step = all->flow[one].length - 1; step >= 0; step--) {
            all->path[one * longest + step] = all->path[one * before + step];
            all->where[one * longest + step] = all->where[one * before + step];
        }
    for (int32_t link = 0; link < all->links; link++)
        for (int32_t at = 0; at < all->link[link].count; at++) {
            Crossing *crossing = &all->link[link].flows[at];
            crossing->at += crossing->flow * (longest - before);
        }
    all->longest = longest;
    return 1;
}

static int
widen(Link *link)
{
    int32_t room = link->room ? 2 * link->room : 4;
    RESIZE(link->flows, room);
    link->room = room;
    return 1;
}

/* Put a message on its links; returns the flow, -1 without memory. */
int32_t
fair_add(Fair *all, int32_t message, const int32_t *path)
{
    if (!all->num_unused && all->flows == all->room && !grow(all))
        return -1;
    int32_t one = all->num_unused ? all->unused[--all->num_unused] : all->flows++;
    Flow *flow = &all->flow[one];
    *flow = (Flow){.message = message, .place = -1, .bottleneck = -1};
    for (int32_t step = 0; step < all->longest; step++) {
        if (path[step] < 0 || !isfinite(all->capacity[path[step]]))
            continue;
        Link *link = &all->link[path[step]];
        if (link->count == link->room && !widen(link))
            return -1;
        if (link->count == 1)
            link->left = all->capacity[path[step]] - all->flow[link->flows[0].flow].rate;
        int32_t at = one * all->longest + flow->length++;
        all->path[at] = path[step];
        all->where[at] = link->count;
        link->flows[link->count++] = (Crossing){one, at};
    }
    return one;
}

/* Clear a flow's rate and bottleneck. */
static void
release(Fair *all, int32_t one)
{
    Flow *flow = &all->flow[one];
    EACH_LINK(all, one, at)
        all->link[all->path[at]].left += flow->rate;
    if (flow->bottleneck >= 0)
        all->link[flow->bottleneck].bound--;
    flow->bottleneck = -1;
}

/* Remove a flow from its links, and mark these as visited. */
void
fair_remove(Fair *all, int32_t one)
{
    release(all, one);
    EACH_LINK(all, one, at)
    {
        Link *link = &all->link[all->path[at]];
        Crossing last = link->flows[--link->count];
        link->flows[all->where[at]] = last;
        all->where[last.at] = all->where[at];
        fair_look(all, all->path[at]);
    }
    all->flow[one].message = -1;
    all->unused[all->num_unused++] = one;
}

/* Begin a set of changes. */
void
fair_begin(Fair *all)
{
    all->change++;
    all->filling++;
    all->num_changed = all->num_filled = all->num_looked = 0;
}

void
fair_look(Fair *all, int32_t number)
{
    Link *link = &all->link[number];
    if (link->looked != all->filling) {
        link->looked = all->filling;
        link->open = 0;
        all->looked[all->num_looked++] = number;
    }
}

/* Open a flow on its links: on links that other flows use it counts as open, and the other links limit its rate. */
static void
open_links(Fair *all, int32_t one)
{
    Flow *flow = &all->flow[one];
    EACH_LINK(all, one, at)
    {
        int32_t number = all->path[at];
        Link *link = &all->link[number];
        if (link->count == 1) {
            fair_limit(flow, all->capacity[number], number);
        } else {
            fair_look(all, number);
            link->open++;
            link->last = one;
        }
    }
}

/* Add a flow to the filling; all flows must be on their links before. */
void
fair_fill(Fair *all, int32_t one)
{
    Flow *flow = &all->flow[one];
    if (flow->filling == all->filling)
        return;
    flow->filling = all->filling;
    flow->fixed = 0;
    flow->least = INFINITY;
    all->filled[all->num_filled++] = one;
    release(all, one);
    open_links(all, one);
    if (flow->change == all->change)
        return;
    flow->change = all->change;
    flow->before = flow->rate;
    all->changed[all->num_changed++] = one;
}
