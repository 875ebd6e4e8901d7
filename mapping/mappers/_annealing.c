/* Annealing of annealing.py over swaps of two ranks, each priced by the edges of the two: O(degree), no table of prices. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { STEP = 512, BATCH = 16, LOGS = 4096, MANY = 16 };
/* proposals at one temperature, and drawn at once; entries of logs; edges a rank from which on room saves time */

static float logs[LOGS]; /* of equally likely numbers from 0 to 1 */

typedef struct {
    int32_t alone, ranks, places, near_count, movable_count;
    const int32_t *offsets, *targets;  /* of the symmetric graph in compressed rows */
    const float *weight;
    const float *distance;             /* between places */
    const int32_t *near;               /* places near each place, near_count a row */
    const int32_t *first;              /* first slot of each place, one more at the end */
    const int32_t *movable;            /* ranks that have edges */
    int32_t *place, *rank_at, *slot_of;
    float least;                      /* distance that two ranks can have */
    double *room;                      /* what each rank's edges cost above the least that they can; NULL if they are few */
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

/* A number below count, from 32 random bits. */
static inline int32_t
below(uint32_t bits, int32_t count)
{
    return (int32_t)((uint64_t)bits * (uint32_t)count >> 32);
}

/* Ranks, and for each one where a neighbour of it sits or near there. They are drawn before the first is priced,
   so that no loads wait for a misjudged branch; that swaps in between move some of them does no harm. */
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
        if (s->alone || b == s->place[r[at]] || (two & 1))
            b = s->near[(int64_t)b * s->near_count + below((uint32_t)(two >> 1), s->near_count)];
        int32_t slot = s->alone ? b : s->first[b] + below((uint32_t)(two >> 32), s->first[b + 1] - s->first[b]);
        t[at] = s->rank_at[slot];
    }
    s->random = random;
}

/* The distances from a place. */
static inline const float *
row(const Search *s, int32_t place)
{
    return s->distance + (int64_t)place * s->places;
}

/* What a rank's edges save where it moves from a place to another; the weight of its edge to the other rank in tie. */
static inline float
moved(const Search *s, int32_t rank, const float *from, const float *to, int32_t other, float *tie)
{
    const int32_t *targets = s->targets, *place = s->place;
    const float *weight = s->weight;
    float gain = 0;
    for (int32_t e = s->offsets[rank], end = s->offsets[rank + 1]; e < end; e++) {
        int32_t target = targets[e], at = place[target];
        gain += weight[e] * (from[at] - to[at]);
        *tie = target == other ? weight[e] : *tie;
    }
    return gain;
}

/* What swapping two ranks on different places saves; anything below the limit, found with less work, where it is below
   it and ranks have room. Kept out of line, for its caller needs the registers. */
static __attribute__((noinline)) float
price(const Search *s, int32_t r, int32_t t, float limit)
{
    int32_t a = s->place[r], b = s->place[t];
    const float *from_a = row(s, a), *from_b = row(s, b);
    float tie = 0, unused = 0, gain = moved(s, r, from_a, from_b, t, &tie);
    gain -= tie * (2 * from_a[b] - from_a[a] - from_b[b]);
    if (s->room != NULL) { /* t saves no more than its room, but for its edge to r */
        float most = gain + (float)s->room[t] + tie * s->least;
        if (most < limit)
            return most;
    }
    return gain + moved(s, t, from_b, from_a, -1, &unused);
}

/* The room of a rank's neighbours and its own, when it moves from place a to b and another rank the other way. */
static void
make_room(Search *s, int32_t rank, int32_t other, int32_t a, int32_t b)
{
    const float *from_a = row(s, a), *from_b = row(s, b);
    double own = 0.0;
    for (int32_t e = s->offsets[rank]; e < s->offsets[rank + 1]; e++) {
        int32_t near = s->targets[e], at = s->place[near];
        double more = near == other ? 0.0 : s->weight[e] * (from_b[at] - from_a[at]);
        s->room[near] += more, own += more;
    }
    s->room[rank] += own;
}

