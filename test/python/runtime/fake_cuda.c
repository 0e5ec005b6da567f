// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA driver without a GPU, for tests: memory is the host's, work is done at
// once, what a real one would reject (no context, unknown handles, misaligned
// parameters, work outside limits) is an error code. HAVE_CUDA_H: the compiler
// compares the signatures with those of NVIDIA's header.
//
// "PTX" (and a "cubin") is text: lines `.entry NAME SIZE...`, the parameters'
// bytes. `add` (out, x, y, n) adds f32 numbers; other kernels do nothing. Real
// PTX is read for its parameters alone (fake_cuda_parts.h, which has the
// clocks, too).

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CUDA_H
#include <cuda.h>
#else
#include "fake_cuda_types.h"
#endif
#include "fake_cuda_parts.h"

// What tests set and read
static char text[1 << 20];
static size_t text_end;
static int attributes[256];
static char failing[64];
static int failing_code;
static size_t memory_limit = 1 << 24, memory_used;
static int live[8];
enum { CONTEXT, MODULE, STREAM, EVENT, GRAPH, EXECUTABLE, POOL, BLOCK };

static void say(const char *format, ...) {
  va_list list;
  va_start(list, format);
  if (text_end < sizeof text)
    text_end += (size_t)vsnprintf(text + text_end, sizeof text - text_end,
                                  format, list);
  va_end(list);
}

const char *fake_log(void) { return text; }
void fake_clear(void) { text[text_end = 0] = 0; }
void fake_attribute(int number, int value) { attributes[number] = value; }
void fake_memory(size_t bytes) { memory_limit = bytes; }
int fake_live(int what) { return live[what]; }
void fake_fail(const char *name, int code) {
  snprintf(failing, sizeof failing, "%s", name);
  failing_code = code;
}

static int fails(const char *name) {
  if (strcmp(name, failing))
    return 0;
  failing[0] = 0;
  return failing_code;
}

// Contexts

static int context_marker;
static _Thread_local CUcontext current;
static const CUcontext primary = (CUcontext)&context_marker;

#define START(name)                                                            \
  int failed = fails(name);                                                    \
  if (failed)                                                                  \
    return failed;
#define WITH_CONTEXT(name)                                                     \
  START(name)                                                                  \
  if (current != primary || !live[CONTEXT])                                    \
    return 201;

CUresult cuInit(unsigned flags) {
  START("cuInit")
  return flags ? 1 : 0;
}
CUresult cuDriverGetVersion(int *version) { return *version = 13000, 0; }
CUresult cuGetErrorName(CUresult code, const char **name) {
  *name = code == 1     ? "CUDA_ERROR_INVALID_VALUE"
          : code == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : code == 218 ? "CUDA_ERROR_INVALID_PTX"
          : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                        : NULL;
  return *name ? 0 : 1;
}
CUresult cuGetErrorString(CUresult code, const char **name) {
  return *name = "text of the code", code < 0;
}
CUresult cuDeviceGetCount(int *count) {
  START("cuDeviceGetCount")
  return *count = attributes[0], 0;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (ordinal < 0 || ordinal >= attributes[0])
    return attributes[0] ? 101 : 100;
  return *device = ordinal, 0;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  return snprintf(name, (size_t)length, "Fake GPU %d", device), 0;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  return *bytes = memory_limit, device;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute number,
                              CUdevice device) {
  return *value = attributes[number], device;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  return *context = primary, ++live[CONTEXT], device;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return live[CONTEXT] ? (--live[CONTEXT], device) : 201;
}
CUresult cuCtxGetCurrent(CUcontext *context) { return *context = current, 0; }
CUresult cuCtxSetCurrent(CUcontext context) {
  return say("cuCtxSetCurrent\n"), current = context, 0;
}
CUresult cuCtxSynchronize(void) {
  WITH_CONTEXT("cuCtxSynchronize")
  wait_for_gpu();
  return say("cuCtxSynchronize\n"), 0;
}

