/* Adding and removing jobs. */

#include "_arrays.h"
#include "_hosts.h"
#include "_switches.h"

/* The columns of a program, numbered from 0 within it; see arrays.py. */
typedef struct {
    int64_t jobs, ranks, rows, steps, messages, marks, connections, routes;
    const int32_t *job_lane, *job_repeat, *job_first_rank, *job_first_message, *job_first_mark;
    const int32_t *rank_host, *rank_job, *rank_window, *rank_first_row, *rank_first_step;
    const int64_t *rank_start, *row_value, *message_bytes;
    const int8_t *row_kind;
    const int32_t *row_step, *row_after, *step_operations, *step_rank, *step_mark, *mark_size;
    const int32_t *message_source, *message_target, *send_step, *receive_step, *message_connection;
    const int32_t *connection_route, *route_links;
} Columns;

static int
read_columns(Columns *to, Given *given)
{
    to->job_lane = given_first_column(given, "job_lane", BUFFERS_INT32, &to->jobs);
    to->job_repeat = given_column(given, "job_repeat", BUFFERS_INT32, to->jobs);
    to->job_first_rank = given_column(given, "job_first_rank", BUFFERS_INT32, to->jobs + 1);
    to->job_first_message = given_column(given, "job_first_message", BUFFERS_INT32, to->jobs + 1);
    to->job_first_mark = given_column(given, "job_first_mark", BUFFERS_INT32, to->jobs + 1);
    to->rank_host = given_first_column(given, "rank_host", BUFFERS_INT32, &to->ranks);
    to->rank_job = given_column(given, "rank_job", BUFFERS_INT32, to->ranks);
    to->rank_window = given_column(given, "rank_window", BUFFERS_INT32, to->ranks);
    to->rank_start = given_column(given, "rank_start", BUFFERS_INT64, to->ranks);
    to->rank_first_row = given_column(given, "rank_first_row", BUFFERS_INT32, to->ranks + 1);
    to->rank_first_step = given_column(given, "rank_first_step", BUFFERS_INT32, to->ranks + 1);
    to->row_kind = given_first_column(given, "row_kind", BUFFERS_INT8, &to->rows);
    to->row_step = given_column(given, "row_step", BUFFERS_INT32, to->rows);
    to->row_after = given_column(given, "row_after", BUFFERS_INT32, to->rows);
    to->row_value = given_column(given, "row_value", BUFFERS_INT64, to->rows);
    to->step_operations = given_first_column(given, "step_operations", BUFFERS_INT32, &to->steps);
    to->step_rank = given_column(given, "step_rank", BUFFERS_INT32, to->steps);
    to->step_mark = given_column(given, "step_mark", BUFFERS_INT32, to->steps);
    to->mark_size = given_first_column(given, "mark_size", BUFFERS_INT32, &to->marks);
    to->message_bytes = given_first_column(given, "message_bytes", BUFFERS_INT64, &to->messages);
    to->message_source = given_column(given, "message_source", BUFFERS_INT32, to->messages);
    to->message_target = given_column(given, "message_target", BUFFERS_INT32, to->messages);
    to->send_step = given_column(given, "send_step", BUFFERS_INT32, to->messages);
    to->receive_step = given_column(given, "receive_step", BUFFERS_INT32, to->messages);
    to->message_connection = given_column(given, "message_connection", BUFFERS_INT32, to->messages);
    to->connections = 0;
    for (int64_t at = 0; at < to->messages && !given->failed; at++)
        if (to->message_connection[at] / 2 >= to->connections)
            to->connections = to->message_connection[at] / 2 + 1;
    to->connection_route = given_column(given, "connection_route", BUFFERS_INT32, 2 * to->connections + 1);
    to->routes = given->failed ? 0 : to->connection_route[2 * to->connections];
    to->route_links = given_column(given, "route_links", BUFFERS_INT32, to->routes);
    return !given->failed;
}

#define A(name) (void *)&s->name

