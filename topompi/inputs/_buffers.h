/* Arrays that Python passes to the C extensions: item type, shape, memory order and access are checked before the code
   reads an item. The values of the items are for the caller to check. */

#ifndef TOPOMPI_BUFFERS_H
#define TOPOMPI_BUFFERS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

enum { BUFFERS_MOST = 40, BUFFERS_DIMENSIONS = 2, BUFFERS_ANY = -1 };
enum { BUFFERS_READ = 0, BUFFERS_WRITE = PyBUF_WRITABLE };
typedef enum { BUFFERS_INT8, BUFFERS_INT32, BUFFERS_INT64, BUFFERS_FLOAT32, BUFFERS_FLOAT64 } BufferItem;

/* The arrays that one call has taken; buffers_release gives all of them back. */
typedef struct {
    Py_buffer views[BUFFERS_MOST];
    int count;
} Buffers;

/* numpy's name of a buffer's item type; NULL for any other type and for foreign byte order. */
static inline const char *
buffers_item_name(const Py_buffer *view)
{
    static const char *const names[2][4] = {{"int8", "int16", "int32", "int64"}, {NULL, "float16", "float32", "float64"}};
    const char *format = view->format;
    int real = format[0] && strchr("efd", format[0]) != NULL, whole = format[0] && strchr("bhilqn", format[0]) != NULL;
    if (!(real || whole) || format[1])
        return NULL;
    for (int power = 0; power < 4; power++)
        if (view->itemsize == 1 << power)
            return names[real][power];
    return NULL;
}

static inline int
buffers_check(const Py_buffer *view, const char *name, BufferItem item, int dimensions, const Py_ssize_t *shape)
{
    static const char *const wanted[] = {"int8", "int32", "int64", "float32", "float64"};
    const char *got = buffers_item_name(view);
    if (got == NULL || strcmp(got, wanted[item]) != 0) {
        PyErr_Format(PyExc_TypeError, "%s: expecting items of type %s, got %s", name, wanted[item],
                     got == NULL ? view->format : got);
        return 0;
    }
    if (view->ndim != dimensions) {
        PyErr_Format(PyExc_ValueError, "%s: expecting %d dimension(s), got %d", name, dimensions, view->ndim);
        return 0;
    }
    for (int axis = 0; axis < dimensions; axis++)
        if (shape[axis] != BUFFERS_ANY && view->shape[axis] != shape[axis]) {
            PyErr_Format(PyExc_ValueError, "%s: expecting %zd items on axis %d, got %zd", name, shape[axis], axis,
                         view->shape[axis]);
            return 0;
        }
    return 1;
}

/* The items of a C-contiguous array. For any other array, NULL with a Python exception set.

   An axis of `shape` that is BUFFERS_ANY accepts any length; all axes are set to the array's lengths. */
static inline void *
buffers_take(Buffers *all, PyObject *array, const char *name, BufferItem item, int access, int dimensions, Py_ssize_t *shape)
{
    static char nothing[8];
    if (all->count == BUFFERS_MOST) {
        PyErr_Format(PyExc_SystemError, "%s: expecting at most %d arrays, got more", name, (int)BUFFERS_MOST);
        return NULL;
    }
    Py_buffer *view = &all->views[all->count];
    if (PyObject_GetBuffer(array, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | access) != 0) {
        if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_BufferError))
            PyErr_Format(PyExc_ValueError, "%s: expecting %s that lies together in memory, got another one", name,
                         access ? "a writable array" : "an array");
        else if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s: expecting an array, got %s", name, Py_TYPE(array)->tp_name);
        return NULL;
    }
    all->count++;
    if (!buffers_check(view, name, item, dimensions, shape))
        return NULL;
    for (int axis = 0; axis < dimensions; axis++)
        shape[axis] = view->shape[axis];
    return view->buf == NULL ? nothing : view->buf;
}

/* The items of a one-dimensional array of `*length` items; BUFFERS_ANY accepts any number, and is set to it. */
static inline void *
buffers_column(Buffers *all, PyObject *array, const char *name, BufferItem item, int access, Py_ssize_t *length)
{
    return buffers_take(all, array, name, item, access, 1, length);
}

static inline void
buffers_release(Buffers *all)
{
    while (all->count)
        PyBuffer_Release(&all->views[--all->count]);
}

#endif
