/* Methods that run a call and count it, without Python code in between.

   Python code (code objects, frames, dictionaries) has left the caches by the next call of a program that works on its
   data meanwhile. Python counts all messages but plain arrays and arrays that are given with one of MPI's
   own datatypes. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>

enum { NONE = -1 };

/* A parameter: its place after the communicator, NONE if the method lacks it, and its name. */
typedef struct {
    int place;
    PyObject *name;
} Parameter;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *native; /* runs the call */
    PyObject *count;  /* counts, in Python, a call that was not counted here */
    PyObject *owner;  /* the counters of the recording */
    PyObject *sizes;  /* a dictionary: bytes of MPI's own datatypes without gaps, by their ids */
    PyObject *name;   /* name of the collective; NULL in methods that send messages */
    Parameter message, peer; /* peer: the destination of a message, the root of a collective */
    Py_buffer messages, volume; /* counters of messages and of bytes, int64 by peer; empty in collectives */
} Counted;

static PyTypeObject *array_type; /* numpy.ndarray */
static PyObject *kept_name, *group_name, *owner_name, *units_name, *calls_name, *called_name, *held_name, *executor_name, *ran_name,
    *sent_name, *nbytes_name, *zero;

/* The value of a parameter, borrowed; NULL if the call does not give it. */
static PyObject *
given_for(const Parameter *parameter, PyObject *const *given, Py_ssize_t count, PyObject *names)
{
    if (parameter->place == NONE)
        return NULL;
    if (1 + parameter->place < count)
        return given[1 + parameter->place];
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t at = 0; at < named; at++) {
        PyObject *name = PyTuple_GET_ITEM(names, at);
        if (name == parameter->name || PyUnicode_Compare(name, parameter->name) == 0)
            return given[count + at];
    }
    return NULL;
}

/* Bytes of an array, or of an array with one of MPI's own datatypes that divides it, as a new reference; NULL, perhaps
   with an error set, for any other message. */
static PyObject *
bytes_of(const Counted *self, PyObject *message)
{
    if (message == NULL)
        return NULL;
    if (Py_IS_TYPE(message, array_type))
        return PyObject_GetAttr(message, nbytes_name);
    if (!PyList_CheckExact(message) || PyList_GET_SIZE(message) != 2)
        return NULL;
    PyObject *array = PyList_GET_ITEM(message, 0), *id = PyLong_FromVoidPtr(PyList_GET_ITEM(message, 1));
    if (id == NULL || !Py_IS_TYPE(array, array_type)) {
        Py_XDECREF(id);
        return NULL;
    }
    PyObject *size = PyDict_GetItemWithError(self->sizes, id);
    Py_DECREF(id);
    PyObject *nbytes = size == NULL ? NULL : PyObject_GetAttr(array, nbytes_name);
    if (nbytes != NULL && PyLong_AsLongLong(nbytes) % PyLong_AsLongLong(size))
        Py_CLEAR(nbytes);
    return nbytes;
}

/* The peer that stands for a rank; NONE if the rank is not recorded, or if Python has to find the peer. */
static Py_ssize_t
unit_of(PyObject *group, long rank)
{
    PyObject *units = PyObject_GetAttr(group, units_name);
    Py_buffer view;
    Py_ssize_t unit = NONE;
    if (units == NULL)
        return NONE;
    if (Py_IS_TYPE(units, &PyRange_Type)) /* all ranks in their order */
        unit = rank < PyObject_Size(units) ? rank : NONE;
    else if (PyObject_GetBuffer(units, &view, PyBUF_SIMPLE) == 0) {
        if ((Py_ssize_t)((rank + 1) * sizeof(int)) <= view.len)
            unit = ((int *)view.buf)[rank];
        PyBuffer_Release(&view);
    }
    Py_DECREF(units);
    return unit;
}

/* Count a message; return whether it is counted. */
static int
count_message(Counted *self, PyObject *group, PyObject *nbytes, PyObject *peer)
{
    if (peer == NULL || !PyLong_CheckExact(peer))
        return 0;
    long rank = PyLong_AsLong(peer);
    if (rank < 0) /* MPI.PROC_NULL: nothing is sent */
        return !PyErr_Occurred();
    Py_ssize_t unit = unit_of(group, rank);
    if (unit < 0 || (unit + 1) * (Py_ssize_t)sizeof(int64_t) > self->messages.len)
        return 0;
    ((int64_t *)self->messages.buf)[unit]++;
    ((int64_t *)self->volume.buf)[unit] += PyLong_AsLongLong(nbytes);
    return 1;
}

