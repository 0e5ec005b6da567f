// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Limits of this machine: rates of f32 FMA and of bf16 and int8 dot products by
// the best instruction that the CPU has (vectors, or the matrix unit), copy
// bandwidth at several working sets, and of memory also reading alone and
// copying past the caches, for a number of threads. Build: cc -O3 -march=native
// -ffp-contract=fast -pthread peak.c -o peak; run: ./peak THREADS. One line per
// limit: name, value, unit. Each value is the best of a few repetitions: a
// limit is what the machine can do when nobody disturbs it. ./peak THREADS NAME
// measures that limit alone, once for every line on its input.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define BYTES 64
#else
#define BYTES 32
#endif
#define LANES (BYTES / 4)
#define CHAINS 12 // independent accumulators; latency 4 x 2 pipes needs 8
#define REPEATS 5
typedef float vec __attribute__((vector_size(BYTES)));

static pthread_barrier_t barrier;
static volatile float sink;
static size_t
    bytes; // working set of one thread: source and destination together
static long loops;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void fma_loop(void *unused) {
  vec a[CHAINS], x = {0}, y = {0};
  (void)unused;
  x += 0.999f, y += 0.001f;
#pragma GCC unroll 12
  for (int i = 0; i < CHAINS; i++)
    a[i] = x * (float)i;
  for (long k = 0; k < loops; k++) {
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++)
      a[i] = a[i] * x + y;
  }
#pragma GCC unroll 12
  for (int i = 1; i < CHAINS; i++)
    a[0] += a[i];
  sink = a[0][0];
}

#ifdef __AVX512BF16__
static void bf16_loop(void *unused) {
  __m512 a[CHAINS];
  __m512bh x = (__m512bh)_mm512_set1_epi16(0x3f00), y = x;
  (void)unused;
#pragma GCC unroll 12
  for (int i = 0; i < CHAINS; i++)
    a[i] = _mm512_set1_ps(0.1f * i);
  for (long k = 0; k < loops; k++) {
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++)
      a[i] = _mm512_dpbf16_ps(a[i], x, y);
  }
#pragma GCC unroll 12
  for (int i = 1; i < CHAINS; i++)
    a[0] = _mm512_add_ps(a[0], a[i]);
  sink = a[0][0];
}
#endif

#ifdef __AVX512VNNI__
static void int8_loop(void *unused) {
  __m512i a[CHAINS], x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(5);
  (void)unused;
#pragma GCC unroll 12
  for (int i = 0; i < CHAINS; i++)
    a[i] = _mm512_set1_epi32(i);
  for (long k = 0; k < loops; k++) {
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++)
      a[i] = _mm512_dpbusd_epi32(a[i], x, y);
  }
#pragma GCC unroll 12
  for (int i = 1; i < CHAINS; i++)
    a[0] = _mm512_add_epi32(a[0], a[i]);
  sink = (float)a[0][0];
}
#endif

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
#define MATRIX_UNIT 1
// Four registers of sums, each 16x16; a product starts every 16 cycles.
#define SUMS 4

static void configure(void) {
  struct __attribute__((packed)) {
    unsigned char palette, start, reserved[14];
    unsigned short bytes[16];
    unsigned char rows[16];
  } tiles;
  memset(&tiles, 0, sizeof tiles);
  tiles.palette = 1;
  for (int i = 0; i < 8; i++)
    tiles.bytes[i] = 64, tiles.rows[i] = 16;
  __asm__ volatile("" ::"r"(&tiles) : "memory"); // GCC sees 8 bytes of it used
  _tile_loadconfig(&tiles);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
}

// A loop of products into each of the sums.
#define MATRIX_LOOP(name, product)                                             \
  static void name(void *unused) {                                             \
    (void)unused;                                                              \
    configure();                                                               \
    for (long k = 0; k < loops; k++) {                                         \
      product(0, 4, 5);                                                        \
      product(1, 4, 5);                                                        \
      product(2, 4, 5);                                                        \
      product(3, 4, 5);                                                        \
    }                                                                          \
    _tile_release();                                                           \
  }
