/* Makes each blocking collective in its forms on several communicators; rank 0 prints a checksum of the memory after each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_CALLS = 80, MOST_RANKS = 16 };
static int world_rank, world_size, rank, size, items; /* items: doubles of a block */
static long length;                                   /* doubles of each buffer */
static double *in, *out, sums[MOST_CALLS];
static int calls;
static int counts[MOST_RANKS], places[MOST_RANKS], other_counts[MOST_RANKS], other_places[MOST_RANKS];

static void fill(void) {
    for (long i = 0; i < length; i++) in[i] = (rank + 1) * (double)(i % 13 + 1), out[i] = -1 - rank;
}

static void note(void) {
    double sum = 0;
    for (long i = 0; i < length; i++) sum += (in[i] + 3 * out[i]) * (1 + i % 7);
    sums[calls++] = sum * (1 + world_rank);
}

#define CALL(...)     \
    do {              \
        fill();       \
        __VA_ARGS__;  \
        note();       \
    } while (0)

/* x -> in[0] * x + in[1]: an operation that does not commute */
static void compose(void *first, void *second, int *number, MPI_Datatype *type) {
    double *f = first, *g = second;
    (void)type;
    for (int i = 0; i < *number; i++, f += 2, g += 2) {
        double slope = g[0] * f[0], shift = g[0] * f[1] + g[1];
        g[0] = slope > 1000 ? slope - 1000 : slope, g[1] = shift > 1000 ? shift - 1000 : shift;
    }
}

static void rooted(MPI_Comm c, int root) {
    int here = rank == root;
    CALL(MPI_Bcast(out, items, MPI_DOUBLE, root, c));
    CALL(MPI_Reduce(in, out, items, MPI_DOUBLE, MPI_SUM, root, c));
    CALL(MPI_Reduce(here ? MPI_IN_PLACE : in, here ? in : NULL, items, MPI_DOUBLE, MPI_MAX, root, c));
    CALL(MPI_Gather(in, items, MPI_DOUBLE, out, items, MPI_DOUBLE, root, c));
    CALL(if (here) MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, items, MPI_DOUBLE, root, c);
         else MPI_Gather(in, items, MPI_DOUBLE, NULL, 0, MPI_DATATYPE_NULL, root, c));
    CALL(MPI_Scatter(in, items, MPI_DOUBLE, out, items, MPI_DOUBLE, root, c));
    CALL(if (here) MPI_Scatter(in, items, MPI_DOUBLE, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, c);
         else MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, out, items, MPI_DOUBLE, root, c));
    CALL(MPI_Gatherv(in, counts[rank], MPI_DOUBLE, out, here ? counts : NULL, here ? places : NULL, MPI_DOUBLE, root, c));
    CALL(MPI_Scatterv(in, here ? counts : NULL, here ? places : NULL, MPI_DOUBLE, out, counts[rank], MPI_DOUBLE, root, c));
}

static void symmetric(MPI_Comm c) {
    CALL(MPI_Allreduce(in, out, items, MPI_DOUBLE, MPI_SUM, c));
    CALL(MPI_Allreduce(MPI_IN_PLACE, in, items, MPI_DOUBLE, MPI_MIN, c));
    CALL(MPI_Scan(in, out, items, MPI_DOUBLE, MPI_SUM, c));
    CALL(MPI_Exscan(in, out, items, MPI_DOUBLE, MPI_SUM, c); if (!rank) fill());
    CALL(MPI_Reduce_scatter_block(in, out, items, MPI_DOUBLE, MPI_SUM, c));
    CALL(MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, c));
    CALL(MPI_Allgather(in, items, MPI_DOUBLE, out, items, MPI_DOUBLE, c));
    CALL(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, items, MPI_DOUBLE, c));
    CALL(MPI_Allgatherv(in, counts[rank], MPI_DOUBLE, out, counts, places, MPI_DOUBLE, c));
    CALL(MPI_Alltoall(in, items, MPI_DOUBLE, out, items, MPI_DOUBLE, c));
    CALL(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, items, MPI_DOUBLE, c));
    for (int i = 0; i < size; i++) {
        other_counts[i] = items - (items && (i + rank) % 2), other_places[i] = 2 * i * items;
    }
    CALL(MPI_Alltoallv(in, other_counts, other_places, MPI_DOUBLE, out, other_counts, other_places, MPI_DOUBLE, c));
    MPI_Barrier(c);
}

