/* The event loop of loop.py in C, for the allocators counts, first and isolated, which are also written in C.
   The rules of passes are those of queueing/; a test compares the results of both loops job by job. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "_buffers.h"
#include "_engine.h"

/* Passes between two progress reports and between two checks for signals, because a pass over a long queue takes ms. */
enum { EVENTS_A_REPORT = 1 << 17, EVENTS_A_SIGNAL = 1 << 4 };

/* ---- running jobs ---- */

static void
put(Engine *e, int32_t at, Ending ending)
{
    e->heap[at] = ending;
    e->heap_at[ending.job] = at;
}

static void
rise(Engine *e, int32_t at, Ending ending)
{
    for (; at > 0 && e->heap[(at - 1) / 2].end > ending.end; at = (at - 1) / 2)
        put(e, at, e->heap[(at - 1) / 2]);
    put(e, at, ending);
}

static void
sink(Engine *e, int32_t at, Ending ending)
{
    int32_t child;
    while ((child = 2 * at + 1) < e->heap_len) {
        if (child + 1 < e->heap_len && e->heap[child + 1].end < e->heap[child].end)
            child++;
        if (e->heap[child].end >= ending.end)
            break;
        put(e, at, e->heap[child]);
        at = child;
    }
    put(e, at, ending);
}

static int32_t
pop(Engine *e)
{
    int32_t job = e->heap[0].job;
    Ending last = e->heap[--e->heap_len];
    if (e->heap_len)
        sink(e, 0, last);
    return job;
}

void
jobs_move_end(Engine *e, int32_t job, int64_t end)
{
    int32_t at = e->heap_at[job];
    if (end < e->heap[at].end)
        rise(e, at, (Ending){end, job});
    else
        sink(e, at, (Ending){end, job});
}

