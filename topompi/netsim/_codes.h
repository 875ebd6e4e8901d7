/* Numbers that the engines of flows and of packets share. */

#ifndef TOPOMPI_NETSIM_CODES_H
#define TOPOMPI_NETSIM_CODES_H

enum { COMPUTE, RECEIVE, SEND };                     /* kinds of rows, as in program.py */
enum { ONCE, UNTIL_ALL_RAN, BACKGROUND };            /* repetitions of a job */
enum { OVER, STALLED, NO_MEMORY, NO_TIME, RUNNING }; /* reasons why an engine stopped */
enum { END = -1 };                                   /* in place of a named step, for the end of a run */

#endif
