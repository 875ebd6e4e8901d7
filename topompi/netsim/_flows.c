/* The flow model for Python, one object per session; see flows.py. */

#include "_buffers.h"
#include "_run.h"

typedef struct {
    PyObject_HEAD
    Run run;
    int busy; /* whether another thread is advancing the time */
} Engine;

#include "_session.h"

static int
is_ready(const Engine *self)
{
    return is_free(self);
}

static void
forget_ends(Engine *self)
{
    self->run.ended = 0;
}

static int
play(Engine *self, double until, int to_end)
{
    return run_play(&self->run, until, to_end);
}

static int
take_away(Engine *self, int32_t job)
{
    run_remove(&self->run, job);
    return 1;
}

static PyObject *
record(const Engine *self, Py_ssize_t number)
{
    const Record *one = &self->run.records[number];
    return Py_BuildValue("(dii)", one->time, (int)one->job, (int)one->mark);
}

static void
forget_records(Engine *self)
{
    self->run.num_records = 0;
}

static Py_ssize_t
num_records(const Engine *self)
{
    return self->run.num_records;
}

static int32_t
num_jobs(const Engine *self)
{
    return self->run.jobs.count;
}

static int
num_waiting(const Engine *self)
{
    return self->run.waiting;
}

static double
seconds(const Engine *self)
{
    return self->run.now;
}

/* Check a program's arrays, in the order of ``Tape.arrays``. */
static int
read_columns(PyObject *arrays, Buffers *buffers, Columns *to)
{
    Py_ssize_t ranks = BUFFERS_ANY, rows = BUFFERS_ANY, steps = BUFFERS_ANY, messages = BUFFERS_ANY, jobs = BUFFERS_ANY;
    Py_ssize_t marks = BUFFERS_ANY, after_ranks = BUFFERS_ANY, after_jobs = BUFFERS_ANY, table[2] = {0, BUFFERS_ANY};
    struct {
        const char *name;
        void *to;
        BufferItem item;
        Py_ssize_t *shape;
    } wanted[] = {
        {"window", &to->window, BUFFERS_INT32, &ranks},
        {"job_of_rank", &to->job_of_rank, BUFFERS_INT32, &ranks},
        {"start", &to->start, BUFFERS_FLOAT64, &ranks},
        {"first_row", &to->first_row, BUFFERS_INT32, &after_ranks},
        {"first_step", &to->first_step, BUFFERS_INT32, &after_ranks},
        {"kind", &to->kind, BUFFERS_INT32, &rows},
        {"amount", &to->amount, BUFFERS_FLOAT64, &rows},
        {"step_of_row", &to->step_of_row, BUFFERS_INT32, &rows},
        {"message_of_row", &to->message_of_row, BUFFERS_INT32, &rows},
        {"after", &to->after, BUFFERS_INT32, &rows},
        {"operations", &to->operations, BUFFERS_INT32, &steps},
        {"rank_of_step", &to->rank_of_step, BUFFERS_INT32, &steps},
        {"mark_of_step", &to->mark_of_step, BUFFERS_INT32, &steps},
        {"destination", &to->destination, BUFFERS_INT32, &messages},
        {"nbytes", &to->nbytes, BUFFERS_FLOAT64, &messages},
        {"latency", &to->latency, BUFFERS_FLOAT64, &messages},
        {"send_step", &to->send_step, BUFFERS_INT32, &messages},
        {"receive_step", &to->receive_step, BUFFERS_INT32, &messages},
        {"paths", &to->paths, BUFFERS_INT32, table},
        {"repeat", &to->repeat, BUFFERS_INT32, &jobs},
        {"first_rank", &to->first_rank, BUFFERS_INT32, &after_jobs},
        {"first_message", &to->first_message, BUFFERS_INT32, &after_jobs},
        {"first_mark", &to->first_mark, BUFFERS_INT32, &after_jobs},
        {"mark_size", &to->mark_size, BUFFERS_INT32, &marks},
    };
    int count = (int)(sizeof wanted / sizeof *wanted);
    if (PyTuple_GET_SIZE(arrays) != count) {
        PyErr_Format(PyExc_TypeError, "expecting %d arrays, got %zd", count, PyTuple_GET_SIZE(arrays));
        return 0;
    }
    for (int one = 0; one < count; one++) {
        table[0] = messages;
        after_ranks = ranks + 1;
        after_jobs = jobs == BUFFERS_ANY ? BUFFERS_ANY : jobs + 1;
        const void *found = buffers_take(buffers, PyTuple_GET_ITEM(arrays, one), wanted[one].name, wanted[one].item,
                                         BUFFERS_READ, wanted[one].shape == table ? 2 : 1, wanted[one].shape);
        if (found == NULL)
            return 0;
        memcpy(wanted[one].to, &found, sizeof found);
    }
    to->ranks = (int32_t)ranks, to->rows = (int32_t)rows, to->steps = (int32_t)steps;
    to->messages = (int32_t)messages, to->jobs = (int32_t)jobs, to->marks = (int32_t)marks, to->longest = (int32_t)table[1];
    return 1;
}

