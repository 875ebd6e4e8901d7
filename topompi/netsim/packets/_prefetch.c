/* Prefetching for large networks, whose state fits no near cache.

   An event reads a dozen lines of the cache, most of them by indices in the line before. So each pass over the current
   events prefetches for all of them what the next pass reads, and the misses of different events overlap. After the
   first passes ``ahead`` is the packet that an event will send, or the work of a host; NONE if there is none. */

#include "_switches.h"

static inline void
find_port(const Sim *s, Index link)
{
    const Port *port = port_of(s, link);
    __builtin_prefetch(port);
    __builtin_prefetch(port->few_credits);
    __builtin_prefetch(&port->arbiter);
}

/* The lane that a port may serve next: that of its next credit if it waits for one. */
static inline int
lane_ahead(const Port *port)
{
    if (port->ready)
        return __builtin_ctz(port->ready);
    int lane = port->num_credits ? (int)port->credits[port->first_credit].lane : 0;
    return port->active >> lane & 1 ? lane : __builtin_ctz(port->active);
}

static inline void
find_ports(const Sim *s, Index kind, Index number)
{
    if (kind == HEAD || kind == DELIVER)
        __builtin_prefetch(&s->packets[number]);
    else if (kind == WAKE) {
        find_port(s, number);
        for (int64_t lane = 3; lane < s->num_lanes; lane += 4) /* a line has four */
            __builtin_prefetch(&port_of(s, number)->lanes[lane]);
    }
}

/* Prefetch the bucket of the queue that an arriving packet joins, or the last queue of a port's first lane. */
static inline void
find_queues(const Sim *s, Event *event, Index kind, Index number)
{
    if (kind == HEAD) {
        const Packet *one = &s->packets[number];
        event->ahead = number;
        find_port(s, one->output);
        __builtin_prefetch(&port_of(s, one->output)->lanes[one->lane], 1);
        __builtin_prefetch(port_of(s, one->input));
        __builtin_prefetch(&s->routes[one->route]);
        __builtin_prefetch(bucket_of(s, one->output, (Index)(one->input * s->num_lanes) + one->lane));
    } else if (kind == WAKE && port_of(s, number)->active) {
        const Port *port = port_of(s, number);
        event->ahead = port->lanes[lane_ahead(port)].ring;
        __builtin_prefetch(&s->queues[event->ahead]);
    }
}

static inline void
find_first_queue(const Sim *s, Event *event, Index kind, Index number)
{
    if (kind == HEAD) {
        const Packet *one = &s->packets[number];
        const Port *input = port_of(s, one->input);
        Index queue = *bucket_of(s, one->output, (Index)(one->input * s->num_lanes) + one->lane);
        if (queue != NONE)
            __builtin_prefetch(&s->queues[queue]);
        __builtin_prefetch(&input->credits[(input->first_credit + input->num_credits) & credits_mask(input)], 1);
    } else if (kind == WAKE && event->ahead != NONE) {
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
    if (port_of(s, number)->from_host)
        __builtin_prefetch(&s->works[event->ahead]);
    else
        __builtin_prefetch(&s->packets[event->ahead]);
}

static inline void
find_inputs(const Sim *s, const Event *event, Index kind, Index number)
{
    if (kind != WAKE || event->ahead == NONE)
        return;
    if (port_of(s, number)->from_host) {
        __builtin_prefetch(&s->routes[s->works[event->ahead].route]);
        return;
    }
    __builtin_prefetch(&s->routes[s->packets[event->ahead].route]);
    __builtin_prefetch(port_of(s, s->packets[event->ahead].input));
}

#define EACH_EVENT(call) \
    for (Event *event = s->current; event < s->current + s->num_current; event++) { \
        Index kind = event->what >> 28, number = event->what & NUMBER; \
        call; \
    }

/* Prefetch what the current events will read. */
void
foresee(Sim *s)
{
    EACH_EVENT(find_ports(s, kind, number))
    EACH_EVENT(find_queues(s, event, kind, number))
    EACH_EVENT(find_first_queue(s, event, kind, number))
    EACH_EVENT(find_first_packet(s, event, kind, number))
    EACH_EVENT(find_inputs(s, event, kind, number))
}