/* An attribute of the state that topompi keeps with a communicator, as a new reference. */
static PyObject *
kept_with(PyObject *comm, PyObject *name)
{
    PyObject *kept = PyObject_GetAttr(comm, kept_name), *found = kept == NULL ? NULL : PyObject_GetAttr(kept, name);
    Py_XDECREF(kept);
    return found;
}

/* The messages of topompi's plan that ran the latest call, as a new reference; None if the library ran it. */
static PyObject *
sent_by(PyObject *comm)
{
    PyObject *sent = NULL, *executor = NULL, *ran = NULL, *held = kept_with(comm, held_name);
    if (held == Py_None)
        return held;
    if (held != NULL && (executor = PyObject_GetAttr(held, executor_name)) != NULL &&
        (ran = PyObject_GetAttr(executor, ran_name)) != NULL) {
        if (ran == Py_None)
            sent = Py_NewRef(Py_None);
        else if ((sent = PyObject_GetAttr(ran, sent_name)) != NULL &&
                 PyObject_SetAttr(executor, ran_name, Py_None) != 0)
            Py_CLEAR(sent);
    }
    Py_XDECREF(ran);
    Py_XDECREF(executor);
    Py_XDECREF(held);
    return sent;
}

/* Count a call in the group's dictionary of calls; return whether it is counted. */
static int
count_collective(Counted *self, PyObject *comm, PyObject *group, PyObject *nbytes, PyObject *root)
{
    if (root == NULL)
        root = zero;
    else if (!PyLong_CheckExact(root))
        return 0;
    PyObject *sent = sent_by(comm);
    if (sent == NULL)
        return 0;
    int done = 0;
    PyObject *key = PyTuple_Pack(4, self->name, root, nbytes, sent), *calls = PyObject_GetAttr(group, calls_name);
    if (key != NULL && calls != NULL && PyDict_CheckExact(calls)) {
        PyObject *number = PyDict_GetItemWithError(calls, key);
        if (number != NULL) {
            PyObject *next = PyLong_FromLongLong(PyLong_AsLongLong(number) + 1);
            done = next != NULL && PyDict_SetItem(calls, key, next) == 0;
            Py_XDECREF(next);
        }
        else if (!PyErr_Occurred()) {
            PyObject *called = PyObject_GetAttr(group, called_name);
            PyObject *result = called == NULL ? NULL : PyObject_Call(called, key, NULL);
            done = result != NULL;
            Py_XDECREF(result);
            Py_XDECREF(called);
        }
    }
    Py_XDECREF(calls);
    Py_XDECREF(key);
    Py_DECREF(sent);
    return done;
}

/* Count a call that has run; return whether it is counted. An error may be set if it is not. */
static int
counted(Counted *self, PyObject *const *given, Py_ssize_t count, PyObject *names)
{
    PyObject *group = kept_with(given[0], group_name), *owner = NULL, *nbytes = NULL;
    int done = 0;
    if (group != NULL && (owner = PyObject_GetAttr(group, owner_name)) == self->owner) {
        PyObject *message = given_for(&self->message, given, count, names);
        nbytes = self->message.place == NONE ? Py_NewRef(zero) : bytes_of(self, message);
        if (nbytes != NULL) {
            PyObject *peer = given_for(&self->peer, given, count, names);
            done = self->name == NULL ? count_message(self, group, nbytes, peer)
                                      : count_collective(self, given[0], group, nbytes, peer);
        }
    }
    Py_XDECREF(nbytes);
    Py_XDECREF(owner);
    Py_XDECREF(group);
    return done;
}

