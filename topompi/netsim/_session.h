/* The Python interface that the engines of flows and of packets have in common; session.py describes it.

   A file includes it after the type Engine, which has a field ``busy``, and defines the functions declared first. */

#ifndef TOPOMPI_NETSIM_SESSION_H
#define TOPOMPI_NETSIM_SESSION_H

#include "_buffers.h"
#include "_codes.h"

static int is_ready(const Engine *self); /* whether time may advance; else an exception is set */
static void forget_ends(Engine *self);
static int play(Engine *self, double until, int to_end); /* for a while, without Python's lock */
static int take_away(Engine *self, int32_t job);         /* 0 without memory */
static PyObject *record(const Engine *self, Py_ssize_t number);
static void forget_records(Engine *self);
static Py_ssize_t num_records(const Engine *self);
static int32_t num_jobs(const Engine *self);
static int num_waiting(const Engine *self);
static double seconds(const Engine *self);

static int
is_free(const Engine *self)
{
    if (self->busy)
        PyErr_SetString(PyExc_RuntimeError, "expecting one thread at a time in a session, got two");
    return !self->busy;
}

static PyObject *
engine_advance(PyObject *object, PyObject *arguments)
{
    Engine *self = (Engine *)object;
    double until;
    int to_end, reason = RUNNING;
    if (!PyArg_ParseTuple(arguments, "dp", &until, &to_end) || !is_ready(self))
        return NULL;
    forget_ends(self);
    while (reason == RUNNING) {
        self->busy = 1;
        Py_BEGIN_ALLOW_THREADS
        reason = play(self, until, to_end);
        Py_END_ALLOW_THREADS
        self->busy = 0;
        if (PyErr_CheckSignals() != 0)
            return NULL;
    }
    return reason == NO_MEMORY ? PyErr_NoMemory() : PyLong_FromLong(reason);
}

static PyObject *
engine_remove(PyObject *object, PyObject *number)
{
    Engine *self = (Engine *)object;
    long job = PyLong_AsLong(number);
    if ((job == -1 && PyErr_Occurred()) || !is_ready(self))
        return NULL;
    if (job < 0 || job >= num_jobs(self))
        return PyErr_Format(PyExc_IndexError, "expecting a job in range(%d), got %ld", (int)num_jobs(self), job);
    if (!take_away(self, (int32_t)job))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *
engine_records(PyObject *object, PyObject *Py_UNUSED(none))
{
    Engine *self = (Engine *)object;
    PyObject *found = is_free(self) ? PyList_New(num_records(self)) : NULL;
    for (Py_ssize_t one = 0; found != NULL && one < num_records(self); one++) {
        PyObject *row = record(self, one);
        if (row == NULL)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, one, row);
    }
    if (found != NULL)
        forget_records(self);
    return found;
}

static PyObject *
engine_now(PyObject *object, void *Py_UNUSED(closure))
{
    return PyFloat_FromDouble(seconds((Engine *)object));
}

static PyObject *
engine_waiting(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(num_waiting((Engine *)object));
}

#define SESSION_METHODS \
    {"advance", engine_advance, METH_VARARGS, \
     "advance(until, to_end)\n--\n\nLet time pass up to a time, or to the end of a run; 0, 1 if nothing more can happen, 3 " \
     "for a program that repeats and takes no time."}, \
    {"remove", engine_remove, METH_O, "remove(job)\n--\n\nTake a job away."}, \
    {"records", engine_records, METH_NOARGS, \
     "records()\n--\n\nNew (time, job, named step or -1 for the end of a run), in the order of time."}

static PyGetSetDef engine_getset[] = {
    {"now", engine_now, NULL, "Seconds.", NULL},
    {"waiting", engine_waiting, NULL, "Jobs that have to run once and have not yet.", NULL},
    {NULL},
};

static PyObject *
new_module(PyModuleDef *about, PyTypeObject *engine)
{
    PyObject *made = PyModule_Create(about);
    if (made != NULL && PyModule_AddType(made, engine) < 0)
        Py_CLEAR(made);
    return made;
}

#endif
