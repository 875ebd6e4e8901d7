#include "_hosts.h"
#include "_processors.h"
#include "_switches.h"

/* ---- adapters ---- */

static Index
job_lane(const Sim *s, Index message)
{
    return s->jobs[s->ranks[s->messages[message].source].job].lane;
}

void
queue_work(Sim *s, Index number)
{
    Work *work = &s->works[number];
    Message *message = &s->messages[work->message];
    if (message->flags & GONE) {
        work->next = s->free_work;
        s->free_work = number;
        return;
    }
    int forward = work->kind == EAGER || work->kind == READY_TO_SEND || work->kind == DATA;
    Index host = s->ranks[forward ? message->source : message->destination].host, link = (Index)s->uplink[host];
    Index found = queue_of(s, link, work->queue);
    work->next = NONE;
    if (found == NONE)
        add_queue(s, link, job_lane(s, work->message), work->queue, number, room_of(s, wire_of(s, work)));
    else {
        s->works[s->queues[found].tail].next = number;
        s->queues[found].tail = number;
    }
    poke(s, link);
}

/* Hand a message, or a control packet about one, to the adapter of its sending host.

   A queue pair has two queues: requests of its owner go in order in one, and data that the peer reads are sent beside
   them from the other. The two directions of the connection of two ranks have the numbers 2c and 2c + 1. An adapter that
   sends everything in order has one queue per lane. */
void
hand_over(Sim *s, Index number, int kind)
{
    Message *message = &s->messages[number];
    if (message->flags & GONE)
        return;
    if (kind == EAGER || kind == DATA)
        message->flags |= ON_ITS_WAY;
    Index found = s->free_work;
    if (found != NONE)
        s->free_work = s->works[found].next;
    else {
        if (s->num_works == s->most_works)
            s->works = grown(s, s->works, &s->most_works, sizeof(Work));
        found = (Index)s->num_works++;
    }
    int forward = kind == EAGER || kind == READY_TO_SEND || kind == DATA;
    int beside = s->put ? kind == FINISHED : kind == DATA;
    Index direction = forward ? message->connection : message->connection ^ 1;
    Index host = s->ranks[forward ? message->source : message->destination].host;
    Index queue = s->in_order ? job_lane(s, number) : 2 * direction + (Index)beside;
    s->works[found] = (Work){
        .left = kind == EAGER || kind == DATA ? message->nbytes : 0, .message = number, .next = NONE,
        .queue = queue, .kind = (uint8_t)kind,
        .route = s->connection_route[direction],
    };
    Time ready = s->adapter[host] > s->now ? s->adapter[host] : s->now;
    s->adapter[host] = ready + s->gap;
    if (ready > s->now)
        push(s, ready, DOORBELL, found);
    else
        queue_work(s, found);
    if (kind == DATA && s->send_buffer && message->nbytes <= s->send_buffer)
        complete(s, message->send_step);
}

/* ---- ranks ---- */

/* Occupy a rank's processor, and schedule an event for the end. */
static void
work(Sim *s, Index rank, Time length, int kind, Index number)
{
    Rank *one = &s->ranks[rank];
    if (s->turns != NULL) {
        add_task(s, rank, length, kind, number);
        return;
    }
    one->processor = (one->processor > s->now ? one->processor : s->now) + length;
    push(s, one->processor, kind, number);
}

void
start_at(Sim *s, Index rank, Time time)
{
    if (s->ranks[rank].timer <= time)
        return;
    s->ranks[rank].timer = time;
    push(s, time, ADVANCE, rank);
}

static void
note(Sim *s, int32_t job, int32_t mark)
{
    if (s->num_records == s->most_records)
        s->records = grown(s, s->records, &s->most_records, sizeof(Record));
    s->records[s->num_records++] = (Record){s->now, job, mark};
}

void
complete(Sim *s, Index step)
{
    if (--s->pending[step])
        return;
    Index rank = (Index)s->step_rank[step], last = (Index)s->rank_first_step[rank + 1];
    Rank *one = &s->ranks[rank];
    int32_t mark = s->step_mark[step];
    if (mark >= 0 && !--s->mark_left[mark])
        note(s, (int32_t)one->job, mark);
    while (one->oldest < last && !s->pending[one->oldest])
        one->oldest++;
    start_at(s, rank, s->now);
}

