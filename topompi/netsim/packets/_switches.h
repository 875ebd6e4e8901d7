/* Links, the ports that send on them, and the buffers of switches at their ends. */

#ifndef TOPOMPI_NETSIM_SWITCHES_H
#define TOPOMPI_NETSIM_SWITCHES_H

#include "_events.h"

void foresee(Sim *s);
void serve(Sim *s, Index link);
void poke(Sim *s, Index link);
void expose(Sim *s, Index number);
void enter(Sim *s, Index packet);

static inline Index
credits_mask(const Port *port)
{
    return ((Index)1 << port->most_credits) - 1;
}

/* The bytes of a buffer that a packet needs. */
static inline Index
room_of(const Sim *s, Index wire)
{
    return (Index)((wire + s->grain - 1) & ~(s->grain - 1)); /* grain is a power of two */
}

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
