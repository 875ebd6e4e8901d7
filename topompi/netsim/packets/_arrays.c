#include "_arrays.h"
#include "_switches.h"

/* An array by its name, with one or two dimensions; entries BUFFERS_ANY of its shape are filled in. */
void *
given_table(Given *given, const char *name, BufferItem item, int dimensions, Py_ssize_t *shape)
{
    PyObject *one = given->failed ? NULL : PyDict_GetItemString(given->arrays, name);
    if (one == NULL && !given->failed)
        PyErr_Format(PyExc_KeyError, "expecting an array %s, got none", name);
    void *found = one == NULL ? NULL : buffers_take(&given->buffers, one, name, item, given->access, dimensions, shape);
    given->failed |= found == NULL;
    return found;
}

void *
given_column(Given *given, const char *name, BufferItem item, Py_ssize_t length)
{
    return given_table(given, name, item, 1, &length);
}

/* A column that sets the length which other columns must have. */
void *
given_first_column(Given *given, const char *name, BufferItem item, int64_t *length)
{
    Py_ssize_t found = BUFFERS_ANY;
    void *items = given_table(given, name, item, 1, &found);
    *length = found;
    return items;
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
    s->room = s->room < MOST_ROOM ? s->room : MOST_ROOM;
    s->grain = (int64_t)number(given, "grain");
    s->eager = (int64_t)number(given, "eager");
    s->high_limit = (int64_t)number(given, "high_limit");
    s->cut_through = (int64_t)number(given, "cut_through");
    s->one_queue = (int64_t)number(given, "one_queue");
    s->put = (int64_t)number(given, "put");
    s->by_bytes = (int64_t)number(given, "by_bytes");
    s->in_order = (int64_t)number(given, "in_order");
    s->send_buffer = (int64_t)number(given, "send_buffer");
    s->send_overhead = (Time)number(given, "send_overhead");
    s->receive_overhead = (Time)number(given, "receive_overhead");
    s->copy_latency = (Time)number(given, "copy_latency");
    s->gap = (Time)number(given, "gap");
    s->copy_inverse = number(given, "copy_inverse");
    s->idle = s->processors = (int64_t)number(given, "processors");
    s->poll = (Time)number(given, "poll");
}

/* Zeroed items, each within a line of the cache if its size is a power of two up to a line's. */
static void *
zeroed(size_t count, size_t item)
{
    void *found = aligned_memory((count + 1) * item);
    if (found != NULL)
        memset(found, 0, (count + 1) * item);
    return found;
}

/* Read the links and their lanes. */
static int
read_links(Sim *s, Given *given)
{
    const int32_t *source = given_first_column(given, "link_source", BUFFERS_INT32, &s->num_links);
    const int32_t *target = given_column(given, "link_target", BUFFERS_INT32, s->num_links);
    const double *inverse = given_column(given, "link_inverse", BUFFERS_FLOAT64, s->num_links);
    const int64_t *latency = given_column(given, "link_latency", BUFFERS_INT64, s->num_links);
    const int64_t *fill = given_column(given, "link_fill", BUFFERS_INT64, s->num_links);
    s->uplink = given_first_column(given, "uplink", BUFFERS_INT32, &s->num_hosts);
    if (given->failed)
        return 0;
    size_t links = (size_t)s->num_links;
    s->stride = (sizeof(Port) + (size_t)s->num_lanes * (sizeof(Lane) + sizeof(Wait)) + 63) & ~(size_t)63;
    s->ports = zeroed(links, s->stride);
    s->inputs = calloc((size_t)(s->one_queue ? s->num_links * s->num_lanes : 0) + 1, sizeof(Input));
    s->adapter = calloc((size_t)s->num_hosts + 1, sizeof(Time));
    int shaped = s->num_links && fill[0] >= 0;
    s->buckets = shaped ? calloc((size_t)s->num_links, sizeof(Bucket)) : NULL;
    s->buckets_of_queues = malloc(sizeof(Index) << FIRST_BUCKETS);
    int failed = (shaped && !s->buckets) || !s->ports || !s->inputs || !s->adapter || !s->buckets_of_queues;
    s->is_uniform = 1;
    s->bucket_bits = FIRST_BUCKETS;
    if (!failed)
        memset(s->buckets_of_queues, 0xFF, sizeof(Index) << FIRST_BUCKETS);
    for (int64_t at = 0; at < s->num_links && !failed; at++) {
        int to_host = target[at] < s->num_hosts, from_host = source[at] < s->num_hosts;
        Port *port = port_of(s, (Index)at);
        port->wake = NEVER, port->latency = latency[at], port->inverse = inverse[at];
        port->to_host = (uint8_t)to_host, port->from_host = (uint8_t)from_host;
        port->credits = port->few_credits, port->most_credits = FIRST_CREDITS;
        for (int table = 0; table < 2; table++)
            port->arbiter.left[table] = s->num_entries[table] ? s->entries[table][1] : 0;
        for (int64_t lane = 0; lane < s->num_lanes; lane++)
            port->lanes[lane] = (Lane){.slack = (int32_t)s->room, .ring = NONE};
        if (shaped)
            s->buckets[at].fill = fill[at];
        s->is_uniform &= inverse[at] == inverse[0];
        for (int64_t lane = at * s->num_lanes; s->one_queue && lane < (at + 1) * s->num_lanes; lane++)
            s->inputs[lane].head = NONE;
    }
    s->is_large = links * s->stride >= LARGE;
    return !failed;
}

