/* A counter of progress that topompi's shutter reads.
 *
 * C, once per step of equal work:             topompi_progress(1);
 * Fortran:                                    call topompi_progress()
 * with, in one C file of the Fortran program: #define TOPOMPI_PROGRESS_FORTRAN
 *                                             #include "topompi_progress.h"
 *
 * The first call makes /dev/shm/topompi-USER/progress.PID, in a folder that USER alone may write; if that fails, a line
 * on standard error says so, and the program counts in vain and goes on.
 * One thread of a process may count. A fork goes on in the counter of its parent until it executes a program.
 */
#ifndef TOPOMPI_PROGRESS_H
#define TOPOMPI_PROGRESS_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

static volatile uint64_t *topompi_progress_counter;
static char topompi_progress_path[64];
static pid_t topompi_progress_owner;

static void topompi_progress_remove(void) {
    if (getpid() == topompi_progress_owner) unlink(topompi_progress_path);
}

/* Start of this process in clock ticks since boot: field 22 of /proc/self/stat. */
static uint64_t topompi_progress_start(void) {
    char line[1024], *at;
    unsigned long long start = 0;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC), field;
    ssize_t got = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    if (got <= 0) return 0;
    line[got] = 0;
    at = strrchr(line, ')');
    for (field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    if (at) sscanf(at, "%llu", &start);
    return start;
}

/* Write the counter's path; return a descriptor of its folder, -1 if anybody else owns it or may write to it. */
static int topompi_progress_folder(void) {
    struct stat found;
    int folder, at = snprintf(topompi_progress_path, sizeof topompi_progress_path, "/dev/shm/topompi-%lu",
                              (unsigned long)geteuid());
    mkdir(topompi_progress_path, 0700);
    folder = open(topompi_progress_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    snprintf(topompi_progress_path + at, sizeof topompi_progress_path - at, "/progress.%lu", (unsigned long)getpid());
    if (folder >= 0 && (fstat(folder, &found) || found.st_uid != geteuid() || (found.st_mode & 077))) {
        close(folder);
        folder = -1;
    }
    return folder;
}

static void topompi_progress_open(void) {
    static uint64_t in_vain;
    uint32_t version = 1, pid = (uint32_t)getpid();
    uint64_t start = topompi_progress_start();
    char *page = (char *)MAP_FAILED;
    int fd = -1, folder = topompi_progress_folder();
    if (folder >= 0) {
        const char *name = strrchr(topompi_progress_path, '/') + 1;
        unlinkat(folder, name, 0);
        fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        close(folder);
    }
    if (fd >= 0 && ftruncate(fd, 4096) == 0)
        page = (char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (page == (char *)MAP_FAILED) {
        fprintf(stderr, "topompi: the shutter cannot see this process's progress: %s\n", topompi_progress_path);
        topompi_progress_counter = &in_vain;
        return;
    }
    memcpy(page + 8, &version, 4);
    memcpy(page + 12, &pid, 4);
    memcpy(page + 16, &start, 8);
    memcpy(page, "TOPOPROG", 8);
    topompi_progress_owner = getpid();
    atexit(topompi_progress_remove);
    topompi_progress_counter = (volatile uint64_t *)(page + 64);
}

static inline void topompi_progress(uint64_t steps) {
    if (!topompi_progress_counter) topompi_progress_open();
    *topompi_progress_counter += steps;
}

#ifdef TOPOMPI_PROGRESS_FORTRAN
void topompi_progress_(void) { topompi_progress(1); }
#endif

#ifdef __cplusplus
}
#endif
#endif
