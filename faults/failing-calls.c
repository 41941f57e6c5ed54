/*
 * Loaded into a process (LD_PRELOAD). Makes writes and flushes of files below one folder fail, and
 * changes the clock of the process. failing-calls-library.ts compiles this file and writes the orders.
 *
 * FAILING_CALLS_FOLDER  the folder
 * FAILING_CALLS_ORDER   a file with a struct order; it is mapped, so an order takes effect at once
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum call { NO_CALL = 0, WRITE = 1, FLUSH = 2 };
enum shape { FAIL = 0, TORN = 1, SHORT = 2, STALL = 3 };

/* failing-calls-library.ts has the same layout. */
struct order {
  _Atomic int32_t call;      /* which call fails; written last */
  _Atomic int32_t nth;       /* the first call that fails, from 1 */
  _Atomic int32_t error;     /* errno */
  _Atomic int32_t shape;
  _Atomic int32_t permanent; /* whether all later calls fail too */
  _Atomic int32_t seen;      /* calls since the order */
  _Atomic int32_t hit;       /* failed calls since the order */
  _Atomic int32_t clock_seconds; /* added to the time of day */
};

static struct order *order;
static char folder[4096];

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("FAILING_CALLS_FOLDER"), *file = getenv("FAILING_CALLS_ORDER");
  if (name == NULL || file == NULL) return;
  snprintf(folder, sizeof folder, "%s/", name);
  int fd = open(file, O_RDWR | O_CLOEXEC);
  void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    perror("failing-calls: cannot map the order file");
    _exit(1);
  }
  close(fd);
  order = mapped;
}

/* Whether this call must fail. */
static int is_due(enum call call, int fd) {
  if (order == NULL || atomic_load(&order->call) != (int32_t)call) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  if (strncmp(path, folder, strlen(folder)) != 0) return 0;
  int32_t number = atomic_fetch_add(&order->seen, 1) + 1, nth = atomic_load(&order->nth);
  if (number != nth && !(number > nth && atomic_load(&order->permanent))) return 0;
  atomic_fetch_add(&order->hit, 1);
  return 1;
}

/* Waits until the order ends, or the process is killed. */
static void stall(void) {
  while (atomic_load(&order->call) != NO_CALL) usleep(1000);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static ssize_t failing_write(int fd, const void *data, size_t length, off_t offset) {
  int shape = atomic_load(&order->shape);
  ssize_t written = 0;
  if (shape == STALL) {
    stall();
    return REAL(pwrite64)(fd, data, length, offset);
  }
  if (shape != FAIL && length > 1) written = REAL(pwrite64)(fd, data, length / 2, offset);
  if (shape == SHORT && written > 0) return written;
  errno = atomic_load(&order->error);
  return -1;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
  static ssize_t (*real)(int, const void *, size_t, off64_t);
  if (real == NULL) real = REAL(pwrite64);
  return is_due(WRITE, fd) ? failing_write(fd, data, length, offset) : real(fd, data, length, offset);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
  return pwrite64(fd, data, length, offset);
}

static int flush(int fd, int (*real)(int)) {
  if (!is_due(FLUSH, fd)) return real(fd);
  if (atomic_load(&order->shape) == STALL) {
    stall();
    return real(fd);
  }
  errno = atomic_load(&order->error);
  return -1;
}

int fsync(int fd) {
  return flush(fd, REAL(fsync));
}

int fdatasync(int fd) {
  return flush(fd, REAL(fdatasync));
}

static time_t step(void) {
  return order == NULL ? 0 : atomic_load(&order->clock_seconds);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  static int (*real)(clockid_t, struct timespec *);
  if (real == NULL) real = REAL(clock_gettime);
  int result = real(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += step();
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  static int (*real)(struct timeval *restrict, void *restrict);
  if (real == NULL) real = REAL(gettimeofday);
  int result = real(time, zone);
  if (result == 0) time->tv_sec += step();
  return result;
}
