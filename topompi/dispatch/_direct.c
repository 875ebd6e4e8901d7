/* Methods that pass on to the MPI library what is left to it, without running Python.

   Between two collectives a program works on its data, and what Python needs for a method (its code, its frame, the
   dictionaries that it looks into) has left the caches by then. Here little has to come back: the method, the handle's
   slot, and one place of a table. Whatever the table does not have is a matter of the method in Python. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>

enum { FEWEST_PLACES = 16, MOST_CALLS = 1024, MOST_PARAMETERS = 4, NONE = -1 };

/* Calls that are alike: of a method (its number; 0 in an empty place), root, operation (its id) and size. */
typedef struct {
    int64_t nbytes;
    uintptr_t op;
    int32_t root;
    int32_t method;
} Call;

/* The calls of a communicator that are left to the library: an open table, at most half full. */
typedef struct {
    PyObject_HEAD
    char all; /* whether every call is */
    size_t places, used;
    Call *table;
} Calls;

static Call *
find(Call *table, size_t places, const Call *call)
{
    uint64_t mixed = (uint64_t)call->nbytes ^ (uint64_t)call->method << 48 ^ (uint64_t)call->root << 32 ^ call->op;
    /* D. E. Knuth, The Art of Computer Programming, vol. 3, 6.4: multiplicative hashing by the golden ratio. */
    size_t at = (size_t)(mixed * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (places - 1);
    for (;; at = (at + 1) & (places - 1)) {
        Call *there = &table[at];
        if (there->method == 0 || (there->nbytes == call->nbytes && there->root == call->root &&
                                   there->method == call->method && there->op == call->op))
            return there;
    }
}

static int
grow(Calls *self)
{
    size_t places = self->places ? 2 * self->places : FEWEST_PLACES;
    Call *table = PyMem_Calloc(places, sizeof *table);
    if (table == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (size_t at = 0; at < self->places; at++)
        if (self->table[at].method)
            *find(table, places, &self->table[at]) = self->table[at];
    PyMem_Free(self->table);
    self->table = table;
    self->places = places;
    return 1;
}

static PyObject *
calls_add(PyObject *object, PyObject *arguments)
{
    Calls *self = (Calls *)object;
    int method, root;
    PyObject *op;
    long long nbytes;
    if (!PyArg_ParseTuple(arguments, "iiOL", &method, &root, &op, &nbytes))
        return NULL;
    if (method <= 0) {
        PyErr_Format(PyExc_ValueError, "expecting a number of a method, from 1, got %d", method);
        return NULL;
    }
    Call call = {nbytes, op == Py_None ? 0 : (uintptr_t)op, root, method};
    if (self->used < MOST_CALLS) {
        if (2 * (self->used + 1) > self->places && !grow(self))
            return NULL;
        Call *there = find(self->table, self->places, &call);
        self->used += there->method == 0;
        *there = call;
    }
    Py_RETURN_NONE;
}

static PyObject *
calls_clear(PyObject *object, PyObject *Py_UNUSED(none))
{
    Calls *self = (Calls *)object;
    PyMem_Free(self->table);
    self->table = NULL;
    self->places = self->used = 0;
    self->all = 0;
    Py_RETURN_NONE;
}

static Py_ssize_t
calls_length(PyObject *object)
{
    return (Py_ssize_t)((Calls *)object)->used;
}

static void
calls_dealloc(PyObject *object)
{
    PyMem_Free(((Calls *)object)->table);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef calls_methods[] = {
    {"add", calls_add, METH_VARARGS,
     "add(method, root, op, nbytes)\n--\n\nLeave calls of a method by its number, root, operation (or None, one that "
     "lasts) and bytes to the library; beyond 1,024 kinds, no more."},
    {"clear", calls_clear, METH_NOARGS, "clear()\n--\n\nLeave nothing to the library."},
    {NULL},
};

static PyMemberDef calls_members[] = {
    {"all", T_BOOL, offsetof(Calls, all), 0, "Whether every call is left to the library."},
    {NULL},
};

static PySequenceMethods calls_sequence = {.sq_length = calls_length};

static PyTypeObject CallsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "topompi.dispatch._direct.Calls",
    .tp_doc = "The calls of a communicator that are left to the MPI library; none at first.",
    .tp_basicsize = sizeof(Calls),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = calls_dealloc,
    .tp_methods = calls_methods,
    .tp_members = calls_members,
    .tp_as_sequence = &calls_sequence,
};

/* A method in Python, and the library's for the calls that the handle's table has. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyTypeObject *kind; /* of the handle of the latest call; held, so that no other type can be in its place */
    Py_ssize_t slot;    /* of the handles' tables, in bytes from their beginning */
    PyObject *native;
    int32_t number;
    int8_t parameters, message, root, op; /* how many, and which; NONE where there is none */
    uintptr_t usual_op;
    PyObject *names[MOST_PARAMETERS]; /* interned */
    PyObject *function;
    PyTypeObject *owner; /* of the slot */
} Method;

/* The arguments in the order of parameters, NULL for those that are not given; 0 where that cannot be told here. */
static int
in_order(const Method *self, PyObject *const *given, Py_ssize_t count, PyObject *names, PyObject **arguments)
{
    if (count > self->parameters)
        return 0;
    for (Py_ssize_t at = 0; at < count; at++)
        arguments[at] = given[at];
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    for (Py_ssize_t at = 0; at < named; at++) {
        int place = 0;
        while (place < self->parameters && self->names[place] != PyTuple_GET_ITEM(names, at))
            place++;
        if (place == self->parameters || arguments[place] != NULL)
            return 0;
        arguments[place] = given[count + at];
    }
    return 1;
}

/* Bytes of a message that is a buffer without gaps, NONE of any other: nor of one without bytes, as which MPI.IN_PLACE
   and MPI.BOTTOM present themselves. */
static int64_t
size_of(PyObject *message)
{
    Py_buffer view;
    if (message == NULL || !PyObject_CheckBuffer(message))
        return NONE;
    if (PyObject_GetBuffer(message, &view, PyBUF_SIMPLE) != 0) {
        PyErr_Clear(); /* not such a message: for others to say */
        return NONE;
    }
    int64_t nbytes = view.len;
    PyBuffer_Release(&view);
    return nbytes ? nbytes : NONE;
}

/* What is in the handle's slot; NULL where that is not a table. */
static const Calls *
calls_of(const Method *self, PyObject *handle)
{
    PyObject *kept = *(PyObject **)((char *)handle + self->slot);
    return kept != NULL && Py_IS_TYPE(kept, &CallsType) ? (const Calls *)kept : NULL;
}

static int
is_left(Method *self, PyObject *handle, PyObject *const *given, Py_ssize_t count, PyObject *names)
{
    if (Py_TYPE(handle) != self->kind) {
        if (!PyObject_TypeCheck(handle, self->owner))
            return 0;
        Py_INCREF(Py_TYPE(handle));
        Py_XSETREF(self->kind, Py_TYPE(handle));
    }
    const Calls *calls = calls_of(self, handle);
    if (calls == NULL)
        return 0;
    if (calls->all)
        return 1;
    PyObject *arguments[MOST_PARAMETERS] = {NULL};
    if (calls->used == 0 || self->message == NONE || !in_order(self, given, count, names, arguments))
        return 0;
    Call call = {0, 0, 0, self->number};
    if (self->op != NONE)
        call.op = arguments[self->op] == NULL ? self->usual_op : (uintptr_t)arguments[self->op];
    if (self->root != NONE && arguments[self->root] != NULL) {
        if (!PyLong_CheckExact(arguments[self->root]))
            return 0;
        int overflow;
        long root = PyLong_AsLongAndOverflow(arguments[self->root], &overflow);
        if (overflow || root < 0 || root > INT32_MAX)
            return 0;
        call.root = (int32_t)root;
    }
    call.nbytes = size_of(arguments[self->message]);
    calls = calls_of(self, handle); /* a message of a class in Python may have freed the communicator meanwhile */
    return calls != NULL && calls->used != 0 && find(calls->table, calls->places, &call)->method != 0;
}

static PyObject *
method_vectorcall(PyObject *object, PyObject *const *given, size_t flagged, PyObject *names)
{
    Method *self = (Method *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    int left = count > 0 && is_left(self, given[0], given + 1, count - 1, names);
    return PyObject_Vectorcall(left ? self->native : self->function, given, flagged, names);
}

static PyObject *
method_get(PyObject *self, PyObject *handle, PyObject *Py_UNUSED(kind))
{
    return handle == NULL ? Py_NewRef(self) : PyMethod_New(self, handle);
}

/* What is asked about the method is told by the function in Python. */
static PyObject *
method_about(PyObject *self, void *name)
{
    return PyObject_GetAttrString(((Method *)self)->function, name);
}

static PyGetSetDef method_getset[] = {
    {"__doc__", method_about, NULL, NULL, "__doc__"},
    {"__module__", method_about, NULL, NULL, "__module__"},
    {"__name__", method_about, NULL, NULL, "__name__"},
    {"__qualname__", method_about, NULL, NULL, "__qualname__"},
    {NULL},
};

static PyMemberDef method_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Method, function), READONLY, "The method in Python."},
    {NULL},
};

