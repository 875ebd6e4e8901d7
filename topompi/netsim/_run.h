/* Ranks that execute their programs, and the flows between them, event by event; interpreter.py does the same in
   Python.

   The order of events at one instant is the same there, because the work that occupies a processor first delays the
   rest. Programs may be added and removed between events. Their ranks, messages and so on are numbered through all
   programs, in the order of arrival. */

#ifndef TOPOMPI_NETSIM_RUN_H
#define TOPOMPI_NETSIM_RUN_H

#include <stdint.h>

#include "_codes.h"
#include "_fair.h"
#include "_groups.h"

#pragma GCC visibility push(hidden) /* makes calls between these files direct */

enum { COMPUTED, RECEIVED, DEPART, START, TIMER }; /* kinds of events */

typedef struct {
    double time;
    int32_t kind, number;
} Event;

typedef struct {
    double finish;
    int32_t flow;
} Flight;

typedef struct {
    int32_t message, flow;
} Held;

/* The time at which a job ended a run, or completed a named step. */
typedef struct {
    double time;
    int32_t job, mark;
} Record;

typedef struct {
    Group ranks, rows, steps, messages, jobs, marks;
    int32_t *first_row, *first_step, *window, *job_of_rank;   /* of ranks; the first two have one item more */
    double *end, *processor;                                  /* end of the first run, NaN before; when the processor is free */
    int32_t *row, *oldest;                                    /* next operation, first incomplete step */
    int32_t *kind, *step_of_row, *message_of_row, *after;     /* of rows */
    double *amount;
    int32_t *operations, *rank_of_step, *mark_of_step, *pending; /* of steps */
    int32_t *destination, *send_step, *receive_step, *paths;     /* of messages; paths are padded with -1 */
    double *nbytes, *latency, *arrivals;                         /* arrivals: number of times that the message arrived */
    uint8_t *state;
    int32_t *first_rank, *first_message, *first_mark, *repeat, *left; /* of jobs; the first three have one item more */
    double *began;                                                    /* time at which the current run began */
    uint8_t *over;
    int32_t *mark_size, *mark_left; /* of named steps: ranks, and ranks that have not completed it in this run */
    int32_t links;                  /* of the network; each rank has one more, for messages inside its host */
    double *capacity, copy_rate;
    double send_overhead, receive_overhead, eager, tolerance;
    Fair fair;
    Event *events;
    int32_t num_events, room;
    Flight *soonest; /* heap of flows by finish, without held flows */
    Held *held;      /* finished flows, held until everything due is processed */
    int32_t flying, num_held;
    int32_t *fresh, num_fresh;
    Record *records; /* that Python has not read */
    int32_t num_records, room_records;
    double now, due;
    int32_t waiting; /* jobs that must run once and have not yet */
    int changed, failure, ended;
    int64_t work; /* events, and changed rates, since the last check for signals */
} Run;

/* The columns of a program, numbered from 0 within it; see tape.py. */
typedef struct {
    int32_t ranks, rows, steps, messages, jobs, marks, longest;
    const int32_t *first_row, *first_step, *window, *job_of_rank, *kind, *step_of_row, *message_of_row, *after, *operations;
    const int32_t *rank_of_step, *mark_of_step, *destination, *send_step, *receive_step, *first_rank, *first_message;
    const int32_t *first_mark, *mark_size, *repeat, *paths;
    const double *start, *amount, *nbytes, *latency;
} Columns;

/* _run.c */
int run_play(Run *run, double until, int to_end);
double run_part(const Run *run, const Flow *flow);
int run_is_flowing(const Run *run, const Flow *flow);
void run_schedule(Run *run, double time, int32_t kind, int32_t number);
void run_ground(Run *run, int32_t at);

/* _changes.c */
int run_init(Run *run, const double *capacity, int32_t links);
void run_free(Run *run);
int run_add(Run *run, const Columns *columns);
void run_remove(Run *run, int32_t job);

#pragma GCC visibility pop

#endif
