/* Adding and removing jobs; see _run.h. */

#include "_run.h"

#include <math.h>
#include <string.h>

static const double ACCURACY = 1e-10; /* relative accuracy of fair shares */

int
run_init(Run *run, const double *capacity, int32_t links)
{
    run->links = run->fair.links = links;
    run->fair.accuracy = ACCURACY;
    run->fair.longest = 1;
    run->due = INFINITY;
    run->fair.capacity = run->capacity = malloc(((size_t)links + 1) * sizeof *capacity);
    if (run->capacity == NULL || !fair_init(&run->fair))
        return 0;
    memcpy(run->capacity, capacity, (size_t)links * sizeof *capacity);
    return 1;
}

void
run_free(Run *run)
{
    void *all[] = {
        run->first_row, run->first_step, run->window, run->job_of_rank, run->end, run->processor, run->row, run->oldest,
        run->kind, run->step_of_row, run->message_of_row, run->after, run->amount, run->operations, run->rank_of_step,
        run->mark_of_step, run->pending, run->destination, run->send_step, run->receive_step, run->paths, run->nbytes,
        run->latency, run->arrivals, run->state, run->first_rank, run->first_message, run->first_mark, run->repeat,
        run->left, run->began, run->over, run->mark_size, run->mark_left, run->capacity, run->events, run->soonest,
        run->held, run->fresh, run->records,
    };
    for (size_t one = 0; one < sizeof all / sizeof *all; one++)
        free(all[one]);
    fair_free(&run->fair);
}

#define A(name) (void *)&run->name

static int
make_room(Run *run, const Columns *columns)
{
    int32_t longest = run->fair.longest;
    size_t path = (size_t)longest * sizeof *run->paths;
    return group_widen(&run->ranks, columns->ranks, 8,
                       (void *const[]){A(first_row), A(first_step), A(window), A(job_of_rank), A(end), A(processor), A(row),
                                       A(oldest)},
                       (const size_t[]){4, 4, 4, 4, 8, 8, 4, 4}) &&
           group_widen(&run->rows, columns->rows, 5,
                       (void *const[]){A(kind), A(step_of_row), A(message_of_row), A(after), A(amount)},
                       (const size_t[]){4, 4, 4, 4, 8}) &&
           group_widen(&run->steps, columns->steps, 4,
                       (void *const[]){A(operations), A(rank_of_step), A(mark_of_step), A(pending)},
                       (const size_t[]){4, 4, 4, 4}) &&
           group_widen(&run->messages, columns->messages, 11,
                       (void *const[]){A(destination), A(send_step), A(receive_step), A(paths), A(nbytes), A(latency),
                                       A(arrivals), A(state), A(soonest), A(held), A(fresh)},
                       (const size_t[]){4, 4, 4, path, 8, 8, 8, 1, sizeof(Flight), sizeof(Held), 4}) &&
           group_widen(&run->jobs, columns->jobs, 7,
                       (void *const[]){A(first_rank), A(first_message), A(first_mark), A(repeat), A(left), A(began),
                                       A(over)},
                       (const size_t[]){4, 4, 4, 4, 4, 8, 1}) &&
           group_widen(&run->marks, columns->marks, 2, (void *const[]){A(mark_size), A(mark_left)}, (const size_t[]){4, 4});
}

/* Make room for longer paths. */
static int
lengthen(Run *run, int32_t longest)
{
    int32_t before = run->fair.longest;
    if (longest <= before)
        return 1;
    if ((int64_t)(run->messages.count + 1) * longest > INT32_MAX || !fair_lengthen(&run->fair, longest))
        return 0;
    void *larger = realloc(run->paths, ((size_t)run->messages.room + 1) * (size_t)longest * sizeof *run->paths);
    if (larger == NULL)
        return 0;
    run->paths = larger;
    for (int64_t message = run->messages.count - 1; message >= 0; message--)
        for (int32_t step = longest - 1; step >= 0; step--)
            run->paths[message * longest + step] = step < before ? run->paths[message * before + step] : -1;
    return 1;
}

static void
append_ranks(Run *run, const Columns *columns)
{
    int32_t ranks = run->ranks.count, jobs = run->jobs.count;
    group_append(run->first_row + ranks, columns->first_row, columns->ranks + 1, run->rows.count);
    group_append(run->first_step + ranks, columns->first_step, columns->ranks + 1, run->steps.count);
    group_append(run->window + ranks, columns->window, columns->ranks, 0);
    group_append(run->job_of_rank + ranks, columns->job_of_rank, columns->ranks, jobs);
    group_append(run->first_rank + jobs, columns->first_rank, columns->jobs + 1, ranks);
    group_append(run->first_message + jobs, columns->first_message, columns->jobs + 1, run->messages.count);
    group_append(run->first_mark + jobs, columns->first_mark, columns->jobs + 1, run->marks.count);
    group_append(run->repeat + jobs, columns->repeat, columns->jobs, 0);
    group_append(run->mark_size + run->marks.count, columns->mark_size, columns->marks, 0);
    group_append(run->mark_left + run->marks.count, columns->mark_size, columns->marks, 0);
    for (int32_t job = jobs; job < jobs + columns->jobs; job++) {
        run->left[job] = run->first_rank[job + 1] - run->first_rank[job];
        run->waiting += run->repeat[job] != BACKGROUND && run->left[job];
        run->began[job] = -1;
        run->over[job] = !run->left[job];
    }
}

