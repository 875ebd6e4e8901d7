/* Collectives of programs in any language: this library is loaded before the MPI library (LD_PRELOAD) and takes its calls.

   It includes neither mpi.h nor Python.h. Handles and addresses are machine words, the constants of the three binary
   interfaces of MPI libraries stand below, and Python's functions come from the libpython that TOPOMPI_PRELOAD names.

   MPI_X and PMPI_X are both defined: programs in C call MPI_X; the Fortran interfaces call one or the other, and tools
   that intercept MPI_X end in PMPI_X. A symbol that the MPI library lacks must not be defined here, because programs test
   whether it is there. Calls that topompi itself makes on the way (`inside`) go to the MPI library at once. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if UINTPTR_MAX != UINT64_MAX || !defined(__linux__)
#error "expecting 64-bit Linux, where each argument of a function takes a register or 8 bytes of the stack"
#endif

typedef uintptr_t W; /* an argument: a handle, an address, or an int, whose upper half is then undefined */

/* The calls: name, parameters, their names, and where among them: the communicator; the message that has the call's size
   (buffer, count, datatype), or if that is in place the other one (count, datatype); the operation. NO: there is none.
   The number of a call is its place in this list; calls.py has the same names in the same order. */
#define NO (-1)
#define COLLECTIVES(X)                                                                                                   \
    X(Barrier, (W c), (c), 0, NO, NO, NO, NO, NO, NO)                                                                    \
    X(Bcast, (W b, W n, W t, W q, W c), (b, n, t, q, c), 4, 0, 1, 2, NO, NO, NO)                                         \
    X(Reduce, (W s, W r, W n, W t, W o, W q, W c), (s, r, n, t, o, q, c), 6, NO, 2, 3, NO, NO, 4)                        \
    X(Allreduce, (W s, W r, W n, W t, W o, W c), (s, r, n, t, o, c), 5, NO, 2, 3, NO, NO, 4)                             \
    X(Scan, (W s, W r, W n, W t, W o, W c), (s, r, n, t, o, c), 5, NO, 2, 3, NO, NO, 4)                                  \
    X(Exscan, (W s, W r, W n, W t, W o, W c), (s, r, n, t, o, c), 5, NO, 2, 3, NO, NO, 4)                                \
    X(Reduce_scatter_block, (W s, W r, W n, W t, W o, W c), (s, r, n, t, o, c), 5, NO, 2, 3, NO, NO, 4)                  \
    X(Reduce_scatter, (W s, W r, W n, W t, W o, W c), (s, r, n, t, o, c), 5, NO, NO, NO, NO, NO, NO)                     \
    X(Gather, (W s, W m, W u, W r, W n, W t, W q, W c), (s, m, u, r, n, t, q, c), 7, 0, 1, 2, 4, 5, NO)                  \
    X(Scatter, (W s, W m, W u, W r, W n, W t, W q, W c), (s, m, u, r, n, t, q, c), 7, 3, 4, 5, 1, 2, NO)                 \
    X(Allgather, (W s, W m, W u, W r, W n, W t, W c), (s, m, u, r, n, t, c), 6, NO, 4, 5, NO, NO, NO)                    \
    X(Alltoall, (W s, W m, W u, W r, W n, W t, W c), (s, m, u, r, n, t, c), 6, NO, 4, 5, NO, NO, NO)                     \
    X(Gatherv, (W s, W m, W u, W r, W n, W d, W t, W q, W c), (s, m, u, r, n, d, t, q, c), 8, NO, NO, NO, NO, NO, NO)    \
    X(Scatterv, (W s, W m, W e, W u, W r, W n, W t, W q, W c), (s, m, e, u, r, n, t, q, c), 8, NO, NO, NO, NO, NO, NO)   \
    X(Allgatherv, (W s, W m, W u, W r, W n, W d, W t, W c), (s, m, u, r, n, d, t, c), 7, NO, NO, NO, NO, NO, NO)         \
    X(Alltoallv, (W s, W m, W e, W u, W r, W n, W d, W t, W c), (s, m, e, u, r, n, d, t, c), 8, NO, NO, NO, NO, NO, NO)  \
    X(Alltoallw, (W s, W m, W e, W u, W r, W n, W d, W t, W c), (s, m, e, u, r, n, d, t, c), 8, NO, NO, NO, NO, NO, NO)
