/* One simulation of many jobs: the declarations that the event loop (_engine.c), the passes over the queue (_passes.c)
   and the choice of nodes (_places.c) share. */

#ifndef TOPOMPI_JOBS_ENGINE_H
#define TOPOMPI_JOBS_ENGINE_H

#include <stdint.h>

enum { COUNTS, FIRST, ISOLATED, HALVES };   /* policies; by HALVES, a "node" is a half of a node */
enum { SMALL, MEDIUM, LARGE };              /* jobs of one leaf, of one pod, of several */
enum { BLOCK = 64 };                        /* places of the queue per Bound; a power of two, for masks */

/* The state that isolated placement reads, for a set of running jobs. A leaf without medium or large jobs is usable. */
typedef struct {
    int32_t *leaf_free, *leaf_wide; /* per leaf: free nodes; medium and large jobs */
    int32_t *pod_free, *pod_large;  /* per pod: free nodes; large jobs */
    int32_t *pod_most, *pod_usable; /* per pod: free nodes of its emptiest leaf; free nodes of its usable leaves */
    int32_t open;                   /* free nodes of usable leaves of pods without a large job */
} View;

/* The halves in use. A free half is single if the other half of its node is used. */
typedef struct {
    int32_t *code;   /* of each half: code of the job's program, -1 if it is free */
    int32_t *single; /* number of single halves beside each code */
    int32_t empty;   /* number of nodes with two free halves */
} HalfView;

typedef struct {
    int64_t end;
    int32_t job;
} Ending;

/* Lower bounds of size and estimate over the jobs at BLOCK consecutive places of the queue. */
typedef struct {
    int64_t estimate;
    int32_t size;
} Bound;

typedef struct {
    int32_t jobs, nodes, leaves, pods, leaf_size, pod_size;
    int policy, depth;
    const int64_t *submit, *duration, *estimate, *rank;
    const int32_t *size, *leaf_start, *pod_start; /* first node of each leaf, first leaf of each pod; last, the total */
    int64_t *start, *pass_of, passes; /* start of each job, in seconds and in passes; the present pass */
    int32_t *leaf_of, *pod_of; /* leaf of a node, pod of a leaf */
    char *busy;
    int32_t free, hint; /* number of free nodes; no node below the hint is free */
    View now, later;
    int32_t *order; /* scratch for sorted leaves and pods */
    Ending *heap;   /* running jobs by end */
    int32_t heap_len;
    Ending *running; /* running jobs by estimated end, ascending */
    int32_t running_len;
    int32_t *queue, head, tail; /* waiting jobs by rank; -1 is a hole, left by a started job */
    int32_t holes, last;        /* number of holes; the last job of the queue, which may have started */
    Bound *bound;
    int32_t *waiting_of_size, least; /* number of waiting jobs of each size; no waiting job is smaller than least */
    int64_t *offset;                 /* position of each job's nodes in the list below */
    int32_t *list;
    int64_t list_len, list_room;
    /* Halves of nodes: see Preferences of colocation/scheduling for the tables of neighbours. */
    HalfView halves, later_halves;
    int32_t codes, programs;                                   /* number of codes, and of programs */
    const int32_t *code, *program;                             /* of each job */
    const int32_t *neighbour_rank, *neighbour_last, *neighbour_spread; /* by codes */
    const double *rates;                                       /* of each program beside each, alone, and on both halves */
    const int64_t *limit;                                      /* longest run of each job in seconds; -1 for none */
    int64_t *end, *since;                                      /* of each job: end; last change of its rate */
    double *left, *speed;                                      /* work left then; rate, 0 if the job does not run */
    int32_t *owner, *quota, *place_of, *beside, *dirty, dirty_len;      /* job on each half; scratch; jobs whose rate may change */
    char *touched;
    int32_t *heap_at; /* place of each running job in the heap */
    int64_t *times; /* a timeline: from times[i] on, free_at[i] nodes are free */
    int32_t *free_at, line_len;
} Engine;

/* _places.c */
int jobs_kind(const Engine *e, int32_t size);
void jobs_set_up(Engine *e);
/* Add a job's nodes to a view, or, with sign -1, remove them. */
void jobs_change(const Engine *e, View *view, int32_t job, int sign);
void jobs_copy_view(const Engine *e, View *to, const View *from);
/* Size of the largest job of a kind that finds nodes. */
int32_t jobs_room(const Engine *e, const View *view, int of);
/* Whether a job of this size, which found no nodes before, finds nodes now that another job has ended. */
int jobs_room_after(const Engine *e, const View *view, int32_t ended, int32_t size);
/* Append nodes for the job to the list: 1 if there are any, 0 if not, -1 without memory. */
int jobs_place(Engine *e, int32_t job);

/* _engine.c */
void jobs_start(Engine *e, int32_t job, int64_t now);

/* Change the end of a running job. */
void jobs_move_end(Engine *e, int32_t job, int64_t end);

/* _halves.c */
void halves_change(const Engine *e, HalfView *view, int32_t job, int sign);
/* Number of free halves that a job accepts. */
int32_t halves_room(const Engine *e, const HalfView *view, int32_t job);
/* The second at which the head starts at the latest; later_halves becomes the state then, without the head. */
int64_t halves_shadow(Engine *e, int64_t now);
int halves_place(Engine *e, int32_t job);
void halves_start(Engine *e, int32_t job, int64_t now);
void halves_end(Engine *e, int32_t job);
/* Compute the rates of the jobs beside which jobs have started or ended, and their ends. */
void halves_change_rates(Engine *e, int64_t now);

/* _queue.c */
void jobs_enqueue(Engine *e, int32_t job);
/* Leave a hole for a job behind the head that has started. The plan does not use this: it closes the queue itself. */
void jobs_dequeue(Engine *e, int32_t at);
void jobs_tidy(Engine *e);
/* Lower bound of the sizes of waiting jobs. */
int32_t jobs_least_waiting(Engine *e);

/* _passes.c */
/* Start the jobs that may start now; -1 without memory. */
int jobs_pass(Engine *e, int64_t now);

#endif
