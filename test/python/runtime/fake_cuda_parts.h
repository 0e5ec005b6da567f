// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of fake_cuda.c: its clocks, and how it reads code.
//
// Clocks are in microseconds. With a timer there are two: the
// host's, which each call moves on, and the GPU's, which does one thing after
// another and begins with none before the host has asked for it. Without one
// each event is a millisecond after the one before.

typedef double timer(const char *name, const unsigned *shape);
static timer *durations;
static double per_call, host_clock, gpu_clock;

void fake_timer(timer *function, double call) {
  durations = function;
  per_call = call;
  host_clock = gpu_clock = 0;
}

// The host asks for work; gives the time at which the GPU has done it.
static double ask(const char *name, const unsigned *shape) {
  if (!durations)
    return gpu_clock += name ? 0 : 1000;
  host_clock += per_call;
  double begin = gpu_clock > host_clock ? gpu_clock : host_clock;
  return gpu_clock = begin + (name ? durations(name, shape) : 0);
}

static void wait_for_gpu(void) {
  if (gpu_clock > host_clock)
    host_clock = gpu_clock;
}

// Bytes of a parameter of real PTX, 0 for a line that declares none.
static int parameter_bytes(const char *line) {
  int number = 0;
  if (sscanf(line, " .param .align %*d .b8 %*[^[][%d]", &number) == 1)
    return number;
  return sscanf(line, " .param .%*1[bufs]%d", &number) == 1 ? number / 8 : 0;
}

struct CUfunc_st {
  char name[64];
  int sizes[16], count, dynamic, threads;
};
struct CUmod_st {
  struct CUfunc_st functions[8];
  int count;
};

// Reads the kernels of an image: lines of our own (see fake_cuda.c), or PTX.
static void read_functions(struct CUmod_st *made, const char *image) {
  for (const char *line = image; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    int used = 0, size;
    struct CUfunc_st *function = &made->functions[made->count];
    function->threads = strncmp(line, ".visible", 8) ? 256 : 1024;
    if (sscanf(line, ".entry %63s%n", function->name, &used) == 1)
      for (const char *at = line + used;
           sscanf(at, "%*[ ]%d%n", &size, &used) == 1; at += used)
        function->sizes[function->count++] = size;
    else if (sscanf(line, ".visible .entry %63[^(]", function->name) == 1)
      while ((line = strchr(line, '\n')) && (size = parameter_bytes(++line)))
        function->sizes[function->count++] = size;
    else
      continue;
    function->dynamic = 48 << 10;
    ++made->count;
  }
}