static PyObject *
engine_add(PyObject *object, PyObject *arrays)
{
    Engine *self = (Engine *)object;
    Buffers buffers = {.count = 0};
    Columns columns = {0};
    PyObject *answer = NULL;
    if (!is_free(self))
        return NULL;
    if (!PyTuple_Check(arrays))
        return PyErr_Format(PyExc_TypeError, "expecting a tuple of arrays, got %s", Py_TYPE(arrays)->tp_name);
    if (read_columns(arrays, &buffers, &columns))
        answer = run_add(&self->run, &columns) ? Py_NewRef(Py_None) : PyErr_NoMemory();
    buffers_release(&buffers);
    return answer;
}

static PyObject *
engine_read(PyObject *object, PyObject *arguments)
{
    Run *run = &((Engine *)object)->run;
    Buffers buffers = {.count = 0};
    PyObject *ends, *arrivals, *answer = NULL;
    Py_ssize_t ranks = run->ranks.count, messages = run->messages.count;
    double *to_ends, *to_arrivals;
    if (!PyArg_ParseTuple(arguments, "OO", &ends, &arrivals) || !is_free((Engine *)object))
        return NULL;
    if ((to_ends = buffers_column(&buffers, ends, "ends", BUFFERS_FLOAT64, BUFFERS_WRITE, &ranks)) &&
        (to_arrivals = buffers_column(&buffers, arrivals, "arrivals", BUFFERS_FLOAT64, BUFFERS_WRITE, &messages))) {
        memcpy(to_ends, run->end, (size_t)ranks * sizeof *to_ends);
        memcpy(to_arrivals, run->arrivals, (size_t)messages * sizeof *to_arrivals);
        for (int32_t one = 0; one < run->fair.flows; one++)
            if (run->fair.flow[one].message >= 0)
                to_arrivals[run->fair.flow[one].message] += run_part(run, &run->fair.flow[one]);
        answer = Py_NewRef(Py_None);
    }
    buffers_release(&buffers);
    return answer;
}

static PyObject *
engine_flows(PyObject *object, PyObject *Py_UNUSED(none))
{
    const Run *run = &((Engine *)object)->run;
    PyObject *found = is_free((Engine *)object) ? PyList_New(0) : NULL;
    for (int32_t one = 0; found != NULL && one < run->fair.flows; one++) {
        const Flow *flow = &run->fair.flow[one];
        if (!run_is_flowing(run, flow))
            continue;
        PyObject *row = Py_BuildValue("(id)", (int)flow->message, flow->rate);
        if (row == NULL || PyList_Append(found, row) < 0)
            Py_CLEAR(found);
        Py_XDECREF(row);
    }
    return found;
}

static PyObject *
engine_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(named))
{
    PyObject *capacity;
    double copy_rate, send_overhead, receive_overhead, eager, tolerance;
    if (!PyArg_ParseTuple(arguments, "Oddddd", &capacity, &copy_rate, &send_overhead, &receive_overhead, &eager, &tolerance))
        return NULL;
    Buffers buffers = {.count = 0};
    Py_ssize_t links = BUFFERS_ANY;
    const double *rates = buffers_column(&buffers, capacity, "capacity", BUFFERS_FLOAT64, BUFFERS_READ, &links);
    Engine *self = rates == NULL ? NULL : (Engine *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->run.copy_rate = copy_rate;
        self->run.send_overhead = send_overhead, self->run.receive_overhead = receive_overhead;
        self->run.eager = eager, self->run.tolerance = tolerance;
        if (links >= INT32_MAX || !run_init(&self->run, rates, (int32_t)links)) {
            Py_CLEAR(self);
            PyErr_NoMemory();
        }
    }
    buffers_release(&buffers);
    return (PyObject *)self;
}

static void
engine_dealloc(PyObject *object)
{
    run_free(&((Engine *)object)->run);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef engine_methods[] = {
    {"add", engine_add, METH_O, "add(arrays)\n--\n\nAdd the jobs of a tape; see tape.py."},
    SESSION_METHODS,
    {"read", engine_read, METH_VARARGS,
     "read(ends, arrivals)\n--\n\nFill in when each rank ended its first run, and how often each message has come."},
    {"flows", engine_flows, METH_NOARGS, "flows()\n--\n\n(message, bytes/s) of the messages that flow now."},
    {NULL},
};

static PyTypeObject EngineType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "topompi.netsim._flows.Engine",
    .tp_doc = "Engine(capacity, copy_rate, send_overhead, receive_overhead, eager, tolerance)\n--\n\nJobs on a network.",
    .tp_basicsize = sizeof(Engine),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = engine_new,
    .tp_dealloc = engine_dealloc,
    .tp_methods = engine_methods,
    .tp_getset = engine_getset,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_flows",
    .m_doc = "The flow model in C; see flows.py.",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__flows(void)
{
    return new_module(&module, &EngineType);
}