// Code

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values) {
  WITH_CONTEXT("cuModuleLoadDataEx")
  char *log = NULL, *errors = NULL;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == 3)
      log = values[i];
    if (options[i] == 5)
      errors = values[i];
    if ((options[i] == 4 || options[i] == 6) && (uintptr_t)values[i] != 65536)
      return 1;
  }
  int is_cubin = !strncmp(image, "\177ELF", 4);
  if (!is_cubin && strncmp(image, ".version", 8) && strncmp(image, "//", 2)) {
    if (errors)
      strcpy(errors, "ptxas fatal: line 1, no .version");
    return 218;
  }
  say("load %s\n", is_cubin ? "cubin" : "ptx");
  if (log)
    strcpy(log, is_cubin ? "" : "ptxas info: fine");
  CUmodule made = calloc(1, sizeof *made);
  read_functions(made, image);
  return *module = made, ++live[MODULE], 0;
}
CUresult cuModuleUnload(CUmodule module) {
  WITH_CONTEXT("cuModuleUnload")
  return free(module), --live[MODULE], 0;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  WITH_CONTEXT("cuModuleGetFunction")
  for (int i = 0; i < module->count; ++i)
    if (!strcmp(module->functions[i].name, name))
      return *function = &module->functions[i], 0;
  return 500;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute number,
                            CUfunction function) {
  int values[] = {function->threads, 1024, 0, 8, 32};
  return *value = values[number], 0;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute number,
                            int value) {
  WITH_CONTEXT("cuFuncSetAttribute")
  say("cuFuncSetAttribute %s %d %d\n", function->name, (int)number, value);
  return function->dynamic = value, 0;
}

// Memory

struct CUmemPoolHandle_st {
  uint64_t threshold;
};
struct block {
  CUdeviceptr address;
  size_t size;
};
static struct block blocks[256];

CUresult cuMemGetInfo_v2(size_t *rest, size_t *total) {
  return *rest = memory_limit - memory_used, *total = memory_limit, 0;
}
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props) {
  WITH_CONTEXT("cuMemPoolCreate")
  if (props->allocType != 1 || (int)props->location.type != 1 ||
      props->handleTypes || props->maxSize)
    return 1;
  return *pool = calloc(1, sizeof **pool), ++live[POOL], 0;
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return free(pool), --live[POOL], 0;
}
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute number,
                               void *value) {
  return number == 4 ? (pool->threshold = *(uint64_t *)value, 0) : 1;
}
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute number,
                               void *value) {
  (void)pool;
  return *(uint64_t *)value = number == 7 ? memory_used : memory_limit,
                    number != 7 && number != 5;
}
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
  return say("cuMemPoolTrimTo %zu\n", bytes), pool ? 0 : 1;
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes,
                                 CUmemoryPool pool, CUstream stream) {
  WITH_CONTEXT("cuMemAllocFromPoolAsync")
  if (!pool || pool->threshold != UINT64_MAX || !bytes)
    return 1;
  if (memory_used + bytes > memory_limit)
    return 2;
  for (int i = 0; i < 256; ++i)
    if (!blocks[i].address) {
      size_t whole = (bytes + 255) / 256 * 256;
      void *memory = aligned_alloc(256, whole);
      memset(memory, 0xcd, whole);
      blocks[i] = (struct block){(CUdeviceptr)(uintptr_t)memory, bytes};
      memory_used += bytes;
      say("alloc %zu on %p\n", bytes, (void *)stream);
      return *address = blocks[i].address, ++live[BLOCK], 0;
    }
  return 2;
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  WITH_CONTEXT("cuMemFreeAsync")
  for (int i = 0; i < 256; ++i)
    if (blocks[i].address == address) {
      memory_used -= blocks[i].size;
      free((void *)(uintptr_t)address);
      blocks[i].address = 0;
      return say("free on %p\n", (void *)stream), --live[BLOCK], 0;
    }
  return 1;
}

static int inside(CUdeviceptr address, size_t bytes) {
  for (int i = 0; i < 256; ++i)
    if (blocks[i].address && address >= blocks[i].address &&
        address + bytes <= blocks[i].address + blocks[i].size)
      return 1;
  return 0;
}

// Streams and graphs: a stream that captures keeps calls for later