#define OTHERS(X)                                                                                                        \
    X(Init, (W n, W v), (n, v))                                                                                          \
    X(Init_thread, (W n, W v, W required, W provided), (n, v, required, provided))                                       \
    X(Finalize, (void), ())                                                                                              \
    X(Comm_free, (W c), (c))                                                                                             \
    X(Comm_disconnect, (W c), (c))

#define NUMBER(NAME, ...) NAME,
enum { COLLECTIVES(NUMBER) CALLS, LAST = CALLS - 1, OTHERS(NUMBER) DEFINED };
#define STRING(NAME, ...) #NAME,
static const char *const NAMES[DEFINED] = {COLLECTIVES(STRING) [CALLS] = OTHERS(STRING)};
static const struct layout { int8_t comm, buffer, count, type, other_count, other_type, op; } LAYOUTS[CALLS] = {
#define LAYOUT(NAME, PARAMETERS, GIVEN, ...) {__VA_ARGS__},
    COLLECTIVES(LAYOUT)};
enum { WORDS = 9 }; /* arguments of a call, at most */

#define HOT static __thread __attribute__((tls_model("initial-exec")))
#define SELDOM(CONDITION) __builtin_expect(!!(CONDITION), 0)
HOT int inside;      /* this thread is in a call of topompi's own */
HOT int has_python;  /* this thread has started Python */

/* ---- the MPI library, and tools between the program and it ---- */

static void *library[DEFINED], *tools[DEFINED]; /* the library's PMPI_X; a tool's MPI_X, or NULL */
static int resolved;
static void *opened; /* the MPI library, if a dlopen kept it from the global scope; else NULL */

static int try_open(struct dl_phdr_info *one, size_t size, void *unused) {
    const char *name = strrchr(one->dlpi_name, '/');
    (void)size, (void)unused;
    if (strncmp(name ? name + 1 : one->dlpi_name, "libmpi", 6)) return 0;
    void *handle = dlopen(one->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle && dlsym(handle, "PMPI_Init")) opened = handle;
    return opened != NULL;
}

/* A function or an object of the MPI library, by its name; NULL if the library lacks it. */
static void *of_library(const char *name) {
    return opened ? dlsym(opened, name) : dlsym(RTLD_NEXT, name);
}

static void *base_of(void *function) {
    Dl_info about;
    return dladdr(function, &about) ? about.dli_fbase : NULL;
}

static void resolve(void) {
    char name[40];
    if (!opened && !dlsym(RTLD_NEXT, "PMPI_Init")) dl_iterate_phdr(try_open, NULL);
    for (int i = 0; i < DEFINED; i++) {
        snprintf(name, sizeof name, "PMPI_%s", NAMES[i]);
        library[i] = of_library(name);
        if (!library[i]) {
            fprintf(stderr, "topompi: expecting an MPI library with %s, got none\n", name);
            abort();
        }
        void *tool = of_library(name + 1);
        tools[i] = tool && base_of(tool) != base_of(library[i]) ? tool : NULL;
    }
    __atomic_store_n(&resolved, 1, __ATOMIC_RELEASE);
}

#define RESOLVE() (SELDOM(!__atomic_load_n(&resolved, __ATOMIC_ACQUIRE)) ? resolve() : (void)0)
#define LIBRARY(NAME, PARAMETERS) ((int(*) PARAMETERS)library[NAME])

/* Constants of the library's binary interface. */
static struct { W world, null, integer, minimum, in_place, mask; int multiple; } mpi;

