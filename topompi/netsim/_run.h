/* Ranks at work on their programs, and the flows between them, event by event; interpreter.py has the same in Python.

   The order of events at one instant is the same there, because what keeps a processor busy first makes the rest wait.
   Programs may be added and removed at any time between events: all that belongs to them is numbered through, in the order
   in which they came. */

#ifndef TOPOMPI_NETSIM_RUN_H
#define TOPOMPI_NETSIM_RUN_H

#include <stdint.h>

#include "_fair.h"
#include "_groups.h"

#pragma GCC visibility push(hidden) /* calls between these files go straight */

enum { COMPUTE, RECEIVE, SEND };
enum { COMPUTED, RECEIVED, DEPART, START, TIMER }; /* kinds of events */
enum { ONCE, UNTIL_ALL_RAN, BACKGROUND };
enum { OVER, ENDLESS, NO_MEMORY, NO_TIME, PAUSED }; /* how a while ended: as asked, for want of anything to happen, ... */
enum { END = -1 };                                  /* of a run, in the place of a named step */

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

/* When a job ended a run, or completed a named step in one. */
typedef struct {
    double time;
    int32_t job, mark;
} Record;

typedef struct {
    Group ranks, rows, steps, messages, jobs, marks;
    int32_t *first_row, *first_step, *window, *job_of_rank;   /* ranks; the first two have one item more */
    double *end, *processor;                                  /* end of the first run, NaN before; when it is free */
    int32_t *row, *oldest;                                    /* next operation, first step that is incomplete */
    int32_t *kind, *step_of_row, *message_of_row;             /* rows */
    double *amount;
    int32_t *operations, *rank_of_step, *mark_of_step, *pending; /* steps */
    int32_t *destination, *send_step, *receive_step, *paths;     /* messages; paths are padded with -1 */
    double *nbytes, *latency, *arrivals;                         /* arrivals: how often it has come */
    uint8_t *state;
    int32_t *first_rank, *first_message, *first_mark, *repeat, *left; /* jobs; the first three have one item more */
    double *began;                                                    /* of the run at hand */
    uint8_t *over;
    int32_t *mark_size, *mark_left; /* named steps: ranks, and those that have not completed it in this run */
    int32_t links;                  /* of the network; each rank has one more, for messages inside its host */
    double *capacity, copy_rate;
    double send_overhead, receive_overhead, eager, tolerance;
    Fair fair;
    Event *events;
    int32_t num_events, room;
    Flight *soonest; /* flows by their finish, a heap; those that are not held */
    Held *held;      /* at their finish, until all that is due is seen to */
    int32_t flying, num_held;
    int32_t *fresh, num_fresh;
    Record *records; /* that nobody has read */
    int32_t num_records, room_records;
    double now, due;
    int32_t waiting; /* jobs that have to run once and have not yet */
    int changed, failure, ended;
    int64_t work; /* events, and flows that got another rate, since signals were last looked for */
} Run;

/* A program's columns, numbered from 0 within; see tape.py. */
typedef struct {
    int32_t ranks, rows, steps, messages, jobs, marks, longest;
    const int32_t *first_row, *first_step, *window, *job_of_rank, *kind, *step_of_row, *message_of_row, *operations;
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
