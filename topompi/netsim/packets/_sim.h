/* The state of a session: packets on a network with credits, event by event. settings.py describes the model.

   The numbers of cache and TLB misses determine the speed. So packets, events, queues and work are indices into pools
   whose freed entries are reused first; a link schedules an event for its end only if something waits for it; and a
   credit is an entry in a ring of its link, which is read when the link next checks for room. What a hop changes at a
   link lies side by side, a queue exists only while it holds something, and a chunk of events is a line of the cache. Of
   large networks, whose state fits no near cache, events are prefetched for. */

#ifndef TOPOMPI_NETSIM_SIM_H
#define TOPOMPI_NETSIM_SIM_H

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "../_codes.h"
#include "../_groups.h"

#pragma GCC visibility push(hidden) /* makes calls between these files direct */

typedef int64_t Time; /* picoseconds */
typedef uint32_t Index;

#define NONE UINT32_MAX
#define NEVER INT64_MAX
#define MOST_CHUNKS (((Index)1 << 29) - 1)
#define NUMBER (((Index)1 << 28) - 1) /* the part of an event, or of a place on a route, that is a number */

enum { MOST_LANES = 16, EVENTS_AT_ONCE = 1 << 20, EVENTS_OF_CHUNK = 5 };
enum { FORESEEN = 64 };     /* least number of events that are prefetched for at once, if there are as many */
enum { LARGE = 1 << 18 };   /* bytes of ports and lanes from which on prefetching pays */
enum { FIRST_CREDITS = 2, FEW_CREDITS = 1 << FIRST_CREDITS }; /* room for credits at the start, and as a power of two */
enum { FIRST_BUCKETS = 10 };                     /* buckets of queues at the start, as a power of two */
enum { MOST_ROOM = 1 << 30 };                    /* bytes of a lane's part of a buffer */
enum { EAGER, READY_TO_SEND, REQUEST, DATA, FINISHED };         /* kinds of packets */
enum { SENT = 1, POSTED = 2, ARRIVED = 4, IS_EAGER = 8, IS_LOCAL = 16, ON_ITS_WAY = 32, GONE = 64 }; /* flags of a message */

/* Kinds of events. At one instant WAKE comes last, so that a link chooses among all packets that are there. */
enum { HEAD, EXPOSE, DELIVER, DOORBELL, ADVANCE, COMPUTED, DEPART, RECEIVED, MATCHED, GRANTED, TURN, WAKE };

typedef struct {
    int64_t key; /* twice the time, plus one for WAKE */
    Index what;  /* kind in the upper four bits */
    Index ahead; /* see foresee */
} Event;

typedef struct { /* events of a bucket: a line of the cache */
    int64_t key[EVENTS_OF_CHUNK];
    Index what[EVENTS_OF_CHUNK];
    Index next;
} Chunk;

typedef struct { /* a bucket: the chunk that is filled now, before which all are full, and the number of its events */
    Index chunk : 29, count : 3;
} Slot;

typedef struct {
    Index message, next, route, wire; /* route: place of the link after the next one, wire: bytes on a link */
    Index input, output;              /* input: link whose buffer has the packet, output: next link */
    uint8_t lane, from, kind;         /* lane: on the next link, from: lane of the buffer that has the packet */
    uint8_t last : 1, is_free : 1;
} Packet;

typedef struct { /* the data of a message that an adapter must send */
    int64_t left;
    Index message, next, queue, route; /* route: place of the link after the host's */
    uint8_t kind;
} Work;

/* Packets from one input, or work of one connection, that wait for a lane of a link. Only queues that are not empty
   exist, because there are as many possible ones as pairs of a switch's ports and lanes. Those of a link's lane form a
   ring; a table of buckets finds a queue by its output and source (see queue_of). */
typedef struct {
    Index head, tail, next;
    Index need; /* bytes of the next buffer that the head needs */
    Index source, output, chain;
    Index spare; /* two queues are a line of the cache */
} Queue;

typedef struct {
    Time time;
    Index room, lane;
} Credit;

typedef struct {
    int32_t slack; /* credits minus the bytes that its next packet needs; not used on links to hosts */
    Index ring;    /* its last queue */
    int64_t bytes; /* of messages that it has carried */
} Lane;

typedef struct { /* of a lane */
    Time total; /* time for which it lacked credits */
    Time since; /* time since which it lacks credits, if it is stalled */
} Wait;

typedef struct { /* a port's turns among its lanes */
    int64_t high;    /* bytes of high priority since the last packet of low priority */
    int32_t left[2]; /* rest of the weight of the current entry of the high and of the low table */
    uint8_t turn[2]; /* current entries */
} Arbiter;

/* A directed link, with the port that sends on it: all that a packet changes, side by side, so that it is on one page of
   memory. The first line of the cache has what every event needs. The lanes' waits follow the lanes (see wait_of). */
