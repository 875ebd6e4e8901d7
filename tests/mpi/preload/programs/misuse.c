/* Does what its argument names: misuses of MPI, and what programs do around it. */
#include <dirent.h>
#include <locale.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank;
static double in[4], out[4];

static void reduce(void) { MPI_Allreduce(in, out, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }

static void say(const char *what, int code) { /* rank 0 alone, as launchers may mix the lines of several */
    int kind;
    MPI_Error_class(code, &kind);
    const char *name = kind == MPI_ERR_ROOT ? "root" : kind == MPI_ERR_COUNT ? "count" : "?";
    if (!rank) printf("rank 0: %s: %s\n", what, name);
}

static int handled;
static void handler(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code, handled++; }

/* Errors come back as the communicator's handler has it, and a call after them works. */
static void returned(void) {
    MPI_Errhandler own;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say("a wrong root", MPI_Bcast(in, 4, MPI_DOUBLE, 99, MPI_COMM_WORLD));
    say("a wrong count", MPI_Bcast(in, -1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    say("a wrong root", MPI_Gather(in, 1, MPI_DOUBLE, out, 1, MPI_DOUBLE, -3, MPI_COMM_WORLD));
    if (!rank) printf("rank 0: the handler ran %d times\n", handled);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    reduce();
}

static int status_of(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static void forks(void) {
    reduce();
    pid_t child = fork();
    if (!child) _exit(3);
    int plain = status_of(child);
    child = fork();
    if (!child) execlp("sh", "sh", "-c", "exit 4", NULL), _exit(1);
    int shell = status_of(child);
    if (!rank) printf("rank 0: %d %d\n", plain, shell);
    reduce();
}

/* A communicator with processes that run without topompi. */
static void spawns(char *program) {
    char *arguments[] = {"spawned", NULL};
    MPI_Comm children, all;
    int one = 1, sum = 0;
    MPI_Comm_get_parent(&children);
    if (children == MPI_COMM_NULL)
        MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(children, 0, &all);
    for (int i = 0; i < 3; i++) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    if (!rank) printf("rank 0: %d together\n", sum), fflush(stdout);
    MPI_Comm_free(&all), MPI_Comm_disconnect(&children);
}

/* What Python's start could change for the program. */
static void looks_around(void) {
    struct sigaction broken, interrupted;
    int tasks = 0;
    DIR *folder = opendir("/proc/self/task");
    while (readdir(folder)) tasks++;
    sigaction(SIGPIPE, NULL, &broken), sigaction(SIGINT, NULL, &interrupted);
    const char *threads = getenv("OPENBLAS_NUM_THREADS"), *library = getenv("MPI4PY_LIBMPI");
    if (rank) return;
    printf("rank 0: %s %d %s %s\n", setlocale(LC_CTYPE, NULL), tasks, threads ? threads : "-", library ? library : "-");
    printf("rank 0: %d %d\n", broken.sa_handler == SIG_DFL, interrupted.sa_handler == SIG_DFL);
}

/* More communicators at once than any table begins with, freed in another order than they were made. */
static void makes_many(void) {
    enum { MANY = 150 };
    MPI_Comm made[MANY];
    long sum = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? rank : -rank, &made[i]);
        for (int i = 0; i < MANY; i++) {
            int place, first;
            MPI_Comm_rank(made[i], &place);
            MPI_Scan(&place, &first, 1, MPI_INT, MPI_SUM, made[i]);
            sum += first + i * (rank + 1);
        }
        for (int i = 0; i < MANY; i++) MPI_Comm_free(&made[(i * 7 + round) % MANY]);
    }
    if (!rank) printf("rank 0: %ld\n", sum);
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    int provided;
    if (!strcmp(what, "executes itself")) execl(argv[0], argv[0], "nothing", NULL);
    if (!strcmp(what, "threads")) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < 4; i++) in[i] = rank + i;
    if (!strcmp(what, "wrong root")) MPI_Bcast(in, 4, MPI_DOUBLE, 99, MPI_COMM_WORLD);
    if (!strcmp(what, "wrong count")) MPI_Bcast(in, -1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (!strcmp(what, "no communicator")) MPI_Bcast(in, 4, MPI_DOUBLE, 0, MPI_COMM_NULL);
    if (!strcmp(what, "initialised twice")) MPI_Init(&argc, &argv);
    if (!strcmp(what, "aborted")) MPI_Abort(MPI_COMM_WORLD, 7);
    if (!strcmp(what, "errors returned")) returned();
    if (!strcmp(what, "forks")) forks();
    if (strstr(what, "spawn")) spawns(argv[0]);
    if (!strcmp(what, "looks around")) looks_around();
    if (!strcmp(what, "makes many")) makes_many();
    reduce();
    if (!strcmp(what, "exits")) exit(5);
    if (!strcmp(what, "crashes")) *(volatile int *)8 = 1;
    if (!strcmp(what, "not finalised")) return 0;
    MPI_Finalize();
    if (!rank) printf("rank 0: %g\n", out[3]);
    return 0;
}
