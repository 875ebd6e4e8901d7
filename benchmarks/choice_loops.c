/* Times collective calls in one job of Open MPI: by its own choice, by a file of rules, and with algorithms forced.

   `choice_loops PLAN [SECONDS]`, where PLAN has lines of a word and its values:
     moved NAME             a collective, for example bcast, that coll/tuned runs in place of coll/han with the rules
     method NAME            a collective, for example Bcast
     side NUMBER SEGMENT    -1 for the library without rules, 0 for the rules file, else the number of an algorithm of
                            coll/tuned, with bytes of a segment or 0; with MPICH only -1
     size BYTES MILLISECONDS  times all sides of the method: a message, a reduction's vector, else one block; sides whose
                            segment is longer than half of the size are left out
   After SECONDS only sizes of up to 64 KiB are timed. The job has to start with the rules file. A communicator keeps the
   parameters with which it was made, so that each side has one of its own. In each round all sides take turns, in
   random order. A side is left out of the later rounds once its shortest call is much longer than the shortest of all, and of longer calls if it is 2.5 times as long and
   the shortest takes more than 10 ms. Sizes have to ascend. Rank 0 prints a line of JSON for each size: for each
   side the seconds of its calls on the slowest rank, and the processor seconds of all ranks; null for a refused call. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { MOST_SIDES = 64, MOST_ROUNDS = 64, MOST_MOVED = 16, SHORT = 65536 };
enum { TUNED = 3, HAN = 6 }; /* numbers of components, as `ompi_info` of 5.0 prints them for coll/han */
static const double LONG = 0.01; /* seconds of a call from which on longer calls change little in the order of sides */

typedef struct {
    int number, segment, refused, hopeless, calls, racing;
    MPI_Comm comm;
    double seconds[MOST_ROUNDS], processor[MOST_ROUNDS];
} Side;

static int rank, ranks, han_priority = -1, moved, *counts;
static char method[32], others[MOST_MOVED][32], *out, *in;
static Side sides[MOST_SIDES];

static void fail(const char *what) {
    fprintf(stderr, "choice_loops: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Reads a parameter of Open MPI, or writes it if `writes`. */
static int parameter(const char *name, int value, int writes) {
    int index, count, found = 0;
#ifndef OPEN_MPI
    return 0;
#endif
    MPI_T_cvar_handle handle;
    if (MPI_T_cvar_get_index(name, &index) || MPI_T_cvar_handle_alloc(index, NULL, &handle, &count))
        fail(name);
    if (writes ? MPI_T_cvar_write(handle, &value) : MPI_T_cvar_read(handle, &found))
        fail(name);
    MPI_T_cvar_handle_free(&handle);
    return found;
}

static void write_for_method(const char *ending, int value) {
    char name[96];
    int length = snprintf(name, sizeof name, "coll_tuned_%s_algorithm%s", method, ending);
    for (int at = 0; at < length; at++)
        if (name[at] >= 'A' && name[at] <= 'Z')
            name[at] += 'a' - 'A';
    parameter(name, value, 1);
}

/* Has a component run all moved collectives. coll/han reads this in each call, for all communicators. */
static void move(int component) {
    char name[96];
    for (int at = 0; at < moved; at++) {
        snprintf(name, sizeof name, "coll_han_%.31s_dynamic_global_communicator_module", others[at]);
        parameter(name, component, 1);
    }
}

static int call(MPI_Comm comm, int n) {
    if (!strcmp(method, "Bcast")) return MPI_Bcast(out, n, MPI_BYTE, 0, comm);
    if (!strcmp(method, "Reduce")) return MPI_Reduce(out, in, n / 4, MPI_INT, MPI_SUM, 0, comm);
    if (!strcmp(method, "Allreduce")) return MPI_Allreduce(out, in, n / 4, MPI_INT, MPI_SUM, comm);
    if (!strcmp(method, "Allgather")) return MPI_Allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, comm);
    if (!strcmp(method, "Alltoall")) return MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, comm);
    if (!strcmp(method, "Gather")) return MPI_Gather(out, n, MPI_BYTE, in, n, MPI_BYTE, 0, comm);
    if (!strcmp(method, "Scatter")) return MPI_Scatter(out, n, MPI_BYTE, in, n, MPI_BYTE, 0, comm);
    if (!strcmp(method, "Reduce_scatter_block"))
        return MPI_Reduce_scatter_block(out, in, n / 4 / ranks, MPI_INT, MPI_SUM, comm);
    if (!strcmp(method, "Reduce_scatter")) {
        for (int at = 0; at < ranks; at++)
            counts[at] = n / 4 / ranks;
        return MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, comm);
    }
    fail("unknown method");
    return 1;
}

static double processor_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

