/* Programs whose use of caches and memory is known, for measurements of jobs that share a node.
 *
 *     gcc -O2 -I topompi/machine/shutter -o kernels studies/poppa/kernels.c && ./kernels triad 1000000
 *
 * The first argument is the kernel, the second the number of steps, 0 for endless. Steps of one kernel are equal work of
 * about a microsecond, and are counted for the shutter (topompi_progress.h). At the end the program prints its seconds.
 *
 *     null       additions in registers: the neighbour that disturbs nobody
 *     triad      a = b + q c on three arrays of 64 MiB, larger than last-level caches
 *     stencil    five points on two grids of 4 MiB each: more than the caches of a core, less than the last level
 *     random     dependent loads from anywhere in 16 MiB: a table that a last-level cache can hold
 *     sparse     dependent loads from anywhere in 1 GiB: a table that none can hold
 *     blocked    products of matrices that fit the first-level cache
 *     phases-MS  MS milliseconds of null, then MS of triad, over and over; MS is 1, 3 or 10
 *     barriers   two processes with unequal parts of null and a barrier after each, at which they poll and yield
 */
#define _GNU_SOURCE
#include "topompi_progress.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#define CHUNK 512                        /* elements of a step of the triad */
#define LENGTH (8u << 20)                /* elements of an array of the triad */
#define SIDE 724                         /* rows and columns of a grid of the stencil: 4 MiB */
#define BLOCK 20                         /* rows and columns of a block of the products */
#define LOADS 8                          /* loads of a step */

static double *a, *b, *c;
static uint64_t *table, at;
static int shift;                        /* the upper bits of a random number that are no place in the table */
static volatile double sink;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

/* Memory of huge pages, which many clusters give to every program: else the caches of addresses decide. */
static void *filled(size_t bytes) {
    size_t whole = (bytes + (1 << 21) - 1) >> 21 << 21;
    char *memory = aligned_alloc(1 << 21, whole);
    if (!memory) {
        perror("kernels");
        exit(1);
    }
    madvise(memory, whole, MADV_HUGEPAGE);
    memset(memory, 0, bytes);
    return memory;
}

static void null_step(void) {
    uint64_t sum = at;
    int i;
    for (i = 0; i < 1000; i++) __asm__ volatile("add $1, %0" : "+r"(sum));
    at = sum;
}

static void triad_step(void) {
    double *to = a + at, *left = b + at, *right = c + at;
    int i;
    for (i = 0; i < CHUNK; i++) to[i] = left[i] + 3.0 * right[i];
    at = (at + CHUNK) % LENGTH;
}

static void stencil_step(void) {
    double *from = b + at * SIDE, *to = a + at * SIDE, *swap;
    int i;
    for (i = 1; i < SIDE - 1; i++) to[i] = 0.2 * (from[i] + from[i - 1] + from[i + 1] + from[i - SIDE] + from[i + SIDE]);
    if (++at == SIDE - 1) {
        at = 1;
        swap = a;
        a = b;
        b = swap;
    }
}

/* A linear congruential generator (Knuth's MMIX) gives the places; each needs the load before it, whose value is 0. */
static void random_step(void) {
    int i;
    for (i = 0; i < LOADS; i++) at = at * 6364136223846793005ull + 1442695040888963407ull + table[at >> shift];
}

static void blocked_step(void) {
    int i, j, k;
    for (i = 0; i < BLOCK / 4; i++)
        for (k = 0; k < BLOCK; k++)
            for (j = 0; j < BLOCK; j++) a[i * BLOCK + j] += 1e-9 * b[i * BLOCK + k] * c[k * BLOCK + j];
}

static void make_table(int bits) {
    table = filled(sizeof *table << bits);
    shift = 64 - bits;
}

static void make_arrays(size_t elements) {
    size_t i;
    a = filled(elements * sizeof *a), b = filled(elements * sizeof *b), c = filled(elements * sizeof *c);
    for (i = 0; i < elements; i++) b[i] = 1.0 + (double)i, c[i] = 0.5;
}

static void make_grids(void) {
    make_arrays((size_t)SIDE * SIDE);
    at = 1;
}

static void run(void (*step)(void), uint64_t steps) {
    uint64_t i;
    for (i = 0; steps == 0 || i < steps; i++) {
        step();
        topompi_progress(1);
    }
}

/* Steps of a kernel in so many seconds: the most of several measurements, because something else may have run. */
static uint64_t steps_in(void (*step)(void), double wanted) {
    uint64_t most = 1, i;
    double began;
    int trial;
    for (trial = 0; trial < 5; trial++) {
        at = 0;
        began = seconds();
        for (i = 0; seconds() - began < wanted; i++) step();
        if (i > most) most = i;
    }
    return most;
}

/* A phase counts as 1000 steps of progress in both kinds, as evenly as its steps allow: equal work is a share of it. */
static void run_phases(double length, uint64_t steps) {
    void (*kinds[2])(void) = {null_step, triad_step};
    uint64_t count[2], position = 0, i, counted, total = 0;
    int kind;
    make_arrays(LENGTH);
    for (kind = 0; kind < 2; kind++) count[kind] = steps_in(kinds[kind], length);
    at = 0;
    for (kind = 0; steps == 0 || total < steps; kind = !kind) {
        if (kind == 1) at = position;
        for (i = 0, counted = 0; i < count[kind]; i++) {
            kinds[kind]();
            if ((i + 1) * 1000 / count[kind] > counted) topompi_progress(1), counted++, total++;
        }
        if (kind == 1) position = at;
    }
}

/* Two processes: each step both work, the second a third longer, and both wait for each other. */
static void run_barriers(uint64_t steps) {
    volatile uint64_t *arrived = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    int mine = child == 0, parts = 30 + 10 * mine, part;
    uint64_t i;
    if (child < 0 || arrived == MAP_FAILED) {
        perror("kernels");
        exit(1);
    }
    if (mine) prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (i = 1; steps == 0 || i <= steps; i++) {
        for (part = 0; part < parts; part++) null_step();
        __atomic_store_n(&arrived[8 * mine], i, __ATOMIC_RELEASE);
        while (__atomic_load_n(&arrived[8 * !mine], __ATOMIC_ACQUIRE) < i) sched_yield();
        topompi_progress(1);
    }
    if (mine) exit(0);
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    double began;
    void (*step)(void) = NULL;
    if (!strcmp(name, "null")) step = null_step;
    if (!strcmp(name, "triad")) step = triad_step, make_arrays(LENGTH);
    if (!strcmp(name, "stencil")) step = stencil_step, make_grids();
    if (!strcmp(name, "random")) step = random_step, make_table(21);
    if (!strcmp(name, "sparse")) step = random_step, make_table(27);
    if (!strcmp(name, "blocked")) step = blocked_step, make_arrays(BLOCK * BLOCK);
    began = seconds();
    if (step)
        run(step, steps);
    else if (!strncmp(name, "phases-", 7) && atof(name + 7) > 0)
        run_phases(1e-3 * atof(name + 7), steps);
    else if (!strcmp(name, "barriers"))
        run_barriers(steps);
    else {
        fprintf(stderr, "kernels: expecting null, triad, stencil, random, sparse, blocked, phases-MS or barriers, got %s\n",
                argc > 1 ? name : "none");
        return 2;
    }
    sink = (double)at + (a ? a[0] : 0);
    printf("%.6f\n", seconds() - began);
    return 0;
}
