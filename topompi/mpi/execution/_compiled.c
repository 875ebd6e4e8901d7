/* Runs of plans without Python between the messages: a loop over instructions that calls the MPI library loaded by
   mpi4py. Functions and handles are passed as numbers from mpi4py, so that this file needs no mpi.h and works with
   every library. A handle is an int or a pointer; passed as a machine word it is valid in either case. */

#include "_buffers.h"
#include <stdint.h>

enum { RECEIVE, SEND, START_RECEIVE, START_SEND, WAIT, COPY, REDUCE, NUM_KINDS }; /* numbers as in compiled.py */
enum { KIND, FIRST, SECOND, COUNT, DATATYPE, PEER, NUM_FIELDS };

typedef int64_t Instruction[NUM_FIELDS];

typedef struct {
    int (*recv)(void *, int, intptr_t, int, int, intptr_t, void *);
    int (*send)(void *, int, intptr_t, int, int, intptr_t);
    int (*irecv)(void *, int, intptr_t, int, int, intptr_t, void *);
    int (*isend)(void *, int, intptr_t, int, int, intptr_t, void *);
    int (*wait)(void *, void *);
    int (*testall)(int, void *, int *, void *);
    int (*reduce_local)(void *, void *, int, intptr_t, intptr_t);
    int (*error_class)(int, int *);
} Functions;

enum { NUM_FUNCTIONS = sizeof(Functions) / sizeof(void *) };

typedef struct {
    PyObject_HEAD
    Functions functions;
    Instruction *instructions;
    Py_ssize_t length;
    Py_ssize_t position; /* next instruction of a run in parts */
    int64_t slot;        /* next request of a run in parts */
    char *requests, *statuses;
    Py_ssize_t request_bytes;
    intptr_t null, comm, op;
    int tag;
    PyObject *revoked; /* error classes after which no rank waits for another */
    PyObject *error;   /* exception class for MPI error codes */
} Program;

static void
set_null(const Program *self, int64_t slot)
{
    memcpy(self->requests + slot * self->request_bytes, &self->null, (size_t)self->request_bytes);
}

/* Complete requests; if one fails, the others are completed nevertheless. MPI_Wait returns the request's own error, for
 * example that the communicator is revoked; MPI_Waitall says only that a status has one. */
static int
complete(const Program *self, int64_t first, int64_t count)
{
    char *requests = self->requests + first * self->request_bytes;
    int code = 0;
    for (int64_t i = 0; i < count; i++) {
        int other = self->functions.wait(requests + i * self->request_bytes, self->statuses);
        code = code ? code : other;
    }
    return code;
}

/* Post the message of an instruction as request number `slot`. */
static int
post(const Program *self, const int64_t *at, int64_t slot)
{
    int (*start)(void *, int, intptr_t, int, int, intptr_t, void *) =
        at[KIND] == START_SEND ? self->functions.isend : self->functions.irecv;
    void *request = self->requests + slot * self->request_bytes;
    int code = start((void *)(intptr_t)at[FIRST], (int)at[COUNT], (intptr_t)at[DATATYPE], (int)at[PEER], self->tag,
                     self->comm, request);
    if (code)
        set_null(self, slot);
    return code;
}

static int
perform(const Program *self, const int64_t *at, int64_t *slot)
{
    void *first = (void *)(intptr_t)at[FIRST], *second = (void *)(intptr_t)at[SECOND];
    int count = (int)at[COUNT], peer = (int)at[PEER];
    intptr_t datatype = (intptr_t)at[DATATYPE];
    switch (at[KIND]) {
    case RECEIVE:
        return self->functions.recv(first, count, datatype, peer, self->tag, self->comm, self->statuses);
    case SEND:
        return self->functions.send(first, count, datatype, peer, self->tag, self->comm);
    case START_RECEIVE:
    case START_SEND:
        return post(self, at, (*slot)++);
    case WAIT:
        return complete(self, at[FIRST], at[COUNT]);
    case COPY:
        memmove(second, first, (size_t)at[COUNT]);
        return 0;
    default:
        return self->functions.reduce_local(first, second, count, datatype, self->op);
    }
}

/* Whether an error means that no rank waits for another any more. The GIL is held while the classes are compared. */
static int
is_revoked(const Program *self, int code)
{
    int class = 0, found = 0;
    PyGILState_STATE state = PyGILState_Ensure();
    if (self->functions.error_class(code, &class) == 0)
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->revoked); i++)
            found |= PyLong_AsLong(PyTuple_GET_ITEM(self->revoked, i)) == class;
    PyGILState_Release(state);
    return found;
}

