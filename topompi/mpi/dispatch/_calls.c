/* Methods that look up the function for a call, and run it, without Python code in between.

   Between two collectives a program works on its data, so that all that Python reads to run a method (code, frame,
   dictionaries) has left the caches by the next call. The look-up here reads little: the method object, the handle's
   slot, and one entry of a table. A call that the table lacks is left to the method in Python. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>

enum { FEWEST_PLACES = 16, MOST_CALLS = 1024, MOST_PARAMETERS = 4, NONE = -1 };

/* An entry: the function for calls of a method (by its number; 0 in an empty entry) with a root, operation and size. */
typedef struct {
    int64_t nbytes;
    uintptr_t op; /* id of the operation; 0 if the call has none */
    int32_t root;
    int32_t method;
    PyObject *run; /* owned reference */
} Call;

/* The table of a communicator's calls: a hash table with open addressing, at most half full. */
typedef struct calls {
    PyObject_HEAD
    char all;        /* true if the MPI library runs every call */
    char passes;     /* true if methods that the MPI library always runs go to it at once */
    Py_ssize_t made; /* number of calls, the current one included, without calls of methods that pass */
    Py_ssize_t until; /* as another table's `others`, it may be used up to this call, from 1; 0 if for all calls */
    size_t places, used;
    Call *table;
    struct calls *others; /* another table, searched after this one; owned reference or NULL */
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

/* Empty the table first, then release the entries: releasing may run Python code that uses the table. */
static void
drop_all(Calls *self)
{
    Call *table = self->table;
    size_t places = self->places;
    self->table = NULL;
    self->places = self->used = 0;
    for (size_t at = 0; at < places; at++)
        Py_XDECREF(table[at].run);
    PyMem_Free(table);
}

static PyObject *
calls_add(PyObject *object, PyObject *arguments)
{
    Calls *self = (Calls *)object;
    int method, root;
    PyObject *op, *run;
    long long nbytes;
    if (!PyArg_ParseTuple(arguments, "iiOLO", &method, &root, &op, &nbytes, &run))
        return NULL;
    if (method <= 0) {
        PyErr_Format(PyExc_ValueError, "expecting a number of a method, from 1, got %d", method);
        return NULL;
    }
    if (self->used >= MOST_CALLS)
        drop_all(self);
    if (2 * (self->used + 1) > self->places && !grow(self))
        return NULL;
    Call call = {nbytes, op == Py_None ? 0 : (uintptr_t)op, root, method, NULL};
    Call *there = find(self->table, self->places, &call);
    PyObject *before = there->run;
    self->used += there->method == 0;
    call.run = Py_NewRef(run);
    *there = call;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *
calls_clear(PyObject *object, PyObject *Py_UNUSED(none))
{
    Calls *self = (Calls *)object;
    self->all = self->passes = 0;
    drop_all(self);
    Py_CLEAR(self->others);
    Py_RETURN_NONE;
}

static Py_ssize_t
calls_length(PyObject *object)
{
    return (Py_ssize_t)((Calls *)object)->used;
}

static int
calls_traverse(PyObject *object, visitproc visit, void *arg)
{
    Calls *self = (Calls *)object;
    for (size_t at = 0; at < self->places; at++)
        Py_VISIT(self->table[at].run);
    Py_VISIT(self->others);
    return 0;
}

static int
calls_let_go(PyObject *object)
{
    drop_all((Calls *)object);
    Py_CLEAR(((Calls *)object)->others);
    return 0;
}

static void
calls_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    calls_let_go(object);
    Py_TYPE(object)->tp_free(object);
}

static PyTypeObject CallsType;

static PyObject *
calls_others(PyObject *object, void *Py_UNUSED(none))
{
    Calls *others = ((Calls *)object)->others;
    return Py_NewRef(others == NULL ? Py_None : (PyObject *)others);
}

static int
calls_look_into(PyObject *object, PyObject *others, void *Py_UNUSED(none))
{
    if (others == NULL || !Py_IS_TYPE(others, &CallsType)) {
        PyErr_SetString(PyExc_TypeError, "expecting a table of calls");
        return -1;
    }
    Py_XSETREF(((Calls *)object)->others, (Calls *)Py_NewRef(others));
    return 0;
}

static PyGetSetDef calls_getset[] = {
    {"others", calls_others, calls_look_into, "A further table to look into; None at first.", NULL},
    {NULL},
};

static PyMethodDef calls_methods[] = {
    {"add", calls_add, METH_VARARGS,
     "add(method, root, op, nbytes, run)\n--\n\nRun calls of a method by its number, root, operation (or None, one "
     "that lasts) and bytes in this way; beyond 1,024 kinds all are forgotten first."},
    {"clear", calls_clear, METH_NOARGS, "clear()\n--\n\nForget all."},
    {NULL},
};

static PyMemberDef calls_members[] = {
    {"all", T_BOOL, offsetof(Calls, all), 0, "Whether the MPI library runs every call."},
    {"passes", T_BOOL, offsetof(Calls, passes), 0, "Whether it runs those at once that are always its own."},
    {"made", T_PYSSIZET, offsetof(Calls, made), 0, "Calls so far; those that pass are not counted."},
    {"until", T_PYSSIZET, offsetof(Calls, until), 0, "For how many first calls others may look in here; 0 for all."},
    {NULL},
};

static PySequenceMethods calls_sequence = {.sq_length = calls_length};

static PyTypeObject CallsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "topompi.mpi.dispatch._calls.Calls",
    .tp_doc = "What runs the calls of a communicator; nothing is known at first.",
    .tp_basicsize = sizeof(Calls),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = calls_dealloc,
    .tp_traverse = calls_traverse,
    .tp_clear = calls_let_go,
    .tp_methods = calls_methods,
    .tp_members = calls_members,
    .tp_getset = calls_getset,
    .tp_as_sequence = &calls_sequence,
};

