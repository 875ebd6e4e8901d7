/* The engine's loop, and the module. */

#include "_arrays.h"
#include "_hosts.h"
#include "_processors.h"
#include "_switches.h"

static void
handle(Sim *s, int kind, Index number)
{
    switch (kind) {
    case HEAD: enter(s, number); break;
    case WAKE:
        if (s->ports[number].wake == s->now) { /* else an earlier one came */
            s->ports[number].wake = NEVER;
            s->ports[number].blocked = 0;
            if (s->ports[number].free_at <= s->now)
                serve(s, number);
            else
                wake_at(s, number, s->ports[number].free_at);
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

/* Go on for a while; at first let all ranks start. */
static int
play(Sim *s)
{
    if (setjmp(s->no_memory) != 0)
        return NO_MEMORY;
    for (; s->started < s->num_ranks; s->started++)
        start_at(s, (Index)s->started, s->ranks[s->started].processor);
    for (int64_t count = 0; count < EVENTS_AT_ONCE; count++) {
        if (s->at == s->num_current && !refill(s))
            return STALLED;
        Event one = s->current[s->at++];
        s->now = one.key >> 1;
        s->events++;
        handle(s, (int)(one.what >> 28), one.what & (((Index)1 << 28) - 1));
        if (s->status != RUNNING)
            return s->status;
    }
    return RUNNING;
}

static int
play_on(Sim *s)
{
    int status = RUNNING;
    while (status == RUNNING) {
        Py_BEGIN_ALLOW_THREADS
        status = play(s);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() != 0)
            return -1;
    }
    return status;
}

static PyObject *
simulate(PyObject *Py_UNUSED(module), PyObject *args)
{
    Given given = {0};
    if (!PyArg_ParseTuple(args, "O!O!", &PyDict_Type, &given.arrays, &PyDict_Type, &given.numbers))
        return NULL;
    PyObject *found = NULL;
    Sim *s = calloc(1, sizeof(Sim));
    if (s == NULL)
        return PyErr_NoMemory();
    s->free_packet = s->free_work = s->free_event = s->free_task = s->first_ready = NONE;
    memset(s->bucket, 0xff, sizeof s->bucket);
    if (read_all(s, &given)) {
        int status = play_on(s);
        if (status == NO_MEMORY)
            PyErr_NoMemory();
        else if (status >= 0)
            found = outcome(s, &given, status);
    } else if (!PyErr_Occurred())
        PyErr_NoMemory();
    buffers_release(&given.buffers);
    free_sim(s);
    return found;
}

static PyMethodDef functions[] = {
    {"simulate", simulate, METH_VARARGS,
     "simulate(arrays, numbers)\n--\n\nRun programs as packets; the arrays rank_end, job_end, lane_bytes and lane_wait are "
     "filled, and the counts of the run returned."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_packets",
    .m_doc = "Packets on a network with credits; see settings.py.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__packets(void)
{
    return PyModule_Create(&module);
}
