/* Flows on links and their max-min fair rates, updated as flows begin and end.

   If few flows change, few rates do. So only some flows are refilled, and all others keep their rates. If another flow
   then has no bottleneck (a full link on which no flow is faster), it is refilled next, together with all flows
   refilled before that are connected to it by links. At the end all flows have a bottleneck, which is true of max-min
   fair rates only (D. Bertsekas and R. Gallager, Data Networks, 2nd edition, 1992, 6.5.2). */

#ifndef TOPOMPI_NETSIM_FAIR_H
#define TOPOMPI_NETSIM_FAIR_H

#include <stdint.h>

typedef struct {
    double rate, before; /* bytes/s; before: rate of a refilled flow before the changes */
    double least;        /* least bytes/s left to it by links on which only this flow is refilled */
    int32_t tightest;    /* the link with the least */
    int32_t bottleneck;  /* a link, -1 for none */
    int32_t length;      /* number of links of finite capacity */
    int32_t change;      /* number of the last set of changes in which it was refilled */
    int32_t filling;     /* number of the last filling in which it took part */
    int32_t fixed;       /* whether its rate is fixed in this filling */
    int32_t lacking;     /* number of the last filling after which it had no bottleneck */
    int32_t message;     /* -1 for none */
    int32_t place;       /* index in the heap of finishes, -1 if it is not there */
    double remaining;    /* bytes at the time ``updated`` */
    double updated, began, finish;
} Flow;

/* A flow on a link, and the index of this link among all links of all flows. */
typedef struct {
    int32_t flow, at;
} Crossing;

/* A link with one flow leaves it its whole capacity; only its number of flows is kept up to date. */
typedef struct {
    double left;  /* bytes/s not used by its flows, except refilled flows that are not fixed */
    double level; /* rate of the flows fixed on it, -1 for none */
    Crossing *flows;
    int32_t count, room;
    int32_t open;   /* number of refilled flows that are not fixed */
    int32_t last;   /* last refilled flow */
    int32_t others; /* number of flows that are not refilled */
    int32_t bound;  /* number of flows whose bottleneck it is */
    int32_t looked; /* number of the last filling that visited it */
} Link;

/* The share of a link for each of its open flows; or, for one flow, the share of the links on which only it is
   refilled. */
typedef struct {
    double share;
    int32_t link;
    int32_t flow; /* -1 for all flows of the link */
} Share;

typedef struct {
    int32_t links, longest;
    int32_t link_room; /* number of links with memory */
    const double *capacity;
    Flow *flow; /* current flows; freed places are reused */
    int32_t flows, room;
    int32_t *path, *where; /* links of each flow, and its index in each link's list */
    int32_t *unused, num_unused;
    Link *link;
    int32_t *changed, num_changed; /* flows refilled in this set of changes */
    int32_t *filled, num_filled;   /* flows refilled in this filling */
    int32_t *looked, num_looked;   /* links visited in this filling */
    int32_t *lacking, num_lacking; /* flows to refill next */
    Share *shares; /* a heap with room for all links and all flows */
    int32_t num_shares;
    int32_t change, filling; /* numbers of the set of changes and of the filling */
    double accuracy; /* relative accuracy of fair shares */
} Fair;

/* The indices of a flow's links of finite capacity. */
#define EACH_LINK(all, one, at) \
    for (int32_t at = (one) * (all)->longest, end_ = at + (all)->flow[one].length; at < end_; at++)

/* Limit a flow to the bytes/s of a link on which only this flow is refilled. */
static inline void
fair_limit(Flow *flow, double left, int32_t link)
{
    if (left < flow->least) {
        flow->least = left;
        flow->tightest = link;
    }
}

int fair_init(Fair *all);
void fair_free(Fair *all);
int fair_widen(Fair *all, int32_t links);
int fair_lengthen(Fair *all, int32_t longest);
int32_t fair_add(Fair *all, int32_t message, const int32_t *path);
void fair_remove(Fair *all, int32_t flow);
void fair_begin(Fair *all);
void fair_fill(Fair *all, int32_t flow);
void fair_look(Fair *all, int32_t link);
void fair_solve(Fair *all);

#endif
