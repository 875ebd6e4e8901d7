#include "_switches.h"
#include "_hosts.h"

/* Move the queue that was served behind the others of its lane, or remove it if it is empty. */
static inline void
turn_ring(Sim *s, Port *port, Lane *of, Index lane, Index queue, int empty)
{
    if (!empty)
        of->ring = queue;
    else if (of->ring == queue) {
        of->ring = NONE;
        port->active &= (uint16_t)~(1 << lane);
    } else
        s->queues[of->ring].next = s->queues[queue].next;
}

static inline void
drain_credits(Sim *s, Index link)
{
    Port *port = &s->ports[link];
    while (port->num_credits && port->credits[port->first_credit].time <= s->now) {
        Credit *one = &port->credits[port->first_credit];
        s->lanes[link * s->num_lanes + one->lane].credits += one->room;
        port->first_credit = (port->first_credit + 1) & credits_mask(port);
        port->num_credits--;
    }
}

static void
widen_credits(Sim *s, Port *port)
{
    Credit *larger = malloc(sizeof(Credit) * 2 << port->most_credits);
    if (larger == NULL)
        longjmp(s->no_memory, 1);
    for (Index at = 0; at < port->num_credits; at++)
        larger[at] = port->credits[(port->first_credit + at) & credits_mask(port)];
    if (port->most_credits > FIRST_CREDITS)
        free(port->credits);
    port->credits = larger, port->most_credits++, port->first_credit = 0;
}

/* Return the credits of a packet that leaves the buffer at a link's end, after the link's latency. */
static inline void
return_credit(Sim *s, Index link, Index lane, Index room, Time left)
{
    Port *port = &s->ports[link];
    if (port->num_credits > credits_mask(port))
        drain_credits(s, link);
    if (port->num_credits > credits_mask(port))
        widen_credits(s, port);
    Time time = left + port->latency;
    Index mask = credits_mask(port), place = port->num_credits++;
    for (; place && port->credits[(port->first_credit + place - 1) & mask].time > time; place--)
        port->credits[(port->first_credit + place) & mask] = port->credits[(port->first_credit + place - 1) & mask];
    port->credits[(port->first_credit + place) & mask] = (Credit){time, room, lane};
    if (port->blocked)
        wake_at(s, link, time > port->free_at ? time : port->free_at);
}

static inline Index
wire_of(const Sim *s, const Work *work)
{
    if (work->kind != EAGER && work->kind != DATA)
        return (Index)s->control;
    return (Index)((work->left < s->mtu ? work->left : s->mtu) + s->header);
}

/* The bytes on a link of the next packet of a queue. */
static inline Index
wire_of_head(const Sim *s, const Port *port, Index head)
{
    return port->from_host ? wire_of(s, &s->works[head]) : s->packets[head].wire;
}

/* Whether the next packet of a lane that is not empty fits into the next buffer. */
static inline int
has_room(Sim *s, Port *port, Lane *of)
{
    if (port->to_host)
        return 1;
    Index head = s->queues[s->queues[of->ring].next].head;
    return of->credits >= room_of(s, wire_of_head(s, port, head));
}

/* The lane whose turn it is in a table, or -1 (InfiniBand Architecture Specification, volume 1, 7.6.9.2). */
static int
turn_of(Sim *s, Arbiter *arbiter, int table, const int *ready)
{
    const int32_t *entries = s->entries[table];
    int count = s->num_entries[table], at = arbiter->turn[table], left = arbiter->left[table];
    for (int tried = 0; tried <= count && count; tried++) {
        if (left > 0 && ready[entries[2 * at]]) {
            arbiter->turn[table] = (uint8_t)at, arbiter->left[table] = left;
            return entries[2 * at];
        }
        at = (at + 1) % count;
        left = entries[2 * at + 1];
    }
    return -1;
}

