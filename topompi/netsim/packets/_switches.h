/* Links, the ports that send on them, and the buffers of switches at their ends. */

#ifndef TOPOMPI_NETSIM_SWITCHES_H
#define TOPOMPI_NETSIM_SWITCHES_H

#include "_events.h"

void serve(Sim *s, Index link);
void poke(Sim *s, Index link);
void expose(Sim *s, Index number);
void enter(Sim *s, Index packet);

static inline void
free_packet(Sim *s, Index packet)
{
    s->packets[packet].is_free = 1;
    s->packets[packet].next = s->free_packet;
    s->free_packet = packet;
}

static inline void
wake_at(Sim *s, Index link, Time time)
{
    Port *port = &s->ports[link];
    if (port->wake <= time)
        return;
    port->wake = time;
    push(s, time, WAKE, link);
}

/* Add a queue that is no longer empty to its lane's ring. */
static inline void
join_ring(Sim *s, Index link, Index lane, Index queue)
{
    Lane *of = &s->lanes[link * s->num_lanes + lane];
    if (of->ring == NONE)
        s->queues[queue].next = queue;
    else {
        s->queues[queue].next = s->queues[of->ring].next;
        s->queues[of->ring].next = queue;
    }
    of->ring = queue;
    s->ports[link].active |= (uint16_t)(1 << lane);
}

#endif