static int know_constants(void) {
    Dl_info about;
    if (of_library("ompi_mpi_comm_world")) {
#define ADDRESS(NAME) (W)(dlsym(RTLD_DEFAULT, NAME) ? dlsym(RTLD_DEFAULT, NAME) : of_library(NAME)) /* an executable's copy counts */
        mpi.world = ADDRESS("ompi_mpi_comm_world"), mpi.null = ADDRESS("ompi_mpi_comm_null");
        mpi.integer = ADDRESS("ompi_mpi_int"), mpi.minimum = ADDRESS("ompi_mpi_op_min");
        mpi.in_place = 1, mpi.mask = ~(W)0, mpi.multiple = 3;
    } else if (dladdr(library[Init], &about) && strstr(about.dli_fname, "libmpi_abi")) { /* MPI 5.0's own */
        mpi.world = 0x101, mpi.null = 0x100, mpi.integer = 0x209, mpi.minimum = 0x22;
        mpi.in_place = 1, mpi.mask = ~(W)0, mpi.multiple = 4096;
    } else { /* MPICH's, which Intel's and others' libraries share */
        mpi.world = 0x44000000, mpi.null = 0x04000000, mpi.integer = 0x4c000405, mpi.minimum = 0x58000002;
        mpi.in_place = ~(W)0, mpi.mask = 0xffffffff, mpi.multiple = 3;
    }
    return mpi.world && mpi.null && mpi.integer && mpi.minimum;
}

/* Calls of the MPI library that are not defined here. */
static struct {
    int (*Comm_size)(W, int *), (*Comm_rank)(W, int *), (*Comm_test_inter)(W, int *), (*Type_size)(W, int *);
    int (*Abort)(W, int), (*Comm_call_errhandler)(W, int);
} more;

static int know_more(void) {
#define FIND(NAME) (*(void **)&more.NAME = of_library("PMPI_" #NAME))
    return FIND(Comm_size) && FIND(Comm_rank) && FIND(Comm_test_inter) && FIND(Type_size) && FIND(Abort) &&
           FIND(Comm_call_errhandler);
}

/* ---- predefined datatypes with their sizes in bytes, and predefined operations, from Python ---- */

enum { KNOWN = 1024, OPERATION = -1, UNKNOWN = -2 };
static struct { W handle; int32_t is; } known[KNOWN]; /* filled at the start, then only read */

static inline size_t mixed(W x) { return (size_t)((uint64_t)x * UINT64_C(0x9E3779B97F4A7C15) >> 32); }

static inline int32_t what_is(W handle) {
    size_t at = mixed(handle) % KNOWN;
    for (; known[at].handle; at = (at + 1) % KNOWN)
        if (known[at].handle == handle) return known[at].is;
    return UNKNOWN;
}

static void learn(const char *rows, size_t bytes) { /* rows of two words: handle, and size or OPERATION */
    for (size_t count = 0; count < bytes / 16 && count < KNOWN / 2; count++) {
        W row[2];
        memcpy(row, rows + 16 * count, 16);
        size_t at = mixed(row[0]) % KNOWN;
        while (known[at].handle && known[at].handle != row[0]) at = (at + 1) % KNOWN;
        known[at].handle = row[0], known[at].is = (int32_t)row[1];
    }
}

static inline int64_t bytes_of(W count, W type) { /* negative if the count is invalid, or the datatype's size unknown */
    int size = what_is(type & mpi.mask);
    if (size < 0 && more.Type_size(type, &size)) return -1;
    return (int64_t)(int)count * size;
}

/* ---- communicators, each with the calls that are the MPI library's on all ranks ---- */

/* A bit for each class of sizes, which is a bit length, as in selection/classes.py. Entries are made and forgotten by
   one thread at a time, which holds Python's lock, and read without a lock. An entry and an index are never freed, because
   another thread may still look at them. */
