/* Packets on a network with credits, event by event; packets.py says what is modelled and prepares the arrays.

   What decides the speed is how often memory is missed. So packets, events and pieces of work are indices into pools
   whose freed entries are taken again first; a link schedules an event for its end only if something waits for it; and
   a credit is an entry in a ring of its link that is read when the link next looks for room. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

typedef int64_t Time; /* picoseconds */
typedef uint32_t Index;

#define NONE UINT32_MAX
#define NEVER INT64_MAX

enum { BUCKETS = 1 << 14, MOST_LANES = 16, EVENTS_AT_ONCE = 1 << 21, MOST_ARRAYS = 40 };
enum { COMPUTE, RECEIVE, SEND };                                /* kinds of rows, as in program.py */
enum { EAGER, READY_TO_SEND, REQUEST, DATA, FINISHED };         /* what packets carry */
enum { SENT = 1, POSTED = 2, ARRIVED = 4, IS_EAGER = 8, IS_LOCAL = 16 }; /* of a message */
enum { ONCE, UNTIL_ALL_RAN, BACKGROUND };                       /* of a job */
enum { RUNNING, DONE, STALLED, NO_MEMORY, NO_TIME };            /* of a run */

/* Kinds of events. At one instant WAKE comes last, so that a link chooses among all that is there. */
enum { HEAD, EXPOSE, DELIVER, DOORBELL, ADVANCE, COMPUTED, DEPART, RECEIVED, MATCHED, GRANTED, WAKE };

typedef struct {
    int64_t key; /* twice the time, plus one for WAKE */
    Index what;  /* kind in the upper four bits */
    Index next;
} Event;

typedef struct {
    Index message, next, input, output, host; /* input: link in whose buffer it is, output: link that it takes next */
    Index wire, room;                         /* bytes on a link, bytes of a buffer */
    uint8_t lane, kind, last, is_free;
} Packet;

typedef struct { /* what an adapter has to send for a message */
    int64_t left;
    Index message, next, queue, host; /* host: where it goes */
    uint8_t kind;
} Work;

typedef struct { /* of packets or of work; those of a lane of a link that are not empty form a ring */
    Index head, tail, next;
} Queue;

typedef struct {
    Time time;
    Index room, lane;
} Credit;

typedef struct {
    int64_t credits, bytes;
    Time since, waited; /* since when it lacks credits, and for how long it did */
    Index ring;         /* its last queue */
} Lane;

typedef struct { /* a directed link, with the port that sends on it */
    Time free_at, wake, latency;
    double inverse; /* picoseconds a byte */
    Credit *credits;
    Index first_credit, num_credits, most_credits;
    Index target, host, inputs; /* host: that sends, or NONE; inputs: its first queue, one an input and lane */
    Index number;               /* among the links into its target */
    uint16_t active;            /* lanes that have something to send */
    uint8_t to_host, blocked;
    uint8_t turn[2]; /* entry of the high and of the low table */
    int32_t left[2]; /* of the entry's weight */
    int64_t high;    /* bytes of high priority since the last of low priority */
} Port;

typedef struct { /* packets of a lane in a buffer with one queue */
    Index head, tail;
    Time free_at;
    uint8_t exposed, pending;
} Input;

typedef struct {
    int64_t nbytes;
    Index source, destination, send_step, receive_step, connection;
    uint8_t flags;
} Message;

typedef struct {
    Time processor, timer, end;
    Index row, oldest, host, job;
    int32_t window;
    uint8_t over;
} Rank;

typedef struct {
    Time began, end;
    Index left, lane;
    uint8_t repeat, ran;
} Job;

typedef struct {
    int64_t num_links, num_hosts, num_switches, num_ranks, num_jobs, num_messages, num_connections, num_queues;
    int64_t num_lanes, mtu, header, control, room, grain, eager, high_limit, cut_through, one_queue, put, by_bytes, in_order;
    Time send_overhead, receive_overhead, copy_latency, gap;
    double copy_inverse;
    int num_entries[2];
    const int32_t *entries[2]; /* (lane, weight) of the high and the low table */

    const int32_t *next_link, *uplink, *rank_first_row, *rank_first_step, *row_step, *step_operations, *step_rank;
    const int32_t *job_first_rank, *job_first_message;
    const int8_t *row_kind;
    const int64_t *row_value;

    Port *ports;
    Lane *lanes;
    Queue *queues;
    Input *inputs;
    Message *messages;
    Rank *ranks;
    Job *jobs;
    int32_t *pending; /* operations of each step that are not complete */
    Time *adapter;    /* when each host's adapter can begin with another message */

    Packet *packets;
    Work *works;
    Index free_packet, free_work;
    int64_t most_packets, num_packets, most_works, num_works;

    Event *pool, *current, *heap, *spare;
    Index free_event;
    int64_t most_pool, num_pool, most_current, num_current, at, most_heap, num_heap, most_spare;
    Index bucket[BUCKETS];
    uint64_t filled[BUCKETS / 64];
    int64_t now_bucket;
    int shift;

    Time now;
    int unfinished, stop, status;
    int64_t hops, events, sent, delivered;
    jmp_buf no_memory;
} Sim;

/* ---- memory ---- */