static int
make_room(Sim *s, const Columns *more)
{
    return group_widen(&s->jobs_group, (int32_t)more->jobs, 4,
                       (void *const[]){A(jobs), A(job_first_rank), A(job_first_message), A(job_first_mark)},
                       (const size_t[]){sizeof(Job), 4, 4, 4}) &&
           group_widen(&s->ranks_group, (int32_t)more->ranks, s->processors ? 4 : 3,
                       (void *const[]){A(ranks), A(rank_first_row), A(rank_first_step), A(turns)},
                       (const size_t[]){sizeof(Rank), 4, 4, sizeof(Turn)}) &&
           group_widen(&s->rows_group, (int32_t)more->rows, 4,
                       (void *const[]){A(row_kind), A(row_step), A(row_after), A(row_value)},
                       (const size_t[]){1, 4, 4, 8}) &&
           group_widen(&s->steps_group, (int32_t)more->steps, 4,
                       (void *const[]){A(step_operations), A(step_rank), A(step_mark), A(pending)},
                       (const size_t[]){4, 4, 4, 4}) &&
           group_widen(&s->messages_group, (int32_t)more->messages, 1, (void *const[]){A(messages)},
                       (const size_t[]){sizeof(Message)}) &&
           group_widen(&s->marks_group, (int32_t)more->marks, 2, (void *const[]){A(mark_size), A(mark_left)},
                       (const size_t[]){4, 4}) &&
           group_widen(&s->routes_group, (int32_t)more->routes, 1, (void *const[]){A(routes)}, (const size_t[]){4});
}

/* Add connections of two ranks; each has a route for each of its directions. */
static int
add_connections(Sim *s, const Columns *more)
{
    int64_t count = more->connections, before = 2 * s->num_connections;
    Index *routes = realloc(s->connection_route, ((size_t)(before + 2 * count) + 1) * sizeof *routes);
    if (routes == NULL)
        return 0;
    s->connection_route = routes;
    for (int64_t at = 0; at < 2 * count; at++)
        routes[before + at] = (Index)(more->connection_route[at] + s->routes_group.count);
    for (int64_t at = 0; at < more->routes; at++)
        s->routes[s->routes_group.count + at] = (Index)more->route_links[at];
    s->routes_group.count += (int32_t)more->routes;
    s->num_connections += count;
    return 1;
}

static void
append_jobs(Sim *s, const Columns *more)
{
    int32_t jobs = s->jobs_group.count, ranks = s->ranks_group.count, marks = s->marks_group.count;
    group_append(s->job_first_rank + jobs, more->job_first_rank, (int32_t)more->jobs + 1, ranks);
    group_append(s->job_first_message + jobs, more->job_first_message, (int32_t)more->jobs + 1, s->messages_group.count);
    group_append(s->job_first_mark + jobs, more->job_first_mark, (int32_t)more->jobs + 1, marks);
    group_append(s->mark_size + marks, more->mark_size, (int32_t)more->marks, 0);
    group_append(s->mark_left + marks, more->mark_size, (int32_t)more->marks, 0);
    for (int64_t at = 0; at < more->jobs; at++) {
        Index size = (Index)(more->job_first_rank[at + 1] - more->job_first_rank[at]);
        s->jobs[jobs + at] = (Job){
            .began = -1, .end = -1, .left = size, .lane = (Index)more->job_lane[at],
            .repeat = (uint8_t)more->job_repeat[at], .over = !size,
        };
        s->unfinished += size && more->job_repeat[at] != BACKGROUND;
    }
}

static void
append_ranks(Sim *s, const Columns *more)
{
    int32_t ranks = s->ranks_group.count;
    group_append(s->rank_first_row + ranks, more->rank_first_row, (int32_t)more->ranks + 1, s->rows_group.count);
    group_append(s->rank_first_step + ranks, more->rank_first_step, (int32_t)more->ranks + 1, s->steps_group.count);
    for (int64_t at = 0; at < more->ranks; at++) {
        s->ranks[ranks + at] = (Rank){
            .processor = more->rank_start[at] > s->now ? more->rank_start[at] : s->now, .timer = NEVER, .end = -1,
            .row = (Index)s->rank_first_row[ranks + at], .oldest = (Index)s->rank_first_step[ranks + at],
            .host = (Index)more->rank_host[at], .job = (Index)(more->rank_job[at] + s->jobs_group.count),
            .window = more->rank_window[at],
        };
        if (s->processors)
            s->turns[ranks + at] = (Turn){.head = NONE};
    }
}