static int
arbitrate(Sim *s, Index link)
{
    Port *port = &s->ports[link];
    Arbiter *arbiter = &s->arbiters[link];
    int ready[MOST_LANES] = {0};
    for (int lane = 0; lane < s->num_lanes; lane++) {
        Lane *of = &s->lanes[link * s->num_lanes + lane];
        if (!(port->active >> lane & 1))
            continue;
        ready[lane] = has_room(s, port, of);
        if (!ready[lane] && of->since < 0)
            of->since = s->now;
    }
    int allowed = s->high_limit < 0 || !arbiter->high || arbiter->high < s->high_limit;
    int table = !allowed, lane = turn_of(s, arbiter, table, ready);
    if (lane < 0)
        lane = turn_of(s, arbiter, table = !table, ready);
    if (lane < 0)
        return -1;
    Lane *of = &s->lanes[link * s->num_lanes + lane];
    Index head = s->queues[s->queues[of->ring].next].head;
    Index wire = wire_of_head(s, port, head);
    arbiter->left[table] -= s->by_bytes ? (int32_t)((wire + 63) / 64) : 1;
    arbiter->high = table ? 0 : arbiter->high + wire;
    return lane;
}

static Index
new_packet(Sim *s)
{
    Index found = s->free_packet;
    if (found != NONE) {
        s->free_packet = s->packets[found].next;
        return found;
    }
    if (s->num_packets == s->most_packets)
        s->packets = grown(s, s->packets, &s->most_packets, sizeof(Packet));
    return (Index)s->num_packets++;
}

/* The next packet of a host's queue. */
static Index
inject(Sim *s, Port *port, Lane *of, Index lane)
{
    Index queue = s->queues[of->ring].next, number = s->queues[queue].head, packet = new_packet(s);
    Work *work = &s->works[number];
    Index wire = wire_of(s, work);
    int was_long = work->left > s->send_buffer;
    work->left -= s->mtu;
    if (s->send_buffer && work->kind == DATA && was_long && work->left <= s->send_buffer)
        complete(s, s->messages[work->message].send_step);
    int last = work->left <= 0;
    s->packets[packet] = (Packet){
        .message = work->message, .next = NONE, .input = NONE, .output = NONE, .wire = wire, .route = work->route,
        .lane = (uint8_t)lane, .from = (uint8_t)lane, .kind = work->kind, .last = last & 1,
    };
    if (last) {
        s->queues[queue].head = work->next;
        work->next = s->free_work;
        s->free_work = number;
    }
    turn_ring(s, port, of, lane, queue, s->queues[queue].head == NONE);
    if (of->ring != NONE) { /* prefetch the next two queues, because there may be many */
        Queue *then = &s->queues[s->queues[of->ring].next];
        __builtin_prefetch(&s->works[then->head]);
        __builtin_prefetch(&s->queues[then->next]);
    }
    s->sent++;
    return packet;
}

static inline Time
duration(const Port *port, Index wire)
{
    return (Time)(wire * port->inverse + 0.5);
}

/* The time at which a bucket has tokens for its link's next packet, or with several lanes for the largest packet. */
static inline Time
tokens_at(const Sim *s, const Port *port, Index link)
{
    const Bucket *bucket = &s->buckets[link];
    Index wire = (Index)(s->mtu + s->header > s->control ? s->mtu + s->header : s->control);
    if (s->num_lanes == 1) {
        Index head = s->queues[s->queues[s->lanes[link].ring].next].head;
        wire = wire_of_head(s, port, head);
    }
    return bucket->full_at - bucket->fill + duration(port, wire);
}

static void
take_tokens(Sim *s, Index link, Index wire)
{
    Bucket *bucket = &s->buckets[link];
    Time full = bucket->full_at > s->now ? bucket->full_at : s->now;
    bucket->full_at = full + duration(&s->ports[link], wire);
}

