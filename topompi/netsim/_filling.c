/* Max-min fair rates by progressive filling; see _fair.h. */

#include "_fair.h"

#include <math.h>

static const double TIE = 1e-12; /* relative */

/* Put a share into the heap at an index, or below it. */
static void
sink(Fair *all, int32_t at, Share share)
{
    for (int32_t child; (child = 2 * at + 1) < all->num_shares; at = child) {
        child += child + 1 < all->num_shares && all->shares[child + 1].share < all->shares[child].share;
        if (all->shares[child].share >= share.share)
            break;
        all->shares[at] = all->shares[child];
    }
    all->shares[at] = share;
}

/* Whether a flow shares a link with the refilled flows. */
static int
meets(const Fair *all, int32_t one)
{
    EACH_LINK(all, one, at)
    {
        const Link *link = &all->link[all->path[at]];
        if (link->looked == all->filling && link->open)
            return 1;
    }
    return 0;
}

/* Add to the filling all flows refilled earlier in this set of changes that links connect to the current flows. */
static void
gather(Fair *all)
{
    for (int32_t before = -1; before != all->num_filled;) {
        before = all->num_filled;
        for (int32_t one = 0; one < all->num_changed; one++)
            if (all->flow[all->changed[one]].filling != all->filling && meets(all, all->changed[one]))
                fair_fill(all, all->changed[one]);
    }
}

static double
share_of(const Link *link)
{
    return link->left > 0 ? link->left / link->open : 0;
}

/* Compute the shares that links leave to the refilled flows.

   Of the links on which only one flow is refilled, only the tightest can be its bottleneck, and its share does not
   grow, so this link represents all. */
static void
prepare(Fair *all)
{
    all->num_shares = 0;
    for (int32_t one = 0; one < all->num_looked; one++) {
        int32_t number = all->looked[one];
        Link *link = &all->link[number];
        link->level = -1;
        link->others = link->count - link->open;
        if (link->open > 1)
            all->shares[all->num_shares++] = (Share){share_of(link), number, -1};
        else if (link->open)
            fair_limit(&all->flow[link->last], share_of(link), number);
    }
    for (int32_t one = 0; one < all->num_filled; one++) {
        const Flow *flow = &all->flow[all->filled[one]];
        if (isfinite(flow->least))
            all->shares[all->num_shares++] = (Share){flow->least, flow->tightest, all->filled[one]};
    }
    for (int32_t at = all->num_shares / 2 - 1; at >= 0; at--)
        sink(all, at, all->shares[at]);
}

static void
fix(Fair *all, int32_t one, double rate, int32_t bottleneck)
{
    Flow *flow = &all->flow[one];
    flow->rate = rate;
    flow->bottleneck = bottleneck;
    flow->fixed = 1;
    all->link[bottleneck].bound++;
    all->link[bottleneck].level = rate;
    EACH_LINK(all, one, at)
    {
        Link *link = &all->link[all->path[at]];
        link->left -= rate;
        link->open--;
    }
}

/* Fix the rates of all open flows of a link; returns their number. */
static int32_t
fix_all(Fair *all, int32_t number, double rate)
{
    Link *link = &all->link[number];
    int32_t count = link->open;
    for (int32_t at = 0; link->open; at++) {
        Flow *flow = &all->flow[link->flows[at].flow];
        if (flow->filling == all->filling && !flow->fixed)
            fix(all, link->flows[at].flow, rate, number);
    }
    return count;
}

/* Increase the rates of all refilled flows equally until a link is full; fix its flows, and go on with the others. */
static void
fill(Fair *all)
{
    prepare(all);
    for (int32_t open = all->num_filled; open && all->num_shares;) {
        Share least = all->shares[0];
        Link *link = &all->link[least.link];
        int over = least.flow < 0 ? !link->open : all->flow[least.flow].fixed;
        double share = least.flow < 0 && !over ? share_of(link) : least.share;
        if (share > least.share * (1 + TIE)) { /* shares only grow */
            sink(all, 0, (Share){share, least.link, -1});
            continue;
        }
        if (!over && least.flow < 0) {
            open -= fix_all(all, least.link, share);
        } else if (!over) {
            fix(all, least.flow, share, least.link);
            open--;
        }
        all->num_shares--;
        sink(all, 0, all->shares[all->num_shares]);
    }
}

/* The rate of a link's fastest flow; also recomputes the bytes/s that its flows leave. */
static double
sum_up(const Fair *all, int32_t number)
{
    Link *link = &all->link[number];
    double fastest = 0;
    link->left = all->capacity[number];
    for (int32_t at = 0; at < link->count; at++) {
        double rate = all->flow[link->flows[at].flow].rate;
        link->left -= rate;
        fastest = rate > fastest ? rate : fastest;
    }
    return fastest;
}

/* The rate at which the flows of a link would share it that are at least as fast as the flows fixed on it.

   Slower flows have their bottleneck elsewhere, and leave the others more. At least one flow is fixed on the link in
   this filling, so no count is 0. */
static double
level_of(const Fair *all, int32_t number)
{
    const Link *link = &all->link[number];
    for (double level = link->level;;) {
        double left = all->capacity[number];
        int32_t count = 0;
        for (int32_t at = 0; at < link->count; at++) {
            const Flow *flow = &all->flow[link->flows[at].flow];
            if (flow->rate >= level || (flow->filling == all->filling && flow->bottleneck == number))
                count++;
            else
                left -= flow->rate;
        }
        if (left <= count * level * (1 + all->accuracy))
            return level;
        level = left / count;
    }
}

/* Note the flows of a link that have no bottleneck any more, or that take more than the flows fixed on it permit. */
static void
check(Fair *all, int32_t number)
{
    Link *link = &all->link[number];
    if (!link->others || !link->bound)
        return;
    double fastest = sum_up(all, number), slack = 1 + all->accuracy;
    int full = link->left <= all->capacity[number] * all->accuracy;
    double least = full ? fastest * (1 - all->accuracy) : INFINITY; /* least rate of flows with this bottleneck */
    double most = link->level >= 0 && fastest > link->level * slack ? level_of(all, number) : INFINITY;
    for (int32_t at = 0; at < link->count; at++) {
        Flow *flow = &all->flow[link->flows[at].flow];
        if (flow->filling == all->filling || flow->lacking == all->filling)
            continue;
        if ((flow->bottleneck == number && flow->rate < least) || flow->rate > most) {
            flow->lacking = all->filling;
            all->lacking[all->num_lacking++] = link->flows[at].flow;
        }
    }
}

/* Compute the rates of all flows, after removals and calls of ``fair_fill``.

   Each filling after the first includes a flow that no earlier filling of this set of changes had, because it also
   includes all earlier flows that share a link with it; so the loop ends. */
void
fair_solve(Fair *all)
{
    for (int round = 0;; round++) {
        if (round)
            gather(all);
        fill(all);
        all->num_lacking = 0;
        for (int32_t one = 0; one < all->num_looked; one++)
            check(all, all->looked[one]);
        if (!all->num_lacking)
            return;
        all->filling++;
        all->num_filled = all->num_looked = 0;
        for (int32_t one = 0; one < all->num_lacking; one++)
            fair_fill(all, all->lacking[one]);
    }
}
