/* Ranks at work on their programs, and the flows between them, event by event; flows.py has the same in Python, which
   says what it all means. The order of events at one instant is the same there, for what keeps a processor busy first
   makes the rest wait. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "_buffers.h"
#include "_fair.h"

enum { COMPUTE, RECEIVE, SEND };
enum { COMPUTED, RECEIVED, DEPART, START, TIMER }; /* kinds of events */
enum { ONCE, UNTIL_ALL_RAN, BACKGROUND };
enum { SENT = 1, POSTED = 2, HERE = 4 }; /* how far a message is: a bit each */
enum { OVER, ENDLESS, NO_MEMORY, NO_TIME, RAISED };
enum { WORK_A_SIGNAL = 1 << 18 }; /* events, and flows that get another rate */

static const double TIE = 1e-12, CLOCK = 1e-15, ACCURACY = 1e-10; /* relative, of a duration and of a time */

typedef struct {
    double time;
    int32_t kind, number;
} Event;

typedef struct {
    double finish;
    int32_t flow;
} Flight;

typedef struct {
    int32_t message, flow;
} Held;

/* All arrays belong to the caller; see tape.py. */
typedef struct {
    const int32_t *first_row, *first_step, *window, *job_of_rank;                         /* ranks */
    const int32_t *kind, *step_of_row, *message_of_row;                                   /* rows */
    const int32_t *operations, *rank_of_step;                                             /* steps */
    const int32_t *destination, *send_step, *receive_step;                                /* messages */
    const int32_t *first_rank, *first_message, *repeat;                                   /* jobs */
    const double *start, *amount, *nbytes, *latency;
    double *end, *arrivals; /* of messages under way the part that has flowed */
    int32_t ranks, rows, steps, messages, jobs;
    double send_overhead, receive_overhead, eager, tolerance;
    const int32_t *paths; /* of each message, padded with -1 */
    Fair fair;
    Event *events;
    int32_t num_events, room;
    Flight *soonest;       /* flows by their finish, a heap; those that are not held */
    Held *held;            /* at their finish, until all that is due is seen to */
    int32_t flying, num_held;
    int32_t *fresh, num_fresh;
    double now, due;
    double *processor; /* when it is free */
    int32_t *row, *oldest, *pending, *left;
    double *began; /* of the run at hand of each job */
    uint8_t *state;
    int32_t waiting; /* jobs that have to run once and have not yet */
    int changed, failure;
    int64_t work; /* since signals were last looked for */
} Run;

static int
is_before(const Event *one, const Event *other)
{
    if (one->time != other->time)
        return one->time < other->time;
    return one->kind != other->kind ? one->kind < other->kind : one->number < other->number;
}

