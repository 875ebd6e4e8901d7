/* The annealing of cooling.py over swaps of two ranks. The cost of a rank on a place is a sum over the machine's axes,
   from a table with a column per coordinate: evaluating a swap takes O(axes), and updating the costs of its neighbours
   O(columns). If there are many columns, there is no table, and a swap is evaluated from the edges of the two ranks. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_buffers.h"

enum { STEP = 512, BATCH = 16, LOGS = 4096, GROUP = 4, FRESH = 64 };
/* STEP: proposals per temperature, if none is accepted; BATCH: proposals drawn at once; LOGS: entries of logs; GROUP:
   columns updated together; FRESH: swaps per rank after which all costs are summed anew, because rounding errors of
   float add up */

enum { STEPS_A_SIGNAL = 1 << 12 };
enum { SWAP = 3, NEIGHBOUR = 4 }; /* work of a swap in proposals; groups of columns per neighbour that take one proposal's work */

#ifdef __GNUC__
#define ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE inline
#endif

static float logs[LOGS]; /* logarithms of equally likely numbers from 0 to 1 */

typedef struct {
    int32_t alone, ranks, places, axes, columns, near_count, movable_count;
    const int32_t *offsets, *targets;  /* the symmetric graph in compressed rows */
    const float *weight;
    const float *far;                  /* distance from each place to each coordinate of each axis, columns per row */
    const int32_t *column;             /* column of each place's coordinate on each axis, axes per row */
    const int32_t *near;               /* places near each place, near_count per row */
    const int32_t *first;              /* first slot of each place, and the number of slots */
    const int32_t *movable;            /* ranks with edges */
    int32_t *place, *rank_at, *slot_of, *best;
    float *price;                      /* cost of each rank's edges at each coordinate, columns per row; NULL: by edges */
    float *change;                     /* change of the distance to each coordinate if a rank moves */
    int32_t *changed;                  /* groups of columns in which change is not 0 */
    uint64_t random;
} Search;

/* SplitMix64 (Steele, Lea, Flood 2014). */
static inline uint64_t
next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A number from 0 to count - 1, from 32 random bits. */
static inline int32_t
below(uint32_t bits, int32_t count)
{
    return (int32_t)((uint64_t)bits * (uint32_t)count >> 32);
}

/* Draw ranks, and for each a rank on or near the place of one of its neighbours. All are drawn before the first is
   evaluated, so that no load waits for a mispredicted branch. Swaps within the batch may move some of them, which does
   no harm. */
static inline void
propose(Search *s, int32_t *r, int32_t *t, float *limit, float heat)
{
    uint64_t random = s->random;
    for (int at = 0; at < BATCH; at++) {
        uint64_t one = next_random(&random), two = next_random(&random);
        r[at] = s->movable[below((uint32_t)one, s->movable_count)];
        limit[at] = heat * logs[one & (LOGS - 1)];
        int32_t start = s->offsets[r[at]], degree = s->offsets[r[at] + 1] - start;
        int32_t b = s->place[s->targets[start + below((uint32_t)(one >> 32), degree)]];
        int aside = s->alone | (b == s->place[r[at]]) | (int)(two & 1); /* true half of the time, so no branch */
        int32_t there[] = {b, s->near[(int64_t)b * s->near_count + below((uint32_t)(two >> 1), s->near_count)]};
        b = there[aside];
        int32_t slot = s->alone ? b : s->first[b] + below((uint32_t)(two >> 32), s->first[b + 1] - s->first[b]);
        t[at] = s->rank_at[slot];
    }
    s->random = random;
}

/* The saving if a rank moves from place a to place b and all others stay. */
static ALWAYS_INLINE float
moved(const Search *s, int32_t axes, int32_t rank, int32_t a, int32_t b)
{
    const int32_t *from = s->column + (int64_t)a * axes, *to = s->column + (int64_t)b * axes;
    const float *price = s->price + (int64_t)rank * s->columns;
    float gain = 0;
    for (int32_t axis = 0; axis < axes; axis++)
        gain += price[from[axis]] - price[to[axis]];
    return gain;
}

