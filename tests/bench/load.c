/* A load generator that is not the bottleneck: one thread, epoll, no copies.
 *
 * Producers send XADD, up to `pipeline` of them unanswered. Consumers repeat
 * XREADGROUP COUNT n BLOCK 1000 and one XACK of all they got. A producer pauses
 * while `window` messages are added and not yet acked, so that the servers compared
 * keep an equal backlog. Every value starts with the time it was sent at.
 *
 * usage: load port key xadd|loop producers consumers count pipeline messages bytes
 * output: one line, names and numbers: messages seconds add_p50_us add_p99_us
 * trip_p50_us trip_p99_us (trip: from the XADD to the delivery)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 20000, PIPELINE_MAX = 1024, COUNT_MAX = 1024 };
static const uint64_t STALLED_NS = 20000000000u;
enum { BUCKETS_PER_OCTAVE = 32, OCTAVES = 64 };

struct buffer {
    char *bytes;
    size_t start, end, size;
};

struct connection {
    int socket;
    int number;
    bool produces, writes_blocked, awaits_ack;
    struct buffer in, out;
    uint64_t sent_ns[PIPELINE_MAX]; /* ring: when each unanswered XADD was sent */
    unsigned sent, answered;
};

/* Latencies, in buckets 3% wide. */
struct histogram {
    uint64_t buckets[OCTAVES * BUCKETS_PER_OCTAVE];
    uint64_t count;
};

static struct {
    int port, producers, consumers, count, pipeline, value_bytes;
    const char *key;
    bool loop;
    uint64_t messages;
} options;

static uint64_t sent, added, acked;
static struct histogram adds, trips;
static struct connection *connections;
static int poller;

static void fail(const char *what)
{
    fprintf(stderr, "load: %s\n", what);
    exit(1);
}

