/* Prefetching for large networks, whose state fits no near cache.

   An event reads a dozen lines of the cache, most of them by indices in the line before. So each pass over the current
   events prefetches for all of them what the next pass reads, and the misses of different events overlap. After the
   first passes ``ahead`` is the packet that an event will send, or the work of a host; NONE if there is none. */

#include "_switches.h"

/* The place on its route of the link after a port, for a packet or for work on the port. */
static inline const Index *
hop_of(const Sim *s, const Port *port, Index item)
{
    Index place = port->from_host ? s->works[item].route : s->packets[item].route;
    return port->to_host ? s->routes : &s->routes[place];
}

static inline void
find_ports(const Sim *s, Index kind, Index number)
{
    if (kind == HEAD || kind == DELIVER)
        __builtin_prefetch(&s->packets[number]);
    else if (kind == WAKE) {
        __builtin_prefetch(&s->ports[number]);
        for (int64_t lane = 0; lane < s->num_lanes; lane += 2) /* a line has two */
            __builtin_prefetch(&s->lanes[number * s->num_lanes + lane]);
        if (s->num_lanes > 1)
            __builtin_prefetch(&s->arbiters[number]);
    }
}

/* Prefetch the queue that an event changes: that of an arriving packet, or the last queue of a port's first lane. */
static inline void
find_queues(const Sim *s, Event *event, Index kind, Index number)
{
    if (kind == HEAD) {
        const Packet *one = &s->packets[number];
        event->ahead = number;
        __builtin_prefetch(&s->ports[one->output]);
        __builtin_prefetch(&s->queues[one->queue]);
        __builtin_prefetch(&s->ports[one->input]);
        __builtin_prefetch(&s->lanes[one->output * s->num_lanes + one->lane]);
        if (s->num_lanes > 1)
            __builtin_prefetch(&s->arbiters[one->output]);
    } else if (kind == WAKE && s->ports[number].active) {
        const Port *port = &s->ports[number];
        event->ahead = s->lanes[number * s->num_lanes + __builtin_ctz(port->active)].ring;
        __builtin_prefetch(&s->queues[event->ahead]);
        __builtin_prefetch(&port->credits[port->first_credit]);
    }
}

static inline void
find_first_queue(const Sim *s, Event *event, Index kind)
{
    if (kind == WAKE && event->ahead != NONE) {
        event->ahead = s->queues[event->ahead].next;
        __builtin_prefetch(&s->queues[event->ahead]);
    }
}

static inline void
find_first_packet(const Sim *s, Event *event, Index kind, Index number)
{
    if (kind != WAKE || event->ahead == NONE)
        return;
    event->ahead = s->queues[event->ahead].head;
    if (s->ports[number].from_host)
        __builtin_prefetch(&s->works[event->ahead]);
    else
        __builtin_prefetch(&s->packets[event->ahead]);
}

static inline void
find_hops(const Sim *s, const Event *event, Index kind, Index number)
{
    if (event->ahead == NONE)
        return;
    const Port *port = &s->ports[kind == HEAD ? s->packets[number].output : number];
    __builtin_prefetch(hop_of(s, port, event->ahead));
    if (kind == HEAD)
        __builtin_prefetch(&port->credits[port->first_credit]);
    else if (!port->from_host)
        __builtin_prefetch(&s->ports[s->packets[event->ahead].input]);
}

static inline void
find_next_ports(const Sim *s, const Event *event, Index kind, Index number)
{
    if (event->ahead == NONE)
        return;
    const Port *port = &s->ports[kind == HEAD ? s->packets[number].output : number];
    __builtin_prefetch(&s->ports[*hop_of(s, port, event->ahead) & NUMBER]);
    if (port->from_host)
        return;
    const Port *input = &s->ports[s->packets[event->ahead].input];
    __builtin_prefetch(&input->credits[(input->first_credit + input->num_credits) & credits_mask(input)]);
}

#define EACH_EVENT(call) \
    for (Event *event = s->current; event < s->current + s->num_current; event++) { \
        Index kind = event->what >> 28, number = event->what & NUMBER; \
        (void)kind, (void)number; \
        call; \
    }

/* Prefetch what the current events will read. */
void
foresee(Sim *s)
{
    EACH_EVENT(find_ports(s, kind, number))
    EACH_EVENT(find_queues(s, event, kind, number))
    EACH_EVENT(find_first_queue(s, event, kind))
    EACH_EVENT(find_first_packet(s, event, kind, number))
    EACH_EVENT(find_hops(s, event, kind, number))
    EACH_EVENT(find_next_ports(s, event, kind, number))
}
