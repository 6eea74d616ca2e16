/* A libcupti without a GPU: the entry points that the tracer uses, and a few of its own that tests call to launch work and to
 * misbehave. Records have the layout of CUDA 12.1; buffers are delivered on a thread, as the real library does. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, INVALID_PARAMETER = 1, INVALID_OPERATION = 7, MAX_LIMIT = 12, INVALID_KIND = 21, HELD = 39 };

typedef void (*request_t)(uint8_t **, size_t *, size_t *);
typedef void (*complete_t)(void *, uint32_t, uint8_t *, size_t, size_t);
typedef uint64_t (*clock_source_t)(void);
typedef void (*callback_t)(void *, uint32_t, uint32_t, const void *);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static request_t request;
static complete_t complete;
static clock_source_t own_clock;
static callback_t subscriber;
static int watching, other_subscriber, refuse_kind, finalized, hold, no_driver;
static uint8_t enabled[64], runtime_on[1024], driver_on[1024];
static uint8_t *buffer;
static size_t size, used, dropped;
static uint32_t correlation;

/* What a test wants to know or to change. */
void fake_set(const char *what, int value) {
  if (!strcmp(what, "other_subscriber")) other_subscriber = value;
  if (!strcmp(what, "refuse_kind")) refuse_kind = value;
  if (!strcmp(what, "hold")) hold = value;
  if (!strcmp(what, "no_driver")) no_driver = value;
}
int fake_get(const char *what) {
  if (!strcmp(what, "finalized")) return finalized;
  if (!strcmp(what, "subscribed")) return subscriber != NULL;
  if (!strcmp(what, "enabled")) {
    int count = 0;
    for (int i = 0; i < 64; i++) count += enabled[i];
    for (int i = 0; i < 1024; i++) count += runtime_on[i] + driver_on[i];
    return count;
  }
  return -1;
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static uint64_t timestamp(void) { return own_clock ? own_clock() : now(); }

int cuptiGetVersion(uint32_t *version) {
  const char *text = getenv("FAKE_VERSION");
  *version = text ? atoi(text) : 18;
  return OK;
}
int cuptiGetResultString(int result, const char **text) {
  static __thread char buffer[40];
  snprintf(buffer, sizeof buffer, "FAKE_CUPTI_ERROR_%d", result);
  *text = buffer;
  return OK;
}
int cuptiGetTimestamp(uint64_t *time) {
  *time = timestamp();
  return OK;
}
#ifndef WITHOUT_CLOCK
int cuptiActivityRegisterTimestampCallback(clock_source_t clock) {
  own_clock = clock;
  return OK;
}
#endif
int cuptiSubscribe(void **handle, callback_t callback, void *data) {
  (void)data;
  if (no_driver) return 15;
  if (other_subscriber) return other_subscriber;
  if (subscriber) return HELD;
  finalized = 0;
  subscriber = callback;
  *handle = &subscriber;
  return OK;
}
int cuptiUnsubscribe(void *handle) {
  (void)handle;
  subscriber = NULL;
  watching = 0;
  return OK;
}
int cuptiEnableCallback(uint32_t on, void *handle, uint32_t domain, uint32_t id) {
  (void)handle;
  if (domain == 1 && id == 2) watching = on;
  return OK;
}
int cuptiActivityRegisterCallbacks(request_t r, complete_t c) {
  request = r;
  complete = c;
  return OK;
}
int cuptiActivityEnable(uint32_t kind) {
  if (refuse_kind >> 16 == (int)kind) return refuse_kind & 0xffff;
  enabled[kind] = 1;
  return OK;
}
int cuptiActivityDisable(uint32_t kind) {
  enabled[kind] = 0;
  return OK;
}
int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t on) {
  runtime_on[id] = on;
  return OK;
}
int cuptiActivityEnableDriverApi(uint32_t id, uint8_t on) {
  driver_on[id] = on;
  return OK;
}
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count) {
  (void)context, (void)stream;
  pthread_mutex_lock(&lock);
  *count = dropped;
  dropped = 0;
  pthread_mutex_unlock(&lock);
  return OK;
}

static size_t record_size(uint32_t kind) {
  switch (kind) {
    case 10: return 208;
    case 1: return 88;
    case 2: return 88;
    case 22: return 96;
    case 38: return 40;
    case 51: return 48;
    case 17: return 40;
    case 4: case 5: return 40;
    case 27: return 32;
    default: return 0;
  }
}
int cuptiActivityGetNextRecord(uint8_t *from, size_t valid, uint8_t **record) {
  uint8_t *next = from;
  uint32_t kind;
  if (*record) {
    memcpy(&kind, *record, 4);
    next = *record + record_size(kind);
  }
  if (next >= from + valid) return MAX_LIMIT;
  memcpy(&kind, next, 4);
  if (!record_size(kind)) return INVALID_KIND;
  *record = next;
  return OK;
}

