/* What Python gives a run, and what a run gives back. */

#ifndef TOPOMPI_NETSIM_ARRAYS_H
#define TOPOMPI_NETSIM_ARRAYS_H

#include "_buffers.h"
#include "_sim.h"

typedef struct {
    PyObject *arrays, *numbers;
    Buffers buffers;
    int failed;
} Given;

int read_all(Sim *s, Given *given);
void free_sim(Sim *s);
PyObject *outcome(Sim *s, Given *given, int status);

#endif