#define ALL UINT64_MAX
struct comm {
    _Atomic W handle;
    int size;
    _Atomic uint64_t native[CALLS];
    struct comm *next; /* of the entries to be used again */
};
struct index { size_t places, used; _Atomic(struct comm *) at[]; };
static _Atomic(struct index *) comms;
static struct comm *spare, gone; /* `gone` stands in places whose communicator is freed */
HOT struct comm *latest;

static struct comm *find(W handle) {
    struct comm *c = latest;
    if (c && atomic_load_explicit(&c->handle, memory_order_relaxed) == handle) return c;
    struct index *in = atomic_load_explicit(&comms, memory_order_acquire);
    if (!in) return NULL;
    for (size_t i = mixed(handle) & (in->places - 1);; i = (i + 1) & (in->places - 1)) {
        c = atomic_load_explicit(&in->at[i], memory_order_acquire);
        if (!c) return NULL;
        if (atomic_load_explicit(&c->handle, memory_order_relaxed) == handle && c != &gone) return latest = c;
    }
}

static int put(struct index *in, struct comm *c) { /* the handle is not in the index */
    size_t i = mixed(c->handle) & (in->places - 1);
    while (in->at[i] && in->at[i] != &gone) i = (i + 1) & (in->places - 1);
    in->used += in->at[i] == NULL;
    atomic_store_explicit(&in->at[i], c, memory_order_release);
    return 1;
}

static int make_room(void) { /* so that at least a quarter of the places is empty after the next entry */
    struct index *old = comms, *made;
    size_t live = 0, places = 64;
    if (old && 4 * (old->used + 1) <= 3 * old->places) return 1;
    for (size_t i = 0; old && i < old->places; i++) live += old->at[i] && old->at[i] != &gone;
    while (places < 4 * (live + 1)) places *= 2;
    if (!(made = calloc(1, sizeof *made + places * sizeof made->at[0]))) return 0;
    made->places = places;
    for (size_t i = 0; old && i < old->places; i++)
        if (old->at[i] && old->at[i] != &gone) put(made, old->at[i]);
    atomic_store_explicit(&comms, made, memory_order_release);
    return 1;
}

static struct comm *enter(W handle, int size, uint64_t native) {
    struct comm *c = spare;
    if (c) spare = c->next;
    if (!make_room() || (!c && !(c = calloc(1, sizeof *c)))) return NULL;
    for (int i = 0; i < CALLS; i++) c->native[i] = native;
    c->size = size;
    atomic_store_explicit(&c->handle, handle, memory_order_relaxed);
    put(comms, c);
    return c;
}

static void forget_entry(struct comm *c) {
    struct index *in = comms;
    size_t last = in->places - 1, i = mixed(c->handle) & last;
    while (in->at[i] != c) i = (i + 1) & last;
    atomic_store_explicit(&in->at[i], &gone, memory_order_release);
    for (int ends = !in->at[(i + 1) & last]; ends && in->at[i] == &gone; i = (i - 1) & last) /* nothing stands behind them */
        in->used--, atomic_store_explicit(&in->at[i], NULL, memory_order_release);
    atomic_store_explicit(&c->handle, 0, memory_order_relaxed); /* no library has this handle: `latest` cannot match */
    c->next = spare, spare = c;
}

/* The size of a call as classes count it (execution/sizes.py); negative if unknown. */
static inline int64_t size_of(const struct comm *c, int call, const W *a) {
    const struct layout *at = &LAYOUTS[call];
    if (at->count == NO) return 0;
    int swap = at->buffer != NO && at->other_count != NO && a[at->buffer] == mpi.in_place;
    int64_t bytes = bytes_of(a[swap ? at->other_count : at->count], a[swap ? at->other_type : at->type]);
    return call == Reduce_scatter_block ? bytes * c->size : bytes;
}

static inline int class_of(int64_t bytes) { return bytes > 0 ? 64 - __builtin_clzll((uint64_t)bytes) : 0; }

