//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libtwrt: the C ABI that compiled models call, and that the Python run-time
// calls through ctypes. It needs no MLIR and no LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_RUNTIME_TWRT_H
#define TILEWRIGHT_LIB_RUNTIME_TWRT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TWRT_EXPORT __attribute__((visibility("default")))

/// Version of this ABI. A model's manifest names the one it was built for.
#define TWRT_ABI_VERSION 4

/// A compiled kernel: runs tasks `begin` <= t < `end` with `scratch` (64-byte
/// aligned, private to the calling thread) as its local memory.
typedef void (*twrt_kernel)(void **argv, int64_t begin, int64_t end,
                            char *scratch);

/// A compiled model's entry: `bufs` are inputs, outputs, weights, arena. Where
/// the sizes of an input or output are known at run time only, its pointer
/// leads to words of 8 bytes: the data, the block to release, the sizes.
typedef void (*twrt_entry)(void **bufs);

/// One launch as recorded in profile mode.
typedef struct {
  void *kernel;
  int64_t tasks;
  int64_t nanoseconds;
} twrt_record;

TWRT_EXPORT int32_t twrt_abi_version(void);

/// Threads that a call may use here: the CPU affinity of the process, reduced
/// to the CPU quota of its cgroup (rounded up). At least 1.
TWRT_EXPORT int32_t twrt_default_threads(void);

/// Asks the kernel, once per process, for the registers of the matrix unit
/// (AMX), without which its instructions end the process. Called before a model
/// that needs them is. Returns 0, or an errno.
TWRT_EXPORT int32_t twrt_use_matrix_unit(void);

/// Runs `entry(bufs)` on the calling thread, with up to `threads - 1` helpers
/// of the process-wide pool for its launches. Helpers that other calls hold
/// are not waited for. Returns the number of threads of this call's team, or
/// -1 where the run failed: twrt_error() says why.
TWRT_EXPORT int32_t twrt_call(twrt_entry entry, void **bufs, int32_t threads);

/// As twrt_call, and records each launch: at most `capacity` records are
/// written to `records`. Returns the number of launches made, -1 on failure.
TWRT_EXPORT int64_t twrt_call_profiled(twrt_entry entry, void **bufs,
                                       int32_t threads, twrt_record *records,
                                       int64_t capacity);

/// Why the last failed call of this thread failed.
TWRT_EXPORT const char *twrt_error(void);

/// Called by compiled code: ends the current call. The text is copied.
TWRT_EXPORT __attribute__((noreturn)) void twrt_fail(const char *message);

/// As twrt_fail; the text ends with the number that is at fault.
TWRT_EXPORT __attribute__((noreturn)) void twrt_fail_at(const char *message,
                                                        int64_t number);

/// Called by compiled code: memory of the current call, 64-byte aligned. Ends
/// the call where there is none.
TWRT_EXPORT void *twrt_alloc(int64_t bytes);

/// Called by compiled code: frees what twrt_alloc gave. Other pointers (the
/// arena, inputs, what was handed over) are left alone.
TWRT_EXPORT void twrt_free(void *block);

/// Called by compiled code: `bytes` times `count`. Ends the call where that is
/// negative or too large for any memory.
TWRT_EXPORT int64_t twrt_size(int64_t bytes, int64_t count);

/// Called by compiled code: hands over a result. `slot` gets the data and the
/// block to release: `block` itself where this call allocated it and has not
/// handed it over, a copy of `bytes` at `data` otherwise.
TWRT_EXPORT void twrt_give(void **slot, void *block, void *data, int64_t bytes);

/// Frees a block that a call handed over.
TWRT_EXPORT void twrt_release(void *block);

/// Called by compiled code: runs all tasks of a kernel on the team of the
/// current call (the calling thread alone where there is none) and returns
/// when all are done.
TWRT_EXPORT void twrt_launch(twrt_kernel fn, void **argv, int64_t tasks,
                             int64_t scratch_bytes);

/// Called by compiled code: runs a program of `units` units on the team of the
/// current call. `fn` runs the steps of a range of units, in the order of the
/// program's text, which respects its waits; each thread gets a range. The
/// counters of `events` events, 64 bytes each, start at 0.
TWRT_EXPORT void twrt_program(twrt_kernel fn, void **argv, int64_t units,
                              int64_t scratch_bytes, char *counters,
                              int64_t events);

/// Called by programs: adds one to an event, after all that was done before.
TWRT_EXPORT void twrt_signal(char *counters, int64_t event);

/// Called by programs: returns when the event has come to `count`.
TWRT_EXPORT void twrt_wait(char *counters, int64_t event, int64_t count);

/// Helpers that the pool has started so far in this process.
TWRT_EXPORT int32_t twrt_pool_size(void);

#ifdef __cplusplus
}
#endif

#endif // TILEWRIGHT_LIB_RUNTIME_TWRT_H