static PyObject *
counted_vectorcall(PyObject *object, PyObject *const *given, size_t flagged, PyObject *names)
{
    Counted *self = (Counted *)object;
    PyObject *done = PyObject_Vectorcall(self->native, given, flagged, names);
    if (done == NULL || counted(self, given, PyVectorcall_NARGS(flagged), names))
        return done;
    PyErr_Clear(); /* for example, a communicator without a group yet */
    PyObject *result = PyObject_Vectorcall(self->count, given, flagged & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    if (result == NULL)
        Py_CLEAR(done);
    Py_XDECREF(result);
    return done;
}

static PyObject *
counted_get(PyObject *self, PyObject *handle, PyObject *Py_UNUSED(kind))
{
    return handle == NULL ? Py_NewRef(self) : PyMethod_New(self, handle);
}

static PyObject *
counted_about(PyObject *self, void *name)
{
    return PyObject_GetAttrString(((Counted *)self)->native, name);
}

static PyGetSetDef counted_getset[] = {
    {"__doc__", counted_about, NULL, NULL, "__doc__"},
    {"__name__", counted_about, NULL, NULL, "__name__"},
    {NULL},
};

static void
counted_dealloc(PyObject *object)
{
    Counted *self = (Counted *)object;
    PyBuffer_Release(&self->messages);
    PyBuffer_Release(&self->volume);
    Py_XDECREF(self->native);
    Py_XDECREF(self->count);
    Py_XDECREF(self->owner);
    Py_XDECREF(self->sizes);
    Py_XDECREF(self->name);
    Py_XDECREF(self->message.name);
    Py_XDECREF(self->peer.name);
    Py_TYPE(object)->tp_free(object);
}

static int
set_parameter(Parameter *parameter, PyObject *parameters, int place)
{
    parameter->place = place;
    if (place == NONE)
        return 1;
    if (place < 0 || place >= PyTuple_GET_SIZE(parameters) || !PyUnicode_Check(PyTuple_GET_ITEM(parameters, place))) {
        PyErr_SetString(PyExc_ValueError, "expecting the place of a parameter's name, or -1");
        return 0;
    }
    parameter->name = Py_NewRef(PyTuple_GET_ITEM(parameters, place));
    return 1;
}

static int
set_table(Py_buffer *view, PyObject *table)
{
    if (table == Py_None)
        return 1;
    return PyObject_GetBuffer(table, view, PyBUF_WRITABLE) == 0;
}

static PyObject *
counted_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *keywords[] = {"native", "count", "owner", "sizes",    "parameters", "message",
                               "peer",   "name",  "messages", "volume", NULL};
    PyObject *native, *count, *owner, *sizes, *parameters, *name = Py_None, *messages = Py_None, *volume = Py_None;
    int message, peer;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "OOOO!O!ii|OOO", keywords, &native, &count, &owner, &PyDict_Type,
                                     &sizes, &PyTuple_Type, &parameters, &message, &peer, &name, &messages, &volume))
        return NULL;
    if ((name == Py_None) != (messages != Py_None && volume != Py_None)) {
        PyErr_SetString(PyExc_ValueError, "expecting either the name of a collective or two tables of counters");
        return NULL;
    }
    Counted *self = (Counted *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = counted_vectorcall;
    self->native = Py_NewRef(native);
    self->count = Py_NewRef(count);
    self->owner = Py_NewRef(owner);
    self->sizes = Py_NewRef(sizes);
    self->name = name == Py_None ? NULL : Py_NewRef(name);
    if (!set_parameter(&self->message, parameters, message) || !set_parameter(&self->peer, parameters, peer) ||
        !set_table(&self->messages, messages) || !set_table(&self->volume, volume) ||
        self->messages.len != self->volume.len) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "expecting tables of one length");
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static PyTypeObject CountedType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "topompi.profile._counted.Counted",
    .tp_basicsize = sizeof(Counted),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = counted_new,
    .tp_dealloc = counted_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Counted, vectorcall),
    .tp_descr_get = counted_get,
    .tp_getset = counted_getset,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_counted",
    .m_doc = "Methods that count calls without running Python; see counted.py.",
    .m_size = -1,
};

/* Make the names of attributes; return whether all are made. */
static int
make_names(void)
{
    struct {
        PyObject **name;
        const char *text;
    } all[] = {{&kept_name, "_topompi_kept"}, {&group_name, "group"}, {&owner_name, "owner"}, {&units_name, "units"},
               {&calls_name, "calls"}, {&called_name, "called"}, {&held_name, "held"}, {&executor_name, "executor"},
               {&ran_name, "ran"}, {&sent_name, "sent"}, {&nbytes_name, "nbytes"}};
    for (size_t at = 0; at < sizeof all / sizeof *all; at++)
        if ((*all[at].name = PyUnicode_InternFromString(all[at].text)) == NULL)
            return 0;
    return (zero = PyLong_FromLong(0)) != NULL;
}

PyMODINIT_FUNC
PyInit__counted(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL)
        return NULL;
    array_type = (PyTypeObject *)PyObject_GetAttrString(numpy, "ndarray");
    Py_DECREF(numpy);
    if (array_type == NULL || !make_names())
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddType(made, &CountedType) < 0)
        Py_CLEAR(made);
    return made;
}
