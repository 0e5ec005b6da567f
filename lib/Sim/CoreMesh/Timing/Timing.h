//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Timing of a program on a mesh at full scale: the C ABI.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_TIMING_TIMING_H
#define TILEWRIGHT_LIB_SIM_COREMESH_TIMING_TIMING_H

#include "lib/Sim/CoreMesh/Library.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What a timing gives besides clocks and loads; all times in ticks.
typedef struct {
  int64_t total;
  /// What the longest way to the last core's end is made of; the rest is idle.
  int64_t compute, overhead, moving;
  /// Whether loops were left early, as what they do repeats.
  int64_t extrapolated;
  /// Operations on rows of cores that were computed, and remembered.
  int64_t computed, remembered;
} twmesh_timing;

/// Times a program. `words`: the machine, then the program, as
/// `sim/coremesh/timing/words.py` writes them. `ends` [height, width]: when
/// each core is done, in ticks. `loads` [4, height, width]: wavelets on the
/// link that leaves a core to the east, west, south, north, 0 at first; may be
/// null.
/// Returns 0, or -1 where the program cannot be timed: twmesh_error() says why.
TWMESH_EXPORT int32_t twmesh_time(const int64_t *words, twmesh_timing *result,
                                  int64_t *ends, int64_t *loads);

/// When each of `flows` flows along a line of `length` cores is done: flow i
/// goes from `sources`[i] to `targets`[i], and has `ticks` of work for each
/// link that it takes, from `starts`[i] on; flows of one source share a start.
TWMESH_EXPORT int32_t twmesh_share(int64_t length, int64_t flows,
                                   const int64_t *sources,
                                   const int64_t *targets,
                                   const int64_t *starts, int64_t ticks,
                                   int64_t *ends);

#ifdef __cplusplus
}
#endif

#endif // TILEWRIGHT_LIB_SIM_COREMESH_TIMING_TIMING_H
