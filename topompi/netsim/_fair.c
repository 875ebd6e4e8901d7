/* Max-min fair rates; see _fair.h. */

#include "_fair.h"

#include <math.h>
#include <stdlib.h>

enum { PATIENCE = 3 }; /* fillings after which all that shares a link joins at once */

static const double TIE = 1e-12; /* relative */

int
fair_init(Fair *all)
{
    size_t links = (size_t)all->links + 1;
    all->link = calloc(links, sizeof *all->link);
    all->looked = calloc(links, sizeof *all->looked);
    all->shares = calloc(links, sizeof *all->shares);
    return all->link && all->looked && all->shares;
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

/* Set ``array`` to more memory, or return 0 from the function at hand. */
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
    all->room = (int32_t)room;
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

/* The places of a flow's links that can be full. */
#define EACH_LINK(all, one, at) \
    for (int32_t at = (one) * (all)->longest, end_ = at + (all)->flow[one].length; at < end_; at++)

/* Put a message on its links; returns the flow, -1 without memory. */
int32_t
fair_add(Fair *all, int32_t message, const int32_t *path)
{
    if (!all->num_unused && all->flows == all->room && !grow(all))
        return -1;
    int32_t one = all->num_unused ? all->unused[--all->num_unused] : all->flows++;
    Flow *flow = &all->flow[one];
    *flow = (Flow){.message = message, .place = -1};
    for (int32_t step = 0; step < all->longest; step++) {
        if (path[step] < 0 || !isfinite(all->capacity[path[step]]))
            continue;
        Link *link = &all->link[path[step]];
        if (link->count == link->room && !widen(link))
            return -1;
        int32_t at = one * all->longest + flow->length++;
        all->path[at] = path[step];
        all->where[at] = link->count;
        link->flows[link->count++] = (Crossing){one, at};
    }
    return one;
}

/* Take a flow off its links, which are looked at. */
void
fair_remove(Fair *all, int32_t one)
{
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
    if (all->link[number].looked != all->filling) {
        all->link[number].looked = all->filling;
        all->looked[all->num_looked++] = number;
    }
}

/* Let a flow take part in the filling. */
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
    if (flow->change == all->change)
        return;
    flow->change = all->change;
    flow->before = flow->rate;
    all->changed[all->num_changed++] = one;
}

static void
push(Fair *all, double share, int32_t link)
{
    int32_t at = all->num_shares++;
    for (; at && share < all->shares[(at - 1) / 2].share; at = (at - 1) / 2)
        all->shares[at] = all->shares[(at - 1) / 2];
    all->shares[at] = (Share){share, link};
}

/* Put a share in the place of the least. */
static void
sink(Fair *all, Share last)
{
    int32_t at = 0;
    for (int32_t child = 1; child < all->num_shares; child = 2 * at + 1) {
        child += child + 1 < all->num_shares && all->shares[child + 1].share < all->shares[child].share;
        if (all->shares[child].share >= last.share)
            break;
        all->shares[at] = all->shares[child];
        at = child;
    }
    all->shares[at] = last;
}

/* Let all take part that was filled before in this set of changes and shares links with what is filled now. */
static void
gather(Fair *all)
{
    for (int32_t one = 0; one < all->num_filled; one++)
        EACH_LINK(all, all->filled[one], at)
        {
            Link *link = &all->link[all->path[at]];
            if (link->looked == all->filling && link->open == -1)
                continue;
            fair_look(all, all->path[at]);
            link->open = -1;
            for (int32_t other = 0; other < link->count; other++)
                if (all->flow[link->flows[other].flow].change == all->change)
                    fair_fill(all, link->flows[other].flow);
        }
}

/* What each link that is looked at leaves to the flows that are filled.

   Of the links on which a flow alone is filled only the tightest can be its bottleneck, and their shares do not grow: that
   one stands for all. */