/* The same with one axis and without a table of costs. */
static inline float
moved_by_edges(const Search *s, int32_t rank, int32_t a, int32_t b)
{
    const float *from = s->far + (int64_t)a * s->columns, *to = s->far + (int64_t)b * s->columns;
    float gain = 0;
    for (int32_t e = s->offsets[rank], end = s->offsets[rank + 1]; e < end; e++) {
        int32_t at = s->place[s->targets[e]];
        gain += s->weight[e] * (from[at] - to[at]);
    }
    return gain;
}

static inline float
distance(const Search *s, int32_t a, int32_t b)
{
    const float *far = s->far + (int64_t)a * s->columns;
    const int32_t *column = s->column + (int64_t)b * s->axes;
    float sum = 0;
    for (int32_t axis = 0; axis < s->axes; axis++)
        sum += far[column[axis]];
    return sum;
}

/* The weight of the edge between two ranks; 0 if there is none. */
static float
tie(const Search *s, int32_t r, int32_t t)
{
    for (int32_t e = s->offsets[r]; e < s->offsets[r + 1]; e++)
        if (s->targets[e] == t)
            return s->weight[e];
    return 0;
}

/* The saving of swapping two ranks on places a and b. Ranks that communicate keep their distance, which can only reduce
   the saving, so their edge is not looked up if the rest is below the limit. */
static ALWAYS_INLINE float
priced(const Search *s, int32_t axes, int32_t r, int32_t t, int32_t a, int32_t b, float limit)
{
    float gain = axes ? moved(s, axes, r, a, b) + moved(s, axes, t, b, a)
                      : moved_by_edges(s, r, a, b) + moved_by_edges(s, t, b, a);
    if (gain < limit)
        return gain;
    float weight = tie(s, r, t);
    return weight == 0 ? gain : gain - weight * (2 * distance(s, a, b) - distance(s, a, a) - distance(s, b, b));
}

/* The groups of columns in which the distances from two places differ; the differences are stored in s->change. */
static int32_t
compare(Search *s, int32_t a, int32_t b)
{
    const float *from = s->far + (int64_t)a * s->columns, *to = s->far + (int64_t)b * s->columns;
    int32_t count = 0;
    for (int32_t at = 0; at < s->columns; at += GROUP) {
        int differ = 0;
        for (int32_t one = at; one < at + GROUP; one++) {
            s->change[one] = to[one] - from[one];
            differ |= s->change[one] != 0;
        }
        s->changed[count] = at;
        count += differ;
    }
    return count;
}

/* Update the costs of a rank's neighbours after its move: sign 1 in the direction of compare, -1 in the other. */
static void
reprice(Search *s, int32_t rank, int32_t count, float sign)
{
    for (int32_t e = s->offsets[rank]; e < s->offsets[rank + 1]; e++) {
        float weight = sign * s->weight[e], *price = s->price + (int64_t)s->targets[e] * s->columns;
        for (int32_t group = 0; group < count; group++) {
            float *to = price + s->changed[group];
            const float *by = s->change + s->changed[group];
            for (int at = 0; at < GROUP; at++)
                to[at] += weight * by[at];
        }
    }
}

static void
price_all(Search *s)
{
    if (s->price == NULL)
        return;
    memset(s->price, 0, (size_t)s->ranks * s->columns * sizeof *s->price);
    for (int32_t r = 0; r < s->ranks; r++)
        for (int32_t e = s->offsets[r]; e < s->offsets[r + 1]; e++) {
            const float *far = s->far + (int64_t)s->place[s->targets[e]] * s->columns;
            for (int32_t at = 0; at < s->columns; at++)
                s->price[(int64_t)r * s->columns + at] += s->weight[e] * far[at];
        }
}

/* Swap two ranks; returns the work in proposals, which is 0 without a table of costs. */
static int64_t
swap(Search *s, int32_t r, int32_t t)
{
    int32_t i = s->slot_of[r], j = s->slot_of[t], a = s->place[r], b = s->place[t];
    s->rank_at[i] = t, s->rank_at[j] = r;
    s->slot_of[r] = j, s->slot_of[t] = i;
    s->place[r] = b, s->place[t] = a;
    if (s->price == NULL)
        return 0;
    int32_t count = compare(s, a, b);
    reprice(s, r, count, 1);
    reprice(s, t, count, -1);
    int64_t neighbours = s->offsets[r + 1] - s->offsets[r] + s->offsets[t + 1] - s->offsets[t];
    return SWAP + neighbours * (1 + count) / NEIGHBOUR;
}

