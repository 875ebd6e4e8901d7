/* Jobs for benchmarks/shutter.py, which end with their parent: KERNEL is triad, null or asleep. */
#include "topompi_progress.h"
#include <signal.h>
#include <sys/prctl.h>

enum { NUMBERS = 4 << 20, PIECE = 1 << 12 }; /* three arrays of 32 MiB: more than a core's share of the last cache */

static void triad(void) {
    double *a = malloc(NUMBERS * sizeof *a), *b = malloc(NUMBERS * sizeof *b), *c = malloc(NUMBERS * sizeof *c);
    if (!a || !b || !c) exit(1);
    for (int i = 0; i < NUMBERS; i++) a[i] = b[i] = c[i] = i;
    for (;;)
        for (int first = 0; first < NUMBERS; first += PIECE) {
            for (int i = first; i < first + PIECE; i++) a[i] = b[i] + 3.0 * c[i];
            __asm__ volatile("" ::"r"(a) : "memory");
            topompi_progress(1);
        }
}

static void null(void) {
    for (;;) {
        for (volatile int i = 0; i < 2000; i++) {}
        topompi_progress(1);
    }
}

int main(int count, char **words) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (count != 2) return 1;
    topompi_progress(1);
    if (!strcmp(words[1], "triad")) triad();
    if (!strcmp(words[1], "null")) null();
    for (;;) pause();
}
