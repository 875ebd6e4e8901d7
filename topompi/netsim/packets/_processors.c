#include "_processors.h"
#include "_events.h"
#include "_hosts.h"

enum { ASLEEP, AWAKE, READY, AT_WORK, POLLING }; /* states of a rank */

/* Give idle processors to ranks, in the order in which they became ready. */
static void
start_turns(Sim *s)
{
    while (s->idle && s->first_ready != NONE) {
        Index rank = s->first_ready;
        Turn *turn = &s->turns[rank];
        s->first_ready = turn->next;
        s->idle--;
        turn->state = AT_WORK;
        push(s, s->now + s->tasks[turn->head].length, TURN, rank);
    }
}

/* Add a task to a rank, which does it in its turn, together with all its other tasks. Waiting ranks poll in turn: on
   average a rank notices a task after half of the ranks before it have polled. */
void
add_task(Sim *s, Index rank, Time length, int kind, Index number)
{
    Index found = s->free_task;
    if (found != NONE)
        s->free_task = s->tasks[found].next;
    else {
        if (s->num_tasks == s->most_tasks)
            s->tasks = grown(s, s->tasks, &s->most_tasks, sizeof(Task));
        found = (Index)s->num_tasks++;
    }
    s->tasks[found] = (Task){.length = length, .kind = kind, .number = number, .next = NONE};
    Turn *turn = &s->turns[rank];
    if (turn->head == NONE)
        turn->head = found;
    else
        s->tasks[turn->tail].next = found;
    turn->tail = found;
    if (turn->state != ASLEEP)
        return;
    turn->state = AWAKE;
    push(s, s->now + s->notice, TURN, rank);
}

static void
join_ready(Sim *s, Index rank)
{
    s->turns[rank].state = READY;
    s->turns[rank].next = NONE;
    if (s->first_ready == NONE)
        s->first_ready = rank;
    else
        s->turns[s->last_ready].next = rank;
    s->last_ready = rank;
    start_turns(s);
}

/* Process the end of a rank's task or poll. The rank continues if it has tasks; otherwise the next rank gets the
   processor. */
void
take_turn(Sim *s, Index rank)
{
    Turn *turn = &s->turns[rank];
    if (turn->state == AWAKE) {
        join_ready(s, rank);
        return;
    }
    if (turn->state == AT_WORK) {
        Index done = turn->head;
        Task *task = &s->tasks[done];
        turn->head = task->next;
        push(s, s->now, task->kind, task->number);
        task->next = s->free_task;
        s->free_task = done;
    } else
        advance(s, rank);
    if (turn->head != NONE) {
        turn->state = AT_WORK;
        push(s, s->now + s->tasks[turn->head].length, TURN, rank);
    } else if (turn->state == AT_WORK) {
        turn->state = POLLING;
        push(s, s->now + s->poll, TURN, rank);
    } else {
        turn->state = ASLEEP;
        s->idle++;
        start_turns(s);
    }
}