/* The saving of a batch of proposals at one temperature; counts swaps, and the work in proposals. With axes 0, swaps
   are evaluated by edges. */
static ALWAYS_INLINE double
propose_and_swap(Search *s, int32_t axes, float heat, int64_t *swaps, int64_t *work)
{
    double saved = 0.0;
    float limit[BATCH];
    int32_t r[BATCH], t[BATCH];
    propose(s, r, t, limit, heat);
    for (int at = 0; at < BATCH; at++) {
        int32_t a = s->place[r[at]], b = s->place[t[at]];
        if (a == b)
            continue;
        float gain = priced(s, axes, r[at], t[at], a, b, limit[at]);
        if (gain < limit[at])
            continue;
        *work += swap(s, r[at], t[at]);
        *swaps += 1;
        saved += gain;
    }
    *work += BATCH;
    return saved;
}

/* The same with a constant number of axes for the usual numbers, because the compiler then unrolls the loop. */
static double
one_batch(Search *s, float heat, int64_t *swaps, int64_t *work)
{
    switch (s->price == NULL ? 0 : s->axes) {
    case 0: return propose_and_swap(s, 0, heat, swaps, work);
    case 2: return propose_and_swap(s, 2, heat, swaps, work);
    case 3: return propose_and_swap(s, 3, heat, swaps, work);
    case 4: return propose_and_swap(s, 4, heat, swaps, work);
    case 5: return propose_and_swap(s, 5, heat, swaps, work);
    default: return propose_and_swap(s, s->axes, heat, swaps, work);
    }
}

/* The progress of an annealing. */
typedef struct {
    double saved, most; /* saving of the current places, and of the best places */
    int64_t step, work, swaps, fresh;
} Cooled;

/* Run one step. All steps have the same work, so their time does not depend on the number of accepted swaps. */
static void
cool(Search *s, const double *heat, double *trace, Cooled *so_far)
{
    int64_t step = so_far->step++;
    while (so_far->work < (step + 1) * STEP)
        so_far->saved += one_batch(s, (float)heat[step], &so_far->swaps, &so_far->work);
    trace[step] = so_far->saved;
    if (so_far->saved > so_far->most) {
        so_far->most = so_far->saved;
        memcpy(s->best, s->place, s->ranks * sizeof *s->best);
    }
    if (so_far->swaps - so_far->fresh > (int64_t)FRESH * s->ranks) {
        price_all(s);
        so_far->fresh = so_far->swaps;
    }
}

/* Leave the best places in place, and the saving after each step in trace; returns the saving of the best places, NAN
   if a signal handler raises. */
static double
anneal(Search *s, const double *heat, double *trace, int64_t steps)
{
    Cooled so_far = {0};
    memcpy(s->best, s->place, s->ranks * sizeof *s->best);
    price_all(s);
    while (so_far.step < steps) {
        int64_t pause = steps - so_far.step < STEPS_A_SIGNAL ? steps : so_far.step + STEPS_A_SIGNAL;
        Py_BEGIN_ALLOW_THREADS
        while (so_far.step < pause)
            cool(s, heat, trace, &so_far);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0)
            return NAN;
    }
    memcpy(s->place, s->best, s->ranks * sizeof *s->best);
    return so_far.most;
}

/* Allocate memory; 0 if there is none. */
static int
allocate(Search *s, int by_edges)
{
    s->best = PyMem_RawMalloc(s->ranks * sizeof *s->best + 1);
    s->price = by_edges ? NULL : PyMem_RawMalloc((size_t)s->ranks * s->columns * sizeof *s->price + 1);
    s->change = PyMem_RawMalloc(s->columns * sizeof *s->change + 1);
    s->changed = PyMem_RawMalloc((s->columns / GROUP + 1) * sizeof *s->changed);
    return s->best != NULL && (by_edges || s->price != NULL) && s->change != NULL && s->changed != NULL;
}

