/* Flows on links and their max-min fair rates, kept up as flows come and go.

   Where few flows change, few rates do. So only some flows are filled anew beside the rates of all others; where another
   flow then has no bottleneck, a full link on which no flow is faster, it is filled next, together with all that was
   filled before and hangs together with it. All have one at the end, which only max-min fair rates give (D. Bertsekas and
   R. Gallager, Data Networks, 2nd edition, 1992, 6.5.2). */

#ifndef TOPOMPI_NETSIM_FAIR_H
#define TOPOMPI_NETSIM_FAIR_H

#include <stdint.h>

typedef struct {
    double rate, before; /* bytes/s; before: of what is filled, before the changes */
    double least;        /* bytes/s that the links leave to it on which it alone is filled */
    int32_t tightest;    /* of these links */
    int32_t bottleneck;  /* a link, -1 for none */
    int32_t length;      /* links that can be full */
    int32_t change;      /* number of the last set of changes in which it was filled */
    int32_t filling;     /* number of the last filling that it took part in */
    int32_t fixed;       /* in it */
    int32_t lacking;     /* number of the last filling after which it had no bottleneck */
    int32_t message;     /* -1 for none */
    int32_t place;       /* in the heap of finishes, -1 for not there */
    double remaining;    /* bytes at the time ``updated`` */
    double updated, began, finish;
} Flow;

/* A flow on a link, and the place of the link among all links of flows. */
typedef struct {
    int32_t flow, at;
} Crossing;

/* A link of one flow leaves its capacity to it, and only the number of its flows is kept up. */
typedef struct {
    double left;  /* bytes/s that its flows leave, without those that are filled and not fixed */
    double level; /* rate of the flows that are fixed on it, -1 for none */
    Crossing *flows;
    int32_t count, room;
    int32_t open;   /* flows that are filled and not fixed */
    int32_t last;   /* of the flows that are filled */
    int32_t others; /* flows that are not filled */
    int32_t bound;  /* flows whose bottleneck it is */
    int32_t looked; /* number of the last filling that looked at it */
} Link;

/* What a link leaves to each of its open flows, or the links on which one flow alone is filled to that flow. */
typedef struct {
    double share;
    int32_t link;
    int32_t flow; /* -1 for all of the link */
} Share;

typedef struct {
    int32_t links, longest;
    int32_t link_room; /* links for which there is memory */
    const double *capacity;
    Flow *flow; /* those under way, in places that others take after them */
    int32_t flows, room;
    int32_t *path, *where; /* of each flow, and its place in each link's list */
    int32_t *unused, num_unused;
    Link *link;
    int32_t *changed, num_changed; /* flows: all that were filled in this set of changes */
    int32_t *filled, num_filled;   /* flows: those of the filling at hand */
    int32_t *looked, num_looked;   /* links */
    int32_t *lacking, num_lacking; /* flows that are filled next */
    Share *shares; /* a heap, with room for all links and all flows */
    int32_t num_shares;
    int32_t change, filling; /* their numbers */
    double accuracy; /* relative, of fair shares */
} Fair;

/* The places of a flow's links that can be full. */
#define EACH_LINK(all, one, at) \
    for (int32_t at = (one) * (all)->longest, end_ = at + (all)->flow[one].length; at < end_; at++)

/* Let a flow have at most what a link leaves on which it alone is filled. */
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
