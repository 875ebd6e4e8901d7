/* Counts the messages that MPICH hands to UCX, by endpoint: to be loaded before it (LD_PRELOAD).

   The types are those of UCX's interface (ucp/api/ucp.h), as far as they are needed here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define MOST 4096
#define DATATYPE_GIVEN 8 /* in the mask of a request's parameters */
#define DATATYPE_PLACE 24 /* bytes from the beginning of the parameters */

struct packing {
    void *(*start_pack)(void *, const void *, size_t);
    void *(*start_unpack)(void *, void *, size_t);
    size_t (*packed_size)(void *);
    size_t (*pack)(void *, size_t, void *, size_t);
    int (*unpack)(void *, size_t, const void *, size_t);
    void (*finish)(void *);
};
struct generic {
    uint64_t datatype;
    struct packing packing;
    void *context;
};
typedef void *(*send_function)(void *, const void *, size_t, uint64_t, const void *);
typedef int (*create_function)(const struct packing *, void *, uint64_t *);

static struct generic generics[MOST];
static void *endpoints[MOST];
static uint64_t messages[MOST], bytes[MOST];
static int number_of_generics, used, counting;

void count_messages(int on) { counting = on; }

/* What was counted since the last call, by endpoint; their number. */
int take_messages(void **endpoint, uint64_t *message, uint64_t *byte)
{
    int found = used;
    for (int i = 0; i < found; i++) {
        endpoint[i] = endpoints[i];
        message[i] = messages[i];
        byte[i] = bytes[i];
    }
    used = 0;
    return found;
}

static void *real(const char *name)
{
    return dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD), name);
}

static size_t size_of(const void *buffer, size_t count, const void *parameters)
{
    uint64_t datatype = 8; /* contiguous, of one byte */
    if (*(const uint32_t *)parameters & DATATYPE_GIVEN)
        datatype = *(const uint64_t *)((const char *)parameters + DATATYPE_PLACE);
    if ((datatype & 7) == 0)
        return count * (datatype >> 3);
    for (int i = number_of_generics; i-- > 0;)
        if (generics[i].datatype == datatype) {
            void *state = generics[i].packing.start_pack(generics[i].context, buffer, count);
            size_t size = generics[i].packing.packed_size(state);
            generics[i].packing.finish(state);
            return size;
        }
    return 0;
}

static void count_one(void *endpoint, const void *buffer, size_t count, const void *parameters)
{
    int i = 0;
    size_t size = counting ? size_of(buffer, count, parameters) : 0;
    if (size == 0)
        return;
    while (i < used && endpoints[i] != endpoint)
        i++;
    if (i == MOST)
        return;
    if (i == used) {
        endpoints[i] = endpoint;
        messages[i] = bytes[i] = 0;
        used++;
    }
    messages[i]++;
    bytes[i] += size;
}

#define COUNTED(name)                                                                                                  \
    void *name(void *endpoint, const void *buffer, size_t count, uint64_t tag, const void *parameters)                 \
    {                                                                                                                  \
        static send_function send;                                                                                     \
        if (!send)                                                                                                     \
            send = (send_function)real(#name);                                                                         \
        count_one(endpoint, buffer, count, parameters);                                                                \
        return send(endpoint, buffer, count, tag, parameters);                                                         \
    }

COUNTED(ucp_tag_send_nbx)
COUNTED(ucp_tag_send_sync_nbx)

int ucp_dt_create_generic(const struct packing *packing, void *context, uint64_t *datatype)
{
    static create_function create;
    int status;
    if (!create)
        create = (create_function)real("ucp_dt_create_generic");
    status = create(packing, context, datatype);
    if (number_of_generics < MOST) {
        generics[number_of_generics].datatype = *datatype;
        generics[number_of_generics].packing = *packing;
        generics[number_of_generics].context = context;
        number_of_generics++;
    }
    return status;
}