static void with_types(MPI_Comm c) { /* types and operations are freed: their handles come again, for others */
    MPI_Datatype gaps, block, column, pairs, types[MOST_RANKS];
    MPI_Op composition;
    int bytes[MOST_RANKS], ones[MOST_RANKS], few = items < 40 ? items : 40;
    MPI_Type_vector(items, 1, 2, MPI_DOUBLE, &gaps);
    MPI_Type_create_resized(gaps, 0, 8, &column);
    MPI_Type_contiguous(items, MPI_DOUBLE, &block);
    MPI_Type_contiguous(2, MPI_DOUBLE, &pairs);
    MPI_Type_commit(&gaps), MPI_Type_commit(&column), MPI_Type_commit(&block), MPI_Type_commit(&pairs);
    for (int i = 0; i < size; i++) ones[i] = 1, bytes[i] = 16 * i * items, types[i] = i % 2 == rank % 2 ? gaps : block;
    CALL(MPI_Bcast(out, 1, rank ? gaps : block, 0, c));
    CALL(MPI_Gather(in, items, MPI_DOUBLE, out, 1, block, size - 1, c));
    CALL(MPI_Gather(in, 1, gaps, out, items, MPI_DOUBLE, 0, c));
    CALL(MPI_Scatter(in, 1, block, out, 1, gaps, 0, c));
    CALL(MPI_Allgather(in, 1, gaps, out, 1, block, c));
    CALL(MPI_Alltoall(in, 1, block, out, items, MPI_DOUBLE, c));
    CALL(MPI_Alltoallw(in, ones, bytes, types, out, ones, bytes, types, c));
    if (size > 1) CALL(MPI_Bcast(out, 2, column, size - 1, c));
    MPI_Op_create(compose, 0, &composition);
    CALL(for (long i = 0; i < length; i++) in[i] = i % 2 ? rank : rank % 3;
         MPI_Allreduce(in, out, few / 2, pairs, composition, c));
    CALL(for (long i = 0; i < length; i++) in[i] = i % 2 ? rank : rank % 3;
         MPI_Reduce(in, out, few / 2, pairs, composition, size - 1, c));
    MPI_Op_free(&composition);
    MPI_Type_free(&gaps), MPI_Type_free(&column), MPI_Type_free(&block), MPI_Type_free(&pairs);
}

static void all(MPI_Comm c, const char *name) {
    double total[MOST_CALLS];
    MPI_Comm_rank(c, &rank), MPI_Comm_size(c, &size);
    length = 2L * (items + 1) * size;
    in = malloc(8 * length), out = malloc(8 * length), calls = 0;
    for (int i = 0; i < MOST_CALLS; i++) sums[i] = 0;
    for (int i = 0; i < size; i++) counts[i] = items - (items && i % 2), places[i] = i * items;
    rooted(c, 0);
    if (size > 1) rooted(c, size - 1);
    symmetric(c);
    if (items) with_types(c); /* MPICH waits forever for an item of no bytes beside no item */
    free(in), free(out);
    MPI_Reduce(sums, total, MOST_CALLS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (world_rank) return;
    printf("%s of %d, %d items:", name, size, items);
    for (int i = 0; i < calls; i++) printf(" %.0f", total[i]);
    printf("\n");
}

static void between_groups(void) {
    MPI_Comm half, both;
    int mine = world_rank, theirs = 0;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 7, &both);
    MPI_Allreduce(&mine, &theirs, 1, MPI_INT, MPI_SUM, both);
    if (!world_rank) printf("between groups: %d\n", theirs);
    MPI_Comm_disconnect(&both);
    MPI_Comm_free(&half);
}

static void on_others(void) { /* each is freed, and its handle may come again, for other ranks in another order */
    MPI_Comm copy, reversed, alone, grid;
    int dims[2] = {0, 0}, wrap[2] = {0, 0};
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    all(copy, "dup");
    MPI_Comm_split(copy, world_rank / 3, -world_rank, &reversed);
    MPI_Comm_free(&copy);
    all(reversed, "split");
    MPI_Comm_free(&reversed);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank, 0, &alone);
    all(alone, "alone");
    MPI_Comm_free(&alone);
    MPI_Dims_create(world_size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, wrap, 0, &grid);
    all(grid, "grid");
    MPI_Comm_free(&grid);
}

int main(int argc, char **argv) {
    static const int sizes[] = {0, 30, 3000};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank), MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    for (int i = 0; i < 3; i++) {
        items = sizes[i];
        all(MPI_COMM_WORLD, "world");
        if (i == 1) on_others();
    }
    items = 1;
    on_others();
    between_groups();
    MPI_Finalize();
    return 0;
}