/* A method of the handle's class: it looks a call up in the handle's table, and falls back on a method in Python. */
typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyTypeObject *kind; /* type of the latest call's handle; owned, so that no new type can get its address */
    Py_ssize_t slot;    /* offset of the tables' slot in handles, in bytes */
    PyObject *native;
    int32_t number;                       /* number of the method; 0 if the MPI library runs all its calls */
    int8_t parameters, message, root, op; /* number of parameters, and places of three among them; NONE if absent */
    PyObject *names[MOST_PARAMETERS];     /* interned */
    PyObject *defaults[MOST_PARAMETERS];  /* NULL for a parameter without a default */
    PyObject *function;
    PyTypeObject *owner; /* class that defines the slot */
} Method;

/* Put the arguments in the order of the parameters, with defaults filled in; return 0 if they do not fit. */
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
    for (int place = 0; place < self->parameters; place++)
        if (arguments[place] == NULL && (arguments[place] = self->defaults[place]) == NULL)
            return 0;
    return 1;
}

/* Bytes of a message that is a contiguous buffer. NONE for any other, and for an empty buffer, because MPI.IN_PLACE and
   MPI.BOTTOM look like empty buffers. */
static int64_t
size_of(PyObject *message)
{
    Py_buffer view;
    if (!PyObject_CheckBuffer(message))
        return NONE;
    if (PyObject_GetBuffer(message, &view, PyBUF_SIMPLE) != 0) {
        PyErr_Clear(); /* not a contiguous buffer: the method in Python looks at it */
        return NONE;
    }
    int64_t nbytes = view.len;
    PyBuffer_Release(&view);
    return nbytes ? nbytes : NONE;
}

/* The table in the handle's slot; NULL if the slot holds none. */
static Calls *
calls_of(const Method *self, PyObject *handle)
{
    PyObject *kept = *(PyObject **)((char *)handle + self->slot);
    return kept != NULL && Py_IS_TYPE(kept, &CallsType) ? (Calls *)kept : NULL;
}

/* Whether a handle is an instance of topompi's class. Others come here too: the class may stand in place of mpi4py's,
   whose methods accept any communicator of mpi4py. */
static int
is_ours(Method *self, PyObject *handle)
{
    if (Py_TYPE(handle) != self->kind) {
        if (!PyObject_TypeCheck(handle, self->owner))
            return 0;
        Py_INCREF(Py_TYPE(handle));
        Py_XSETREF(self->kind, Py_TYPE(handle));
    }
    return 1;
}