static void
append_work(Sim *s, const Columns *more)
{
    int32_t rows = s->rows_group.count, steps = s->steps_group.count, messages = s->messages_group.count;
    group_append(s->row_step + rows, more->row_step, (int32_t)more->rows, steps);
    group_append(s->row_after + rows, more->row_after, (int32_t)more->rows, steps);
    memcpy(s->row_kind + rows, more->row_kind, (size_t)more->rows);
    for (int64_t at = 0; at < more->rows; at++)
        s->row_value[rows + at] = more->row_value[at] + (more->row_kind[at] == COMPUTE ? 0 : messages);
    group_append(s->step_operations + steps, more->step_operations, (int32_t)more->steps, 0);
    group_append(s->pending + steps, more->step_operations, (int32_t)more->steps, 0);
    group_append(s->step_rank + steps, more->step_rank, (int32_t)more->steps, s->ranks_group.count);
    group_append(s->step_mark + steps, more->step_mark, (int32_t)more->steps, s->marks_group.count);
}

static void
append_messages(Sim *s, const Columns *more, int64_t connections)
{
    int32_t steps = s->steps_group.count, ranks = s->ranks_group.count;
    for (int64_t at = 0; at < more->messages; at++) {
        int local = more->rank_host[more->message_source[at]] == more->rank_host[more->message_target[at]];
        int eager = more->message_bytes[at] <= s->eager;
        s->messages[s->messages_group.count + at] = (Message){
            .nbytes = more->message_bytes[at], .source = (Index)(more->message_source[at] + ranks),
            .destination = (Index)(more->message_target[at] + ranks), .send_step = (Index)(more->send_step[at] + steps),
            .receive_step = (Index)(more->receive_step[at] + steps),
            .connection = (Index)(more->message_connection[at] + 2 * connections),
            .flags = (uint8_t)((local ? IS_LOCAL : 0) | (eager ? IS_EAGER : 0)),
        };
    }
}

/* Compute the time that a rank needs to notice a task while all present ranks poll in turn. */
static void
share_processors(Sim *s)
{
    int64_t ranks = 0;
    for (int32_t job = 0; s->processors && job < s->jobs_group.count; job++)
        ranks += s->jobs[job].over ? 0 : s->job_first_rank[job + 1] - s->job_first_rank[job];
    s->notice = s->processors ? s->poll * (ranks > s->processors ? ranks - s->processors : 0) / (2 * s->processors) : 0;
}

/* Add jobs; 0 on failure, with an exception unless memory is short. Ranks begin when the time next advances. */
int
add_jobs(Sim *s, Given *given)
{
    Columns more;
    int64_t connections = s->num_connections;
    if (!read_columns(&more, given) || !make_room(s, &more) || !add_connections(s, &more))
        return 0;
    append_jobs(s, &more);
    append_ranks(s, &more);
    append_work(s, &more);
    append_messages(s, &more, connections);
    s->jobs_group.count += (int32_t)more.jobs, s->ranks_group.count += (int32_t)more.ranks;
    s->rows_group.count += (int32_t)more.rows, s->steps_group.count += (int32_t)more.steps;
    s->messages_group.count += (int32_t)more.messages, s->marks_group.count += (int32_t)more.marks;
    share_processors(s);
    return 1;
}

/* Remove work of removed messages from a queue. */
static void
clean_queue(Sim *s, Queue *queue)
{
    Index first = NONE, last = NONE;
    for (Index at = queue->head, then; at != NONE; at = then) {
        then = s->works[at].next;
        if (s->messages[s->works[at].message].flags & GONE) {
            s->works[at].next = s->free_work;
            s->free_work = at;
        } else {
            if (last == NONE)
                first = at;
            else
                s->works[last].next = at;
            s->works[at].next = NONE;
            last = at;
        }
    }
    queue->head = first, queue->tail = last;
}