/* Read the network; 0 on failure, with an exception unless memory is short. */
int
read_network(Sim *s, Given *given)
{
    s->free_packet = s->free_queue = s->free_work = s->free_chunk = s->free_task = s->first_ready = NONE;
    s->status = RUNNING;
    Py_ssize_t high[] = {BUFFERS_ANY, 2}, low[] = {BUFFERS_ANY, 2};
    read_numbers(s, given);
    s->entries[0] = given_table(given, "high", BUFFERS_INT32, 2, high);
    s->entries[1] = given_table(given, "low", BUFFERS_INT32, 2, low);
    s->num_entries[0] = (int)high[0], s->num_entries[1] = (int)low[0];
    return !given->failed && read_links(s, given);
}

void
free_sim(Sim *s)
{
    for (int64_t at = 0; s->ports && at < s->num_links; at++)
        if (port_of(s, (Index)at)->most_credits > FIRST_CREDITS)
            free(port_of(s, (Index)at)->credits);
    void *all[] = {
        s->ports, s->buckets_of_queues, s->soon, s->queues, s->inputs, s->messages, s->ranks, s->jobs,
        s->pending, s->adapter, s->routes, s->connection_route, s->packets, s->works, s->wheel, s->filled, s->pool, s->current, s->heap, s->spare, s->buckets, s->turns, s->tasks, s->records,
        s->rank_first_row, s->rank_first_step, s->row_step, s->row_after, s->step_operations, s->step_rank, s->step_mark, s->job_first_rank,
        s->job_first_message, s->job_first_mark, s->mark_size, s->mark_left, s->row_kind, s->row_value,
    };
    for (size_t at = 0; at < sizeof all / sizeof *all; at++)
        free(all[at]);
}

/* The bytes of buffers without credit or packet, which must be 0; -1 without memory. */
static int64_t
lost_room(const Sim *s)
{
    int64_t lost = 0, *credits = malloc(((size_t)(s->num_links * s->num_lanes) + 1) * sizeof *credits);
    if (credits == NULL)
        return -1;
    for (int64_t at = 0; at < s->num_links * s->num_lanes; at++) {
        const Lane *of = &port_of(s, (Index)(at / s->num_lanes))->lanes[at % s->num_lanes];
        Index ring = of->ring;
        credits[at] = of->slack + (int64_t)(ring == NONE ? 0 : s->queues[s->queues[ring].next].need);
    }
    for (int64_t at = 0; at < s->num_packets; at++)
        if (!s->packets[at].is_free && s->packets[at].input != NONE)
            credits[s->packets[at].input * s->num_lanes + s->packets[at].from] += room_of(s, s->packets[at].wire);
    for (int64_t at = 0; at < s->num_links; at++) {
        const Port *port = port_of(s, (Index)at);
        for (Index one = 0; one < port->num_credits; one++) {
            const Credit *credit = &port->credits[(port->first_credit + one) & credits_mask(port)];
            credits[at * s->num_lanes + credit->lane] += credit->room;
        }
        for (int64_t lane = at * s->num_lanes; lane < (at + 1) * s->num_lanes && !port->to_host; lane++)
            lost += llabs(s->room - credits[lane]);
    }
    free(credits);
    return lost;
}

/* For each packet that waits in a buffer, the link on which it arrived, its lane there, the link that it needs, and the
   lane that it needs there. */
PyObject *
waiting_packets(const Sim *s)
{
    PyObject *found = PyList_New(0);
    for (int64_t at = 0; found != NULL && at < s->num_packets; at++) {
        const Packet *one = &s->packets[at];
        if (one->is_free || one->input == NONE)
            continue;
        PyObject *pair = Py_BuildValue("(IIII)", one->input, (Index)one->from, one->output, (Index)one->lane);
        if (pair == NULL || PyList_Append(found, pair) != 0)
            Py_CLEAR(found);
        Py_XDECREF(pair);
    }
    return found;
}

/* Fill in the ends of first runs (-1 before the end) and the activity of links, and return the counts. */
PyObject *
read_counters(const Sim *s, Given *given)
{
    Py_ssize_t lanes[] = {s->num_links, s->num_lanes};
    int64_t *rank_end = given_column(given, "rank_end", BUFFERS_INT64, s->ranks_group.count);
    int64_t *job_end = given_column(given, "job_end", BUFFERS_INT64, s->jobs_group.count);
    int64_t *bytes = given_table(given, "lane_bytes", BUFFERS_INT64, 2, lanes);
    int64_t *wait = given_table(given, "lane_wait", BUFFERS_INT64, 2, lanes);
    if (given->failed)
        return NULL;
    for (int64_t at = 0; at < s->ranks_group.count; at++)
        rank_end[at] = s->ranks[at].end;
    for (int64_t at = 0; at < s->jobs_group.count; at++)
        job_end[at] = s->jobs[at].end;
    for (int64_t at = 0; at < s->num_links * s->num_lanes; at++) {
        Port *port = port_of(s, (Index)(at / s->num_lanes));
        const Wait *one = wait_of(s, port, (Index)(at % s->num_lanes));
        int is_stalled = port->stalled >> (at % s->num_lanes) & 1;
        bytes[at] = port->lanes[at % s->num_lanes].bytes;
        wait[at] = one->total + (is_stalled ? s->now - one->since : 0);
    }
    int64_t flying = 0, lost = lost_room(s);
    for (int64_t at = 0; at < s->num_packets; at++)
        flying += !s->packets[at].is_free && s->packets[at].input != NONE;
    if (lost < 0)
        return PyErr_NoMemory();
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L}", "hops", (long long)s->hops, "events", (long long)s->events, "sent",
                         (long long)s->sent, "delivered", (long long)s->delivered, "in_buffers", (long long)flying,
                         "lost_room", (long long)lost);
}