/* Check the arrays and set the search's pointers; 0 with an exception if an array is wrong. */
static int
read_arrays(Search *s, PyObject *const *given, Buffers *buffers, int by_edges)
{
    Py_ssize_t offsets = BUFFERS_ANY, edges = BUFFERS_ANY, starts = BUFFERS_ANY, movable = BUFFERS_ANY, ranks = BUFFERS_ANY;
    if (!((s->place = buffers_column(buffers, given[10], "place", BUFFERS_INT32, BUFFERS_WRITE, &ranks)) &&
          (s->rank_at = buffers_column(buffers, given[8], "rank_at", BUFFERS_INT32, BUFFERS_WRITE, &ranks)) &&
          (s->slot_of = buffers_column(buffers, given[9], "slot_of", BUFFERS_INT32, BUFFERS_WRITE, &ranks)) &&
          (offsets = ranks + 1,
           s->offsets = buffers_column(buffers, given[0], "offsets", BUFFERS_INT32, BUFFERS_READ, &offsets)) &&
          (s->targets = buffers_column(buffers, given[1], "targets", BUFFERS_INT32, BUFFERS_READ, &edges)) &&
          (s->weight = buffers_column(buffers, given[2], "weight", BUFFERS_FLOAT32, BUFFERS_READ, &edges)) &&
          (s->first = buffers_column(buffers, given[6], "first", BUFFERS_INT32, BUFFERS_READ, &starts)) &&
          (s->movable = buffers_column(buffers, given[7], "movable", BUFFERS_INT32, BUFFERS_READ, &movable))))
        return 0;
    Py_ssize_t far[] = {starts - 1, BUFFERS_ANY}, column[] = {starts - 1, BUFFERS_ANY}, near[] = {starts - 1, BUFFERS_ANY};
    if (!((s->far = buffers_take(buffers, given[3], "far", BUFFERS_FLOAT32, BUFFERS_READ, 2, far)) &&
          (s->column = buffers_take(buffers, given[4], "column", BUFFERS_INT32, BUFFERS_READ, 2, column)) &&
          (s->near = buffers_take(buffers, given[5], "near", BUFFERS_INT32, BUFFERS_READ, 2, near))))
        return 0;
    if (far[1] % GROUP || !movable || !near[1] || (by_edges && column[1] != 1)) {
        PyErr_Format(PyExc_ValueError,
                     "expecting columns in groups of %d, ranks with edges, places nearby and, by edges, one axis; got %zd, "
                     "%zd, %zd and %zd", (int)GROUP, far[1], movable, near[1], column[1]);
        return 0;
    }
    s->ranks = (int32_t)ranks, s->places = (int32_t)starts - 1;
    s->columns = (int32_t)far[1], s->axes = (int32_t)column[1];
    s->near_count = (int32_t)near[1], s->movable_count = (int32_t)movable;
    s->alone = s->ranks == s->places;
    return 1;
}

/* anneal(offsets, targets, weight, far, column, near, first, movable, rank_at, slot_of, place, heat, trace, seed,
   by_edges) leaves the best places in place; rank_at and slot_of are undefined afterwards. */
static PyObject *
run(PyObject *module, PyObject *args)
{
    Search s = {0};
    Buffers buffers = {.count = 0};
    PyObject *given[13], *answer = NULL;
    unsigned long long seed;
    int by_edges;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOOOOKp", &given[0], &given[1], &given[2], &given[3], &given[4], &given[5], &given[6],
                          &given[7], &given[8], &given[9], &given[10], &given[11], &given[12], &seed, &by_edges))
        return NULL;
    s.random = seed;
    Py_ssize_t steps = BUFFERS_ANY;
    double *trace = buffers_column(&buffers, given[12], "trace", BUFFERS_FLOAT64, BUFFERS_WRITE, &steps);
    const double *heat =
        trace ? buffers_column(&buffers, given[11], "heat", BUFFERS_FLOAT64, BUFFERS_READ, &steps) : NULL;
    if (heat && read_arrays(&s, given, &buffers, by_edges)) {
        if (allocate(&s, by_edges)) {
            double saved = anneal(&s, heat, trace, steps);
            answer = isnan(saved) ? NULL : PyFloat_FromDouble(saved);
        } else
            PyErr_NoMemory();
    }
    PyMem_RawFree(s.best), PyMem_RawFree(s.price), PyMem_RawFree(s.change), PyMem_RawFree(s.changed);
    buffers_release(&buffers);
    return answer;
}

static PyMethodDef methods[] = {
    {"anneal", run, METH_VARARGS, "Anneal; see annealing.py."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_annealing", "Swaps of ranks, priced one by one.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__annealing(void)
{
    for (int at = 0; at < LOGS; at++)
        logs[at] = (float)log((at + 0.5) / LOGS);
    return PyModule_Create(&definition);
}
