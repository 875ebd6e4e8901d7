/* The arrays that Python passes to a session, and those that it gets back. */

#ifndef TOPOMPI_NETSIM_ARRAYS_H
#define TOPOMPI_NETSIM_ARRAYS_H

#include "_buffers.h"
#include "_sim.h"

typedef struct {
    PyObject *arrays, *numbers;
    Buffers buffers;
    int access, failed; /* access: BUFFERS_WRITE for arrays that are filled in */
} Given;

void *given_table(Given *given, const char *name, BufferItem item, int dimensions, Py_ssize_t *shape);
void *given_column(Given *given, const char *name, BufferItem item, Py_ssize_t length);
void *given_first_column(Given *given, const char *name, BufferItem item, int64_t *length);
int read_network(Sim *s, Given *given);
PyObject *read_counters(const Sim *s, Given *given);
PyObject *waiting_packets(const Sim *s);
void free_sim(Sim *s);

/* _changes.c */
int add_jobs(Sim *s, Given *given);
void remove_job(Sim *s, int32_t job);
int read_sent(const Sim *s, int64_t *sent);

#endif
