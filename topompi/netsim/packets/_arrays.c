#include "_arrays.h"

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
    s->send_buffer = (int64_t)number(given, "send_buffer");
    s->send_overhead = (Time)number(given, "send_overhead");
    s->receive_overhead = (Time)number(given, "receive_overhead");
    s->copy_latency = (Time)number(given, "copy_latency");
    s->gap = (Time)number(given, "gap");
    s->copy_inverse = number(given, "copy_inverse");
    s->shift = (int)number(given, "shift");
    s->num_connections = (int64_t)number(given, "connections");
    s->idle = (int64_t)number(given, "processors");
    s->poll = (Time)number(given, "poll");
}

/* Links, their lanes, and the queues: of each output one an input of its switch and lane, of hosts, of connections. */
static int
read_links(Sim *s, Given *given)
{
    int64_t length;
    const int32_t *source = array(given, "link_source", 4, &s->num_links), *target = array(given, "link_target", 4, NULL);
    const double *inverse = array(given, "link_inverse", 8, NULL);
    const int64_t *latency = array(given, "link_latency", 8, NULL), *fill = array(given, "link_fill", 8, NULL);
    s->uplink = array(given, "uplink", 4, &s->num_hosts);
    s->next_link = array(given, "next_link", 4, &length);
    if (given->failed)
        return 0;
    s->num_switches = s->num_hosts ? length / s->num_hosts : 0;
    s->ports = calloc((size_t)s->num_links + 1, sizeof(Port));
    s->lanes = calloc((size_t)(s->num_links * s->num_lanes) + 1, sizeof(Lane));
    s->inputs = calloc((size_t)(s->one_queue ? s->num_links * s->num_lanes : 0) + 1, sizeof(Input));
    s->adapter = calloc((size_t)s->num_hosts + 1, sizeof(Time));
    int shaped = s->num_links && fill[0] >= 0;
    s->buckets = shaped ? calloc((size_t)s->num_links, sizeof(Bucket)) : NULL;
    Index *inputs = calloc((size_t)s->num_switches + 1, sizeof(Index));
    int failed = (shaped && !s->buckets) || !s->ports || !s->lanes || !s->inputs || !s->adapter || !inputs;
    for (int64_t at = 0; at < s->num_links && !failed; at++) {
        int to_host = target[at] < s->num_hosts, from_host = source[at] < s->num_hosts;
        s->ports[at] = (Port){
            .wake = NEVER, .latency = latency[at], .inverse = inverse[at], .to_host = (uint8_t)to_host,
            .target = (Index)(target[at] - (to_host ? 0 : s->num_hosts)), .host = from_host ? (Index)source[at] : NONE,
        };
        if (shaped)
            s->buckets[at].fill = fill[at];
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
    s->notice = s->idle ? s->poll * (s->num_ranks > s->idle ? s->num_ranks - s->idle : 0) / (2 * s->idle) : 0;
    s->turns = s->idle ? malloc(((size_t)s->num_ranks + 1) * sizeof(Turn)) : NULL;
    if (s->idle && !s->turns)
        return 0;
    for (int64_t at = 0; s->turns && at < s->num_ranks; at++)
        s->turns[at] = (Turn){.head = NONE};
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

/* 0 where something fails: ``given->failed`` tells a fault of the arrays from a lack of memory. */
int
read_all(Sim *s, Given *given)
{
    int64_t length[2];
    read_numbers(s, given);
    s->entries[0] = array(given, "high", 4, &length[0]);
    s->entries[1] = array(given, "low", 4, &length[1]);
    for (int table = 0; table < 2 && !given->failed; table++)
        s->num_entries[table] = (int)(length[table] / 2);
    return !given->failed && read_links(s, given) && read_jobs(s, given) && read_messages(s, given);
}

void
free_sim(Sim *s)
{
    for (int64_t at = 0; s->ports && at < s->num_links; at++)
        free(s->ports[at].credits);
    void *all[] = {s->ports,   s->lanes, s->queues, s->inputs,  s->messages, s->ranks, s->jobs, s->pending,
                   s->adapter, s->packets, s->works, s->pool, s->current, s->heap, s->spare, s->buckets, s->turns, s->tasks};
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

PyObject *
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