static PyObject *
raised(const Program *self, int code)
{
    PyObject *error = PyObject_CallFunction(self->error, "i", code);
    if (error != NULL) {
        PyErr_SetObject(self->error, error);
        Py_DECREF(error);
    }
    return NULL;
}

/* Run all instructions. If one fails, all later ones run nevertheless, because other ranks wait for their messages. */
static PyObject *
run(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    const Program *self = (const Program *)object;
    int64_t slot = 0;
    int first = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < self->length; i++) {
        int code = perform(self, self->instructions[i], &slot);
        if (code && !first) {
            first = code;
            if (is_revoked(self, code))
                break;
        }
    }
    Py_END_ALLOW_THREADS
    if (first)
        return raised(self, first);
    Py_RETURN_NONE;
}

enum { UNTIL_WAIT, WHILE_READY, TO_END };

/* Go on with a run in parts: until the first wait, until a wait would last, or to the end; true at the end. */
static PyObject *
go_on(Program *self, int how)
{
    int first = 0;
    Py_BEGIN_ALLOW_THREADS
    while (self->position < self->length) {
        const int64_t *at = self->instructions[self->position];
        int waits = at[KIND] == WAIT, code;
        if (waits && how == UNTIL_WAIT)
            break;
        if (waits && how == WHILE_READY) {
            int done = 0;
            code = self->functions.testall((int)at[COUNT], self->requests + at[FIRST] * self->request_bytes, &done,
                                           self->statuses);
            if (!code && !done)
                break;
            if (code) /* the others are completed nevertheless */
                (void)complete(self, at[FIRST], at[COUNT]);
        }
        else
            code = perform(self, at, &self->slot);
        self->position++;
        if (code && !first) {
            first = code;
            if (is_revoked(self, code))
                self->position = self->length;
        }
    }
    Py_END_ALLOW_THREADS
    return first ? raised(self, first) : PyBool_FromLong(self->position == self->length);
}

static PyObject *
begin(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    Program *self = (Program *)object;
    self->position = self->slot = 0;
    return go_on(self, UNTIL_WAIT);
}

static PyObject *
advance(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    return go_on((Program *)object, WHILE_READY);
}

static PyObject *
finish(PyObject *object, PyObject *Py_UNUSED(nothing))
{
    return go_on((Program *)object, TO_END);
}

/* Two parts of memory, as addresses, with the bytes by which each moves. */
enum { NUM_PLACES = 2 };
typedef struct {
    int64_t begin[NUM_PLACES], end[NUM_PLACES], by[NUM_PLACES];
} Move;

static int64_t
moved(const Move *move, int64_t address)
{
    for (int i = 0; i < NUM_PLACES; i++)
        if (move->begin[i] <= address && address < move->end[i])
            return address + move->by[i];
    return address;
}

/* Let all instructions that read or write two parts of memory use others. */
static PyObject *
relocate(PyObject *object, PyObject *arguments)
{
    Program *self = (Program *)object;
    long long begin[NUM_PLACES], length[NUM_PLACES], to[NUM_PLACES];
    if (!PyArg_ParseTuple(arguments, "(LL)(LL)(LL):relocate", &begin[0], &begin[1], &length[0], &length[1], &to[0], &to[1]))
        return NULL;
    Move all;
    for (int i = 0; i < NUM_PLACES; i++) {
        all.begin[i] = begin[i];
        all.end[i] = begin[i] + length[i];
        all.by[i] = to[i] - begin[i];
    }
    for (Py_ssize_t i = 0; i < self->length; i++) {
        int64_t *at = self->instructions[i];
        if (at[KIND] != WAIT)
            at[FIRST] = moved(&all, at[FIRST]);
        if (at[KIND] == COPY || at[KIND] == REDUCE)
            at[SECOND] = moved(&all, at[SECOND]);
    }
    Py_RETURN_NONE;
}

static void
dealloc(PyObject *object)
{
    Program *self = (Program *)object;
    PyMem_Free(self->instructions);
    PyMem_Free(self->requests);
    PyMem_Free(self->statuses);
    Py_XDECREF(self->revoked);
    Py_XDECREF(self->error);
    Py_TYPE(object)->tp_free(object);
}

/* Check the instructions. Requests are numbered in the order of posting; a wait may only name requests already posted.
   */
