/* One simulation of many jobs: what the event loop (_engine.c), the passes over the queue (_passes.c) and the choice of
   nodes (_places.c) share. */

#ifndef TOPOMPI_JOBS_ENGINE_H
#define TOPOMPI_JOBS_ENGINE_H

#include <stdint.h>

enum { COUNTS, FIRST, ISOLATED };           /* policies */
enum { SMALL, MEDIUM, LARGE };              /* jobs of one leaf, of one pod, of several */
enum { BLOCK = 64 };                        /* a power of two */

/* What isolated placement reads, for a set of running jobs. A leaf is usable that has no medium or large job. */
typedef struct {
    int32_t *leaf_free, *leaf_wide; /* of each leaf free nodes; medium and large jobs */
    int32_t *pod_free, *pod_large;  /* of each pod free nodes; large jobs */
    int32_t *pod_most, *pod_usable; /* of each pod the most free nodes of a leaf; free nodes of its usable leaves */
    int32_t open;                   /* free nodes of usable leaves of pods without a large job */
} View;

typedef struct {
    int64_t end;
    int32_t job;
} Ending;

/* Lower bounds of the jobs of BLOCK places of the queue. */
typedef struct {
    int64_t estimate;
    int32_t size;
} Bound;

typedef struct {
    int32_t jobs, nodes, leaves, pods, leaf_size, pod_size;
    int policy, depth;
    const int64_t *submit, *duration, *estimate, *rank;
    const int32_t *size, *leaf_start, *pod_start; /* first node of each leaf, first leaf of each pod; one more at the end */
    int64_t *start, *pass_of, passes; /* in seconds and in passes; the number of the present one */
    int32_t *leaf_of, *pod_of; /* leaf of a node, pod of a leaf */
    char *busy;
    int32_t free, hint; /* no node below the hint is free */
    View now, later;
    int32_t *order; /* scratch for sorted leaves and pods */
    Ending *heap;   /* running jobs by their end */
    int32_t heap_len;
    Ending *running; /* the same by their estimated end, ascending */
    int32_t running_len;
    int32_t *queue, head, tail; /* waiting jobs by rank, -1 where one has started */
    int32_t holes, last;        /* such places; the last waiting job, or one that was */
    Bound *bound;
    int32_t *waiting_of_size, least; /* no waiting job is smaller than this */
    int64_t *offset;                 /* of a job's nodes in the list below */
    int32_t *list;
    int64_t list_len, list_room;
    int64_t *times; /* a timeline: from times[i] on free_at[i] nodes are free */
    int32_t *free_at, line_len;
} Engine;

/* _places.c */
int jobs_kind(const Engine *e, int32_t size);
void jobs_set_up(Engine *e);
/* Add a job's nodes to a view, or with sign -1 take them out. */
void jobs_change(const Engine *e, View *view, int32_t job, int sign);
void jobs_copy_view(const Engine *e, View *to, const View *from);
/* The largest job of a kind that finds nodes. */
int32_t jobs_room(const Engine *e, const View *view, int of);
/* Whether a job of this size finds nodes now that another job has ended, where it found none before. */
int jobs_room_after(const Engine *e, const View *view, int32_t ended, int32_t size);
/* 1 where nodes for the job stand at the end of the list, 0 for none, -1 without memory. */
int jobs_place(Engine *e, int32_t job);

/* _engine.c */
void jobs_start(Engine *e, int32_t job, int64_t now);

/* _queue.c */
void jobs_enqueue(Engine *e, int32_t job);
/* The job of a place behind the head has started; the plan, which knows no holes, closes up by itself. */
void jobs_dequeue(Engine *e, int32_t at);
void jobs_tidy(Engine *e);
/* No waiting job is smaller. */
int32_t jobs_least_waiting(Engine *e);

/* _passes.c */
/* Start what may start now; -1 without memory. */
int jobs_pass(Engine *e, int64_t now);

#endif