static struct delivery {
  uint8_t *buffer;
  size_t size, used;
} held[64];
static int held_count;
static void *deliver(void *argument) {
  struct delivery *d = argument;
  complete(NULL, 0, d->buffer, d->size, d->used);
  return NULL;
}
static void deliver_on_thread(struct delivery *d) {
  pthread_t thread;
  pthread_create(&thread, NULL, deliver, d);
  pthread_join(thread, NULL);
}
/* Hands the current buffer over, on a thread; later, if the test holds buffers back. */
static void hand_over(void) {
  if (!buffer || !complete) return;
  struct delivery d = {buffer, size, used};
  buffer = NULL;
  used = 0;
  if (hold && held_count < 64)
    held[held_count++] = d;
  else
    deliver_on_thread(&d);
}
/* Delivers what was held back. */
void fake_release(void) {
  for (int i = 0; i < held_count; i++) deliver_on_thread(&held[i]);
  held_count = hold = 0;
}
int cuptiActivityFlushAll(uint32_t flag) {
  (void)flag;
  if (!complete) return INVALID_OPERATION;
  hand_over();
  return OK;
}
int cuptiFinalize(void) {
  finalized++;
  memset(enabled, 0, sizeof enabled);
  request = NULL;
  complete = NULL;
  own_clock = NULL;
  subscriber = NULL;
  watching = 0;
  buffer = NULL;
  return OK;
}

static uint8_t *room(uint32_t kind) {
  size_t bytes = record_size(kind);
  if (buffer && used + bytes > size) hand_over();
  if (!buffer) {
    size_t most;
    if (request) request(&buffer, &size, &most);
    used = 0;
    if (buffer && ((uintptr_t)buffer & 7)) abort();
  }
  if (!buffer) {
    pthread_mutex_lock(&lock);
    dropped++;
    pthread_mutex_unlock(&lock);
    return NULL;
  }
  uint8_t *record = buffer + used;
  memset(record, 0, bytes);
  memcpy(record, &kind, 4);
  used += bytes;
  return record;
}
static void put32(uint8_t *r, int at, uint32_t v) { memcpy(r + at, &v, 4); }
static void put64(uint8_t *r, int at, uint64_t v) { memcpy(r + at, &v, 8); }

/* Work of the program. Times: `ago` ns before now, `length` ns long; length 0 is a kernel that has not finished. */
void fake_kernel(const char *name, uint32_t graph, uint64_t ago, uint64_t length) {
  if (!enabled[10]) return;
  uint8_t *r = room(10);
  if (!r) return;
  uint64_t t = timestamp();
  r[6] = 42;
  put64(r, 16, length ? t - ago : 0), put64(r, 24, length ? t - ago + length : 0);
  put32(r, 40, 3), put32(r, 44, 1), put32(r, 48, 7);
  put32(r, 52, 10), put32(r, 56, 2), put32(r, 60, 3), put32(r, 64, 128), put32(r, 68, 2), put32(r, 72, 1);
  put32(r, 76, 1024), put32(r, 80, 512), put32(r, 92, ++correlation);
  put64(r, 104, (uint64_t)(uintptr_t)name);
  put32(r, 156, graph);
}
void fake_others(void) {
  uint64_t t = timestamp();
  uint8_t *r;
  if (enabled[1] && (r = room(1))) {
    r[4] = 1, r[5] = 1, r[6] = 3;
    put64(r, 8, 4096), put64(r, 16, t), put64(r, 24, t + 10);
    put32(r, 32, 3), put32(r, 40, 8), put32(r, 44, ++correlation), put32(r, 72, 5);
  }
  if (enabled[22] && (r = room(22))) {
    r[4] = 10, r[5] = 3, r[6] = 3;
    put64(r, 8, 77), put64(r, 16, t), put64(r, 24, t + 10);
    put32(r, 32, 2), put32(r, 40, 9), put32(r, 60, ++correlation);
  }
  if (enabled[2] && (r = room(2))) {
    put64(r, 8, 256), put64(r, 16, t), put64(r, 24, t + 10);
    put32(r, 32, 3), put32(r, 40, 7), put32(r, 44, ++correlation);
    r[50] = 3;
  }
  if (enabled[38] && (r = room(38))) {
    put32(r, 4, 3), put64(r, 8, t), put64(r, 16, t + 100), put32(r, 24, ++correlation), put32(r, 32, 7);
  }
  if (enabled[17] && (r = room(17))) {
    put32(r, 4, 5 << 16), put64(r, 24, t), put64(r, 32, t + 100);
  }
  if (runtime_on[211] && (r = room(5))) {
    put32(r, 4, 211), put64(r, 8, t), put64(r, 16, t + 5), put32(r, 28, 1234), put32(r, 32, ++correlation);
  }
  if (enabled[51] && (r = room(51))) {
    put32(r, 4, ++correlation), put64(r, 8, t), put64(r, 16, t + 5), put32(r, 24, 3), put32(r, 28, 11), put32(r, 36, 7);
  }
}
/* A record of a kind that the tracer does not know. */
void fake_unknown(void) { room(27); }

/* What libcuda would do around cuDriverGetVersion. */
int fake_driver_call(void) {
  uint32_t site = 0;
  if (watching && subscriber) subscriber(NULL, 1, 2, &site);
  site = 1;
  if (watching && subscriber) subscriber(NULL, 1, 2, &site);
  return 0;
}