static void
transmit(Sim *s, Index link, Index lane)
{
    Port *port = &s->ports[link];
    Lane *of = &s->lanes[link * s->num_lanes + lane];
    Index packet;
    if (port->from_host)
        packet = inject(s, port, of, lane);
    else {
        Index queue = s->queues[of->ring].next;
        packet = s->queues[queue].head;
        s->queues[queue].head = s->packets[packet].next;
        turn_ring(s, port, of, lane, queue, s->queues[queue].head == NONE);
    }
    Packet *one = &s->packets[packet];
    Time length = duration(port, one->wire), end = s->now + length;
    if (of->since >= 0) {
        s->waited[link * s->num_lanes + lane] += s->now - of->since;
        of->since = -1;
    }
    if (s->buckets != NULL) { /* it passes at once */
        take_tokens(s, link, one->wire);
        end = s->now;
        length = 0;
    }
    port->free_at = end;
    s->hops++;
    if (one->kind == EAGER || one->kind == DATA)
        of->bytes += one->wire - s->header;
    if (one->input != NONE) {
        if (s->one_queue) {
            Input *input = &s->inputs[one->input * s->num_lanes + one->from];
            input->exposed = 0;
            input->free_at = end;
            if (input->head != NONE) {
                input->pending = 1;
                push(s, end, EXPOSE, (Index)(one->input * s->num_lanes + one->from));
            }
        }
        return_credit(s, one->input, one->from, room_of(s, one->wire), end);
    }
    if (port->to_host) {
        s->delivered++;
        one->input = NONE;
        if (one->last)
            push(s, end + port->latency, DELIVER, packet);
        else
            free_packet(s, packet);
        return;
    }
    of->credits -= room_of(s, one->wire);
    one->input = link;
    Index then = s->routes[one->route++];
    one->output = then & NUMBER;
    one->from = (uint8_t)lane;
    one->lane = (uint8_t)(lane + (then > NUMBER));
    one->queue = s->ports[one->output].inputs + port->number * (Index)s->num_lanes + one->lane;
    /* A faster next link starts when the tail will not be late for it; a next link that waits for whole packets starts
       at the tail. */
    Time behind = s->cut_through && length ? length - duration(&s->ports[one->output], one->wire) : length;
    push(s, s->now + port->latency + (behind > 0 ? behind : 0), HEAD, packet);
}

/* Send the next packet of an idle link, if there is one and it has room. */
void
serve(Sim *s, Index link)
{
    Port *port = &s->ports[link];
    drain_credits(s, link);
    if (s->buckets != NULL && port->active && tokens_at(s, port, link) > s->now) {
        port->free_at = tokens_at(s, port, link);
        wake_at(s, link, port->free_at);
        return;
    }
    int lane;
    if (s->num_lanes > 1)
        lane = arbitrate(s, link);
    else {
        lane = port->active && has_room(s, port, &s->lanes[link]) ? 0 : -1;
        if (lane < 0 && port->active && s->lanes[link].since < 0)
            s->lanes[link].since = s->now;
    }
    port->blocked = lane < 0 && port->active;
    if (port->blocked) {
        if (port->num_credits)
            wake_at(s, link, port->credits[port->first_credit].time);
    } else if (lane >= 0) {
        transmit(s, link, (Index)lane);
        if (s->ports[link].active)
            wake_at(s, link, s->ports[link].free_at);
    }
}

/* Wake a link, which may be idle, because it has a new packet. */
void
poke(Sim *s, Index link)
{
    Port *port = &s->ports[link];
    if (s->num_lanes > 1)
        wake_at(s, link, s->now > port->free_at ? s->now : port->free_at);
    else if (port->blocked) /* by its first packet, which is still blocked */
        return;
    else if (port->free_at > s->now)
        wake_at(s, link, port->free_at);
    else if (port->wake > s->now)
        serve(s, link);
}

static void
join_output(Sim *s, Index packet)
{
    Packet *one = &s->packets[packet];
    Index queue = one->queue;
    one->next = NONE;
    if (s->queues[queue].head == NONE) {
        s->queues[queue].head = s->queues[queue].tail = packet;
        join_ring(s, one->output, one->lane, queue);
    } else {
        s->packets[s->queues[queue].tail].next = packet;
        s->queues[queue].tail = packet;
    }
    poke(s, one->output);
}

void
expose(Sim *s, Index number)
{
    Input *input = &s->inputs[number];
    Index packet = input->head;
    input->pending = 0;
    input->exposed = 1;
    input->head = s->packets[packet].next;
    join_output(s, packet);
}

/* Process the arrival of a packet's head at a switch. */
void
enter(Sim *s, Index packet)
{
    Packet *one = &s->packets[packet];
    if (!s->one_queue) {
        join_output(s, packet);
        return;
    }
    Index number = (Index)(one->input * s->num_lanes) + one->from;
    Input *input = &s->inputs[number];
    one->next = NONE;
    if (input->head == NONE)
        input->head = packet;
    else
        s->packets[input->tail].next = packet;
    input->tail = packet;
    if (input->exposed || input->pending)
        return;
    if (input->free_at <= s->now)
        expose(s, number);
    else {
        input->pending = 1;
        push(s, input->free_at, EXPOSE, number);
    }
}