static void *
grown(Sim *s, void *old, int64_t *most, size_t item)
{
    int64_t wanted = *most ? *most * 2 : 1024;
    void *found = wanted < (int64_t)1 << 31 ? realloc(old, (size_t)wanted * item) : NULL;
    if (found == NULL)
        longjmp(s->no_memory, 1);
    *most = wanted;
    return found;
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

static void
free_packet(Sim *s, Index packet)
{
    s->packets[packet].is_free = 1;
    s->packets[packet].next = s->free_packet;
    s->free_packet = packet;
}

/* ---- events: a wheel of buckets, sorted when their time has come, and a heap for what is far ahead ---- */

static void
into_bucket(Sim *s, int64_t key, Index what)
{
    Index found = s->free_event;
    if (found != NONE)
        s->free_event = s->pool[found].next;
    else {
        if (s->num_pool == s->most_pool)
            s->pool = grown(s, s->pool, &s->most_pool, sizeof(Event));
        found = (Index)s->num_pool++;
    }
    Index place = (Index)(key >> s->shift) & (BUCKETS - 1);
    s->pool[found] = (Event){key, what, s->bucket[place]};
    s->bucket[place] = found;
    s->filled[place / 64] |= (uint64_t)1 << (place % 64);
}

static void
into_current(Sim *s, int64_t key, Index what)
{
    if (s->num_current == s->most_current)
        s->current = grown(s, s->current, &s->most_current, sizeof(Event));
    int64_t place = s->num_current++;
    while (place > s->at && s->current[place - 1].key > key) {
        s->current[place] = s->current[place - 1];
        place--;
    }
    s->current[place] = (Event){key, what, NONE};
}

static void
into_heap(Sim *s, int64_t key, Index what)
{
    if (s->num_heap == s->most_heap)
        s->heap = grown(s, s->heap, &s->most_heap, sizeof(Event));
    int64_t place = s->num_heap++;
    for (; place && s->heap[(place - 1) / 2].key > key; place = (place - 1) / 2)
        s->heap[place] = s->heap[(place - 1) / 2];
    s->heap[place] = (Event){key, what, NONE};
}

static Event
from_heap(Sim *s)
{
    Event top = s->heap[0], last = s->heap[--s->num_heap];
    int64_t place = 0, child;
    while ((child = 2 * place + 1) < s->num_heap) {
        child += child + 1 < s->num_heap && s->heap[child + 1].key < s->heap[child].key;
        if (s->heap[child].key >= last.key)
            break;
        s->heap[place] = s->heap[child];
        place = child;
    }
    s->heap[place] = last;
    return top;
}

static inline void
push(Sim *s, Time time, int kind, Index number)
{
    int64_t key = 2 * time + (kind == WAKE), ahead = (key >> s->shift) - s->now_bucket;
    Index what = (Index)kind << 28 | number;
    if (ahead <= 0)
        into_current(s, key, what);
    else if (ahead < BUCKETS)
        into_bucket(s, key, what);
    else
        into_heap(s, key, what);
}

/* The next bucket that has an event, or -1. */
static int64_t
next_bucket(Sim *s)
{
    int64_t from = s->now_bucket + 1;
    for (int64_t at = from; at < from + BUCKETS;) {
        Index place = (Index)at & (BUCKETS - 1);
        uint64_t word = s->filled[place / 64] >> (place % 64);
        if (word)
            return at + __builtin_ctzll(word);
        at += 64 - place % 64;
    }
    return -1;
}

/* Sort stably by key: by insertion where few, else by merging. */
static void
sort_current(Sim *s)
{
    int64_t count = s->num_current;
    if (count <= 48) {
        for (int64_t at = 1; at < count; at++) {
            Event one = s->current[at];
            int64_t place = at;
            for (; place && s->current[place - 1].key > one.key; place--)
                s->current[place] = s->current[place - 1];
            s->current[place] = one;
        }
        return;
    }
    while (s->most_spare < s->most_current)
        s->spare = grown(s, s->spare, &s->most_spare, sizeof(Event));
    for (int64_t run = 1; run < count; run *= 2) {
        for (int64_t from = 0; from < count; from += 2 * run) {
            int64_t middle = from + run < count ? from + run : count;
            int64_t to = from + 2 * run < count ? from + 2 * run : count;
            int64_t left = from, right = middle;
            for (int64_t place = from; place < to; place++) {
                int first = left < middle && (right == to || s->current[left].key <= s->current[right].key);
                s->spare[place] = s->current[first ? left++ : right++];
            }
        }
        Event *events = s->current;
        int64_t most = s->most_current;
        s->current = s->spare, s->most_current = s->most_spare;
        s->spare = events, s->most_spare = most;
    }
}

/* Make the events of the next bucket the current ones; 0 if there are none. */
static int
refill(Sim *s)
{
    s->at = s->num_current = 0;
    int64_t next = next_bucket(s);
    if (s->num_heap && (next < 0 || s->heap[0].key >> s->shift < next))
        next = s->heap[0].key >> s->shift;
    if (next < 0)
        return 0;
    s->now_bucket = next;
    while (s->num_heap && (s->heap[0].key >> s->shift) - next < BUCKETS) {
        Event one = from_heap(s);
        into_bucket(s, one.key, one.what);
    }
    Index place = (Index)next & (BUCKETS - 1);
    for (Index at = s->bucket[place]; at != NONE;) {
        Index after = s->pool[at].next;
        if (s->num_current == s->most_current)
            s->current = grown(s, s->current, &s->most_current, sizeof(Event));
        s->current[s->num_current++] = s->pool[at];
        s->pool[at].next = s->free_event;
        s->free_event = at;
        at = after;
    }
    s->bucket[place] = NONE;
    s->filled[place / 64] &= ~((uint64_t)1 << (place % 64));
    for (int64_t low = 0, high = s->num_current - 1; low < high; low++, high--) { /* the list has the latest first */
        Event one = s->current[low];
        s->current[low] = s->current[high];
        s->current[high] = one;
    }
    sort_current(s);
    return 1;
}

/* ---- links ---- */

static inline void
wake_at(Sim *s, Index link, Time time)
{
    Port *port = &s->ports[link];
    if (port->wake <= time)
        return;
    port->wake = time;
    push(s, time, WAKE, link);
}

/* A queue has something to send, and had nothing before. */
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

/* The first queue of a lane has been served: it goes behind the others, or away. */
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
        port->first_credit = (port->first_credit + 1) & (port->most_credits - 1);
        port->num_credits--;
    }
}

