/* Processors that all ranks share, as on one machine that emulates many hosts. */

#ifndef TOPOMPI_NETSIM_PROCESSORS_H
#define TOPOMPI_NETSIM_PROCESSORS_H

#include "_sim.h"

void add_task(Sim *s, Index rank, Time length, int kind, Index number);
void take_turn(Sim *s, Index rank);

#endif