static void
append_work(Run *run, const Columns *columns)
{
    int32_t rows = run->rows.count, steps = run->steps.count, messages = run->messages.count, longest = run->fair.longest;
    group_append(run->kind + rows, columns->kind, columns->rows, 0);
    group_append(run->step_of_row + rows, columns->step_of_row, columns->rows, steps);
    group_append(run->message_of_row + rows, columns->message_of_row, columns->rows, messages);
    group_append(run->after + rows, columns->after, columns->rows, steps);
    memcpy(run->amount + rows, columns->amount, (size_t)columns->rows * sizeof *run->amount);
    group_append(run->operations + steps, columns->operations, columns->steps, 0);
    group_append(run->pending + steps, columns->operations, columns->steps, 0);
    group_append(run->rank_of_step + steps, columns->rank_of_step, columns->steps, run->ranks.count);
    group_append(run->mark_of_step + steps, columns->mark_of_step, columns->steps, run->marks.count);
    group_append(run->destination + messages, columns->destination, columns->messages, run->ranks.count);
    group_append(run->send_step + messages, columns->send_step, columns->messages, steps);
    group_append(run->receive_step + messages, columns->receive_step, columns->messages, steps);
    memcpy(run->nbytes + messages, columns->nbytes, (size_t)columns->messages * sizeof *run->nbytes);
    memcpy(run->latency + messages, columns->latency, (size_t)columns->messages * sizeof *run->latency);
    memset(run->arrivals + messages, 0, (size_t)columns->messages * sizeof *run->arrivals);
    memset(run->state + messages, 0, (size_t)columns->messages);
    for (int64_t one = 0; one < columns->messages; one++)
        for (int32_t step = 0; step < longest; step++) {
            int32_t link = step < columns->longest ? columns->paths[one * columns->longest + step] : -1;
            run->paths[(messages + one) * longest + step] = link < run->links ? link : link + run->ranks.count;
        }
}

/* Give each rank its copy link, and schedule its start. */
static int
append_links(Run *run, const Columns *columns)
{
    int32_t first = run->ranks.count, links = run->links + first + columns->ranks;
    int32_t room = run->fair.link_room;
    if (!fair_widen(&run->fair, links))
        return 0;
    if (run->fair.link_room > room) {
        double *capacity = realloc(run->capacity, ((size_t)run->fair.link_room + 1) * sizeof *capacity);
        if (capacity == NULL)
            return 0;
        run->fair.capacity = run->capacity = capacity;
    }
    for (int32_t rank = first; rank < first + columns->ranks; rank++)
        run->capacity[run->links + rank] = run->copy_rate;
    return 1;
}

int
run_add(Run *run, const Columns *columns)
{
    if (run->failure == NO_MEMORY || !lengthen(run, columns->longest) || !make_room(run, columns) ||
        !append_links(run, columns)) {
        run->failure = NO_MEMORY; /* arrays differ in length now, so the session cannot continue */
        return 0;
    }
    append_ranks(run, columns);
    append_work(run, columns);
    int32_t first = run->ranks.count;
    run->ranks.count += columns->ranks, run->rows.count += columns->rows, run->steps.count += columns->steps;
    run->messages.count += columns->messages, run->jobs.count += columns->jobs, run->marks.count += columns->marks;
    for (int32_t rank = first; rank < run->ranks.count; rank++) {
        double begins = columns->start[rank - first];
        run->row[rank] = run->first_row[rank];
        run->oldest[rank] = run->first_step[rank];
        run->processor[rank] = begins > run->now ? begins : run->now;
        run->end[rank] = NAN;
        run_schedule(run, run->processor[rank], TIMER, rank);
    }
    return !run->failure;
}

/* The job of an event. */
static int32_t
job_of(const Run *run, const Event *event)
{
    int32_t number = event->number;
    if (event->kind == COMPUTED)
        number = run->rank_of_step[run->step_of_row[number]];
    else if (event->kind != TIMER)
        number = run->destination[number];
    return run->job_of_rank[number];
}

static void
drop_flows(Run *run, int32_t job)
{
    int32_t first = run->first_message[job], last = run->first_message[job + 1], kept = 0;
    for (int32_t one = 0; one < run->num_fresh; one++)
        if (run->fresh[one] < first || run->fresh[one] >= last)
            run->fresh[kept++] = run->fresh[one];
    run->num_fresh = kept;
    kept = 0;
    for (int32_t one = 0; one < run->num_held; one++)
        if (run->held[one].message < first || run->held[one].message >= last)
            run->held[kept++] = run->held[one];
        else
            run->fair.flow[run->held[one].flow].place = -1;
    run->num_held = kept;
    for (int32_t one = 0; one < run->fair.flows; one++) {
        Flow *flow = &run->fair.flow[one];
        if (flow->message < first || flow->message >= last)
            continue;
        run->arrivals[flow->message] += run_part(run, flow);
        if (flow->place >= 0)
            run_ground(run, flow->place);
        if (!run->changed)
            fair_begin(&run->fair);
        run->changed = 1;
        fair_remove(&run->fair, one);
    }
}

/* Remove a job: its ranks stop, and its flows leave their links now. */
void
run_remove(Run *run, int32_t job)
{
    if (run->over[job])
        return;
    run->over[job] = 1;
    int32_t kept = 0, events = run->num_events, first = run->first_rank[job], last = run->first_rank[job + 1], ran = 1;
    run->num_events = 0;
    for (int32_t one = 0; one < events; one++)
        if (job_of(run, &run->events[one]) != job)
            run->events[kept++] = run->events[one];
    for (int32_t one = 0; one < kept; one++) { /* restore the heap one event at a time */
        Event event = run->events[one];
        run_schedule(run, event.time, event.kind, event.number);
    }
    for (int32_t rank = first; rank < last; rank++)
        ran = ran && !isnan(run->end[rank]);
    run->waiting -= !ran && run->repeat[job] != BACKGROUND;
    drop_flows(run, job);
    if (run->changed)
        run->due = run->now;
}