static void
measure_room(Search *s)
{
    for (int32_t r = 0; r < s->ranks; r++) {
        s->room[r] = 0.0;
        for (int32_t e = s->offsets[r]; e < s->offsets[r + 1]; e++)
            s->room[r] += s->weight[e] * (row(s, s->place[r])[s->place[s->targets[e]]] - s->least);
    }
}

static inline void
swap(Search *s, int32_t r, int32_t t)
{
    int32_t i = s->slot_of[r], j = s->slot_of[t], a = s->place[r], b = s->place[t];
    if (s->room != NULL)
        make_room(s, r, t, a, b), make_room(s, t, r, b, a);
    s->rank_at[i] = t, s->rank_at[j] = r;
    s->slot_of[r] = j, s->slot_of[t] = i;
    s->place[r] = b, s->place[t] = a;
}

/* What a number of proposals at one temperature save. */
static double
propose_and_swap(Search *s, float heat)
{
    double saved = 0.0;
    float limit[BATCH];
    int32_t r[BATCH], t[BATCH];
    for (int batch = 0; batch < STEP / BATCH; batch++) {
        propose(s, r, t, limit, heat);
        for (int at = 0; at < BATCH; at++) {
            if (s->place[r[at]] == s->place[t[at]])
                continue;
            float gain = price(s, r[at], t[at], limit[at]);
            if (gain < limit[at])
                continue;
            swap(s, r[at], t[at]);
            saved += gain;
        }
    }
    return saved;
}

/* Leaves the best places in place, and what is saved after each step in trace; returns what the best places save. */
static double
anneal(Search *s, const double *heat, double *trace, int64_t steps, int32_t *best)
{
    double saved = 0.0, most = 0.0;
    memcpy(best, s->place, s->ranks * sizeof *best);
    if (s->room != NULL)
        measure_room(s);
    for (int64_t step = 0; step < steps; step++) {
        saved += propose_and_swap(s, (float)heat[step]);
        trace[step] = saved;
        if (saved > most) {
            most = saved;
            memcpy(best, s->place, s->ranks * sizeof *best);
        }
    }
    memcpy(s->place, best, s->ranks * sizeof *best);
    return most;
}

/* anneal(offsets, targets, weight, distance, near, first, movable, rank_at, slot_of, place, heat, trace, seed,
   least) leaves the best places in place, and spoils rank_at and slot_of. */
static PyObject *
run(PyObject *module, PyObject *args)
{
    Search s = {0};
    Py_buffer in[12];
    unsigned long long seed;
    double saved = 0.0;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*w*w*w*y*w*Kf", &in[0], &in[1], &in[2], &in[3], &in[4], &in[5], &in[6],
                          &in[7], &in[8], &in[9], &in[10], &in[11], &seed, &s.least))
        return NULL;
    s.offsets = in[0].buf, s.targets = in[1].buf, s.weight = in[2].buf, s.distance = in[3].buf, s.near = in[4].buf;
    s.first = in[5].buf, s.movable = in[6].buf, s.rank_at = in[7].buf, s.slot_of = in[8].buf, s.place = in[9].buf;
    s.ranks = (int32_t)(in[9].len / 4), s.places = (int32_t)(in[5].len / 4) - 1;
    s.near_count = (int32_t)(in[4].len / 4 / s.places), s.movable_count = (int32_t)(in[6].len / 4);
    s.random = seed, s.alone = s.ranks == s.places;
    int32_t *best = PyMem_RawMalloc(in[9].len + 1);
    int many = in[1].len / 4 >= (Py_ssize_t)MANY * s.ranks;
    s.room = many ? PyMem_RawMalloc(s.ranks * sizeof *s.room + 1) : NULL;
    int short_of_memory = best == NULL || (many && s.room == NULL);
    if (!short_of_memory) {
        Py_BEGIN_ALLOW_THREADS
        saved = anneal(&s, in[10].buf, in[11].buf, in[10].len / 8, best);
        Py_END_ALLOW_THREADS
    }
    PyMem_RawFree(best);
    PyMem_RawFree(s.room);
    for (int at = 0; at < 12; at++)
        PyBuffer_Release(&in[at]);
    return short_of_memory ? PyErr_NoMemory() : PyFloat_FromDouble(saved);
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