typedef struct {
    Time free_at, wake, latency;
    double inverse; /* picoseconds per byte */
    Credit *credits;
    Index first_credit, num_credits;
    uint16_t active;  /* lanes with packets to send */
    uint16_t ready;   /* active lanes whose next packet fits into the next buffer, by the credits that were counted */
    uint16_t stalled; /* lanes that lack credits since a time */
    uint8_t to_host, from_host, blocked;
    uint8_t most_credits;               /* room for credits, as a power of two */
    Credit few_credits[FEW_CREDITS];    /* the first memory for credits */
    Arbiter arbiter;
    Lane lanes[];
} Port;

typedef struct { /* a link's token bucket: the time at which it is full, and the time in which it fills */
    Time full_at, fill;
} Bucket;

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

typedef struct { /* a rank's task on a shared processor */
    Time length;
    Index number, next;
    int kind;
} Task;

typedef struct { /* a rank's tasks, and the next rank that waits for a processor */
    Index head, tail, next;
    uint8_t state;
} Turn;

typedef struct {
    Time began, end;
    int64_t runs; /* number of ended runs */
    Index left, lane;
    uint8_t repeat, ran, over;
} Job;

typedef struct { /* the time at which a job ended a run, or completed a named step */
    Time time;
    int32_t job, mark;
} Record;

typedef struct {
    int64_t num_links, num_hosts, num_connections;
    Group jobs_group, ranks_group, rows_group, steps_group, messages_group, marks_group;
    int64_t num_lanes, mtu, header, control, room, grain, eager, high_limit, cut_through, one_queue, put, by_bytes, in_order, send_buffer;
    Time send_overhead, receive_overhead, copy_latency, gap;
    double copy_inverse;
    int num_entries[2];
    const int32_t *entries[2]; /* (lane, weight) of the high and of the low table */

    const int32_t *uplink;
    Index *routes;           /* the links of all routes; see link_after */
    Index *connection_route; /* first place of the route of each direction of each connection */
    Group routes_group;

    int32_t *rank_first_row, *rank_first_step, *row_step, *row_after, *step_operations, *step_rank, *step_mark;
    int32_t *job_first_rank, *job_first_message, *job_first_mark, *mark_size, *mark_left;
    int8_t *row_kind;
    int64_t *row_value;

    char *ports;   /* see port_of */
    size_t stride; /* bytes from one port to the next */
    Queue *queues;
    Index *buckets_of_queues; /* first queue of each bucket */
    Index free_queue;
    int64_t most_queues, num_queues;
    int bucket_bits; /* number of these buckets, as a power of two */
    int is_uniform;  /* whether all links have the same rate */
    Input *inputs;
    Message *messages;
    Rank *ranks;
    Job *jobs;
    int32_t *pending; /* number of incomplete operations of each step */
    Time *adapter;    /* time at which each host's adapter can start another message */
    Bucket *buckets;  /* one per link, or NULL if links have no buckets */
    Turn *turns;      /* one per rank if all ranks share processors, else NULL */
    Task *tasks;
    Index free_task, first_ready, last_ready;
    int64_t most_tasks, num_tasks, idle, processors;
    Time poll, notice;

    Packet *packets;
    Work *works;
    Index free_packet, free_work;
    int64_t most_packets, num_packets, most_works, num_works;

    Chunk *pool;
    Event *current, *heap, *spare;
    Index *soon; /* links that wake at the current time, after all other events */
    int64_t most_soon, num_soon, at_soon;
    Index free_chunk;
    int64_t most_pool, num_pool, most_current, num_current, at, most_heap, num_heap, most_spare;
    Slot *wheel;      /* the buckets of events by time */
    uint64_t *filled; /* bits of buckets with events */
    int64_t now_bucket, last_bucket; /* buckets of the current time, and of the last current event */
    int is_large; /* whether the network fits no near cache */
    int num_buckets; /* a power of two */
    int shift;       /* of a key, for its bucket */

    Record *records; /* that Python has not read */
    int64_t most_records, num_records;

    Time now;
    int64_t started; /* number of ranks that have been started */
    int unfinished, status, ended;
    int64_t hops, events, sent, delivered;
    jmp_buf no_memory;
} Sim;

static inline Port *
port_of(const Sim *s, Index link)
{
    return (Port *)(s->ports + link * s->stride);
}

static inline Wait *
wait_of(const Sim *s, Port *port, Index lane)
{
    return (Wait *)(port->lanes + s->num_lanes) + lane;
}

/* Memory that begins at a line of the cache. From one MiB on it is made of large pages, if there are any, because items
   of large arrays are read in no order, and most entries of the TLB then miss. NULL if there is none. */
static inline void *
aligned_memory(size_t bytes)
{
    size_t page = bytes >= (size_t)1 << 20 ? (size_t)2 << 20 : 64;
    void *found = aligned_alloc(page, (bytes + page - 1) & ~(page - 1));
#ifdef MADV_HUGEPAGE
    if (found != NULL && page > 64)
        madvise(found, (bytes + page - 1) & ~(page - 1), MADV_HUGEPAGE); /* it may fail: then pages are small */
#endif
    return found;
}

#endif