/* Makes the communicator of a side, and calls once, because coll/han makes communicators in its first call. */
static void make(Side *side) {
    int own = side->number < 0;
    side->hopeless = 0;
    parameter("coll_tuned_use_dynamic_rules", !own, 1);
    parameter("coll_han_priority", side->number > 0 ? 0 : han_priority, 1);
    move(side->number == 0 ? TUNED : HAN);
    write_for_method("", own ? 0 : side->number);
    if (side->segment)
        write_for_method("_segmentsize", side->segment);
    MPI_Comm_dup(MPI_COMM_WORLD, &side->comm);
    if (side->segment)
        write_for_method("_segmentsize", 0);
    MPI_Comm_set_errhandler(side->comm, MPI_ERRORS_RETURN);
    int refused = call(side->comm, 4 * ranks) != MPI_SUCCESS;
    MPI_Allreduce(&refused, &side->refused, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
}

static void time_call(Side *side, int nbytes) {
    double found[2], most, sum;
    move(side->number == 0 ? TUNED : HAN);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), used = processor_seconds();
    call(side->comm, nbytes);
    found[0] = MPI_Wtime() - begin, found[1] = processor_seconds() - used;
    move(HAN);
    MPI_Reduce(&found[0], &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&found[1], &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        side->seconds[side->calls] = most, side->processor[side->calls] = sum, side->calls++;
}

static double shortest(const Side *side) {
    double least = side->seconds[0];
    for (int at = 1; at < side->calls; at++)
        least = side->seconds[at] < least ? side->seconds[at] : least;
    return least;
}

/* Leaves slow sides out, on rank 0. The library's own choice and the rules file stay. */
static void race(int number, int rounds) {
    double least = 1e30;
    for (int at = 0; at < number; at++)
        if (sides[at].racing && shortest(&sides[at]) < least)
            least = shortest(&sides[at]);
    double most = rounds < 3 ? (least > LONG ? 2.5 : 4) : rounds < 6 ? 1.5 : 1.25;
    for (int at = 0; at < number; at++)
        if (sides[at].number > 0 && sides[at].racing && shortest(&sides[at]) > most * least) {
            sides[at].racing = 0;
            sides[at].hopeless = least > LONG && shortest(&sides[at]) > 2.5 * least;
        }
}

static void time_sides(int number, int nbytes, double seconds) {
    int order[MOST_SIDES], go[MOST_SIDES + 1] = {1};
    for (int at = 0; at < number; at++) {
        sides[at].calls = 0, order[at] = at;
        sides[at].racing = !sides[at].refused && 2L * sides[at].segment <= nbytes;
        MPI_Bcast(&sides[at].hopeless, 1, MPI_INT, 0, MPI_COMM_WORLD);
        sides[at].racing = sides[at].racing && !sides[at].hopeless;
    }
    double begin = MPI_Wtime();
    for (int round = 1; go[0]; round++) {
        for (int at = number - 1; at > 0; at--) { /* the same random numbers on all ranks */
            int other = rand() % (at + 1), kept = order[at];
            order[at] = order[other], order[other] = kept;
        }
        for (int at = 0; at < number; at++)
            if (sides[order[at]].racing)
                time_call(&sides[order[at]], nbytes);
        if (rank == 0) {
            race(number, round);
            double elapsed = MPI_Wtime() - begin;
            go[0] = round < MOST_ROUNDS && (round < (elapsed < 4 * seconds ? 4 : 3) || elapsed < seconds);
            for (int at = 0; at < number; at++)
                go[at + 1] = sides[at].racing;
        }
        MPI_Bcast(go, number + 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int at = 0; at < number; at++)
            sides[at].racing = go[at + 1];
    }
}

static void print_values(const char *name, const double *values, int number) {
    printf(", \"%s\": [", name);
    for (int at = 0; at < number; at++)
        printf("%s%.9f", at ? ", " : "", values[at]);
    printf("]");
}

static void print_sides(int number, int nbytes) {
    const char *between = "";
    printf("{\"method\": \"%s\", \"nbytes\": %d, \"sides\": [", method, nbytes);
    for (int at = 0; at < number; at++) {
        if (!sides[at].refused && !sides[at].calls)
            continue;
        printf("%s{\"number\": %d, \"segment\": %d", between, sides[at].number, sides[at].segment);
        if (sides[at].refused)
            printf(", \"seconds\": null");
        else {
            print_values("seconds", sides[at].seconds, sides[at].calls);
            print_values("processor", sides[at].processor, sides[at].calls);
        }
        printf("}");
        between = ", ";
    }
    printf("]}\n");
    fflush(stdout);
}

int main(int argc, char **argv) {
    int provided, number = 0, values[2], late;
    double most = argc > 2 ? atof(argv[2]) : 1e9;
    char line[128];
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    FILE *plan = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!plan)
        fail("expecting a plan");
    counts = calloc(ranks, sizeof *counts);
    out = calloc(ranks, 16 * ranks), in = calloc(ranks, 16 * ranks); /* for the first call of a side */
    han_priority = parameter("coll_han_priority", 0, 0);
    double begin = MPI_Wtime();
    for (int more = 1; more;) {
        more = fgets(line, sizeof line, plan) != NULL;
        if (more && moved < MOST_MOVED && sscanf(line, "moved %31s", others[moved]) == 1) {
            moved++;
            continue;
        }
        if (!more || !strncmp(line, "method ", 7)) {
            for (; number > 0; number--)
                MPI_Comm_free(&sides[number - 1].comm);
            if (*method)
                write_for_method("", 0);
            if (more)
                sscanf(line, "method %31s", method);
        } else if (sscanf(line, "side %d %d", &values[0], &values[1]) == 2 && number < MOST_SIDES) {
            sides[number].number = values[0], sides[number].segment = values[1];
            make(&sides[number++]);
        } else if (sscanf(line, "size %d %d", &values[0], &values[1]) == 2) {
            late = values[0] > SHORT && MPI_Wtime() - begin > most;
            MPI_Bcast(&late, 1, MPI_INT, 0, MPI_COMM_WORLD);
            if (late)
                continue;
            free(out), free(in);
            out = calloc(ranks, values[0]), in = calloc(ranks, values[0]);
            time_sides(number, values[0], values[1] / 1000.0);
            if (rank == 0)
                print_sides(number, values[0]);
        } else
            fail(line);
    }
    MPI_Finalize();
    MPI_T_finalize();
    return 0;
}
