/* Ranks that execute their programs; see _run.h. */

#include "_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SENT = 1, POSTED = 2, HERE = 4 };           /* progress of a message, one bit each */
enum { WORK_AT_ONCE = 1 << 18 };                   /* takes some hundredths of a second */

static const double TIE = 1e-12, CLOCK = 1e-15; /* relative errors, of a duration and of a time */

static int
is_before(const Event *one, const Event *other)
{
    if (one->time != other->time)
        return one->time < other->time;
    return one->kind != other->kind ? one->kind < other->kind : one->number < other->number;
}

/* Reallocate items with twice the room; NULL without memory, which the run then notes. */
static void *
widened(Run *run, void *items, int32_t *room, size_t item)
{
    int32_t wanted = *room ? 2 * *room : 64;
    void *wider = wanted > INT32_MAX / 2 ? NULL : realloc(items, (size_t)wanted * item);
    if (wider == NULL)
        run->failure = NO_MEMORY;
    else
        *room = wanted;
    return wider;
}

void
run_schedule(Run *run, double time, int32_t kind, int32_t number)
{
    if (run->num_events == run->room) {
        Event *events = widened(run, run->events, &run->room, sizeof *events);
        if (events == NULL)
            return;
        run->events = events;
    }
    Event event = {time, kind, number};
    int32_t at = run->num_events++;
    for (; at && is_before(&event, &run->events[(at - 1) / 2]); at = (at - 1) / 2)
        run->events[at] = run->events[(at - 1) / 2];
    run->events[at] = event;
}

static Event
next_event(Run *run)
{
    Event top = run->events[0], last = run->events[--run->num_events];
    int32_t at = 0;
    for (int32_t child = 1; child < run->num_events; child = 2 * at + 1) {
        child += child + 1 < run->num_events && is_before(&run->events[child + 1], &run->events[child]);
        if (!is_before(&run->events[child], &last))
            break;
        run->events[at] = run->events[child];
        at = child;
    }
    run->events[at] = last;
    return top;
}

/* Put a flight into the heap of finishes, in which each flow knows its index. */
static void
put(Run *run, int32_t at, Flight flight)
{
    run->soonest[at] = flight;
    run->fair.flow[flight.flow].place = at;
}

static void
settle(Run *run, int32_t at, Flight flight)
{
    for (; at && flight.finish < run->soonest[(at - 1) / 2].finish; at = (at - 1) / 2)
        put(run, at, run->soonest[(at - 1) / 2]);
    for (int32_t child; (child = 2 * at + 1) < run->flying; at = child) {
        child += child + 1 < run->flying && run->soonest[child + 1].finish < run->soonest[child].finish;
        if (run->soonest[child].finish >= flight.finish)
            break;
        put(run, at, run->soonest[child]);
    }
    put(run, at, flight);
}

/* Remove a flow from the heap of finishes. */
void
run_ground(Run *run, int32_t at)
{
    Flight last = run->soonest[--run->flying];
    if (at < run->flying)
        settle(run, at, last);
}

/* Hold the flow that finishes next until it is due. */
static void
hold(Run *run)
{
    Flow *flow = &run->fair.flow[run->soonest[0].flow];
    run->held[run->num_held++] = (Held){flow->message, run->soonest[0].flow};
    run_ground(run, 0);
    flow->place = -1;
    double due = flow->finish + (run->tolerance / 2 + TIE) * (flow->finish - flow->began) + CLOCK * flow->finish;
    run->due = due < run->due ? due : run->due;
}

static int
is_eager(const Run *run, int32_t message)
{
    return run->nbytes[message] <= run->eager;
}

static void
work(Run *run, int32_t rank, double seconds, int32_t kind, int32_t number)
{
    double *processor = &run->processor[rank];
    *processor = (*processor > run->now ? *processor : run->now) + seconds;
    run_schedule(run, *processor, kind, number);
}

static void
note(Run *run, int32_t job, int32_t mark)
{
    if (run->num_records == run->room_records) {
        Record *records = widened(run, run->records, &run->room_records, sizeof *records);
        if (records == NULL)
            return;
        run->records = records;
    }
    run->records[run->num_records++] = (Record){run->now, job, mark};
}