static inline int is_predefined(int call, const W *a) {
    return LAYOUTS[call].op == NO || what_is(a[LAYOUTS[call].op] & mpi.mask) == OPERATION;
}

static inline int is_native(const struct comm *c, int call, const W *a) {
    uint64_t classes = atomic_load_explicit(&c->native[call], memory_order_relaxed);
    if (classes == ALL || !classes) return classes == ALL;
    int64_t bytes = size_of(c, call, a);
    return bytes >= 0 && classes >> class_of(bytes) & 1 && is_predefined(call, a);
}

/* ---- Python ---- */

typedef struct _object PyObject;
static struct {
    void (*SetProgramName)(const wchar_t *), (*InitializeEx)(int), (*DecRef)(PyObject *), (*Print)(void);
    void (*Release)(int), (*Fetch)(PyObject **, PyObject **, PyObject **);
    wchar_t *(*DecodeLocale)(const char *, size_t *);
    int (*IsInitialized)(void), (*Ensure)(void), (*BytesAndSize)(PyObject *, char **, ssize_t *);
    long long (*AsLongLong)(PyObject *);
    const char *(*GetVersion)(void), *(*AsUTF8)(PyObject *);
    void *(*SaveThread)(void), *(*ThisThreadState)(void);
    PyObject *(*Import)(const char *), *(*GetAttr)(PyObject *, const char *), *(*Str)(PyObject *);
    PyObject *(*Call)(PyObject *, const char *, ...);
} py;
static const struct { void *where; const char *name; } FUNCTIONS[] = {
    {&py.SetProgramName, "Py_SetProgramName"}, {&py.InitializeEx, "Py_InitializeEx"}, {&py.DecRef, "Py_DecRef"},
    {&py.Print, "PyErr_Print"}, {&py.Release, "PyGILState_Release"}, {&py.Fetch, "PyErr_Fetch"},
    {&py.DecodeLocale, "Py_DecodeLocale"}, {&py.IsInitialized, "Py_IsInitialized"},
    {&py.Ensure, "PyGILState_Ensure"}, {&py.BytesAndSize, "PyBytes_AsStringAndSize"},
    {&py.AsLongLong, "PyLong_AsLongLong"}, {&py.AsUTF8, "PyUnicode_AsUTF8"},
    {&py.SaveThread, "PyEval_SaveThread"}, {&py.ThisThreadState, "PyGILState_GetThisThreadState"},
    {&py.Import, "PyImport_ImportModule"}, {&py.GetAttr, "PyObject_GetAttrString"}, {&py.Str, "PyObject_Str"},
    {&py.Call, "PyObject_CallFunction"}};

static PyObject *start_of, *call_of, *forget_of, *finish_of; /* functions of topompi.mpi.preload.calls */
static pid_t owner;     /* the process that has started Python, and no child that it forks */
static int on, started; /* calls may go to Python; MPI is initialised */
static int python_runs; /* the Python that runs was started here */
static char reason[512];

static const char *because(const char *format, const char *detail) {
    snprintf(reason, sizeof reason, format, detail);
    reason[strcspn(reason, "\n")] = 0;
    return reason;
}

static const char *because_of_exception(void) {
    PyObject *kind = NULL, *value = NULL, *trace = NULL, *text;
    py.Fetch(&kind, &value, &trace);
    text = py.Str(value ? value : kind);
    const char *words = text ? py.AsUTF8(text) : NULL;
    return because("%s", words ? words : "an exception in Python");
}

static int is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0");
}

