/* The loop of the engine, and the Python module. */

#include "_buffers.h"

#include <stddef.h>
#include <structmember.h>

#include "_arrays.h"
#include "_events.h"
#include "_hosts.h"
#include "_processors.h"
#include "_switches.h"

static void
handle(Sim *s, int kind, Index number)
{
    switch (kind) {
    case HEAD: enter(s, number); break;
    case WAKE:
        if (port_of(s, number)->wake == s->now) { /* otherwise an earlier event came */
            port_of(s, number)->wake = NEVER;
            port_of(s, number)->blocked = 0;
            if (port_of(s, number)->free_at <= s->now)
                serve(s, number);
            else
                wake_at(s, number, port_of(s, number)->free_at);
        }
        break;
    case EXPOSE: expose(s, number); break;
    case DELIVER: deliver(s, number); break;
    case DOORBELL: queue_work(s, number); break;
    case ADVANCE:
        if (s->ranks[number].timer == s->now) {
            s->ranks[number].timer = NEVER;
            advance(s, number);
        }
        break;
    case COMPUTED: complete(s, number); break;
    case DEPART: depart(s, number); break;
    case RECEIVED: receive(s, number); break;
    case MATCHED: hand_over(s, number, REQUEST); break;
    case GRANTED: hand_over(s, number, DATA); break;
    case TURN: take_turn(s, number); break;
    }
}

/* Advance the time for a while, after starting new ranks. With to_end up to the next end of a run, else up to
   ``until``. */
static int
play_events(Sim *s, Time until, int to_end)
{
    if (setjmp(s->no_memory) != 0)
        return s->status = NO_MEMORY;
    for (; s->started < s->ranks_group.count; s->started++)
        if (!s->ranks[s->started].over)
            start_at(s, (Index)s->started, s->ranks[s->started].processor);
    for (int64_t count = 0; count < EVENTS_AT_ONCE; count++) {
        if (s->status != RUNNING)
            return s->status;
        if (to_end && s->ended)
            return OVER;
        if (s->at_soon < s->num_soon && (s->at == s->num_current || s->current[s->at].key > 2 * s->now + 1)) {
            Index link = s->soon[s->at_soon++];
            if (s->at_soon == s->num_soon)
                s->at_soon = s->num_soon = 0;
            s->events++;
            handle(s, WAKE, link);
            continue;
        }
        if (!to_end) {
            int64_t key = next_key(s);
            if (key >> 1 > until) {
                pass_time(s, until);
                return key == INT64_MAX ? STALLED : OVER;
            }
        }
        if (s->at == s->num_current) {
            if (!refill(s))
                return STALLED;
            if (s->is_large)
                foresee(s);
        }
        Event one = s->current[s->at++];
        s->now = one.key >> 1;
        s->now_bucket = one.key >> s->shift;
        if (s->num_heap)
            leave_heap(s);
        s->events++;
        handle(s, (int)(one.what >> 28), one.what & NUMBER);
    }
    return RUNNING;
}

/* ---- interface to Python ---- */

static const double PICO = 1e12;

typedef struct {
    PyObject_HEAD
    Sim sim;
    Given network; /* with arrays that are read throughout the session */
    int busy;      /* whether another thread is advancing the time */
} Engine;

#include "../_session.h"

static int
is_ready(const Engine *self)
{
    if (!self->sim.shift)
        PyErr_SetString(PyExc_RuntimeError, "expecting arrange() first, got none");
    return self->sim.shift && is_free(self);
}

static void
forget_ends(Engine *self)
{
    self->sim.ended = 0;
}

static int
play(Engine *self, double until, int to_end)
{
    return play_events(&self->sim, (Time)(until * PICO + 0.5), to_end);
}

static int
take_away(Engine *self, int32_t job)
{
    if (setjmp(self->sim.no_memory) != 0) {
        self->sim.status = NO_MEMORY;
        return 0;
    }
    remove_job(&self->sim, job);
    return 1;
}

static PyObject *
record(const Engine *self, Py_ssize_t number)
{
    const Record *one = &self->sim.records[number];
    return Py_BuildValue("(dii)", (double)one->time / PICO, (int)one->job, (int)one->mark);
}

static void
forget_records(Engine *self)
{
    self->sim.num_records = 0;
}

static Py_ssize_t
num_records(const Engine *self)
{
    return (Py_ssize_t)self->sim.num_records;
}

static int32_t
num_jobs(const Engine *self)
{
    return self->sim.jobs_group.count;
}

static int
num_waiting(const Engine *self)
{
    return self->sim.unfinished;
}

