#include "_switches.h"
#include "_hosts.h"

static void
widen_buckets(Sim *s)
{
    int bits = s->bucket_bits + 1;
    Index *wider = malloc(sizeof(Index) << bits);
    if (wider == NULL)
        longjmp(s->no_memory, 1);
    memset(wider, 0xFF, sizeof(Index) << bits);
    Index *narrow = s->buckets_of_queues;
    int64_t count = (int64_t)1 << s->bucket_bits;
    s->buckets_of_queues = wider, s->bucket_bits = bits;
    for (int64_t bucket = 0; narrow != NULL && bucket < count; bucket++)
        for (Index at = narrow[bucket], then; at != NONE; at = then) {
            then = s->queues[at].chain;
            Index *place = bucket_of(s, s->queues[at].output, s->queues[at].source);
            s->queues[at].chain = *place;
            *place = at;
        }
    free(narrow);
}

/* Make a queue of one packet or work, and add it to its lane's ring. */
void
add_queue(Sim *s, Index link, Index lane, Index source, Index item, Index need)
{
    Index found = s->free_queue;
    if (found != NONE)
        s->free_queue = s->queues[found].chain;
    else {
        if (s->num_queues == s->most_queues)
            s->queues = grown(s, s->queues, &s->most_queues, sizeof(Queue));
        found = (Index)s->num_queues++;
        if (s->num_queues > (int64_t)1 << s->bucket_bits)
            widen_buckets(s);
    }
    Index *place = bucket_of(s, link, source);
    s->queues[found] = (Queue){item, item, NONE, need, source, link, *place, 0};
    *place = found;
    join_ring(s, link, lane, found);
}

/* Free a queue that is empty and in no ring. */
void
drop_queue(Sim *s, Index queue)
{
    Index *place = bucket_of(s, s->queues[queue].output, s->queues[queue].source);
    while (*place != queue)
        place = &s->queues[*place].chain;
    *place = s->queues[queue].chain;
    s->queues[queue].chain = s->free_queue;
    s->free_queue = queue;
}

/* Move the queue that was served behind the others of its lane, or remove it if it is empty. */
static inline void
turn_ring(Sim *s, Port *port, Lane *of, Index lane, Index queue)
{
    if (s->queues[queue].head != NONE)
        of->ring = queue;
    else {
        if (of->ring == queue)
            of->ring = NONE;
        else
            s->queues[of->ring].next = s->queues[queue].next;
        drop_queue(s, queue);
    }
    face_head(s, port, of, lane);
}

static inline void
drain_credits(Sim *s, Index link)
{
    Port *port = port_of(s, link);
    while (port->num_credits && port->credits[port->first_credit].time <= s->now) {
        Credit *one = &port->credits[port->first_credit];
        Lane *of = &port->lanes[one->lane];
        of->slack += (int32_t)one->room;
        if (of->slack >= 0)
            port->ready |= (uint16_t)(1 << one->lane & port->active);
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
    Port *port = port_of(s, link);
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

/* The bytes on a link of the next packet of a queue. */
static inline Index
wire_of_head(const Sim *s, const Port *port, Index head)
{
    return port->from_host ? wire_of(s, &s->works[head]) : s->packets[head].wire;
}

/* The lane whose turn it is in a table, or -1 (InfiniBand Architecture Specification, volume 1, 7.6.9.2). */
static int
turn_of(Sim *s, Arbiter *arbiter, int table, unsigned ready)
{
    const int32_t *entries = s->entries[table];
    int count = s->num_entries[table], at = arbiter->turn[table], left = arbiter->left[table];
    for (int tried = 0; tried <= count && count; tried++) {
        if (left > 0 && ready >> entries[2 * at] & 1) {
            arbiter->turn[table] = (uint8_t)at, arbiter->left[table] = left;
            return entries[2 * at];
        }
        at = at + 1 == count ? 0 : at + 1;
        left = entries[2 * at + 1];
    }
    return -1;
}

/* The ready lane that sends next and the table that gives it its turn; -1 if no lane is ready. */
static inline int
arbitrate(Sim *s, Port *port, unsigned ready, int *table)
{
    Arbiter *arbiter = &port->arbiter;
    int allowed = s->high_limit < 0 || !arbiter->high || arbiter->high < s->high_limit;
    int lane = turn_of(s, arbiter, *table = !allowed, ready);
    return lane < 0 ? turn_of(s, arbiter, *table = allowed, ready) : lane;
}

/* Count a packet of a lane's turn. */
static inline void
charge(const Sim *s, Port *port, int table, Index wire)
{
    port->arbiter.left[table] -= s->by_bytes ? (int32_t)((wire + 63) / 64) : 1;
    port->arbiter.high = table ? 0 : port->arbiter.high + wire;
}

/* Note the time from which on active lanes lack credits. */
static inline void
stall(const Sim *s, Port *port)
{
    unsigned lacking = port->active & ~(unsigned)(port->ready | port->stalled);
    port->stalled |= (uint16_t)lacking;
    for (; lacking; lacking &= lacking - 1)
        wait_of(s, port, (Index)__builtin_ctz(lacking))->since = s->now;
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
    Index number_of_queue = s->queues[of->ring].next, packet = new_packet(s);
    Queue *queue = &s->queues[number_of_queue];
    Index number = queue->head;
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
        queue->head = work->next;
        work->next = s->free_work;
        s->free_work = number;
    }
    if (queue->head != NONE)
        queue->need = room_of(s, wire_of(s, &s->works[queue->head]));
    turn_ring(s, port, of, lane, number_of_queue);
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
        Index head = s->queues[s->queues[port->lanes[0].ring].next].head;
        wire = wire_of_head(s, port, head);
    }
    return bucket->full_at - bucket->fill + duration(port, wire);
}