/* The reason why a program's calls must be left alone, or NULL; `usual` is set if only --verbose tells it. */
static const char *unsuited(int multiple, int *usual) {
    static const char *const devices[] = {"libcuda.so.1", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"};
    int (*runs)(void) = NULL;
    *(void **)&runs = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    *usual = 1;
    if (runs && runs()) return "the program runs Python itself";
    if (multiple) return "the program asked for MPI_THREAD_MULTIPLE";
    *usual = 0;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (dlopen(devices[i], RTLD_LAZY | RTLD_NOLOAD))
            return because("messages may be in the memory of a device (%s is loaded)", devices[i]);
    return NULL;
}

/* Find the functions of the program's own libpython, or of the one that the launcher found; return the reason if not. */
static const char *find_python(void) {
    const char *file = getenv("TOPOMPI_PRELOAD");
    void *from = RTLD_DEFAULT;
    if (!file || *file != '/') return because("%s", file && *file ? file : "no libpython is named by TOPOMPI_PRELOAD");
    if (!dlsym(RTLD_DEFAULT, "Py_IsInitialized") && !(from = dlopen(file, RTLD_NOW | RTLD_GLOBAL)))
        return because("%s", dlerror());
    int major = 0, minor = 0;
    char version[24], wanted[48];
    if (!(*(void **)&py.GetVersion = dlsym(from, "Py_GetVersion"))) return "the program has a libpython without a version";
    sscanf(py.GetVersion(), "%d.%d", &major, &minor);
    snprintf(version, sizeof version, "%d.%d", major, minor);
    snprintf(wanted, sizeof wanted, "/libpython%s.so", version);
    if (!strstr(file, wanted)) return because("the program has Python %s, and topompi another one", version);
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (!(*(void **)FUNCTIONS[i].where = dlsym(from, FUNCTIONS[i].name)))
            return because("libpython has no %s", FUNCTIONS[i].name);
    return NULL;
}

static PyObject *function_of(PyObject *module, const char *name) { return module ? py.GetAttr(module, name) : NULL; }

/* Start Python and import topompi; return the reason if that fails. The caller then holds Python's lock. */
static const char *start_python(void) {
    const char *why = find_python(), *program = getenv("TOPOMPI_PYTHON");
    Dl_info about;
    if (why) return why;
    char before[128];
    snprintf(before, sizeof before, "%s", setlocale(LC_CTYPE, NULL));
    if (program) py.SetProgramName(py.DecodeLocale(program, NULL));
    py.InitializeEx(0); /* without handlers of signals */
    setlocale(LC_CTYPE, before);
    python_runs = has_python = 1;
    const char *path = dladdr(library[Init], &about) ? about.dli_fname : "";
    PyObject *load = function_of(py.Import("topompi.mpi.preload.program"), "load");
    if (!load || !py.Call(load, "s", path)) return because_of_exception();
    PyObject *calls = py.Import("topompi.mpi.preload.calls");
    start_of = function_of(calls, "start"), call_of = function_of(calls, "call");
    forget_of = function_of(calls, "forget"), finish_of = function_of(calls, "finish");
    return start_of && call_of && forget_of && finish_of ? NULL : because_of_exception();
}

/* Let topompi find the topology, which is collective, and take over the predefined handles. */
static const char *start_topompi(void) {
    char *rows;
    ssize_t size;
    PyObject *told = py.Call(start_of, "KK", (unsigned long long)mpi.world, (unsigned long long)mpi.in_place);
    if (!told || py.BytesAndSize(told, &rows, &size)) return because_of_exception();
    learn(rows, (size_t)size);
    return enter(mpi.null & mpi.mask, 0, ALL) ? NULL : "memory is full";
}

/* Whether no rank has a reason to leave the calls to the MPI library; else the lowest one that has tells it. */
static int is_agreed(int rank, const char *why, int usual) {
    int mine = why ? rank : INT_MAX, lowest = -1;
    LIBRARY(Allreduce, (int *, int *, W, W, W, W))(&mine, &lowest, 1, mpi.integer, mpi.minimum, mpi.world);
    if (lowest == rank && (!usual || is_set("TOPOMPI_VERBOSE")))
        fprintf(stderr, "topompi: the MPI library runs all collectives: rank %d: %s\n", rank, why);
    return lowest == INT_MAX;
}

/* Start what the first MPI_Init(_thread) has to; `threads` is the level of threads that it gave, or NULL for the least. */
static void start(const int *threads) {
    int size = 0, rank = 0, usual = 0;
    if (started++ || inside || !know_constants() || !know_more()) return;
    more.Comm_size(mpi.world, &size), more.Comm_rank(mpi.world, &rank);
    if (size < 2) return;
    inside++;
    const char *why = unsuited(threads && *threads == mpi.multiple, &usual);
    if (!why) why = start_python();
    if (is_agreed(rank, why, usual)) on = is_agreed(rank, start_topompi(), 0);
    owner = getpid();
    if (python_runs) py.SaveThread();
    inside--;
}

/* ---- calls on their way ---- */

/* Answers of calls.call, above the 32 bits of an error code. */
#define CLASS_IS_NATIVE (1LL << 32) /* calls of this class are the library's for good, on all ranks */
#define CALL_IS_NATIVE (1LL << 33)  /* all of this call's */
#define ALL_IS_NATIVE (1LL << 34)   /* all calls on this communicator */
#define LIBRARY_RUNS (1LL << 35)    /* the library runs this call */
#define RAISED (1LL << 36)          /* the program's error handler has not been called */

static void note(struct comm *c, int call, int64_t bytes, int64_t answer) {
    if (answer & CLASS_IS_NATIVE) c->native[call] |= UINT64_C(1) << class_of(bytes);
    if (answer & CALL_IS_NATIVE) c->native[call] = ALL;
    if (answer & ALL_IS_NATIVE)
        for (int i = 0; i < CALLS; i++) c->native[i] = ALL;
}

static struct comm *entered(W handle) { /* the library runs all calls of one rank, and all between two groups */
    struct comm *c = find(handle);
    int size = 0, between = 0;
    if (c) return c;
    if (more.Comm_test_inter(handle, &between) || more.Comm_size(handle, &size)) return NULL;
    return enter(handle, size, between || size < 2 ? ALL : 0);
}

static int64_t answer_of(struct comm *c, int call, W handle, const W *a) {
    int64_t bytes = size_of(c, call, a);
    PyObject *told = py.Call(call_of, "iKLi(KKKKKKKKK)", call, (unsigned long long)handle, (long long)bytes,
        is_predefined(call, a), (unsigned long long)a[0], (unsigned long long)a[1], (unsigned long long)a[2],
        (unsigned long long)a[3], (unsigned long long)a[4], (unsigned long long)a[5], (unsigned long long)a[6],
        (unsigned long long)a[7], (unsigned long long)a[8]);
    if (!told) { /* the other ranks may wait for this one: end all */
        py.Print();
        more.Abort(mpi.world, 1);
        return LIBRARY_RUNS;
    }
    int64_t answer = py.AsLongLong(told);
    py.DecRef(told);
    note(c, call, bytes, answer);
    return answer;
}

/* Let topompi run a call; return whether it did, with the error code. Threads that Python started are topompi's own. */
static __attribute__((noinline)) int run(int call, const W *a, int *code) {
    W handle = a[LAYOUTS[call].comm] & mpi.mask;
    int64_t answer = LIBRARY_RUNS;
    if (getpid() != owner || (py.ThisThreadState() && !has_python)) return 0;
    inside++;
    int held = py.Ensure();
    struct comm *c = entered(handle);
    if (c && !is_native(c, call, a)) answer = answer_of(c, call, handle, a);
    py.Release(held);
    inside--;
    *code = (int)answer;
    if (answer & RAISED) more.Comm_call_errhandler(handle, *code);
    return !(answer & LIBRARY_RUNS);
}

static inline __attribute__((always_inline)) int ran(int call, const W *a, int *code) {
    if (!on || inside) return 0;
    const struct comm *c = find(a[LAYOUTS[call].comm] & mpi.mask);
    return (!c || !is_native(c, call, a)) && run(call, a, code);
}

#define LIST(...) {__VA_ARGS__}
#define OWN(NAME, PARAMETERS, GIVEN, ...)                                                                                \
    static inline int own_##NAME PARAMETERS {                                                                            \
        const W words[WORDS] = LIST GIVEN;                                                                               \
        int code;                                                                                                        \
        return ran(NAME, words, &code) ? code : LIBRARY(NAME, PARAMETERS) GIVEN;                                         \
    }