/* Restart a job. */
static void
restart(Run *run, int32_t job)
{
    run->began[job] = run->now;
    run->left[job] = run->first_rank[job + 1] - run->first_rank[job];
    for (int32_t message = run->first_message[job]; message < run->first_message[job + 1]; message++)
        run->state[message] = 0;
    for (int32_t one = run->first_rank[job]; one < run->first_rank[job + 1]; one++) {
        run->row[one] = run->first_row[one];
        run->oldest[one] = run->first_step[one];
        for (int32_t step = run->first_step[one]; step < run->first_step[one + 1]; step++)
            run->pending[step] = run->operations[step];
        run_schedule(run, run->now, TIMER, one);
    }
    for (int32_t mark = run->first_mark[job]; mark < run->first_mark[job + 1]; mark++)
        run->mark_left[mark] = run->mark_size[mark];
}

static void
finish_rank(Run *run, int32_t rank)
{
    int32_t job = run->job_of_rank[rank];
    if (isnan(run->end[rank])) {
        run->end[rank] = run->now;
        if (run->left[job] == 1 && run->repeat[job] != BACKGROUND)
            run->waiting--;
    }
    if (--run->left[job])
        return;
    note(run, job, END);
    run->ended = 1;
    if (run->repeat[job] == ONCE || (run->repeat[job] == UNTIL_ALL_RAN && !run->waiting))
        run->over[job] = 1;
    else if (run->now <= run->began[job])
        run->failure = NO_TIME;
    else
        restart(run, job);
}

static void
start(Run *run, int32_t message, int ready)
{
    if (ready)
        run_schedule(run, run->now + run->latency[message], START, message);
}

static void
begin(Run *run, int32_t rank, int32_t row)
{
    int32_t message = run->message_of_row[row];
    if (run->kind[row] == COMPUTE) {
        work(run, rank, run->amount[row], COMPUTED, row);
    } else if (run->kind[row] == SEND) {
        work(run, rank, run->send_overhead, DEPART, message);
    } else {
        run->state[message] |= POSTED;
        start(run, message, (run->state[message] & SENT) && !is_eager(run, message));
        if (run->state[message] & HERE)
            work(run, rank, run->receive_overhead, RECEIVED, message);
    }
}

/* Advance a rank as far as its processor, its window and its program allow now. */
static void
advance(Run *run, int32_t rank)
{
    int32_t last = run->first_row[rank + 1], steps = run->first_step[rank + 1];
    while (run->row[rank] < last) {
        int32_t row = run->row[rank], window = run->window[rank];
        if (window && run->step_of_row[row] - run->oldest[rank] >= window)
            return;
        if (run->after[row] >= 0 && run->pending[run->after[row]])
            return;
        if (run->processor[rank] > run->now) {
            run_schedule(run, run->processor[rank], TIMER, rank);
            return;
        }
        run->row[rank]++;
        begin(run, rank, row);
    }
    if (run->oldest[rank] == steps) {
        run->oldest[rank]++; /* so that the rank finishes only once */
        finish_rank(run, rank);
    }
}

static void
complete(Run *run, int32_t step)
{
    if (--run->pending[step])
        return;
    int32_t rank = run->rank_of_step[step], mark = run->mark_of_step[step];
    if (mark >= 0 && !--run->mark_left[mark])
        note(run, run->job_of_rank[rank], mark);
    while (run->oldest[rank] < run->first_step[rank + 1] && !run->pending[run->oldest[rank]])
        run->oldest[rank]++;
    run_schedule(run, run->now, TIMER, rank);
}

static void
arrive(Run *run, int32_t message)
{
    run->state[message] |= HERE;
    run->arrivals[message]++;
    if (run->state[message] & POSTED)
        work(run, run->destination[message], run->receive_overhead, RECEIVED, message);
    if (!is_eager(run, message))
        complete(run, run->send_step[message]);
}

/* The rate in bytes/s of a message's slowest link; infinite if it has none. */
static double
slowest(const Run *run, int32_t message)
{
    double rate = INFINITY;
    const int32_t *path = run->paths + (size_t)message * run->fair.longest;
    for (int32_t at = 0; at < run->fair.longest; at++)
        if (path[at] >= 0 && run->fair.capacity[path[at]] < rate)
            rate = run->fair.capacity[path[at]];
    return rate;
}

/* Start the flow of a message after its latencies; it gets a rate when rates are next computed. */
static void
flow(Run *run, int32_t message)
{
    double least = run->nbytes[message] / slowest(run, message);
    if (least == 0) {
        arrive(run, message);
        return;
    }
    run->fresh[run->num_fresh++] = message;
    double due = run->now + run->tolerance / 2 * least + CLOCK * run->now;
    run->due = due < run->due ? due : run->due;
}