/* The function that the handle's tables have for a call, as a new reference; NULL if they have none. */
static PyObject *
found(const Method *self, PyObject *handle, PyObject *const *arguments)
{
    Call call = {0, 0, 0, self->number, NULL};
    if (self->op != NONE)
        call.op = (uintptr_t)arguments[self->op];
    if (self->root != NONE) {
        if (!PyLong_CheckExact(arguments[self->root]))
            return NULL;
        int overflow;
        long root = PyLong_AsLongAndOverflow(arguments[self->root], &overflow);
        if (overflow || root < 0 || root > INT32_MAX)
            return NULL;
        call.root = (int32_t)root;
    }
    if (self->message != NONE)
        call.nbytes = size_of(arguments[self->message]);
    const Calls *calls = calls_of(self, handle); /* not before size_of: its Python code may free the communicator */
    for (const Calls *some = calls; some != NULL; some = some->others) {
        if (some->used == 0 || (some->until && calls->made > some->until))
            continue;
        PyObject *run = find(some->table, some->places, &call)->run;
        if (run != NULL)
            return Py_NewRef(run);
    }
    return NULL;
}

static PyObject *
method_vectorcall(PyObject *object, PyObject *const *given, size_t flagged, PyObject *names)
{
    Method *self = (Method *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    if (count == 0 || !is_ours(self, given[0]))
        return PyObject_Vectorcall(self->native, given, flagged, names);
    Calls *calls = calls_of(self, given[0]);
    if (calls == NULL)
        return PyObject_Vectorcall(self->function, given, flagged, names);
    if (calls->all || (calls->passes && self->number == 0))
        return PyObject_Vectorcall(self->native, given, flagged, names);
    calls->made += self->number != 0; /* before the arguments are read, because the ranks' counts must agree */
    PyObject *arguments[1 + MOST_PARAMETERS] = {NULL}, *run = NULL;
    int has_size = self->message != NONE || (self->number && !self->parameters); /* a barrier's size is 0 */
    if ((calls->used || calls->others != NULL) && has_size &&
        in_order(self, given + 1, count - 1, names, arguments + 1))
        run = found(self, given[0], arguments + 1);
    if (run == NULL)
        return PyObject_Vectorcall(self->function, given, flagged, names);
    PyObject *result;
    if (run == self->native)
        result = PyObject_Vectorcall(run, given, flagged, names);
    else {
        arguments[0] = given[0];
        result = PyObject_Vectorcall(run, arguments, 1 + self->parameters, NULL);
        if (result != NULL)
            Py_SETREF(result, Py_NewRef(Py_None)); /* the call returns None, whatever the function returned */
    }
    Py_DECREF(run);
    return result;
}

static PyObject *
method_get(PyObject *self, PyObject *handle, PyObject *Py_UNUSED(kind))
{
    return handle == NULL ? Py_NewRef(self) : PyMethod_New(self, handle);
}

/* Attributes of the method, for example its docstring, are those of the method in Python. */
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
    for (int place = 0; place < self->parameters; place++) {
        Py_XDECREF(self->names[place]);
        Py_XDECREF(self->defaults[place]);
    }
    Py_TYPE(object)->tp_free(object);
}

static PyObject *
method_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    static char *keywords[] = {"function", "native",  "slot", "number", "parameters",
                               "defaults", "message", "root", "op",     NULL};
    PyObject *function, *native, *slot, *names, *defaults;
    int number, message, root, op;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "OOO!iO!O!iii", keywords, &function, &native,
                                     &PyMemberDescr_Type, &slot, &number, &PyTuple_Type, &names, &PyTuple_Type,
                                     &defaults, &message, &root, &op))
        return NULL;
    const struct PyMemberDef *member = ((PyMemberDescrObject *)slot)->d_member;
    Py_ssize_t parameters = PyTuple_GET_SIZE(names), first = parameters - PyTuple_GET_SIZE(defaults);
    if (parameters > MOST_PARAMETERS || first < 0 || member->type != T_OBJECT_EX || number < 0 ||
        message >= parameters || root >= parameters || op >= parameters || message < NONE || root < NONE ||
        op < NONE) {
        PyErr_SetString(PyExc_ValueError, "expecting a slot, a number from 0, and places among at most 4 parameters");
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
        if (self->parameters >= first)
            self->defaults[self->parameters] = Py_NewRef(PyTuple_GET_ITEM(defaults, self->parameters - first));
    }
    return (PyObject *)self;
}

static PyTypeObject MethodType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "topompi.mpi.dispatch._calls.Method",
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
    .m_name = "_calls",
    .m_doc = "Methods that find what runs a call without running Python; see calls.py.",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__calls(void)
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