COLLECTIVES(OWN)

static int own_Init(W n, W v) {
    int code = LIBRARY(Init, (W, W))(n, v);
    if (!code) start(NULL);
    return code;
}

static int own_Init_thread(W n, W v, W required, W provided) {
    int code = LIBRARY(Init_thread, (W, W, W, W))(n, v, required, provided);
    if (!code) start((const int *)provided);
    return code;
}

static int own_Finalize(void) {
    if (on && !inside && getpid() == owner) { /* what topompi does at Python's exit; Python itself stays, and is not ended */
        on = 0, inside++;
        int held = py.Ensure();
        PyObject *told = py.Call(finish_of, NULL);
        if (told) py.DecRef(told);
        else py.Print();
        py.Release(held);
        inside--;
    }
    inside++;
    int code = LIBRARY(Finalize, (void))();
    inside--;
    return code;
}

/* Forget a communicator before the library frees it, because a new one may get its handle. */
static void drop(W address) {
    if (!on || inside || !address || getpid() != owner) return;
    W handle = mpi.mask == ~(W)0 ? *(W *)address : *(uint32_t *)address;
    struct comm *c = find(handle);
    if (!c || handle == (mpi.null & mpi.mask)) return;
    inside++;
    int held = py.Ensure();
    forget_entry(c);
    PyObject *told = py.Call(forget_of, "K", (unsigned long long)handle);
    if (told) py.DecRef(told);
    else py.Print();
    py.Release(held);
    inside--;
}

