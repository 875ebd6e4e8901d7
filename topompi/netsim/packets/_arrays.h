/* What Python gives a run, and what a run gives back. */

#ifndef TOPOMPI_NETSIM_ARRAYS_H
#define TOPOMPI_NETSIM_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_sim.h"

typedef struct {
    PyObject *arrays, *numbers;
    Py_buffer views[MOST_ARRAYS];
    int count, failed;
} Given;

int read_all(Sim *s, Given *given);
void free_sim(Sim *s);
PyObject *outcome(Sim *s, Given *given, int status);

#endif