static void
prepare(Fair *all)
{
    all->num_shares = 0;
    for (int32_t one = 0; one < all->num_looked; one++) {
        Link *link = &all->link[all->looked[one]];
        link->left = all->capacity[all->looked[one]];
        link->level = -1;
        link->open = 0;
        Flow *filled = NULL;
        for (int32_t at = 0; at < link->count; at++) {
            Flow *flow = &all->flow[link->flows[at].flow];
            if (flow->filling == all->filling) {
                link->open++;
                filled = flow;
            } else
                link->left -= flow->rate;
        }
        link->others = link->count - link->open;
        if (link->left < 0)
            link->left = 0;
        if (link->open > 1)
            push(all, link->left / link->open, all->looked[one]);
        else if (link->open && link->left < filled->least) {
            filled->least = link->left;
            filled->tightest = all->looked[one];
        }
    }
    for (int32_t one = 0; one < all->num_filled; one++)
        if (isfinite(all->flow[all->filled[one]].least))
            push(all, all->flow[all->filled[one]].least, all->flow[all->filled[one]].tightest);
}

static void
fix(Fair *all, int32_t one, double rate, int32_t bottleneck)
{
    Flow *flow = &all->flow[one];
    flow->rate = rate;
    flow->bottleneck = bottleneck;
    flow->fixed = 1;
    EACH_LINK(all, one, at)
    {
        Link *link = &all->link[all->path[at]];
        link->left = link->left > rate ? link->left - rate : 0;
        link->open--;
    }
}

/* All flows that are filled grow alike until a link is full, where they stay; the others grow on. */
static void
fill(Fair *all)
{
    prepare(all);
    while (all->num_shares) {
        Share least = all->shares[0];
        Link *link = &all->link[least.link];
        double share = link->open ? link->left / link->open : 0;
        if (!link->open) {
            if (--all->num_shares)
                sink(all, all->shares[all->num_shares]);
        } else if (share > least.share * (1 + TIE)) {
            sink(all, (Share){share, least.link}); /* shares only grow */
        } else {
            link->level = share;
            for (int32_t at = 0; link->open; at++) {
                Flow *flow = &all->flow[link->flows[at].flow];
                if (flow->filling == all->filling && !flow->fixed)
                    fix(all, link->flows[at].flow, share, least.link);
            }
        }
    }
}

/* Note the flows of a link that have no bottleneck any more, or keep one from those that are fixed on it. */
static void
check(Fair *all, int32_t number, int everything)
{
    Link *link = &all->link[number];
    if (!link->others)
        return;
    double load = 0, fastest = 0;
    for (int32_t at = 0; at < link->count; at++) {
        double rate = all->flow[link->flows[at].flow].rate;
        load += rate;
        fastest = rate > fastest ? rate : fastest;
    }
    int full = load >= all->capacity[number] * (1 - all->accuracy);
    for (int32_t at = 0; at < link->count; at++) {
        Flow *flow = &all->flow[link->flows[at].flow];
        if (flow->filling == all->filling || flow->lacking == all->filling)
            continue;
        int lost = flow->bottleneck == number && !(full && flow->rate >= fastest * (1 - all->accuracy));
        int greedy = link->level >= 0 && flow->rate > link->level * (1 + all->accuracy);
        if (lost || greedy || everything) {
            flow->lacking = all->filling;
            all->lacking[all->num_lacking++] = link->flows[at].flow;
        }
    }
}

/* The rates of all flows, after what was taken off and with what was given to ``fair_fill``. */
void
fair_solve(Fair *all)
{
    for (int round = 0;; round++) {
        gather(all);
        fill(all);
        all->num_lacking = 0;
        for (int32_t one = 0; one < all->num_looked; one++)
            check(all, all->looked[one], 0);
        if (!all->num_lacking)
            return;
        for (int32_t one = 0; round >= PATIENCE && one < all->num_looked; one++)
            check(all, all->looked[one], 1);
        all->filling++;
        all->num_filled = all->num_looked = 0;
        for (int32_t one = 0; one < all->num_lacking; one++)
            fair_fill(all, all->lacking[one]);
    }
}