static void
handle(Run *run, Event event)
{
    int32_t number = event.number;
    switch (event.kind) {
    case TIMER:
        advance(run, number);
        break;
    case COMPUTED:
        complete(run, run->step_of_row[number]);
        break;
    case RECEIVED:
        complete(run, run->receive_step[number]);
        break;
    case DEPART:
        run->state[number] |= SENT;
        start(run, number, is_eager(run, number) || run->state[number] & POSTED);
        if (is_eager(run, number))
            complete(run, run->send_step[number]);
        break;
    default:
        flow(run, number);
    }
}

static int
compare(const void *one, const void *other)
{
    int32_t a = ((const Held *)one)->message, b = ((const Held *)other)->message;
    return (a > b) - (a < b);
}

/* Deliver all messages held. */
static void
release(Run *run)
{
    qsort(run->held, (size_t)run->num_held, sizeof *run->held, compare);
    if (!run->changed)
        fair_begin(&run->fair);
    run->changed = 1;
    for (int32_t one = 0; one < run->num_held; one++)
        fair_remove(&run->fair, run->held[one].flow);
    for (int32_t one = 0; one < run->num_held; one++)
        arrive(run, run->held[one].message);
    run->num_held = 0;
}

/* Compute the rates of the current flows. */
static void
share(Run *run)
{
    Fair *fair = &run->fair;
    if (!run->changed)
        fair_begin(fair);
    for (int32_t one = 0; one < run->num_fresh; one++) {
        int32_t message = run->fresh[one];
        int32_t added = fair_add(fair, message, run->paths + (size_t)message * fair->longest);
        if (added < 0) {
            run->failure = NO_MEMORY;
            return;
        }
        Flow *flow = &fair->flow[added];
        flow->remaining = run->nbytes[message];
        flow->updated = flow->began = run->now;
        run->fresh[one] = added;
    }
    for (int32_t one = 0; one < run->num_fresh; one++)
        fair_fill(fair, run->fresh[one]);
    fair_solve(fair);
    run->work += fair->num_changed;
    for (int32_t one = 0; one < fair->num_changed; one++) {
        Flow *flow = &fair->flow[fair->changed[one]];
        if (flow->rate == flow->before)
            continue;
        flow->remaining -= flow->before * (run->now - flow->updated);
        flow->remaining = flow->remaining > 0 ? flow->remaining : 0;
        flow->updated = run->now;
        flow->finish = run->now + flow->remaining / flow->rate;
        settle(run, flow->place < 0 ? run->flying++ : flow->place, (Flight){flow->finish, fair->changed[one]});
    }
    run->changed = run->num_fresh = 0;
    run->due = INFINITY;
}

/* Process the next event, if one is due up to the limit. */
static int
proceed(Run *run, double limit)
{
    double ends = run->flying ? run->soonest[0].finish : INFINITY;
    double event = run->num_events ? run->events[0].time : INFINITY;
    double next = ends < event ? ends : event;
    next = run->due < next ? run->due : next;
    if (next > limit || isinf(next))
        return isinf(next) ? STALLED : OVER;
    run->now = next > run->now ? next : run->now;
    if (ends <= run->now)
        hold(run);
    else if (run->num_held && run->due <= run->now)
        release(run);
    else if (event <= run->now)
        handle(run, next_event(run));
    else
        share(run);
    return RUNNING;
}

/* Advance the time for a while; returns RUNNING if there is more to do. With to_end up to the next end of a run, else up
   to ``until`` including all events due then. */
int
run_play(Run *run, double until, int to_end)
{
    double limit = to_end ? INFINITY : until * (1 + 4 * CLOCK);
    for (run->work = 0; run->work < WORK_AT_ONCE; run->work++) {
        if (to_end && run->ended)
            return OVER;
        int found = run->failure ? run->failure : proceed(run, limit);
        if (found == RUNNING)
            continue;
        if (!to_end && !run->failure && run->now < until)
            run->now = until;
        return found;
    }
    return RUNNING;
}

/* The fraction of a message that has flowed. */
double
run_part(const Run *run, const Flow *flow)
{
    double left = flow->remaining - flow->rate * (run->now - flow->updated);
    return 1 - (left > 0 ? left : 0) / run->nbytes[flow->message];
}

/* Whether a flow has bytes left. */
int
run_is_flowing(const Run *run, const Flow *flow)
{
    return flow->message >= 0 && flow->finish > run->now;
}