/* Remove work of removed messages from all queues of a lane of a host's link, and the queues that are then empty. */
static void
clean_lane(Sim *s, Index link, Index lane)
{
    Lane *of = &port_of(s, link)->lanes[lane];
    if (of->ring == NONE)
        return;
    Port *port = port_of(s, link);
    Index at = s->queues[of->ring].next, end = of->ring;
    if (!port->to_host)
        of->slack += (int32_t)s->queues[at].need;
    of->ring = NONE;
    face_head(s, port, of, lane);
    for (int more = 1; more;) {
        Index then = s->queues[at].next;
        more = at != end;
        clean_queue(s, &s->queues[at]);
        if (s->queues[at].head != NONE) {
            s->queues[at].need = room_of(s, wire_of(s, &s->works[s->queues[at].head]));
            join_ring(s, link, lane, at);
        } else
            drop_queue(s, at);
        at = then;
    }
    if (of->ring == NONE && port->stalled >> lane & 1) {
        Wait *wait = wait_of(s, port, lane);
        wait->total += s->now - wait->since;
        port->stalled &= (uint16_t)~(1 << lane);
    }
}

/* Keep only the current task of a rank. */
static void
drop_tasks(Sim *s, Turn *turn)
{
    for (Index at = turn->head == NONE ? NONE : s->tasks[turn->head].next, then; at != NONE; at = then) {
        then = s->tasks[at].next;
        s->tasks[at].next = s->free_task;
        s->free_task = at;
    }
    if (turn->head != NONE) {
        s->tasks[turn->head].next = NONE;
        turn->tail = turn->head;
    }
}

/* Remove a job: its ranks stop, and its adapters send nothing more; packets on their way still arrive. */
void
remove_job(Sim *s, int32_t job)
{
    if (s->jobs[job].over)
        return;
    s->jobs[job].over = 1;
    s->unfinished -= s->jobs[job].repeat != BACKGROUND && !s->jobs[job].ran;
    for (int32_t at = s->job_first_message[job]; at < s->job_first_message[job + 1]; at++)
        s->messages[at].flags |= GONE;
    for (int32_t at = s->job_first_mark[job]; at < s->job_first_mark[job + 1]; at++)
        s->mark_left[at] = INT32_MAX;
    for (int32_t at = s->job_first_rank[job]; at < s->job_first_rank[job + 1]; at++) {
        Rank *rank = &s->ranks[at];
        rank->row = (Index)s->rank_first_row[at + 1];
        rank->over = 1;
        if (s->turns != NULL)
            drop_tasks(s, &s->turns[at]);
        Index link = (Index)s->uplink[rank->host];
        for (Index lane = 0; link != NONE && lane < (Index)s->num_lanes; lane++)
            clean_lane(s, link, lane);
        if (link != NONE)
            wake_at(s, link, s->now > port_of(s, link)->free_at ? s->now : port_of(s, link)->free_at);
    }
    share_processors(s);
}

/* The bytes of each message that have left its host so far, in all runs of its job: bytes handed over minus bytes still
   in adapters. 0 without memory. */
int
read_sent(const Sim *s, int64_t *sent)
{
    uint8_t *is_free = calloc((size_t)s->num_works + 1, 1);
    if (is_free == NULL)
        return 0;
    for (Index at = s->free_work; at != NONE; at = s->works[at].next)
        is_free[at] = 1;
    for (int64_t at = 0; at < s->messages_group.count; at++) {
        const Message *message = &s->messages[at];
        int64_t times = s->jobs[s->ranks[message->source].job].runs + !!(message->flags & ON_ITS_WAY);
        sent[at] = message->flags & IS_LOCAL ? 0 : message->nbytes * times;
    }
    for (int64_t at = 0; at < s->num_works; at++)
        if (!is_free[at] && s->works[at].left > 0)
            sent[s->works[at].message] -= s->works[at].left;
    free(is_free);
    return 1;
}