static void
take_tokens(Sim *s, Index link, Index wire)
{
    Bucket *bucket = &s->buckets[link];
    Time full = bucket->full_at > s->now ? bucket->full_at : s->now;
    bucket->full_at = full + duration(port_of(s, link), wire);
}

/* Put a packet on a link. */
static void
send(Sim *s, Index link, Index lane, Index packet)
{
    Port *port = port_of(s, link);
    Lane *of = &port->lanes[lane];
    Packet *one = &s->packets[packet];
    Time length = duration(port, one->wire), end = s->now + length;
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
    one->input = link;
    Index then = s->routes[one->route++];
    one->output = then & NUMBER;
    one->from = (uint8_t)lane;
    one->lane = (uint8_t)(lane + (then > NUMBER));
    /* A faster next link starts when the tail will not be late for it; a next link that waits for whole packets starts
       at the tail. */
    Time behind = length;
    if (s->cut_through && length)
        behind = s->is_uniform ? 0 : length - duration(port_of(s, one->output), one->wire);
    push(s, s->now + port->latency + (behind > 0 ? behind : 0), HEAD, packet);
}

/* Remove the next packet of a lane from its queue. */
static Index
pop(Sim *s, Port *port, Lane *of, Index lane)
{
    if (port->from_host)
        return inject(s, port, of, lane);
    Index number = s->queues[of->ring].next;
    Queue *queue = &s->queues[number];
    Index packet = queue->head;
    queue->head = s->packets[packet].next;
    if (queue->head != NONE)
        queue->need = room_of(s, s->packets[queue->head].wire);
    turn_ring(s, port, of, lane, number);
    return packet;
}

static void
transmit(Sim *s, Index link, Index lane, int table)
{
    Port *port = port_of(s, link);
    Index packet = pop(s, port, &port->lanes[lane], lane);
    if (s->num_lanes > 1)
        charge(s, port, table, s->packets[packet].wire);
    if (port->stalled >> lane & 1) {
        Wait *wait = wait_of(s, port, lane);
        wait->total += s->now - wait->since;
        port->stalled &= (uint16_t)~(1 << lane);
    }
    send(s, link, lane, packet);
}

/* Send the next packet of an idle link, if there is one and it has room. */
void
serve(Sim *s, Index link)
{
    Port *port = port_of(s, link);
    drain_credits(s, link);
    if (s->buckets != NULL && port->active && tokens_at(s, port, link) > s->now) {
        port->free_at = tokens_at(s, port, link);
        wake_at(s, link, port->free_at);
        return;
    }
    stall(s, port);
    int table = 1, lane = !port->ready ? -1 : s->num_lanes > 1 ? arbitrate(s, port, port->ready, &table) : 0;
    port->blocked = lane < 0 && port->active;
    if (port->blocked) {
        if (port->num_credits)
            wake_at(s, link, port->credits[port->first_credit].time);
    } else if (lane >= 0) {
        transmit(s, link, (Index)lane, table);
        if (port_of(s, link)->active)
            wake_at(s, link, port_of(s, link)->free_at);
    }
}

/* Wake a link, which may be idle, because it has a new packet. */
void
poke(Sim *s, Index link)
{
    Port *port = port_of(s, link);
    if (s->num_lanes > 1)
        wake_at(s, link, s->now > port->free_at ? s->now : port->free_at);
    else if (port->blocked) /* by its first packet, which is still blocked */
        return;
    else if (port->free_at > s->now)
        wake_at(s, link, port->free_at);
    else if (port->wake > s->now)
        serve(s, link);
}

/* Send a packet at once if its link is idle, has no other packet, and will have none at this time; 0 if it has to
   queue. The result is that of a queue and an event WAKE, which is counted. */
static inline int
pass_on(Sim *s, Index packet)
{
    const Packet *one = &s->packets[packet];
    Port *port = port_of(s, one->output);
    if (port->active || port->blocked || port->free_at > s->now || port->wake <= s->now || s->buckets != NULL)
        return 0;
    if (s->num_lanes > 1 && !is_end_of_instant(s))
        return 0;
    drain_credits(s, one->output);
    if (!port->to_host) {
        int32_t need = (int32_t)room_of(s, one->wire);
        if (port->lanes[one->lane].slack < need)
            return 0;
        port->lanes[one->lane].slack -= need;
    }
    if (s->num_lanes > 1) {
        int table;
        arbitrate(s, port, 1u << one->lane, &table);
        charge(s, port, table, one->wire);
        port->wake = NEVER;
        s->events++;
    }
    send(s, one->output, one->lane, packet);
    return 1;
}

static void
join_output(Sim *s, Index packet)
{
    if (pass_on(s, packet))
        return;
    Packet *one = &s->packets[packet];
    Index source = (Index)(one->input * s->num_lanes) + one->lane, queue = queue_of(s, one->output, source);
    one->next = NONE;
    if (queue == NONE)
        add_queue(s, one->output, one->lane, source, packet, room_of(s, one->wire));
    else {
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
