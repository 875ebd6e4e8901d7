/* Columns of a session, which grow as programs are added. */

#ifndef TOPOMPI_NETSIM_GROUPS_H
#define TOPOMPI_NETSIM_GROUPS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The number of ranks, rows, steps, messages, jobs or names, and the number with memory. */
typedef struct {
    int32_t count, room;
} Group;

/* Make room for more items in the arrays of a group, and for one spare item in each; 0 without memory.

   The arrays are given by the addresses of their pointers, which have different types and so are copied as bytes. */
static inline int
group_widen(Group *group, int32_t more, int arrays, void *const *place, const size_t *item)
{
    int64_t needed = (int64_t)group->count + more;
    if (needed >= INT32_MAX - 1)
        return 0;
    if (needed <= group->room && group->room)
        return 1;
    int64_t room = group->count && 2 * (int64_t)group->room > needed ? 2 * (int64_t)group->room : needed;
    room = room < INT32_MAX - 1 ? room : needed;
    for (int one = 0; one < arrays; one++) {
        void *array;
        memcpy(&array, place[one], sizeof array);
        array = realloc(array, ((size_t)room + 1) * item[one]);
        if (array == NULL)
            return 0;
        memcpy(place[one], &array, sizeof array);
    }
    group->room = (int32_t)room;
    return 1;
}

/* Append numbers, each increased by ``by``; -1 stays. */
static inline void
group_append(int32_t *to, const int32_t *from, int32_t count, int32_t by)
{
    for (int32_t one = 0; one < count; one++)
        to[one] = from[one] < 0 ? -1 : from[one] + by;
}

#endif