static void
method_dealloc(PyObject *object)
{
    Method *self = (Method *)object;
    Py_XDECREF(self->kind);
    Py_XDECREF(self->owner);
    Py_XDECREF(self->native);
    Py_XDECREF(self->function);
    for (int place = 0; place < self->parameters; place++)
        Py_XDECREF(self->names[place]);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *
method_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *keywords[] = {"function", "native", "slot", "number", "parameters", "message",
                               "root",     "op",     "usual_op", NULL};
    PyObject *function, *native, *slot, *names, *usual;
    int number, message, root, op;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "OOO!iO!iiiO", keywords, &function, &native,
                                     &PyMemberDescr_Type, &slot, &number, &PyTuple_Type, &names, &message, &root, &op,
                                     &usual))
        return NULL;
    const struct PyMemberDef *member = ((PyMemberDescrObject *)slot)->d_member;
    Py_ssize_t parameters = PyTuple_GET_SIZE(names);
    if (parameters > MOST_PARAMETERS || member->type != T_OBJECT_EX || number <= 0 || message >= parameters ||
        root >= parameters || op >= parameters || message < NONE || root < NONE || op < NONE) {
        PyErr_SetString(PyExc_ValueError, "expecting a slot, a number from 1, and places among at most 4 parameters");
        return NULL;
    }
    Method *self = (Method *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->vectorcall = method_vectorcall;
    self->slot = member->offset;
    self->owner = (PyTypeObject *)Py_NewRef(PyDescr_TYPE(slot));
    self->native = Py_NewRef(native);
    self->function = Py_NewRef(function);
    self->number = number;
    self->message = (int8_t)message;
    self->root = (int8_t)root;
    self->op = (int8_t)op;
    self->usual_op = (uintptr_t)usual; /* a default of the function, which holds it */
    for (; self->parameters < parameters; self->parameters++) {
        PyObject *name = PyTuple_GET_ITEM(names, self->parameters);
        if (!PyUnicode_CheckExact(name)) {
            PyErr_SetString(PyExc_TypeError, "expecting names of parameters");
            Py_DECREF(self);
            return NULL;
        }
        Py_INCREF(name);
        PyUnicode_InternInPlace(&name);
        self->names[self->parameters] = name;
    }
    return (PyObject *)self;
}

static PyTypeObject MethodType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "topompi.dispatch._direct.Method",
    .tp_basicsize = sizeof(Method),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = method_new,
    .tp_dealloc = method_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Method, vectorcall),
    .tp_descr_get = method_get,
    .tp_getset = method_getset,
    .tp_members = method_members,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_direct",
    .m_doc = "Methods that pass on to the MPI library what is left to it, without running Python; see direct.py.",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__direct(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made == NULL)
        return NULL;
    if (PyModule_AddType(made, &CallsType) < 0 || PyModule_AddType(made, &MethodType) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
