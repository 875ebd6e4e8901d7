/* Hosts: their ranks, which execute programs, and their adapters, which send messages that ranks hand over. */

#ifndef TOPOMPI_NETSIM_HOSTS_H
#define TOPOMPI_NETSIM_HOSTS_H

#include "_sim.h"

void queue_work(Sim *s, Index number);
void hand_over(Sim *s, Index number, int kind);
void start_at(Sim *s, Index rank, Time time);
void complete(Sim *s, Index step);
void advance(Sim *s, Index rank);
void depart(Sim *s, Index number);
void deliver(Sim *s, Index packet);
void receive(Sim *s, Index number);

#endif