MATRIX_LOOP(matrix_bf16_loop, _tile_dpbf16ps)
MATRIX_LOOP(matrix_int8_loop, _tile_dpbusd)

// Whether the kernel lets this process use the registers.
static int has_matrix_unit(void) {
  return syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */,
                 18 /* XFEATURE_XTILEDATA */) == 0;
}
#endif

// Four places at once, which keeps more lines on their way than one does.
static void read_loop(void *buffer) {
  size_t part = bytes / BYTES / 4;
  vec *from = buffer, sum[4] = {0};
  for (long k = 0; k < loops; k++)
    for (size_t i = 0; i < part; i += 2) {
#pragma GCC unroll 4
      for (int s = 0; s < 4; s++)
        sum[s] += from[s * part + i] + from[s * part + i + 1];
    }
  sink = (sum[0] + sum[1] + sum[2] + sum[3])[0];
}

// Stores that do not bring the line into the caches first.
static void stream_loop(void *buffer) {
  vec *from = buffer, *to = from + bytes / 2 / BYTES;
  for (long k = 0; k < loops; k++)
    for (size_t i = 0; i < bytes / 2 / BYTES; i++) {
#ifdef __AVX512F__
      _mm512_stream_ps((float *)(to + i), (__m512)from[i]);
#else
      to[i] = from[i];
#endif
    }
}

static void copy_loop(void *buffer) {
  vec *from = buffer, *to = from + bytes / 2 / BYTES;
  for (long k = 0; k < loops; k++) {
    for (size_t i = 0; i < bytes / 2 / BYTES; i += 4) {
      to[i] = from[i], to[i + 1] = from[i + 1], to[i + 2] = from[i + 2],
      to[i + 3] = from[i + 3];
    }
    __asm__ volatile(
        "" ::
            : "memory"); // keep the compiler from merging the repetitions
  }
}

struct job {
  void (*body)(void *);
  void *buffer;
  double best;
};

static void *work(void *argument) {
  struct job *job = argument;
  for (int r = 0; r < REPEATS; r++) {
    pthread_barrier_wait(&barrier);
    double start = now();
    job->body(job->buffer);
    pthread_barrier_wait(&barrier);
    double seconds = now() - start;
    if (r == 0 || seconds < job->best)
      job->best = seconds;
  }
  return NULL;
}

// Seconds of the best repetition with every thread working.
static double run(int threads, void (*body)(void *), void **buffers) {
  pthread_t ids[threads];
  struct job jobs[threads];
  pthread_barrier_init(&barrier, NULL, threads);
  for (int t = 0; t < threads; t++) {
    jobs[t] = (struct job){body, buffers ? buffers[t] : NULL, 0};
    pthread_create(&ids[t], NULL, work, &jobs[t]);
  }
  for (int t = 0; t < threads; t++)
    pthread_join(ids[t], NULL);
  pthread_barrier_destroy(&barrier);
  return jobs[0].best;
}

static double fma_rate(int threads) {
  loops = 5000000;
  return 2.0 * LANES * CHAINS * loops * threads / run(threads, fma_loop, NULL);
}

// Rates of dot products by the best instruction that the CPU has; 0 without.
static double bf16_rate(int threads) {
  double rate = 0;
  loops = 5000000;
#ifdef __AVX512BF16__
  rate = 4.0 * LANES * CHAINS * loops * threads / run(threads, bf16_loop, NULL);
#endif
#ifdef MATRIX_UNIT
  if (has_matrix_unit()) {
    loops /= 5;
    double by_unit = 2.0 * 16 * 16 * 32 * SUMS * loops * threads /
                     run(threads, matrix_bf16_loop, NULL);
    rate = by_unit > rate ? by_unit : rate;
  }
#endif
  return rate;
}