static int own_Comm_free(W c) {
    drop(c);
    inside++; /* topompi frees communicators of its own when this one's attributes are deleted */
    int code = LIBRARY(Comm_free, (W))(c);
    inside--;
    return code;
}

static int own_Comm_disconnect(W c) {
    drop(c);
    inside++;
    int code = LIBRARY(Comm_disconnect, (W))(c);
    inside--;
    return code;
}

/* A tool's MPI_X comes before: it ends in PMPI_X. */
#define DEFINE(NAME, PARAMETERS, GIVEN, ...)                                                                             \
    int PMPI_##NAME PARAMETERS {                                                                                         \
        RESOLVE();                                                                                                       \
        return own_##NAME GIVEN;                                                                                         \
    }                                                                                                                    \
    int MPI_##NAME PARAMETERS {                                                                                          \
        RESOLVE();                                                                                                       \
        if (SELDOM(tools[NAME] && !inside)) return ((int(*) PARAMETERS)tools[NAME])GIVEN;                                \
        return own_##NAME GIVEN;                                                                                         \
    }
COLLECTIVES(DEFINE)
OTHERS(DEFINE)

/* A program with a libpython may start it: it finds the Python that runs, and gets its lock, which it expects to hold. It
   may end it after MPI_Finalize, even without the lock, as LAMMPS does: the Python that was started here stays. */
HOT int locked, lock_state;

void Py_InitializeEx(int handles_signals) {
    void (*next)(int) = NULL;
    if (python_runs) {
        if (!locked++) lock_state = py.Ensure();
        return;
    }
    *(void **)&next = dlsym(RTLD_NEXT, "Py_InitializeEx");
    if (next) next(handles_signals);
}

void Py_Initialize(void) { Py_InitializeEx(1); }

int Py_FinalizeEx(void) {
    int (*next)(void) = NULL;
    if (python_runs) {
        if (locked) locked = 0, py.Release(lock_state);
        return 0;
    }
    *(void **)&next = dlsym(RTLD_NEXT, "Py_FinalizeEx");
    return next ? next() : -1;
}

void Py_Finalize(void) { Py_FinalizeEx(); }