/* Let the processor of the receiver take a message: copy it, or request it. */
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
clear_messages(Sim *s, Index job)
{
    for (int32_t at = s->job_first_message[job]; at < s->job_first_message[job + 1]; at++)
        s->messages[at].flags &= IS_EAGER | IS_LOCAL;
}

static void
restart(Sim *s, Index job)
{
    Index first = (Index)s->job_first_rank[job], last = (Index)s->job_first_rank[job + 1];
    Index step = (Index)s->rank_first_step[first], count = (Index)s->rank_first_step[last] - step;
    memcpy(s->pending + step, s->step_operations + step, count * sizeof *s->pending);
    clear_messages(s, job);
    memcpy(s->mark_left + s->job_first_mark[job], s->mark_size + s->job_first_mark[job],
           (size_t)(s->job_first_mark[job + 1] - s->job_first_mark[job]) * sizeof *s->mark_left);
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
    note(s, (int32_t)s->ranks[rank].job, END);
    s->ended = 1;
    job->runs++;
    if (!job->ran) {
        job->ran = 1;
        job->end = s->now;
        s->unfinished -= job->repeat != BACKGROUND;
    }
    if (job->repeat == ONCE || (job->repeat == UNTIL_ALL_RAN && !s->unfinished)) {
        job->over = 1;
        clear_messages(s, s->ranks[rank].job);
    } else if (job->began == s->now)
        s->status = NO_TIME;
    else
        restart(s, s->ranks[rank].job);
}

/* Advance a rank as far as its processor, its window and its program allow now. */
void
advance(Sim *s, Index rank)
{
    Rank *one = &s->ranks[rank];
    Index last = (Index)s->rank_first_row[rank + 1];
    while (one->row < last) {
        Index row = one->row;
        if (one->window && (Index)s->row_step[row] - one->oldest >= (Index)one->window)
            return; /* until a step is complete */
        if (s->row_after[row] >= 0 && s->pending[s->row_after[row]])
            return;
        if (one->processor > s->now) {
            start_at(s, rank, one->processor);
            return;
        }
        if (s->turns != NULL && s->turns[rank].head != NONE)
            return; /* until its tasks are done */
        one->row++;
        begin(s, rank, row);
    }
    if (one->oldest == (Index)s->rank_first_step[rank + 1] && !one->over)
        end_rank(s, rank);
}

/* Process the end of a sender's work on a message. */
void
depart(Sim *s, Index number)
{
    Message *message = &s->messages[number];
    if (message->flags & GONE)
        return;
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

/* Process the arrival of the last packet of a message, or of a control packet, at its host. */
void
deliver(Sim *s, Index packet)
{
    Index number = s->packets[packet].message;
    int kind = s->packets[packet].kind;
    Message *message = &s->messages[number];
    free_packet(s, packet);
    if (message->flags & GONE)
        return;
    if (kind == EAGER || kind == READY_TO_SEND) {
        message->flags |= ARRIVED;
        if (message->flags & POSTED)
            take(s, number);
    } else if (kind == REQUEST) {
        if (s->put) /* by the processor, while the adapter answers a read */
            work(s, message->source, s->send_overhead, GRANTED, number);
        else
            hand_over(s, number, DATA);
    } else if (kind == DATA) {
        if (s->turns != NULL) /* the rank reads its socket when it has the processor */
            work(s, message->destination, s->receive_overhead, RECEIVED, number);
        else
            complete(s, message->receive_step);
        if (!s->send_buffer)
            hand_over(s, number, FINISHED);
    } else
        complete(s, message->send_step);
}

void
receive(Sim *s, Index number)
{
    Message *message = &s->messages[number];
    complete(s, message->receive_step);
    if (message->flags & IS_LOCAL && !(message->flags & IS_EAGER))
        complete(s, message->send_step);
}