static int
check(const Program *self, int64_t *slots, int64_t *most)
{
    *slots = 0;
    *most = 1;
    for (Py_ssize_t i = 0; i < self->length; i++) {
        const int64_t *at = self->instructions[i];
        int wide = at[KIND] != COPY && at[COUNT] > INT32_MAX;
        if (at[KIND] < 0 || at[KIND] >= NUM_KINDS || at[COUNT] < 0 || wide)
            return 0;
        if (at[KIND] == WAIT && (at[FIRST] < 0 || at[FIRST] + at[COUNT] > *slots))
            return 0;
        *slots += at[KIND] == START_RECEIVE || at[KIND] == START_SEND;
        *most = at[KIND] == WAIT && at[COUNT] > *most ? at[COUNT] : *most;
    }
    return 1;
}

static int
allocate(Program *self, Py_ssize_t status_bytes)
{
    int64_t slots, most;
    if (!check(self, &slots, &most)) {
        PyErr_SetString(PyExc_ValueError, "expecting known instructions, counts of an int, and waits for what was posted");
        return 0;
    }
    self->requests = PyMem_Malloc((size_t)(slots * self->request_bytes + 1));
    self->statuses = PyMem_Malloc((size_t)(most * status_bytes));
    if (self->requests == NULL || self->statuses == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (int64_t slot = 0; slot < slots; slot++)
        set_null(self, slot);
    return 1;
}

static int
take(Program *self, PyObject *table)
{
    Buffers buffers = {.count = 0};
    Py_ssize_t shape[2] = {BUFFERS_ANY, NUM_FIELDS};
    const void *items = buffers_take(&buffers, table, "instructions", BUFFERS_INT64, BUFFERS_READ, 2, shape);
    if (items != NULL) {
        self->length = shape[0];
        self->instructions = PyMem_Malloc((size_t)shape[0] * sizeof(Instruction) + 1);
        if (self->instructions == NULL)
            PyErr_NoMemory();
        else
            memcpy(self->instructions, items, (size_t)shape[0] * sizeof(Instruction));
    }
    buffers_release(&buffers);
    return self->instructions != NULL;
}

static int
take_functions(Program *self, PyObject *addresses)
{
    void *found[NUM_FUNCTIONS];
    if (PyTuple_GET_SIZE(addresses) != NUM_FUNCTIONS) {
        PyErr_Format(PyExc_ValueError, "expecting %d functions, got %zd", NUM_FUNCTIONS, PyTuple_GET_SIZE(addresses));
        return 0;
    }
    for (Py_ssize_t i = 0; i < NUM_FUNCTIONS; i++) {
        found[i] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(addresses, i));
        if (found[i] == NULL) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "expecting the address of a function, got 0");
            return 0;
        }
    }
    memcpy(&self->functions, found, sizeof found);
    return 1;
}

/* Program(functions, (request_bytes, status_bytes, null), revoked, error, instructions, comm, tag, op) */
static PyObject *
new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords))
{
    PyObject *functions, *revoked, *error, *table;
    Py_ssize_t request_bytes, status_bytes, null, comm, op;
    int tag;
    if (!PyArg_ParseTuple(arguments, "O!(nnn)O!OOnin:Program", &PyTuple_Type, &functions, &request_bytes, &status_bytes,
                          &null, &PyTuple_Type, &revoked, &error, &table, &comm, &tag, &op))
        return NULL;
    Program *self = (Program *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->request_bytes = request_bytes;
        self->null = null;
        self->comm = comm;
        self->tag = tag;
        self->op = op;
        self->revoked = Py_NewRef(revoked);
        self->error = Py_NewRef(error);
        int known = request_bytes > 0 && request_bytes <= (Py_ssize_t)sizeof null && status_bytes > 0;
        if (!known)
            PyErr_SetString(PyExc_ValueError, "expecting requests of at most a machine word, and statuses");
        if (!known || !take_functions(self, functions) || !take(self, table) || !allocate(self, status_bytes))
            Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static PyMethodDef methods[] = {
    {"run", run, METH_NOARGS, "Run all instructions; raise the error of the first that failed."},
    {"begin", begin, METH_NOARGS, "Begin a run in parts: run the instructions before the first wait."},
    {"advance", advance, METH_NOARGS, "Run instructions until a wait would last; true if none is left."},
    {"finish", finish, METH_NOARGS, "Run all instructions that are left."},
    {"relocate", relocate, METH_VARARGS,
     "relocate(begins, lengths, to)\n--\n\nUse other memory than that at two addresses, with two lengths in bytes."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject program_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "topompi.mpi.execution._compiled.Program",
    .tp_doc = "Instructions that are run one after the other.",
    .tp_basicsize = sizeof(Program),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new,
    .tp_dealloc = dealloc,
    .tp_methods = methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_compiled",
    .m_doc = "Runs of plans without Python between their messages.",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__compiled(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddType(made, &program_type) != 0)
        Py_CLEAR(made);
    return made;
}