static void
schedule(Run *run, double time, int32_t kind, int32_t number)
{
    if (run->num_events == run->room) {
        int32_t room = run->room ? 2 * run->room : 1024;
        Event *events = room > INT32_MAX / 2 ? NULL : realloc(run->events, (size_t)room * sizeof *events);
        if (events == NULL) {
            run->failure = NO_MEMORY;
            return;
        }
        run->events = events;
        run->room = room;
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

/* The heap of flows by their finish, in which each knows its place. */
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

/* Hold the flow that finishes next, until it is due. */
static void
hold(Run *run)
{
    Flow *flow = &run->fair.flow[run->soonest[0].flow];
    run->held[run->num_held++] = (Held){flow->message, run->soonest[0].flow};
    if (--run->flying)
        settle(run, 0, run->soonest[run->flying]);
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
    schedule(run, *processor, kind, number);
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
    if (--run->left[job] || run->repeat[job] == ONCE || !run->waiting)
        return;
    if (run->now <= run->began[job]) {
        run->failure = NO_TIME;
        return;
    }
    run->began[job] = run->now;
    run->left[job] = run->first_rank[job + 1] - run->first_rank[job];
    for (int32_t message = run->first_message[job]; message < run->first_message[job + 1]; message++)
        run->state[message] = 0;
    for (int32_t one = run->first_rank[job]; one < run->first_rank[job + 1]; one++) {
        run->row[one] = run->first_row[one];
        run->oldest[one] = run->first_step[one];
        for (int32_t step = run->first_step[one]; step < run->first_step[one + 1]; step++)
            run->pending[step] = run->operations[step];
        schedule(run, run->now, TIMER, one);
    }
}

static void
start(Run *run, int32_t message, int ready)
{
    if (ready)
        schedule(run, run->now + run->latency[message], START, message);
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

/* Let a rank do what its processor, its window and its program allow now. */
static void
advance(Run *run, int32_t rank)
{
    int32_t last = run->first_row[rank + 1], steps = run->first_step[rank + 1];
    while (run->row[rank] < last) {
        int32_t row = run->row[rank], window = run->window[rank];
        if (window && run->step_of_row[row] - run->oldest[rank] >= window)
            return;
        if (run->processor[rank] > run->now) {
            schedule(run, run->processor[rank], TIMER, rank);
            return;
        }
        run->row[rank]++;
        begin(run, rank, row);
    }
    if (run->oldest[rank] == steps) {
        run->oldest[rank]++; /* it is through only once */
        finish_rank(run, rank);
    }
}

static void
complete(Run *run, int32_t step)
{
    if (--run->pending[step])
        return;
    int32_t rank = run->rank_of_step[step];
    while (run->oldest[rank] < run->first_step[rank + 1] && !run->pending[run->oldest[rank]])
        run->oldest[rank]++;
    schedule(run, run->now, TIMER, rank);
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

/* Bytes/s of a message's slowest link, infinite for none. */
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

/* A message's latencies are over: it flows from when the rates are next found. */
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

/* Let all arrive that is held. */
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

/* Rates for the flows that are there now. */
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

/* One thing that happens next; 0 if nothing does. */
static int
proceed(Run *run)
{
    double ends = run->flying ? run->soonest[0].finish : INFINITY;
    double event = run->num_events ? run->events[0].time : INFINITY;
    double next = ends < event ? ends : event;
    next = run->due < next ? run->due : next;
    if (isinf(next))
        return 0;
    run->now = next > run->now ? next : run->now;
    if (ends <= run->now)
        hold(run);
    else if (run->num_held && run->due <= run->now)
        release(run);
    else if (event <= run->now)
        handle(run, next_event(run));
    else
        share(run);
    return 1;
}

static int
prepare(Run *run)
{
    size_t ranks = (size_t)run->ranks + 1, messages = (size_t)run->messages + 1, jobs = (size_t)run->jobs + 1;
    run->soonest = calloc(messages, sizeof *run->soonest);
    run->held = calloc(messages, sizeof *run->held);
    run->fresh = calloc(messages, sizeof *run->fresh);
    run->state = calloc(messages, sizeof *run->state);
    run->processor = calloc(ranks, sizeof *run->processor);
    run->row = calloc(ranks, sizeof *run->row);
    run->oldest = calloc(ranks, sizeof *run->oldest);
    run->pending = calloc((size_t)run->steps + 1, sizeof *run->pending);
    run->left = calloc(jobs, sizeof *run->left);
    run->began = calloc(jobs, sizeof *run->began);
    if (!(run->soonest && run->held && run->fresh && run->state && run->processor && run->row && run->oldest &&
          run->pending && run->left && run->began && fair_init(&run->fair)))
        return 0;
    for (int32_t step = 0; step < run->steps; step++)
        run->pending[step] = run->operations[step];
    for (int32_t job = 0; job < run->jobs; job++) {
        run->left[job] = run->first_rank[job + 1] - run->first_rank[job];
        run->waiting += run->repeat[job] != BACKGROUND && run->left[job];
        run->began[job] = -1;
    }
    for (int32_t rank = 0; rank < run->ranks; rank++) {
        run->row[rank] = run->first_row[rank];
        run->oldest[rank] = run->first_step[rank];
        run->processor[rank] = run->start[rank];
        run->end[rank] = NAN;
        schedule(run, run->start[rank], TIMER, rank);
    }
    run->due = INFINITY;
    run->fair.accuracy = ACCURACY;
    return !run->failure;
}

static void
clear(Run *run)
{
    free(run->events);
    free(run->soonest);
    free(run->held);
    free(run->fresh);
    free(run->state);
    free(run->processor);
    free(run->row);
    free(run->oldest);
    free(run->pending);
    free(run->left);
    free(run->began);
    fair_free(&run->fair);
}

/* The parts of messages that have flowed when all is over. */
static void
count_parts(Run *run)
{
    for (int32_t one = 0; one < run->fair.flows; one++) {
        const Flow *flow = &run->fair.flow[one];
        if (flow->message < 0)
            continue;
        double left = flow->remaining - flow->rate * (run->now - flow->updated);
        run->arrivals[flow->message] += 1 - (left > 0 ? left : 0) / run->nbytes[flow->message];
    }
}

/* Go on for a while: OVER once nothing is waited for. */
static int
play(Run *run)
{
    while (run->work < WORK_A_SIGNAL && run->waiting && !run->failure) {
        run->work++;
        if (!proceed(run))
            return ENDLESS;
    }
    run->work = 0;
    return run->failure;
}

static int
simulate(Run *run)
{
    int state = prepare(run) ? OVER : NO_MEMORY;
    while (run->waiting && state == OVER) {
        Py_BEGIN_ALLOW_THREADS
        state = play(run);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0)
            state = RAISED;
    }
    count_parts(run);
    return state;
}

enum { ARRAYS = 23 };

/* Check the arrays, in the order in which the caller gives them, and let the run read them. */
static int
read_arrays(Run *run, PyObject *arrays, Buffers *buffers)
{
    Py_ssize_t ranks = BUFFERS_ANY, rows = BUFFERS_ANY, steps = BUFFERS_ANY, messages = BUFFERS_ANY, jobs = BUFFERS_ANY;
    Py_ssize_t links = BUFFERS_ANY, after_ranks = BUFFERS_ANY, after_jobs = BUFFERS_ANY;
    struct {
        const char *name;
        void *to;
        BufferItem item;
        Py_ssize_t *length;
    } wanted[ARRAYS] = {
        {"first_row", &run->first_row, BUFFERS_INT32, &after_ranks},
        {"first_step", &run->first_step, BUFFERS_INT32, &after_ranks},
        {"window", &run->window, BUFFERS_INT32, &ranks},
        {"job_of_rank", &run->job_of_rank, BUFFERS_INT32, &ranks},
        {"kind", &run->kind, BUFFERS_INT32, &rows},
        {"step_of_row", &run->step_of_row, BUFFERS_INT32, &rows},
        {"message_of_row", &run->message_of_row, BUFFERS_INT32, &rows},
        {"operations", &run->operations, BUFFERS_INT32, &steps},
        {"rank_of_step", &run->rank_of_step, BUFFERS_INT32, &steps},
        {"destination", &run->destination, BUFFERS_INT32, &messages},
        {"send_step", &run->send_step, BUFFERS_INT32, &messages},
        {"receive_step", &run->receive_step, BUFFERS_INT32, &messages},
        {"first_rank", &run->first_rank, BUFFERS_INT32, &after_jobs},
        {"first_message", &run->first_message, BUFFERS_INT32, &after_jobs},
        {"repeat", &run->repeat, BUFFERS_INT32, &jobs},
        {"paths", &run->paths, BUFFERS_INT32, NULL},
        {"start", &run->start, BUFFERS_FLOAT64, &ranks},
        {"amount", &run->amount, BUFFERS_FLOAT64, &rows},
        {"nbytes", &run->nbytes, BUFFERS_FLOAT64, &messages},
        {"latency", &run->latency, BUFFERS_FLOAT64, &messages},
        {"capacity", &run->fair.capacity, BUFFERS_FLOAT64, &links},
        {"end", &run->end, BUFFERS_FLOAT64, &ranks},
        {"arrivals", &run->arrivals, BUFFERS_FLOAT64, &messages},
    };
    for (int one = 0; one < ARRAYS; one++) {
        Py_ssize_t table[] = {messages, BUFFERS_ANY}, *shape = wanted[one].length == NULL ? table : wanted[one].length;
        int dimensions = wanted[one].length == NULL ? 2 : 1, access = one >= ARRAYS - 2 ? BUFFERS_WRITE : BUFFERS_READ;
        const void *found = buffers_take(buffers, PyTuple_GET_ITEM(arrays, one), wanted[one].name, wanted[one].item,
                                         access, dimensions, shape);
        if (found == NULL)
            return 0;
        memcpy(wanted[one].to, &found, sizeof found);
        if (dimensions == 2)
            run->fair.longest = (int32_t)table[1];
    }
    if (after_ranks != ranks + 1 || after_jobs != jobs + 1) {
        PyErr_Format(PyExc_ValueError, "expecting %zd first rows and %zd first ranks, got %zd and %zd", ranks + 1, jobs + 1,
                     after_ranks, after_jobs);
        return 0;
    }
    run->ranks = (int32_t)ranks, run->rows = (int32_t)rows, run->steps = (int32_t)steps;
    run->messages = (int32_t)messages, run->jobs = (int32_t)jobs, run->fair.links = (int32_t)links;
    return 1;
}

static PyObject *
module_run(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Run run = {0};
    PyObject *arrays;
    if (!PyArg_ParseTuple(arguments, "O!dddd", &PyTuple_Type, &arrays, &run.send_overhead, &run.receive_overhead,
                          &run.eager, &run.tolerance))
        return NULL;
    if (PyTuple_GET_SIZE(arrays) != ARRAYS)
        return PyErr_Format(PyExc_TypeError, "expecting %d arrays, got %zd", (int)ARRAYS, PyTuple_GET_SIZE(arrays));
    Buffers buffers = {.count = 0};
    int result = RAISED;
    if (read_arrays(&run, arrays, &buffers)) {
        result = simulate(&run);
        clear(&run);
    }
    buffers_release(&buffers);
    return result == RAISED ? NULL : result == NO_MEMORY ? PyErr_NoMemory() : PyLong_FromLong(result);
}

static PyMethodDef functions[] = {
    {"run", module_run, METH_VARARGS,
     "run(arrays, send_overhead, receive_overhead, eager, tolerance)\n--\n\nFill the last two arrays, ends of ranks and "
     "arrivals of messages; 0, 1 for a program that waits for ever, 3 for one that repeats and takes no time."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_flows",
    .m_doc = "The flow model in C; see flows.py.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__flows(void)
{
    return PyModule_Create(&module);
}