/* Position of the first running job whose estimated end is at or after ``end``; jobs are sorted by estimated end. */
static int32_t
find_running(const Engine *e, int64_t end)
{
    int32_t low = 0, high = e->running_len;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (e->running[middle].end < end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void
jobs_start(Engine *e, int32_t job, int64_t now)
{
    e->start[job] = now;
    e->pass_of[job] = e->passes;
    e->free -= e->size[job];
    if (e->policy == HALVES)
        halves_start(e, job, now);
    else if (e->policy != COUNTS) {
        for (int32_t at = 0; at < e->size[job]; at++)
            e->busy[e->list[e->offset[job] + at]] = 1;
        jobs_change(e, &e->now, job, 1);
    }
    rise(e, e->heap_len++, (Ending){now + e->duration[job], job});
    int64_t end = now + e->estimate[job];
    int32_t at = find_running(e, end);
    memmove(e->running + at + 1, e->running + at, (e->running_len++ - at) * sizeof *e->running);
    e->running[at] = (Ending){end, job};
    e->waiting_of_size[e->size[job]]--;
}

static void
end_job(Engine *e, int32_t job)
{
    e->free += e->size[job];
    if (e->policy == HALVES)
        halves_end(e, job);
    else if (e->policy != COUNTS) {
        for (int32_t at = 0; at < e->size[job]; at++) {
            int32_t node = e->list[e->offset[job] + at];
            e->busy[node] = 0;
            e->hint = node < e->hint ? node : e->hint;
        }
        jobs_change(e, &e->now, job, -1);
    }
    int32_t at = find_running(e, e->start[job] + e->estimate[job]);
    while (e->running[at].job != job)
        at++;
    memmove(e->running + at, e->running + at + 1, (--e->running_len - at) * sizeof *e->running);
}

/* ---- the loop ---- */

static int
report(PyObject *progress, int32_t ended)
{
    if (progress == Py_None)
        return 0;
    PyObject *answer = PyObject_CallFunction(progress, "i", (int)ended);
    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

static int
loop(Engine *e, PyObject *progress)
{
    int32_t arrived = 0, ended = 0;
    while (ended < e->jobs) {
        int64_t now = INT64_MAX;
        if (e->heap_len)
            now = e->heap[0].end;
        if (arrived < e->jobs && e->submit[arrived] < now)
            now = e->submit[arrived];
        for (; e->heap_len && e->heap[0].end == now; ended++)
            end_job(e, pop(e));
        for (; arrived < e->jobs && e->submit[arrived] == now; arrived++)
            jobs_enqueue(e, arrived);
        if (jobs_pass(e, now) < 0) {
            PyErr_NoMemory();
            return -1;
        }
        if (e->policy == HALVES)
            halves_change_rates(e, now);
        if (++e->passes % EVENTS_A_SIGNAL == 0 && PyErr_CheckSignals() < 0)
            return -1;
        if (e->passes % EVENTS_A_REPORT == 0 && report(progress, ended) < 0)
            return -1;
    }
    return 0;
}

/* Allocate all arrays of the engine, zeroed, in one block, so that one call frees them. */
static void *
allocate(Engine *e)
{
    size_t n = e->jobs + 2, nodes = e->nodes + 2, leaves = e->leaves + 1, pods = e->pods + 1;
    size_t view = 2 * leaves + 4 * pods, codes = e->codes, paired = e->policy == HALVES ? n : 0;
    size_t bytes = n * (8 + 8 + 2 * sizeof(Ending) + 4 + 4) + 4 * n * 12 + nodes * (4 + 1 + 4) + 8 * nodes;
    bytes += paired * (8 + 8 + 8 + 4 + 4 + 1) + 3 * nodes * 4 + 4 * codes * 4;
    bytes += 4 * (leaves + pods + leaves + pods + 2 * view) + 4096;
    char *block = PyMem_RawCalloc(1, bytes), *at = block;
    if (block == NULL)
        return NULL;
#define CUT(pointer, count) ((pointer) = (void *)at, at += ((count) * sizeof *(pointer) + 15) / 16 * 16)
    CUT(e->heap, n);
    CUT(e->running, n);
    CUT(e->offset, n);
    CUT(e->times, 2 * n);
    CUT(e->free_at, 2 * n);
    CUT(e->queue, n);
    CUT(e->bound, n / BLOCK + 2);
    CUT(e->leaf_of, nodes);
    CUT(e->pod_of, leaves);
    CUT(e->order, leaves + pods);
    CUT(e->waiting_of_size, nodes);
    CUT(e->heap_at, n);
    CUT(e->since, paired);
    CUT(e->left, paired);
    CUT(e->speed, paired);
    CUT(e->dirty, paired);
    CUT(e->beside, paired);
    CUT(e->touched, paired);
    CUT(e->quota, codes);
    CUT(e->place_of, codes);
    CUT(e->owner, paired ? nodes : 0);
    for (int later = 0; later < 2 && paired; later++) {
        HalfView *one = later ? &e->later_halves : &e->halves;
        CUT(one->code, e->nodes + codes); /* one block, because it is copied at once */
        one->single = one->code + e->nodes;
    }
    for (int later = 0; later < 2; later++) {
        View *one = later ? &e->later : &e->now;
        CUT(one->leaf_free, view);
        one->leaf_wide = one->leaf_free + e->leaves;
        one->pod_free = one->leaf_wide + e->leaves;
        one->pod_large = one->pod_free + e->pods;
        one->pod_most = one->pod_large + e->pods;
        one->pod_usable = one->pod_most + e->pods;
    }
    CUT(e->busy, nodes);
#undef CUT
    return block;
}

/* Check the arrays and point the engine at them; 0 with an exception if an array has a wrong type or length. */
static int
read_arrays(Engine *e, PyObject *const *given, Buffers *buffers)
{
    Py_ssize_t jobs = BUFFERS_ANY, leaf_starts = BUFFERS_ANY, pod_starts = BUFFERS_ANY;
    if (!((e->submit = buffers_column(buffers, given[0], "submit", BUFFERS_INT64, BUFFERS_READ, &jobs)) &&
          (e->duration = buffers_column(buffers, given[1], "duration", BUFFERS_INT64, BUFFERS_READ, &jobs)) &&
          (e->estimate = buffers_column(buffers, given[2], "estimate", BUFFERS_INT64, BUFFERS_READ, &jobs)) &&
          (e->rank = buffers_column(buffers, given[3], "rank", BUFFERS_INT64, BUFFERS_READ, &jobs)) &&
          (e->size = buffers_column(buffers, given[4], "size", BUFFERS_INT32, BUFFERS_READ, &jobs)) &&
          (e->leaf_start = buffers_column(buffers, given[5], "leaf_start", BUFFERS_INT32, BUFFERS_READ, &leaf_starts)) &&
          (e->pod_start = buffers_column(buffers, given[6], "pod_start", BUFFERS_INT32, BUFFERS_READ, &pod_starts)) &&
          (e->start = buffers_column(buffers, given[7], "start", BUFFERS_INT64, BUFFERS_WRITE, &jobs)) &&
          (e->pass_of = buffers_column(buffers, given[8], "pass", BUFFERS_INT64, BUFFERS_WRITE, &jobs))))
        return 0;
    if (leaf_starts < 1 || pod_starts < 1) {
        PyErr_SetString(PyExc_ValueError, "expecting an end of the leaves and of the pods, got none");
        return 0;
    }
    e->jobs = (int32_t)jobs;
    e->leaves = (int32_t)leaf_starts - 1;
    e->pods = (int32_t)pod_starts - 1;
    e->nodes = e->leaf_start[e->leaves];
    return 1;
}

/* Point the engine at the arrays for halves of nodes: ranks, last and spread by codes, codes and programs of the jobs, rates of
   the programs, limits and ends of the jobs. */
static int
read_halves(Engine *e, PyObject *given, Buffers *buffers)
{
    PyObject *one[8];
    Py_ssize_t jobs = e->jobs, codes = BUFFERS_ANY, squared = BUFFERS_ANY, rates = BUFFERS_ANY;
    if (!PyTuple_Check(given)) {
        PyErr_Format(PyExc_TypeError, "halves: expecting a tuple of arrays, got %s", Py_TYPE(given)->tp_name);
        return 0;
    }
    if (!PyArg_ParseTuple(given, "OOOOOOOO", &one[0], &one[1], &one[2], &one[3], &one[4], &one[5], &one[6], &one[7]) ||
        !((e->neighbour_rank = buffers_column(buffers, one[0], "rank", BUFFERS_INT32, BUFFERS_READ, &squared)) &&
          (e->neighbour_last = buffers_column(buffers, one[1], "last", BUFFERS_INT32, BUFFERS_READ, &codes)) &&
          (e->neighbour_spread = buffers_column(buffers, one[2], "spread", BUFFERS_INT32, BUFFERS_READ, &codes)) &&
          (e->code = buffers_column(buffers, one[3], "code", BUFFERS_INT32, BUFFERS_READ, &jobs)) &&
          (e->program = buffers_column(buffers, one[4], "program", BUFFERS_INT32, BUFFERS_READ, &jobs)) &&
          (e->rates = buffers_column(buffers, one[5], "rates", BUFFERS_FLOAT64, BUFFERS_READ, &rates)) &&
          (e->limit = buffers_column(buffers, one[6], "limit", BUFFERS_INT64, BUFFERS_READ, &jobs)) &&
          (e->end = buffers_column(buffers, one[7], "end", BUFFERS_INT64, BUFFERS_WRITE, &jobs))))
        return 0;
    e->codes = (int32_t)codes;
    while ((Py_ssize_t)e->programs * (e->programs + 2) < rates)
        e->programs++;
    int valid = squared == codes * codes && (Py_ssize_t)e->programs * (e->programs + 2) == rates && e->nodes % 2 == 0;
    for (Py_ssize_t at = 0; valid && at < squared; at++)
        valid = e->neighbour_rank[at] < codes;
    for (Py_ssize_t at = 0; valid && at < codes; at++)
        valid = e->neighbour_last[at] >= 0;
    for (int32_t job = 0; valid && job < e->jobs; job++)
        valid = e->code[job] >= 0 && e->code[job] < codes && e->program[job] >= 0 && e->program[job] < e->programs;
    if (!valid)
        PyErr_SetString(PyExc_ValueError, "halves: expecting tables of equal sizes, and codes and programs in them, got others");
    return valid;
}

static void
set_up_halves(Engine *e)
{
    for (int32_t half = 0; half < e->nodes; half++)
        e->owner[half] = e->halves.code[half] = -1;
    e->halves.empty = e->nodes / 2;
}

static PyObject *
simulate(Engine *e, PyObject *progress)
{
    PyObject *answer = NULL;
    void *block = allocate(e);
    if (block == NULL)
        return PyErr_NoMemory();
    jobs_set_up(e);
    if (e->policy == HALVES)
        set_up_halves(e);
    if (loop(e, progress) == 0)
        answer = Py_BuildValue("y#y#", (char *)e->offset, e->policy == COUNTS ? 0 : (Py_ssize_t)e->jobs * 8,
                               (char *)(e->list ? e->list : e->order), (Py_ssize_t)e->list_len * 4);
    PyMem_RawFree(block);
    PyMem_RawFree(e->list);
    return answer;
}

/* run(policy, depth, (leaf size, pod size), submit, duration, estimate, rank, size, leaf starts, pod starts, start, pass, progress,
   arrays for halves of nodes or None) fills start and pass, and end for halves, and returns (offsets, nodes) as bytes, both empty if nodes are only counted. */
static PyObject *
run(PyObject *module, PyObject *args)
{
    Engine e = {0};
    Buffers buffers = {.count = 0};
    PyObject *given[9], *progress, *halves, *answer = NULL;
    if (!PyArg_ParseTuple(args, "ii(ii)OOOOOOOOOOO", &e.policy, &e.depth, &e.leaf_size, &e.pod_size, &given[0], &given[1],
                          &given[2], &given[3], &given[4], &given[5], &given[6], &given[7], &given[8], &progress, &halves))
        return NULL;
    if (read_arrays(&e, given, &buffers) && (e.policy != HALVES || read_halves(&e, halves, &buffers)))
        answer = simulate(&e, progress);
    buffers_release(&buffers);
    return answer;
}

static PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, "Run a workload; see compiled.py."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_engine", "The event loop of many jobs.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__engine(void)
{
    return PyModule_Create(&definition);
}