static double int8_rate(int threads) {
  double rate = 0;
  loops = 5000000;
#ifdef __AVX512VNNI__
  rate = 8.0 * LANES * CHAINS * loops * threads / run(threads, int8_loop, NULL);
#endif
#ifdef MATRIX_UNIT
  if (has_matrix_unit()) {
    loops /= 5;
    double by_unit = 2.0 * 16 * 16 * 64 * SUMS * loops * threads /
                     run(threads, matrix_int8_loop, NULL);
    rate = by_unit > rate ? by_unit : rate;
  }
#endif
  return rate;
}

static void *take(size_t size) {
  void *buffer = aligned_alloc(size < (2 << 20) ? 4096 : 2 << 20, size);
  if (!buffer) {
    fprintf(stderr, "no memory for %zu bytes\n", size);
    exit(1);
  }
#ifdef MADV_HUGEPAGE // as NumPy does
  if (size >= (4 << 20))
    madvise(buffer, size, MADV_HUGEPAGE);
#endif
  memset(buffer, 1, size);
  return buffer;
}

// Bytes per second that a loop moves; the buffers stay for the next time.
static double moving_rate(int threads, void (*body)(void *), size_t size) {
  static void **buffers;
  if (bytes != size) {
    for (int t = 0; buffers && t < threads; t++)
      free(buffers[t]);
    free(buffers);
    buffers = malloc(threads * sizeof *buffers);
    for (int t = 0; t < threads; t++)
      buffers[t] = take(size);
  }
  bytes = size;
  loops = size > (32 << 20) ? 2 : (long)((1u << 30) / size);
  return 1.0 * size * loops * threads / run(threads, body, buffers);
}

// Either a rate of operations, or a loop over a working set.
static const struct limit {
  const char *name, *unit;
  double (*rate)(int threads);
  void (*body)(void *);
  size_t bytes;
} limits[] = {{"fma_f32", "GFLOP/s", fma_rate, NULL, 0},
              {"dot_bf16", "GFLOP/s", bf16_rate, NULL, 0},
              {"dot_int8", "GOP/s", int8_rate, NULL, 0},
              {"copy_24KB", "GB/s", NULL, copy_loop, 24 << 10},
              {"copy_512KB", "GB/s", NULL, copy_loop, 512 << 10},
              {"copy_8MB", "GB/s", NULL, copy_loop, 8 << 20},
              {"read_16MB", "GB/s", NULL, read_loop, 16 << 20},
              {"read_32MB", "GB/s", NULL, read_loop, 32 << 20},
              {"read_34MB", "GB/s", NULL, read_loop, 34 << 20},
              {"copy_64MB", "GB/s", NULL, copy_loop, 64 << 20},
              {"read_64MB", "GB/s", NULL, read_loop, 64 << 20},
              {"stream_64MB", "GB/s", NULL, stream_loop, 64 << 20},
              {"copy_256MB", "GB/s", NULL, copy_loop, 256 << 20},
              {"read_256MB", "GB/s", NULL, read_loop, 256 << 20},
              {"stream_256MB", "GB/s", NULL, stream_loop, 256 << 20}};
#define COUNT (sizeof limits / sizeof *limits)

static void tell(const struct limit *limit, int threads) {
  double rate = limit->rate ? limit->rate(threads)
                            : moving_rate(threads, limit->body, limit->bytes);
  if (rate > 0) // else the CPU has no such instruction
    printf("%s %.1f %s\n", limit->name, rate * 1e-9, limit->unit);
  fflush(stdout);
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  if (threads < 1 || threads > 1024) {
    fprintf(stderr, "usage: peak THREADS (1 to 1024) [NAME]\n");
    return 2;
  }
  for (size_t i = 0; i < COUNT; i++) {
    if (argc < 3)
      tell(&limits[i], threads);
    else if (!strcmp(argv[2], limits[i].name)) {
      for (int c = getchar(); c != EOF; c = getchar())
        if (c == '\n')
          tell(&limits[i], threads);
      return 0;
    }
  }
  if (argc < 3)
    return 0;
  fprintf(stderr, "no limit has the name %s\n", argv[2]);
  return 2;
}