static void check(bool worked, const char *what)
{
    if (!worked) {
        perror(what);
        exit(1);
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- latencies ---- */

static void record(struct histogram *histogram, uint64_t ns)
{
    int octave = ns < BUCKETS_PER_OCTAVE ? 0 : 59 - __builtin_clzll(ns);
    int step = (int)(ns >> (octave ? octave - 1 : 0)) % BUCKETS_PER_OCTAVE;
    histogram->buckets[octave * BUCKETS_PER_OCTAVE + step]++;
    histogram->count++;
}

static double quantile_us(const struct histogram *histogram, double quantile)
{
    uint64_t below = 0, wanted = (uint64_t)(quantile * (double)histogram->count);
    for (int at = 0; at < OCTAVES * BUCKETS_PER_OCTAVE; at++) {
        below += histogram->buckets[at];
        if (below > wanted) {
            int octave = at / BUCKETS_PER_OCTAVE;
            uint64_t step = (uint64_t)(at % BUCKETS_PER_OCTAVE);
            if (octave > 0)
                step = (step + BUCKETS_PER_OCTAVE) << (octave - 1);
            return (double)step / 1000.0;
        }
    }
    return 0;
}

/* ---- sockets ---- */

static void reserve(struct buffer *buffer, size_t bytes)
{
    if (buffer->start == buffer->end)
        buffer->start = buffer->end = 0;
    if (buffer->end + bytes <= buffer->size)
        return;
    memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->end - buffer->start);
    buffer->end -= buffer->start;
    buffer->start = 0;
    while (buffer->end + bytes > buffer->size)
        buffer->size = buffer->size ? buffer->size * 2 : 65536;
    buffer->bytes = realloc(buffer->bytes, buffer->size);
    check(buffer->bytes != NULL, "realloc");
}

static void put(struct connection *to, const void *bytes, size_t length)
{
    reserve(&to->out, length);
    memcpy(to->out.bytes + to->out.end, bytes, length);
    to->out.end += length;
}

static void put_bulk(struct connection *to, const void *bytes, size_t length)
{
    char header[32];
    put(to, header, (size_t)sprintf(header, "$%zu\r\n", length));
    put(to, bytes, length);
    put(to, "\r\n", 2);
}

static void put_word(struct connection *to, const char *word)
{
    put_bulk(to, word, strlen(word));
}

static void put_number(struct connection *to, int number)
{
    char word[16];
    put_bulk(to, word, (size_t)sprintf(word, "%d", number));
}

static void put_length(struct connection *to, int words)
{
    char header[32];
    put(to, header, (size_t)sprintf(header, "*%d\r\n", words));
}

static void watch(struct connection *who, int operation, bool for_writing)
{
    struct epoll_event event = {.data.ptr = who};
    event.events = for_writing ? EPOLLIN | EPOLLOUT : EPOLLIN;
    check(epoll_ctl(poller, operation, who->socket, &event) == 0, "epoll_ctl");
}

static void flush_out(struct connection *who)
{
    struct buffer *out = &who->out;
    while (out->start < out->end) {
        size_t left = out->end - out->start;
        ssize_t wrote = send(who->socket, out->bytes + out->start, left,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
        if (wrote < 0 && errno == EAGAIN)
            break;
        check(wrote > 0, "send");
        out->start += (size_t)wrote;
    }
    bool blocked = out->start < out->end;
    if (blocked != who->writes_blocked)
        watch(who, EPOLL_CTL_MOD, blocked);
    who->writes_blocked = blocked;
}

static void open_connection(struct connection *who)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int on = 1;
    address.sin_port = htons((uint16_t)options.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    who->socket = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(who->socket, (void *)&address, sizeof address) == 0, "connect");
    setsockopt(who->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(who, EPOLL_CTL_ADD, false);
}

/* ---- replies ---- */

/* A whole line at `at`, whose number is put in `number`; NULL: not all there. */
static const char *line_after(const char *at, const char *end, long *number)
{
    const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    if (newline == NULL)
        return NULL;
    if (*at == '-') {
        fprintf(stderr, "load: %.*s\n", (int)(newline - at), at);
        exit(1);
    }
    *number = strtol(at + 1, NULL, 10);
    return newline + 1;
}

/* The bulk string at `*at`, which moves past it; NULL: not all there. */
static const char *take_bulk(const char **at, const char *end, long *length)
{
    const char *bytes = line_after(*at, end, length);
    if (bytes == NULL || end - bytes < *length + 2)
        return NULL;
    *at = bytes + *length + 2;
    return bytes;
}

struct id {
    const char *bytes;
    long length;
};

/* The reply of XREADGROUP at `at`; past it, or NULL: not all there. */
static const char *take_entries(const char *at, const char *end, struct id *ids,
                                uint64_t *times_ns, int *count)
{
    long streams, pair, entries, fields, length;
    *count = 0;
    if (!(at = line_after(at, end, &streams)) || streams <= 0)
        return at;
    if (!(at = line_after(at, end, &pair)) || !take_bulk(&at, end, &length) ||
        !(at = line_after(at, end, &entries)))
        return NULL;
    for (long n = 0; n < entries; n++) {
        const char *value;
        if (!(at = line_after(at, end, &pair)) ||
            !(ids[n].bytes = take_bulk(&at, end, &ids[n].length)) ||
            !(at = line_after(at, end, &fields)) || !take_bulk(&at, end, &length) ||
            !(value = take_bulk(&at, end, &length)))
            return NULL;
        memcpy(&times_ns[n], value, sizeof times_ns[n]);
    }
    *count = (int)entries;
    return at;
}

/* ---- producers and consumers ---- */

static void produce(struct connection *who)
{
    static char value[65536];
    while (who->sent - who->answered < (unsigned)options.pipeline &&
           sent < options.messages && (!options.loop || sent - acked < WINDOW)) {
        uint64_t now = now_ns();
        who->sent_ns[who->sent++ % PIPELINE_MAX] = now;
        sent++;
        memcpy(value, &now, sizeof now);
        put_length(who, 5);
        put_word(who, "XADD");
        put_word(who, options.key);
        put_word(who, "*");
        put_word(who, "f");
        put_bulk(who, value, (size_t)options.value_bytes);
    }
    flush_out(who);
}

static void poll_group(struct connection *who)
{
    char name[32];
    sprintf(name, "consumer-%d", who->number);
    put_length(who, 11);
    put_word(who, "XREADGROUP");
    put_word(who, "GROUP");
    put_word(who, "g");
    put_word(who, name);
    put_word(who, "COUNT");
    put_number(who, options.count);
    put_word(who, "BLOCK");
    put_word(who, "1000");
    put_word(who, "STREAMS");
    put_word(who, options.key);
    put_word(who, ">");
}

static void ack(struct connection *who, const struct id *ids, int count)
{
    put_length(who, 3 + count);
    put_word(who, "XACK");
    put_word(who, options.key);
    put_word(who, "g");
    for (int n = 0; n < count; n++)
        put_bulk(who, ids[n].bytes, (size_t)ids[n].length);
}

/* One reply to a consumer; past it, or NULL: not all there. */
static const char *consume(struct connection *who, const char *at, const char *end)
{
    static struct id ids[COUNT_MAX];
    static uint64_t times_ns[COUNT_MAX];
    int count = 0;
    if (who->awaits_ack) {
        long finished;
        if (!(at = line_after(at, end, &finished)))
            return NULL;
        acked += (uint64_t)finished;
    } else {
        if (!(at = take_entries(at, end, ids, times_ns, &count)))
            return NULL;
        uint64_t now = now_ns();
        for (int n = 0; n < count; n++)
            record(&trips, now - times_ns[n]);
    }
    who->awaits_ack = count > 0;
    if (count > 0)
        ack(who, ids, count);
    else
        poll_group(who);
    return at;
}

static void receive(struct connection *who)
{
    struct buffer *in = &who->in;
    const char *next;
    reserve(in, 65536);
    ssize_t got = recv(who->socket, in->bytes + in->end, in->size - in->end, 0);
    if (got == 0)
        fail("the server closed the connection");
    check(got > 0, "recv");
    in->end += (size_t)got;
    for (;;) {
        const char *at = in->bytes + in->start, *end = in->bytes + in->end;
        if (who->produces) {
            long length;
            if (!take_bulk(&at, end, &length))
                break;
            record(&adds, now_ns() - who->sent_ns[who->answered++ % PIPELINE_MAX]);
            added++;
            next = at;
        } else if (at == end || !(next = consume(who, at, end))) {
            break;
        }
        in->start = (size_t)(next - in->bytes);
    }
}

/* Answers make room for more: each producer that may go on does. */
static void go_on(struct connection *who)
{
    if (who->produces)
        produce(who);
    else
        flush_out(who);
    for (int n = 0; n < options.producers && !who->produces; n++)
        if (connections[n].sent == connections[n].answered)
            produce(&connections[n]);
}

static void run(void)
{
    struct epoll_event events[256];
    uint64_t done = 0, done_ns = now_ns();
    while ((options.loop ? acked : added) < options.messages) {
        int count = epoll_wait(poller, events, 256, 1000);
        check(count >= 0, "epoll_wait");
        if (added + acked > done) {
            done = added + acked;
            done_ns = now_ns();
        } else if (now_ns() - done_ns > STALLED_NS) {
            fail("no message was added or acked for 20 seconds");
        }
        for (int n = 0; n < count; n++) {
            struct connection *who = events[n].data.ptr;
            if (events[n].events & ~(uint32_t)EPOLLOUT)
                receive(who);
            go_on(who);
        }
    }
}

int main(int words, char **word)
{
    if (words != 10)
        fail("port key xadd|loop producers consumers count pipeline messages bytes");
    options.port = atoi(word[1]);
    options.key = word[2];
    options.loop = strcmp(word[3], "loop") == 0;
    options.producers = atoi(word[4]);
    options.consumers = options.loop ? atoi(word[5]) : 0;
    options.count = atoi(word[6]);
    options.pipeline = atoi(word[7]);
    options.messages = strtoull(word[8], NULL, 10);
    options.value_bytes = atoi(word[9]);
    if (options.count > COUNT_MAX || options.pipeline > PIPELINE_MAX)
        fail("count and pipeline are at most 1024");
    if (options.value_bytes < 8 || options.value_bytes > 65536)
        fail("values have 8 to 65536 bytes");
    int total = options.producers + options.consumers;
    connections = calloc((size_t)total, sizeof *connections);
    poller = epoll_create1(0);
    check(connections != NULL && poller >= 0, "setup");
    for (int n = 0; n < total; n++) {
        connections[n].number = n;
        connections[n].produces = n < options.producers;
        open_connection(&connections[n]);
    }
    uint64_t start = now_ns();
    for (int n = total - 1; n >= 0; n--) {
        if (!connections[n].produces)
            poll_group(&connections[n]);
        go_on(&connections[n]);
    }
    run();
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("messages %llu seconds %.6f add_p50_us %.0f add_p99_us %.0f "
           "trip_p50_us %.0f trip_p99_us %.0f\n",
           (unsigned long long)options.messages, seconds, quantile_us(&adds, 0.5),
           quantile_us(&adds, 0.99), quantile_us(&trips, 0.5),
           quantile_us(&trips, 0.99));
    return 0;
}