static double
seconds(const Engine *self)
{
    return (double)self->sim.now / PICO;
}

static PyObject *
engine_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(named))
{
    PyObject *arrays, *numbers;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyDict_Type, &arrays, &PyDict_Type, &numbers))
        return NULL;
    Engine *self = (Engine *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->network.arrays = arrays, self->network.numbers = numbers;
    int read = read_network(&self->sim, &self->network);
    self->network.arrays = self->network.numbers = NULL;
    if (!read) {
        Py_DECREF(self);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void
engine_dealloc(PyObject *object)
{
    free_sim(&((Engine *)object)->sim);
    buffers_release(&((Engine *)object)->network.buffers);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *
engine_add(PyObject *object, PyObject *columns)
{
    Given given = {.arrays = columns};
    if (!is_free((Engine *)object))
        return NULL;
    if (!PyDict_Check(columns))
        return PyErr_Format(PyExc_TypeError, "expecting a dictionary of arrays, got %s", Py_TYPE(columns)->tp_name);
    int added = add_jobs(&((Engine *)object)->sim, &given);
    buffers_release(&given.buffers);
    if (!added)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *
engine_arrange(PyObject *object, PyObject *arguments)
{
    Engine *self = (Engine *)object;
    int shift, buckets;
    if (!PyArg_ParseTuple(arguments, "ii", &shift, &buckets) || !is_free(self))
        return NULL;
    if (shift < 1 || shift > 62 || buckets < 6 || buckets > 24 || self->sim.shift)
        return PyErr_Format(PyExc_ValueError, "expecting a width of 1 to 62 and 6 to 24 for the buckets, once");
    if (!start_events(&self->sim, shift, buckets))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *
engine_read(PyObject *object, PyObject *arrays)
{
    Given given = {.arrays = arrays, .access = BUFFERS_WRITE};
    if (!is_free((Engine *)object))
        return NULL;
    if (!PyDict_Check(arrays))
        return PyErr_Format(PyExc_TypeError, "expecting a dictionary of arrays, got %s", Py_TYPE(arrays)->tp_name);
    PyObject *counts = read_counters(&((Engine *)object)->sim, &given);
    buffers_release(&given.buffers);
    return counts;
}

static PyObject *
engine_sent(PyObject *object, PyObject *array)
{
    Buffers buffers = {.count = 0};
    const Sim *s = &((Engine *)object)->sim;
    Py_ssize_t messages = s->messages_group.count;
    if (!is_free((Engine *)object))
        return NULL;
    int64_t *sent = buffers_column(&buffers, array, "sent", BUFFERS_INT64, BUFFERS_WRITE, &messages);
    int read = sent != NULL && read_sent(s, sent);
    buffers_release(&buffers);
    if (!read)
        return sent == NULL ? NULL : PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *
engine_waiting_packets(PyObject *object, PyObject *Py_UNUSED(none))
{
    return is_free((Engine *)object) ? waiting_packets(&((Engine *)object)->sim) : NULL;
}

static PyMethodDef engine_methods[] = {
    {"add", engine_add, METH_O, "add(columns)\n--\n\nAdd jobs; see arrays.py."},
    {"arrange", engine_arrange, METH_VARARGS,
     "arrange(shift, buckets)\n--\n\nMake the buckets of events, once: their width and their number as powers of two."},
    SESSION_METHODS,
    {"read", engine_read, METH_O,
     "read(arrays)\n--\n\nFill in rank_end, job_end, lane_bytes and lane_wait, and return what is counted."},
    {"sent", engine_sent, METH_O, "sent(array)\n--\n\nFill in the bytes of each message that have left its host."},
    {"waiting_packets", engine_waiting_packets, METH_NOARGS,
     "waiting_packets()\n--\n\n(link it came on, lane, link it needs, lane) of each packet in a buffer."},
    {NULL},
};

static PyMemberDef engine_members[] = {
    {"shift", T_INT, offsetof(Engine, sim.shift), READONLY, "Width of the buckets of events, as a power of two, or 0."},
    {NULL},
};

static PyTypeObject EngineType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "topompi.netsim.packets._packets.Engine",
    .tp_doc = "Engine(arrays, numbers)\n--\n\nJobs on a network with credits.",
    .tp_basicsize = sizeof(Engine),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = engine_new,
    .tp_dealloc = engine_dealloc,
    .tp_methods = engine_methods,
    .tp_members = engine_members,
    .tp_getset = engine_getset,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_packets",
    .m_doc = "Packets on a network with credits; see settings.py.",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__packets(void)
{
    return new_module(&module, &EngineType);
}