/* A packet leaves the buffer at a link's end: its credits are back when the word of it has crossed the link. */
static inline void
return_credit(Sim *s, Index link, Index lane, Index room, Time left)
{
    Port *port = &s->ports[link];
    if (port->num_credits == port->most_credits) {
        Index most = port->most_credits ? port->most_credits * 2 : 16;
        Credit *larger = malloc(most * sizeof(Credit));
        if (larger == NULL)
            longjmp(s->no_memory, 1);
        for (Index at = 0; at < port->num_credits; at++)
            larger[at] = port->credits[(port->first_credit + at) & (port->most_credits - 1)];
        free(port->credits);
        port->credits = larger, port->most_credits = most, port->first_credit = 0;
    }
    Time time = left + port->latency;
    Index mask = port->most_credits - 1, place = port->num_credits++;
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

static inline Index
room_of(const Sim *s, Index wire)
{
    return (Index)((wire + s->grain - 1) & ~(s->grain - 1)); /* a power of two */
}

/* Whether the next packet of a lane that has one fits into the buffer ahead. */
static inline int
has_room(Sim *s, Port *port, Lane *of)
{
    if (port->to_host)
        return 1;
    Index head = s->queues[s->queues[of->ring].next].head;
    Index room = port->host == NONE ? s->packets[head].room : room_of(s, wire_of(s, &s->works[head]));
    return of->credits >= room;
}

/* The lane of one table whose turn it is, or -1 (InfiniBand Architecture Specification, volume 1, 7.6.9.2). */
static int
turn_of(Sim *s, Port *port, int table, const int *ready)
{
    const int32_t *entries = s->entries[table];
    int count = s->num_entries[table], at = port->turn[table], left = port->left[table];
    for (int tried = 0; tried <= count && count; tried++) {
        if (left > 0 && ready[entries[2 * at]]) {
            port->turn[table] = (uint8_t)at, port->left[table] = left;
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
    int ready[MOST_LANES] = {0};
    for (int lane = 0; lane < s->num_lanes; lane++) {
        Lane *of = &s->lanes[link * s->num_lanes + lane];
        if (!(port->active >> lane & 1))
            continue;
        ready[lane] = has_room(s, port, of);
        if (!ready[lane] && of->since < 0)
            of->since = s->now;
    }
    int allowed = s->high_limit < 0 || !port->high || port->high < s->high_limit;
    int table = !allowed, lane = turn_of(s, port, table, ready);
    if (lane < 0)
        lane = turn_of(s, port, table = !table, ready);
    if (lane < 0)
        return -1;
    Lane *of = &s->lanes[link * s->num_lanes + lane];
    Index head = s->queues[s->queues[of->ring].next].head;
    Index wire = port->host == NONE ? s->packets[head].wire : wire_of(s, &s->works[head]);
    port->left[table] -= s->by_bytes ? (int32_t)((wire + 63) / 64) : 1;
    port->high = table ? 0 : port->high + wire;
    return lane;
}

/* The next packet of a host's queue. */
static Index
inject(Sim *s, Port *port, Lane *of, Index lane)
{
    Index queue = s->queues[of->ring].next, number = s->queues[queue].head, packet = new_packet(s);
    Work *work = &s->works[number];
    Index wire = wire_of(s, work);
    work->left -= s->mtu;
    int last = work->left <= 0;
    s->packets[packet] = (Packet){
        .message = work->message, .next = NONE, .input = NONE, .output = NONE, .wire = wire, .room = room_of(s, wire),
        .host = work->host, .lane = (uint8_t)lane, .kind = work->kind, .last = (uint8_t)last,
    };
    if (last) {
        s->queues[queue].head = work->next;
        work->next = s->free_work;
        s->free_work = number;
    }
    turn_ring(s, port, of, lane, queue, s->queues[queue].head == NONE);
    if (of->ring != NONE) { /* queues may be many: have the next two at hand */
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

static void
transmit(Sim *s, Index link, Index lane)
{
    Port *port = &s->ports[link];
    Lane *of = &s->lanes[link * s->num_lanes + lane];
    Index packet;
    if (port->host != NONE)
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
        of->waited += s->now - of->since;
        of->since = -1;
    }
    port->free_at = end;
    s->hops++;
    if (one->kind == EAGER || one->kind == DATA)
        of->bytes += one->wire - s->header;
    if (one->input != NONE) {
        if (s->one_queue) {
            Input *input = &s->inputs[one->input * s->num_lanes + lane];
            input->exposed = 0;
            input->free_at = end;
            if (input->head != NONE) {
                input->pending = 1;
                push(s, end, EXPOSE, (Index)(one->input * s->num_lanes + lane));
            }
        }
        return_credit(s, one->input, lane, one->room, end);
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
    of->credits -= one->room;
    one->input = link;
    one->output = (Index)s->next_link[(int64_t)port->target * s->num_hosts + one->host];
    /* A faster link ahead begins when the tail will not be late for it; one behind a whole packet at its tail. */
    Time behind = s->cut_through ? length - duration(&s->ports[one->output], one->wire) : length;
    push(s, s->now + port->latency + (behind > 0 ? behind : 0), HEAD, packet);
}

/* Send the next packet of a link that is free, if there is one and room for it. */
static void
serve(Sim *s, Index link)
{
    Port *port = &s->ports[link];
    drain_credits(s, link);
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

/* Something has come to a link that may have been idle. */
static inline void
poke(Sim *s, Index link)
{
    Port *port = &s->ports[link];
    if (s->num_lanes > 1)
        wake_at(s, link, s->now > port->free_at ? s->now : port->free_at);
    else if (port->blocked) /* by its first packet, and remains so */
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
    Port *output = &s->ports[one->output];
    Index queue = output->inputs + (Index)(s->ports[one->input].number * s->num_lanes) + one->lane;
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

static void
expose(Sim *s, Index number)
{
    Input *input = &s->inputs[number];
    Index packet = input->head;
    input->pending = 0;
    input->exposed = 1;
    input->head = s->packets[packet].next;
    join_output(s, packet);
}

/* The head of a packet is in a switch. */
static void
enter(Sim *s, Index packet)
{
    Packet *one = &s->packets[packet];
    if (!s->one_queue) {
        join_output(s, packet);
        return;
    }
    Index number = (Index)(one->input * s->num_lanes) + one->lane;
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

/* ---- adapters ---- */

static Index
job_lane(const Sim *s, Index message)
{
    return s->jobs[s->ranks[s->messages[message].source].job].lane;
}

static void
queue_work(Sim *s, Index number)
{
    Work *work = &s->works[number];
    Message *message = &s->messages[work->message];
    int forward = work->kind == EAGER || work->kind == READY_TO_SEND || work->kind == DATA;
    Index host = s->ranks[forward ? message->source : message->destination].host, link = (Index)s->uplink[host];
    Queue *queue = &s->queues[work->queue];
    work->next = NONE;
    if (queue->head == NONE) {
        queue->head = queue->tail = number;
        join_ring(s, link, job_lane(s, work->message), work->queue);
    } else {
        s->works[queue->tail].next = number;
        queue->tail = number;
    }
    poke(s, link);
}

/* Hand a message, or a word about one, to the adapter of the host that sends it.

   A queue pair has two halves: what its owner asked for goes in order, and what the peer reads is sent beside. The
   connection of two ranks has the numbers 2c and 2c + 1 for its two directions. The queues of all these are the last
   ones; those of hosts whose adapters send all in order stand before them. */
static void
hand_over(Sim *s, Index number, int kind)
{
    Index found = s->free_work;
    if (found != NONE)
        s->free_work = s->works[found].next;
    else {
        if (s->num_works == s->most_works)
            s->works = grown(s, s->works, &s->most_works, sizeof(Work));
        found = (Index)s->num_works++;
    }
    Message *message = &s->messages[number];
    int forward = kind == EAGER || kind == READY_TO_SEND || kind == DATA;
    int beside = s->put ? kind == FINISHED : kind == DATA;
    Index first = (Index)(s->num_queues - 4 * s->num_connections);
    Index direction = forward ? message->connection : message->connection ^ 1;
    Index host = s->ranks[forward ? message->source : message->destination].host;
    Index queue = s->in_order ? first - (Index)(host * s->num_lanes + job_lane(s, number)) - 1
                              : first + 2 * direction + (Index)beside;
    s->works[found] = (Work){
        .left = kind == EAGER || kind == DATA ? message->nbytes : 0, .message = number, .next = NONE,
        .queue = queue, .kind = (uint8_t)kind,
        .host = s->ranks[forward ? message->destination : message->source].host,
    };
    Time ready = s->adapter[host] > s->now ? s->adapter[host] : s->now;
    s->adapter[host] = ready + s->gap;
    if (ready > s->now)
        push(s, ready, DOORBELL, found);
    else
        queue_work(s, found);
}

/* ---- ranks ---- */

/* Keep a rank's processor busy, and note what comes of it. */
static void
work(Sim *s, Index rank, Time length, int kind, Index number)
{
    Rank *one = &s->ranks[rank];
    one->processor = (one->processor > s->now ? one->processor : s->now) + length;
    push(s, one->processor, kind, number);
}

static void
start_at(Sim *s, Index rank, Time time)
{
    if (s->ranks[rank].timer <= time)
        return;
    s->ranks[rank].timer = time;
    push(s, time, ADVANCE, rank);
}

static void
complete(Sim *s, Index step)
{
    if (--s->pending[step])
        return;
    Index rank = (Index)s->step_rank[step], last = (Index)s->rank_first_step[rank + 1];
    Rank *one = &s->ranks[rank];
    while (one->oldest < last && !s->pending[one->oldest])
        one->oldest++;
    start_at(s, rank, s->now);
}

/* The processor of a message's receiver takes it: copies it, or asks for it. */
static void
take(Sim *s, Index number)
{
    Message *message = &s->messages[number];
    int local = message->flags & IS_LOCAL, eager = message->flags & IS_EAGER;
    Time copy = local ? s->copy_latency + (Time)((double)message->nbytes * s->copy_inverse + 0.5) : 0;
    work(s, message->destination, s->receive_overhead + copy, eager || local ? RECEIVED : MATCHED, number);
}

static void
begin(Sim *s, Index rank, Index row)
{
    if (s->row_kind[row] == COMPUTE) {
        work(s, rank, s->row_value[row], COMPUTED, (Index)s->row_step[row]);
        return;
    }
    Index number = (Index)s->row_value[row];
    if (s->row_kind[row] == SEND) {
        work(s, rank, s->send_overhead, DEPART, number);
        return;
    }
    s->messages[number].flags |= POSTED;
    if (s->messages[number].flags & ARRIVED)
        take(s, number);
}

static void
restart(Sim *s, Index job)
{
    Index first = (Index)s->job_first_rank[job], last = (Index)s->job_first_rank[job + 1];
    Index step = (Index)s->rank_first_step[first], count = (Index)s->rank_first_step[last] - step;
    memcpy(s->pending + step, s->step_operations + step, count * sizeof *s->pending);
    for (int32_t at = s->job_first_message[job]; at < s->job_first_message[job + 1]; at++)
        s->messages[at].flags &= IS_EAGER | IS_LOCAL;
    s->jobs[job].began = s->now;
    s->jobs[job].left = last - first;
    for (Index rank = first; rank < last; rank++) {
        s->ranks[rank].row = (Index)s->rank_first_row[rank];
        s->ranks[rank].oldest = (Index)s->rank_first_step[rank];
        s->ranks[rank].over = 0;
        start_at(s, rank, s->now);
    }
}

static void
end_rank(Sim *s, Index rank)
{
    Job *job = &s->jobs[s->ranks[rank].job];
    s->ranks[rank].over = 1;
    if (!job->ran)
        s->ranks[rank].end = s->now;
    if (--job->left)
        return;
    if (!job->ran) {
        job->ran = 1;
        job->end = s->now;
        s->unfinished -= job->repeat != BACKGROUND;
    }
    if (!s->unfinished)
        s->status = DONE;
    else if (job->repeat != ONCE && job->began == s->now)
        s->status = NO_TIME;
    else if (job->repeat != ONCE)
        restart(s, s->ranks[rank].job);
}

/* Let a rank do what its processor, its window and its program allow now. */
static void
advance(Sim *s, Index rank)
{
    Rank *one = &s->ranks[rank];
    Index last = (Index)s->rank_first_row[rank + 1];
    while (one->row < last) {
        Index row = one->row;
        if (one->window && (Index)s->row_step[row] - one->oldest >= (Index)one->window)
            return; /* until a step is complete */
        if (one->processor > s->now) {
            start_at(s, rank, one->processor);
            return;
        }
        one->row++;
        begin(s, rank, row);
    }
    if (one->oldest == (Index)s->rank_first_step[rank + 1] && !one->over)
        end_rank(s, rank);
}

/* A sender's processor is through with a message. */
static void
depart(Sim *s, Index number)
{
    Message *message = &s->messages[number];
    message->flags |= SENT;
    if (message->flags & IS_LOCAL) {
        message->flags |= ARRIVED;
        if (message->flags & POSTED)
            take(s, number);
    } else
        hand_over(s, number, message->flags & IS_EAGER ? EAGER : READY_TO_SEND);
    if (message->flags & IS_EAGER)
        complete(s, message->send_step);
}

/* The last packet of something has come to its host. */
static void
deliver(Sim *s, Index packet)
{
    Index number = s->packets[packet].message;
    int kind = s->packets[packet].kind;
    Message *message = &s->messages[number];
    free_packet(s, packet);
    if (kind == EAGER || kind == READY_TO_SEND) {
        message->flags |= ARRIVED;
        if (message->flags & POSTED)
            take(s, number);
    } else if (kind == REQUEST) {
        if (s->put) /* by the processor; a read is answered by the adapter */
            work(s, message->source, s->send_overhead, GRANTED, number);
        else
            hand_over(s, number, DATA);
    } else if (kind == DATA) {
        complete(s, message->receive_step);
        hand_over(s, number, FINISHED);
    } else
        complete(s, message->send_step);
}

static void
receive(Sim *s, Index number)
{
    Message *message = &s->messages[number];
    complete(s, message->receive_step);
    if (!(message->flags & IS_EAGER)) /* inside a host */
        complete(s, message->send_step);
}

static void
handle(Sim *s, int kind, Index number)
{
    switch (kind) {
    case HEAD: enter(s, number); break;
    case WAKE:
        if (s->ports[number].wake == s->now) { /* else an earlier one came */
            s->ports[number].wake = NEVER;
            s->ports[number].blocked = 0;
            if (s->ports[number].free_at <= s->now)
                serve(s, number);
            else
                wake_at(s, number, s->ports[number].free_at);
        }
        break;
    case EXPOSE: expose(s, number); break;
    case DELIVER: deliver(s, number); break;
    case DOORBELL: queue_work(s, number); break;
    case ADVANCE:
        if (s->ranks[number].timer == s->now) {
            s->ranks[number].timer = NEVER;
            advance(s, number);
        }
        break;
    case COMPUTED: complete(s, number); break;
    case DEPART: depart(s, number); break;
    case RECEIVED: receive(s, number); break;
    case MATCHED: hand_over(s, number, REQUEST); break;
    case GRANTED: hand_over(s, number, DATA); break;
    }
}

/* Go on for a while. */
static int
play(Sim *s)
{
    if (setjmp(s->no_memory))
        return NO_MEMORY;
    for (int64_t count = 0; count < EVENTS_AT_ONCE; count++) {
        if (s->at == s->num_current && !refill(s))
            return STALLED;
        Event one = s->current[s->at++];
        s->now = one.key >> 1;
        s->events++;
        handle(s, (int)(one.what >> 28), one.what & (((Index)1 << 28) - 1));
        if (s->status != RUNNING)
            return s->status;
    }
    return RUNNING;
}

/* ---- to and from Python ---- */

typedef struct {
    PyObject *arrays, *numbers;
    Py_buffer views[MOST_ARRAYS];
    int count, failed;
} Given;

static void *
array(Given *given, const char *name, size_t item, int64_t *length)
{
    PyObject *one = given->failed ? NULL : PyDict_GetItemString(given->arrays, name);
    Py_buffer *view = &given->views[given->count];
    if (one == NULL || given->count == MOST_ARRAYS || PyObject_GetBuffer(one, view, PyBUF_CONTIG) != 0) {
        if (!given->failed && !PyErr_Occurred())
            PyErr_Format(PyExc_KeyError, "expecting an array %s, got none", name);
        given->failed = 1;
        return NULL;
    }
    given->count++;
    if (view->itemsize != (Py_ssize_t)item) {
        PyErr_Format(PyExc_TypeError, "%s: expecting %zu bytes an item, got %zd", name, item, view->itemsize);
        given->failed = 1;
    }
    if (length != NULL)
        *length = view->len / (int64_t)item;
    return view->buf;
}

static double
number(Given *given, const char *name)
{
    PyObject *one = given->failed ? NULL : PyDict_GetItemString(given->numbers, name);
    double found = one == NULL ? -1 : PyFloat_AsDouble(one);
    if (one == NULL || PyErr_Occurred()) {
        if (!given->failed && !PyErr_Occurred())
            PyErr_Format(PyExc_KeyError, "expecting a number %s, got none", name);
        given->failed = 1;
    }
    return found;
}

static void
read_numbers(Sim *s, Given *given)
{
    s->num_lanes = (int64_t)number(given, "lanes");
    s->mtu = (int64_t)number(given, "mtu");
    s->header = (int64_t)number(given, "header");
    s->control = (int64_t)number(given, "control");
    s->room = (int64_t)number(given, "room");
    s->grain = (int64_t)number(given, "grain");
    s->eager = (int64_t)number(given, "eager");
    s->high_limit = (int64_t)number(given, "high_limit");
    s->cut_through = (int64_t)number(given, "cut_through");
    s->one_queue = (int64_t)number(given, "one_queue");
    s->put = (int64_t)number(given, "put");
    s->by_bytes = (int64_t)number(given, "by_bytes");
    s->in_order = (int64_t)number(given, "in_order");
    s->send_overhead = (Time)number(given, "send_overhead");
    s->receive_overhead = (Time)number(given, "receive_overhead");
    s->copy_latency = (Time)number(given, "copy_latency");
    s->gap = (Time)number(given, "gap");
    s->copy_inverse = number(given, "copy_inverse");
    s->shift = (int)number(given, "shift");
    s->num_connections = (int64_t)number(given, "connections");
}

/* Links, their lanes, and the queues: of each output one an input of its switch and lane, of hosts, of connections. */
static int
read_links(Sim *s, Given *given)
{
    int64_t length;
    const int32_t *source = array(given, "link_source", 4, &s->num_links), *target = array(given, "link_target", 4, NULL);
    const double *inverse = array(given, "link_inverse", 8, NULL);
    const int64_t *latency = array(given, "link_latency", 8, NULL);
    s->uplink = array(given, "uplink", 4, &s->num_hosts);
    s->next_link = array(given, "next_link", 4, &length);
    if (given->failed)
        return 0;
    s->num_switches = s->num_hosts ? length / s->num_hosts : 0;
    s->ports = calloc((size_t)s->num_links + 1, sizeof(Port));
    s->lanes = calloc((size_t)(s->num_links * s->num_lanes) + 1, sizeof(Lane));
    s->inputs = calloc((size_t)(s->one_queue ? s->num_links * s->num_lanes : 0) + 1, sizeof(Input));
    s->adapter = calloc((size_t)s->num_hosts + 1, sizeof(Time));
    Index *inputs = calloc((size_t)s->num_switches + 1, sizeof(Index));
    int failed = !s->ports || !s->lanes || !s->inputs || !s->adapter || !inputs;
    for (int64_t at = 0; at < s->num_links && !failed; at++) {
        int to_host = target[at] < s->num_hosts, from_host = source[at] < s->num_hosts;
        s->ports[at] = (Port){
            .wake = NEVER, .latency = latency[at], .inverse = inverse[at], .to_host = (uint8_t)to_host,
            .target = (Index)(target[at] - (to_host ? 0 : s->num_hosts)), .host = from_host ? (Index)source[at] : NONE,
        };
        if (!to_host)
            s->ports[at].number = inputs[s->ports[at].target]++;
        for (int table = 0; table < 2; table++)
            s->ports[at].left[table] = s->num_entries[table] ? s->entries[table][1] : 0;
        for (int64_t lane = at * s->num_lanes; lane < (at + 1) * s->num_lanes; lane++)
            s->lanes[lane] = (Lane){.credits = to_host ? INT64_MAX / 2 : s->room, .since = -1, .ring = NONE};
        for (int64_t lane = at * s->num_lanes; s->one_queue && lane < (at + 1) * s->num_lanes; lane++)
            s->inputs[lane].head = NONE;
    }
    for (int64_t at = 0; at < s->num_links && !failed; at++)
        if (s->ports[at].host == NONE) {
            s->ports[at].inputs = (Index)s->num_queues;
            s->num_queues += inputs[source[at] - s->num_hosts] * s->num_lanes;
        }
    free(inputs);
    s->num_queues += s->num_hosts * s->num_lanes + 4 * s->num_connections;
    s->queues = malloc(((size_t)s->num_queues + 1) * sizeof(Queue));
    for (int64_t at = 0; s->queues && at < s->num_queues; at++)
        s->queues[at] = (Queue){NONE, NONE, NONE};
    return !failed && s->queues;
}

static int
read_jobs(Sim *s, Given *given)
{
    const int32_t *lane = array(given, "job_lane", 4, &s->num_jobs), *repeat = array(given, "job_repeat", 4, NULL);
    const int32_t *host = array(given, "rank_host", 4, &s->num_ranks), *job = array(given, "rank_job", 4, NULL);
    const int32_t *window = array(given, "rank_window", 4, NULL);
    const int64_t *start = array(given, "rank_start", 8, NULL);
    int64_t steps;
    s->job_first_rank = array(given, "job_first_rank", 4, NULL);
    s->job_first_message = array(given, "job_first_message", 4, NULL);
    s->rank_first_row = array(given, "rank_first_row", 4, NULL);
    s->rank_first_step = array(given, "rank_first_step", 4, NULL);
    s->row_kind = array(given, "row_kind", 1, NULL);
    s->row_step = array(given, "row_step", 4, NULL);
    s->row_value = array(given, "row_value", 8, NULL);
    s->step_operations = array(given, "step_operations", 4, &steps);
    s->step_rank = array(given, "step_rank", 4, NULL);
    if (given->failed)
        return 0;
    s->jobs = calloc((size_t)s->num_jobs + 1, sizeof(Job));
    s->ranks = calloc((size_t)s->num_ranks + 1, sizeof(Rank));
    s->pending = malloc(((size_t)steps + 1) * sizeof *s->pending);
    if (!s->jobs || !s->ranks || !s->pending)
        return 0;
    memcpy(s->pending, s->step_operations, (size_t)steps * sizeof *s->pending);
    for (int64_t at = 0; at < s->num_jobs; at++) {
        Index size = (Index)(s->job_first_rank[at + 1] - s->job_first_rank[at]);
        s->jobs[at] = (Job){.began = -1, .end = -1, .left = size, .lane = (Index)lane[at], .repeat = (uint8_t)repeat[at]};
        s->unfinished += repeat[at] != BACKGROUND;
    }
    for (int64_t at = 0; at < s->num_ranks; at++)
        s->ranks[at] = (Rank){
            .processor = start[at], .timer = NEVER, .end = -1, .row = (Index)s->rank_first_row[at],
            .oldest = (Index)s->rank_first_step[at], .host = (Index)host[at], .job = (Index)job[at], .window = window[at],
        };
    return 1;
}

static int
read_messages(Sim *s, Given *given)
{
    const int64_t *nbytes = array(given, "message_bytes", 8, &s->num_messages);
    const int32_t *source = array(given, "message_source", 4, NULL), *target = array(given, "message_target", 4, NULL);
    const int32_t *send = array(given, "send_step", 4, NULL), *into = array(given, "receive_step", 4, NULL);
    const int32_t *connection = array(given, "message_connection", 4, NULL);
    if (given->failed)
        return 0;
    s->messages = malloc(((size_t)s->num_messages + 1) * sizeof(Message));
    for (int64_t at = 0; s->messages && at < s->num_messages; at++) {
        int local = s->ranks[source[at]].host == s->ranks[target[at]].host, eager = nbytes[at] <= s->eager;
        s->messages[at] = (Message){
            .nbytes = nbytes[at], .source = (Index)source[at], .destination = (Index)target[at],
            .send_step = (Index)send[at], .receive_step = (Index)into[at], .connection = (Index)connection[at],
            .flags = (uint8_t)((local ? IS_LOCAL : 0) | (eager ? IS_EAGER : 0)),
        };
    }
    return s->messages != NULL;
}

static void
free_sim(Sim *s)
{
    for (int64_t at = 0; s->ports && at < s->num_links; at++)
        free(s->ports[at].credits);
    void *all[] = {s->ports,   s->lanes, s->queues, s->inputs,  s->messages, s->ranks, s->jobs, s->pending,
                   s->adapter, s->packets, s->works, s->pool, s->current, s->heap, s->spare};
    for (size_t at = 0; at < sizeof all / sizeof *all; at++)
        free(all[at]);
    free(s);
}

/* Bytes of buffers for which neither credits nor packets can be found: 0, if nothing is lost. */
static int64_t
lost_room(Sim *s)
{
    int64_t lost = 0;
    for (int64_t at = 0; at < s->num_packets; at++)
        if (!s->packets[at].is_free && s->packets[at].input != NONE)
            s->lanes[s->packets[at].input * s->num_lanes + s->packets[at].lane].credits += s->packets[at].room;
    for (int64_t at = 0; at < s->num_links; at++) {
        Port *port = &s->ports[at];
        for (Index one = 0; one < port->num_credits; one++) {
            Credit *credit = &port->credits[(port->first_credit + one) & (port->most_credits - 1)];
            s->lanes[at * s->num_lanes + credit->lane].credits += credit->room;
        }
        for (int64_t lane = at * s->num_lanes; lane < (at + 1) * s->num_lanes && !port->to_host; lane++)
            lost += llabs(s->room - s->lanes[lane].credits);
    }
    return lost;
}

/* Links of packets that wait in buffers: the one they came on and the one that they need, one after the other. */
static PyObject *
waiting(Sim *s)
{
    PyObject *found = PyList_New(0);
    for (int64_t at = 0; found != NULL && at < s->num_packets; at++) {
        Packet *one = &s->packets[at];
        if (one->is_free || one->input == NONE)
            continue;
        PyObject *pair = Py_BuildValue("(III)", one->input, one->output, (Index)one->lane);
        if (pair == NULL || PyList_Append(found, pair) != 0)
            Py_CLEAR(found);
        Py_XDECREF(pair);
    }
    return found;
}

static PyObject *
outcome(Sim *s, Given *given, int status)
{
    int64_t *rank_end = array(given, "rank_end", 8, NULL), *job_end = array(given, "job_end", 8, NULL);
    int64_t *bytes = array(given, "lane_bytes", 8, NULL), *wait = array(given, "lane_wait", 8, NULL);
    if (given->failed)
        return NULL;
    for (int64_t at = 0; at < s->num_ranks; at++)
        rank_end[at] = s->ranks[at].end;
    for (int64_t at = 0; at < s->num_jobs; at++)
        job_end[at] = s->jobs[at].end;
    for (int64_t at = 0; at < s->num_links * s->num_lanes; at++) {
        bytes[at] = s->lanes[at].bytes;
        wait[at] = s->lanes[at].waited + (s->lanes[at].since >= 0 ? s->now - s->lanes[at].since : 0);
    }
    PyObject *edges = status == STALLED ? waiting(s) : PyList_New(0);
    if (edges == NULL)
        return NULL;
    int64_t flying = 0;
    for (int64_t at = 0; at < s->num_packets; at++)
        flying += !s->packets[at].is_free && s->packets[at].input != NONE;
    return Py_BuildValue("{s:i,s:L,s:L,s:L,s:L,s:L,s:L,s:N}", "status", status, "hops", (long long)s->hops, "events",
                         (long long)s->events, "sent", (long long)s->sent, "delivered", (long long)s->delivered,
                         "in_buffers", (long long)flying, "lost_room", (long long)lost_room(s), "waiting", edges);
}

static int
play_on(Sim *s)
{
    int status = RUNNING;
    while (status == RUNNING) {
        Py_BEGIN_ALLOW_THREADS
        status = play(s);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() != 0)
            return -1;
    }
    return status;
}

static PyObject *
simulate(PyObject *Py_UNUSED(module), PyObject *args)
{
    Given given = {0};
    if (!PyArg_ParseTuple(args, "O!O!", &PyDict_Type, &given.arrays, &PyDict_Type, &given.numbers))
        return NULL;
    PyObject *found = NULL;
    int64_t length[2];
    Sim *s = calloc(1, sizeof(Sim));
    if (s == NULL)
        return PyErr_NoMemory();
    s->free_packet = s->free_work = s->free_event = NONE;
    memset(s->bucket, 0xff, sizeof s->bucket);
    read_numbers(s, &given);
    s->entries[0] = array(&given, "high", 4, &length[0]);
    s->entries[1] = array(&given, "low", 4, &length[1]);
    for (int table = 0; table < 2 && !given.failed; table++)
        s->num_entries[table] = (int)(length[table] / 2);
    if (!given.failed && read_links(s, &given) && read_jobs(s, &given) && read_messages(s, &given)) {
        int status = setjmp(s->no_memory) ? NO_MEMORY : RUNNING;
        for (int64_t rank = 0; rank < s->num_ranks && status == RUNNING; rank++)
            start_at(s, (Index)rank, s->ranks[rank].processor);
        if (status == RUNNING)
            status = play_on(s);
        if (status == NO_MEMORY)
            PyErr_NoMemory();
        else if (status >= 0)
            found = outcome(s, &given, status);
    } else if (!given.failed)
        PyErr_NoMemory();
    for (int at = 0; at < given.count; at++)
        PyBuffer_Release(&given.views[at]);
    free_sim(s);
    return found;
}

static PyMethodDef functions[] = {
    {"simulate", simulate, METH_VARARGS,
     "simulate(arrays, numbers)\n--\n\nRun programs as packets; the arrays rank_end, job_end, lane_bytes and lane_wait are "
     "filled, and the counts of the run returned."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_packets",
    .m_doc = "Packets on a network with credits; see packets.py.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__packets(void)
{
    return PyModule_Create(&module);
}
