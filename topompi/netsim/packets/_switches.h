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

/* The bytes on a link of the next packet of a host's work. */
static inline Index
wire_of(const Sim *s, const Work *work)
{
    if (work->kind != EAGER && work->kind != DATA)
        return (Index)s->control;
    return (Index)((work->left < s->mtu ? work->left : s->mtu) + s->header);
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
    Port *port = port_of(s, link);
    if (port->wake <= time)
        return;
    port->wake = time;
    if (time == s->now && (2 * time + 1) >> s->shift <= s->last_bucket) /* all events of this time are current ones */
        push_soon(s, link);
    else
        push(s, time, WAKE, link);
}

/* The bucket of the queue of a source at an output. */
static inline Index *
bucket_of(const Sim *s, Index output, Index source)
{
    return &s->buckets_of_queues[(output * 0x85EBCA6Bu ^ source * 0x9E3779B1u) >> (32 - s->bucket_bits)];
}

/* The queue of a source at an output; NONE if it is empty. The source is a lane of a link into the switch, numbered
   link * lanes + lane, or the number of a queue of a host. */
static inline Index
queue_of(const Sim *s, Index output, Index source)
{
    Index found = *bucket_of(s, output, source);
    while (found != NONE && (s->queues[found].source != source || s->queues[found].output != output))
        found = s->queues[found].chain;
    return found;
}

/* The lane has another next packet, or none: lower its slack by the bytes that the packet needs. */
static inline void
face_head(Sim *s, Port *port, Lane *of, Index lane)
{
    uint16_t bit = (uint16_t)(1 << lane);
    if (of->ring == NONE) {
        port->active &= (uint16_t)~bit;
        port->ready &= (uint16_t)~bit;
        return;
    }
    port->active |= bit;
    if (!port->to_host)
        of->slack -= (int32_t)s->queues[s->queues[of->ring].next].need;
    if (port->to_host || of->slack >= 0)
        port->ready |= bit;
    else
        port->ready &= (uint16_t)~bit;
}

/* Add a queue that is no longer empty to its lane's ring. */
static inline void
join_ring(Sim *s, Index link, Index lane, Index queue)
{
    Port *port = port_of(s, link);
    Lane *of = &port->lanes[lane];
    if (of->ring != NONE) {
        s->queues[queue].next = s->queues[of->ring].next;
        s->queues[of->ring].next = queue;
        of->ring = queue;
        return;
    }
    s->queues[queue].next = of->ring = queue;
    face_head(s, port, of, lane);
}

void add_queue(Sim *s, Index link, Index lane, Index source, Index item, Index need);
void drop_queue(Sim *s, Index queue);

#endif