enum kind { LAUNCH, COPY, SET };
struct call {
  enum kind kind;
  CUfunction function;
  unsigned shape[11];
  unsigned char params[512];
  CUdeviceptr to, from;
  size_t bytes;
  int byte;
};
struct CUgraph_st {
  struct call calls[64];
  int count;
};
struct CUgraphExec_st {
  struct CUgraph_st graph;
};
struct CUstream_st {
  int capturing;
  struct CUgraph_st graph;
};
struct CUevent_st {
  int recorded;
  double time;
};

static CUresult run(const struct call *call) {
  ask(call->kind == LAUNCH ? call->function->name
      : call->kind == SET  ? "fill"
                           : "copy",
      call->shape);
  if (call->kind == COPY)
    return memmove((void *)(uintptr_t)call->to, (void *)(uintptr_t)call->from,
                   call->bytes),
           0;
  if (call->kind == SET)
    return memset((void *)(uintptr_t)call->to, call->byte, call->bytes), 0;
  const unsigned *s = call->shape;
  say("launch %s grid %u %u %u block %u %u %u shared %u cluster %u %u %u "
      "%sparams",
      call->function->name, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7],
      s[8], s[9], s[10] ? "together " : "");
  int at = 0;
  for (int i = 0; i < call->function->count; at += call->function->sizes[i++]) {
    say(" ");
    for (int j = 0; j < call->function->sizes[i]; ++j)
      say("%02x", call->params[at + j]);
  }
  say("\n");
  if (!strcmp(call->function->name, "add")) {
    float *out, *x, *y;
    int n;
    memcpy(&out, call->params, 8);
    memcpy(&x, call->params + 8, 8);
    memcpy(&y, call->params + 16, 8);
    memcpy(&n, call->params + 24, 4);
    for (int i = 0; i < n; ++i)
      out[i] = x[i] + y[i];
  }
  return 0;
}

