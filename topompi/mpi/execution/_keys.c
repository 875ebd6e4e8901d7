/* The key of a call's arguments, as keys.py computes it, in a fraction of the time: Python's code and dictionaries have
   left the caches since the last call. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* Bytes of a key, bytes of an array of counts (MOST_COUNTS in keys.py), lists inside each other, and arrays of which
   `placed` returns the places. */
enum { MOST_BYTES = 32768, MOST_COUNTS = 1024, MOST_DEPTH = 4, MOST_PLACES = 4 };

/* One argument or one item of a list: kind, format if it is an array, and two numbers. It has no padding, because all
   bytes are compared. The items of a list, and the content of an array of counts, follow it. */
typedef struct {
    char kind, format[7];
    uint64_t value, nbytes;
} Part;

typedef struct {
    char bytes[MOST_BYTES];
    Py_ssize_t length;
    PyObject *lasting; /* dictionary of the ids of objects that exist as long as MPI does */
    Py_ssize_t most_counts;
    int apart; /* whether the addresses of arrays are no part of the key */
    int arrays;
    uintptr_t places[MOST_PLACES];
} Key;

static PyTypeObject *array_type; /* numpy.ndarray */

/* Whether a format is one of numpy's own types in native byte order: a letter, or Z and a letter if complex. */
static int
is_own(const char *format)
{
    if (format[0] == 'Z')
        format++;
    return format[0] && !format[1] && strchr("?bBhHiIlLqQefdg", format[0]);
}

/* Append to a key; 0 if it would become too long. */
static int
append(Key *key, const void *bytes, Py_ssize_t count)
{
    if (count > MOST_BYTES - key->length)
        return 0;
    memcpy(key->bytes + key->length, bytes, (size_t)count);
    key->length += count;
    return 1;
}

/* The functions below append an object, and return 1 if it has a key, 0 if not (keys.py is asked then), -1 for an error.
   */

/* A contiguous array of numpy's own types: by its address, or, if it has counts, by its content. */
static int
append_array(Key *key, PyObject *array, int counts)
{
    Py_buffer view;
    int writable = !counts && !key->apart; /* keys without addresses tell read-only arrays from others */
    if (PyObject_GetBuffer(array, &view, PyBUF_ND | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) != 0) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError))
            return -1;
        PyErr_Clear(); /* read-only or with gaps */
        return 0;
    }
    int own = view.format != NULL && is_own(view.format) && !(counts && view.len > key->most_counts) &&
              (counts || key->arrays < MOST_PLACES || !key->apart);
    if (own) {
        Part part = {.kind = counts ? 'v' : view.readonly ? 'r' : 'a', .nbytes = (uint64_t)view.len};
        if (!counts && key->apart)
            key->places[key->arrays++] = (uintptr_t)view.buf;
        else if (!counts)
            part.value = (uintptr_t)view.buf;
        strcpy(part.format, view.format);
        own = append(key, &part, sizeof part) && (!counts || append(key, view.buf, view.len));
    }
    PyBuffer_Release(&view);
    return own;
}

static int
append_number(Key *key, PyObject *number)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Part part = {.kind = 'n', .value = (uint64_t)value};
    return !overflow && append(key, &part, sizeof part);
}

static int
append_constant(Key *key, PyObject *one)
{
    PyObject *name = PyLong_FromVoidPtr(one);
    int known = name == NULL ? -1 : PyDict_Contains(key->lasting, name);
    Py_XDECREF(name);
    Part part = {.kind = 'c', .value = (uintptr_t)one};
    return known == 1 ? append(key, &part, sizeof part) : known;
}

/* An argument, or an item of a message: a message begins with its memory, and all that follows it are values. */
static int
append_any(Key *key, PyObject *one, int is_value, int depth)
{
    if (Py_IS_TYPE(one, array_type))
        return append_array(key, one, is_value);
    if (PyLong_CheckExact(one))
        return append_number(key, one);
    if (!PyList_CheckExact(one) && !PyTuple_CheckExact(one))
        return append_constant(key, one);
    Py_ssize_t length = PySequence_Fast_GET_SIZE(one);
    Part part = {.kind = 'l', .value = (uint64_t)length};
    int found = depth < MOST_DEPTH && append(key, &part, sizeof part);
    for (Py_ssize_t at = 0; found == 1 && at < length; at++)
        found = append_any(key, PySequence_Fast_GET_ITEM(one, at), is_value || at > 0, depth + 1);
    return found;
}

/* Make the key of a call's arguments: 1, 0 if there is none, -1 for an error. */
static int
make(Key *key, PyObject *const *given, Py_ssize_t count)
{
    if (count != 2 || !PyTuple_Check(given[0]) || !PyDict_Check(given[1])) {
        PyErr_SetString(PyExc_TypeError, "expecting a tuple and a dictionary");
        return -1;
    }
    key->length = key->arrays = 0;
    key->lasting = given[1];
    int found = 1;
    for (Py_ssize_t at = 0; found == 1 && at < PyTuple_GET_SIZE(given[0]); at++)
        found = append_any(key, PyTuple_GET_ITEM(given[0], at), 0, 0);
    return found;
}

static PyObject *
packed(PyObject *Py_UNUSED(module), PyObject *const *given, Py_ssize_t count)
{
    Key key;
    key.apart = 0;
    key.most_counts = MOST_COUNTS;
    int found = make(&key, given, count);
    if (found < 0)
        return NULL;
    return found ? PyBytes_FromStringAndSize(key.bytes, key.length) : Py_NewRef(Py_None);
}

static PyObject *
placed(PyObject *Py_UNUSED(module), PyObject *const *given, Py_ssize_t count)
{
    Key key;
    key.apart = 1;
    key.most_counts = MOST_BYTES;
    int found = make(&key, given, count);
    if (found < 0)
        return NULL;
    PyObject *pair = PyTuple_New(2), *places = PyTuple_New(found ? key.arrays : 0);
    PyObject *bytes = found ? PyBytes_FromStringAndSize(key.bytes, key.length) : Py_NewRef(Py_None);
    for (int at = 0; places != NULL && found && at < key.arrays; at++) {
        PyObject *place = PyLong_FromUnsignedLongLong(key.places[at]);
        if (place == NULL)
            Py_CLEAR(places);
        else
            PyTuple_SET_ITEM(places, at, place);
    }
    if (pair == NULL || places == NULL || bytes == NULL) {
        Py_XDECREF(pair);
        Py_XDECREF(places);
        Py_XDECREF(bytes);
        return NULL;
    }
    PyTuple_SET_ITEM(pair, 0, bytes);
    PyTuple_SET_ITEM(pair, 1, places);
    return pair;
}

static PyMethodDef functions[] = {
    {"packed", (PyCFunction)(void (*)(void))packed, METH_FASTCALL,
     "packed(arguments, lasting)\n--\n\nWhat tells arguments from others: of arrays of numpy's own types, whole numbers, "
     "objects whose ids are in a dictionary, and lists of these; None for any others, and for long lists."},
    {"placed", (PyCFunction)(void (*)(void))placed, METH_FASTCALL,
     "placed(arguments, lasting)\n--\n\nAs packed, but without the addresses of up to 4 arrays, and a tuple of these."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_keys",
    .m_doc = "Keys of a call's arguments; see keys.py.",
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
