/* A disk that is full and a clock that jumps, for one process and those that it starts (LD_PRELOAD; see killing.py).

   KILLING_PAGE names a file of four 64-bit numbers, which the harness changes while the process runs: how many nanoseconds the
   wall clock is ahead; whether the disk is full; how many writes have failed for that; how often the clock was looked at while it
   was ahead or behind. The disk is full below the folder KILLING_UNDER alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *page;
static const char *under;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("KILLING_PAGE");
  under = getenv("KILLING_UNDER");
  int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0 || !under) return;
  void *found = mmap(NULL, 32, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (found != MAP_FAILED) page = found;
}

static int full_at(const char *path) {
  if (!page || !page[1] || strncmp(path, under, strlen(under))) return 0;
  __sync_fetch_and_add(&page[2], 1);
  errno = ENOSPC;
  return 1;
}

static int below(int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return !strncmp(path, under, strlen(under));
}

static int full(int file) { return page && page[1] && below(file) && full_at(under); }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *data, size_t size) { return full(file) ? -1 : syscall(SYS_write, file, data, size); }
ssize_t pwrite(int file, const void *data, size_t size, off_t at) { return full(file) ? -1 : REAL(pwrite)(file, data, size, at); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) { return full(file) ? -1 : REAL(pwrite64)(file, data, size, at); }
ssize_t writev(int file, const struct iovec *parts, int count) { return full(file) ? -1 : REAL(writev)(file, parts, count); }
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) { return full(file) ? -1 : REAL(pwritev)(file, parts, count, at); }
int ftruncate(int file, off_t size) { return full(file) ? -1 : REAL(ftruncate)(file, size); }
int ftruncate64(int file, off64_t size) { return full(file) ? -1 : REAL(ftruncate64)(file, size); }
int fsync(int file) {
  if (page && below(file)) usleep(5000); /* as long as a disk takes: kills find something half-written */
  return full(file) ? -1 : REAL(fsync)(file);
}
int mkdir(const char *path, mode_t mode) { return full_at(path) ? -1 : REAL(mkdir)(path, mode); }

static int64_t ahead(void) {
  if (!page || !page[0]) return 0;
  __sync_fetch_and_add(&page[3], 1);
  return page[0];
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static __typeof__(&clock_gettime) real;
  if (!real) real = REAL(clock_gettime);
  int status = real(clock, now);
  if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    int64_t by = ahead(), whole = by / 1000000000, rest = now->tv_nsec + by % 1000000000;
    if (rest < 0) rest += 1000000000, whole--;
    if (rest >= 1000000000) rest -= 1000000000, whole++;
    now->tv_sec += whole, now->tv_nsec = rest;
  }
  return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec fine;
  clock_gettime(CLOCK_REALTIME, &fine);
  now->tv_sec = fine.tv_sec, now->tv_usec = fine.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *where) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (where) *where = now.tv_sec;
  return now.tv_sec;
}