static CUresult submit(CUstream stream, struct call call) {
  if (!stream || !stream->capturing)
    return run(&call);
  stream->graph.calls[stream->graph.count++] = call;
  return 0;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                              CUstream stream) {
  WITH_CONTEXT("cuMemcpyHtoDAsync_v2")
  if (!inside(to, bytes))
    return 1;
  return say("upload %zu on %p\n", bytes, (void *)stream),
         memcpy((void *)(uintptr_t)to, from, bytes), 0;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  WITH_CONTEXT("cuMemcpyDtoHAsync_v2")
  if (!inside(from, bytes))
    return 1;
  return say("download %zu on %p\n", bytes, (void *)stream),
         memcpy(to, (void *)(uintptr_t)from, bytes), 0;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  WITH_CONTEXT("cuMemcpyDtoDAsync_v2")
  if (!inside(to, bytes) || !inside(from, bytes))
    return 1;
  return submit(
      stream,
      (struct call){.kind = COPY, .to = to, .from = from, .bytes = bytes});
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes,
                         CUstream stream) {
  WITH_CONTEXT("cuMemsetD8Async")
  if (!inside(to, bytes))
    return 1;
  return submit(
      stream,
      (struct call){.kind = SET, .to = to, .byte = byte, .bytes = bytes});
}
CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
    const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
    const cuuint32_t *steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  WITH_CONTEXT("cuTensorMapEncodeTiled")
  if ((uintptr_t)map % 64)
    return 1;
  uint32_t words[32] = {0};
  uint64_t where = (uintptr_t)address;
  words[0] = (uint32_t)type, words[1] = rank, words[2] = (uint32_t)where,
  words[3] = (uint32_t)(where >> 32);
  words[4] = (uint32_t)interleave, words[5] = (uint32_t)swizzle,
  words[6] = (uint32_t)promotion;
  words[7] = (uint32_t)fill;
  for (unsigned i = 0; i < rank; ++i)
    words[8 + i] = (uint32_t)dims[i], words[17 + i] = box[i],
              words[22 + i] = steps[i];
  for (unsigned i = 0; i + 1 < rank; ++i)
    words[13 + i] = (uint32_t)strides[i];
  return memcpy(map, words, 128), 0;
}
#include "fake_cuda_occupancy.h"
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                          void **params, void **extra) {
  WITH_CONTEXT("cuLaunchKernelEx")
  if (extra || (int)config->sharedMemBytes > function->dynamic)
    return 1;
  struct call call = {.kind = LAUNCH, .function = function};
  unsigned shape[11] = {config->gridDimX,
                        config->gridDimY,
                        config->gridDimZ,
                        config->blockDimX,
                        config->blockDimY,
                        config->blockDimZ,
                        config->sharedMemBytes,
                        0,
                        0,
                        0,
                        0};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if ((int)config->attrs[i].id == 2) {
      shape[10] = (unsigned)config->attrs[i].value.cooperative;
      continue;
    }
    if ((int)config->attrs[i].id != 4)
      return 1;
    shape[7] = config->attrs[i].value.clusterDim.x;
    shape[8] = config->attrs[i].value.clusterDim.y;
    shape[9] = config->attrs[i].value.clusterDim.z;
  }
  memcpy(call.shape, shape, sizeof shape);
  int at = 0;
  for (int i = 0; i < function->count; at += function->sizes[i++]) {
    int size = function->sizes[i], aligned = size >= 64 ? 64 : size;
    if ((uintptr_t)params[i] % (unsigned)aligned)
      return 716;
    memcpy(call.params + at, params[i], (size_t)size);
  }
  return submit(config->hStream, call);
}
CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  WITH_CONTEXT("cuStreamCreate")
  return *stream = calloc(1, sizeof **stream), ++live[STREAM], flags > 1;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  return free(stream), --live[STREAM], 0;
}
CUresult cuStreamSynchronize(CUstream stream) {
  WITH_CONTEXT("cuStreamSynchronize")
  wait_for_gpu();
  return say("synchronize %p\n", (void *)stream),
         stream && stream->capturing ? 900 : 0;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  WITH_CONTEXT("cuStreamWaitEvent")
  return say("wait on %p\n", (void *)stream), flags || !event->recorded;
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  WITH_CONTEXT("cuStreamBeginCapture_v2")
  if (!stream || (int)mode != 1)
    return 1;
  return stream->graph.count = 0, stream->capturing = 1, 0;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  WITH_CONTEXT("cuStreamEndCapture")
  *graph = malloc(sizeof **graph);
  **graph = stream->graph;
  return stream->capturing = 0, ++live[GRAPH], 0;
}
CUresult cuEventCreate(CUevent *event, unsigned flags) {
  WITH_CONTEXT("cuEventCreate")
  return *event = calloc(1, sizeof **event), ++live[EVENT], flags ? 1 : 0;
}
CUresult cuEventDestroy_v2(CUevent event) {
  WITH_CONTEXT("cuEventDestroy_v2")
  return free(event), --live[EVENT], 0;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  WITH_CONTEXT("cuEventRecord")
  say("record on %p\n", (void *)stream);
  return event->recorded = 1, event->time = ask(NULL, NULL), 0;
}
CUresult cuEventQuery(CUevent event) {
  WITH_CONTEXT("cuEventQuery")
  return event->recorded && (!durations || event->time <= host_clock) ? 0 : 600;
}
CUresult cuEventSynchronize(CUevent event) { return !event->recorded; }
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return *milliseconds = (float)((end->time - start->time) * 1e-3), 0;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                     unsigned long long flags) {
  WITH_CONTEXT("cuGraphInstantiateWithFlags")
  *executable = malloc(sizeof **executable);
  (*executable)->graph = *graph;
  return ++live[EXECUTABLE], flags ? 1 : 0;
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  WITH_CONTEXT("cuGraphLaunch")
  say("graph on %p\n", (void *)stream);
  for (int i = 0; i < executable->graph.count; ++i)
    run(&executable->graph.calls[i]);
  return 0;
}
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  WITH_CONTEXT("cuGraphExecDestroy")
  return free(executable), --live[EXECUTABLE], 0;
}
CUresult cuGraphDestroy(CUgraph graph) { return free(graph), --live[GRAPH], 0; }
