/* The key of a call's arguments, as keys.py computes it, in a fraction of the time: Python's code and dictionaries have
   left the caches since the last call. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { MOST_ARGUMENTS = 4 };

/* One argument: kind, format if it is an array, and two numbers. It has no padding, because all bytes are compared. */
typedef struct {
    char kind, format[7];
    uint64_t value, nbytes;
} Part;

static PyTypeObject *array_type; /* numpy.ndarray */

/* Whether a format is one of numpy's own types in native byte order: a letter, or Z and a letter if complex. */
static int
is_own(const char *format)
{
    if (format[0] == 'Z')
        format++;
    return format[0] && !format[1] && strchr("?bBhHiIlLqQefdg", format[0]);
}

/* Return 1 for a contiguous, writable array of numpy's own types, 0 for any other, -1 for an error. */
static int
of_array(PyObject *array, Part *part)
{
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_ND | PyBUF_WRITABLE | PyBUF_FORMAT) != 0) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError))
            return -1;
        PyErr_Clear(); /* read-only or with gaps: the caller asks keys.py */
        return 0;
    }
    int own = view.format != NULL && is_own(view.format);
    if (own) {
        part->kind = 'a';
        strcpy(part->format, view.format);
        part->value = (uintptr_t)view.buf;
        part->nbytes = (uint64_t)view.len;
    }
    PyBuffer_Release(&view);
    return own;
}

static int
of_number(PyObject *number, Part *part)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    part->kind = 'n';
    part->value = (uint64_t)value;
    return !overflow;
}

static int
of_constant(PyObject *one, PyObject *lasting, Part *part)
{
    PyObject *name = PyLong_FromVoidPtr(one);
    int known = name == NULL ? -1 : PyDict_Contains(lasting, name);
    Py_XDECREF(name);
    part->kind = 'c';
    part->value = (uintptr_t)one;
    return known;
}

static PyObject *
packed(PyObject *Py_UNUSED(module), PyObject *const *given, Py_ssize_t count)
{
    if (count != 2 || !PyTuple_Check(given[0]) || !PyDict_Check(given[1])) {
        PyErr_SetString(PyExc_TypeError, "expecting a tuple and a dictionary");
        return NULL;
    }
    Py_ssize_t length = PyTuple_GET_SIZE(given[0]);
    if (length > MOST_ARGUMENTS)
        Py_RETURN_NONE;
    Part parts[MOST_ARGUMENTS] = {{0}};
    for (Py_ssize_t at = 0; at < length; at++) {
        PyObject *one = PyTuple_GET_ITEM(given[0], at);
        int found = Py_IS_TYPE(one, array_type) ? of_array(one, &parts[at])
                    : PyLong_CheckExact(one)    ? of_number(one, &parts[at])
                                                : of_constant(one, given[1], &parts[at]);
        if (found < 0)
            return NULL;
        if (!found)
            Py_RETURN_NONE;
    }
    return PyBytes_FromStringAndSize((const char *)parts, length * (Py_ssize_t)sizeof *parts);
}

static PyMethodDef functions[] = {
    {"packed", (PyCFunction)(void (*)(void))packed, METH_FASTCALL,
     "packed(arguments, lasting)\n--\n\nWhat tells arguments from others: of at most 4 arrays of numpy's own types, whole "
     "numbers, and objects whose ids are in a dictionary; None for any others."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_keys",
    .m_doc = "Keys of a call's arguments; see plankeys.py.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__keys(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *kind = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "ndarray");
    Py_XDECREF(numpy);
    if (kind == NULL)
        return NULL;
    if (!PyType_Check(kind)) {
        Py_DECREF(kind);
        PyErr_SetString(PyExc_TypeError, "expecting numpy.ndarray to be a type");
        return NULL;
    }
    Py_XSETREF(array_type, (PyTypeObject *)kind);
    return PyModule_Create(&module);
}
