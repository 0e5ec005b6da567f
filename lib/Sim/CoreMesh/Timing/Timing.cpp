//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Timing.h"
#include "lib/Sim/CoreMesh/Timing/Engine.h"

#include <algorithm>
#include <exception>

using namespace twmesh::timing;

int32_t twmesh_time(const int64_t *words, twmesh_timing *result, int64_t *ends,
                    int64_t *loads) try {
  Config config = readConfig(words);
  Program program = readProgram(words);
  Engine engine(config, program);
  engine.run();
  Cell latest = engine.latest();
  *result = {latest.time,
             latest.compute,
             latest.overhead,
             latest.moving,
             engine.extrapolated,
             engine.rows().computed,
             engine.rows().remembered};
  for (int64_t y = 0; y < config.height; ++y)
    for (int64_t x = 0; x < config.width; ++x)
      ends[y * config.width + x] = engine.ends()[y][x].time;
  if (loads)
    engine.layout().addLoads(loads);
  return 0;
} catch (const std::exception &error) {
  return twmesh::fail(error.what());
}

int32_t twmesh_share(int64_t length, int64_t flows, const int64_t *sources,
                     const int64_t *targets, const int64_t *starts,
                     int64_t ticks, int64_t *ends) try {
  Flows list;
  std::vector<int64_t> begins(length, never);
  for (int64_t flow = 0; flow < flows; ++flow) {
    int64_t way = targets[flow] - sources[flow];
    list.push_back({sources[flow], std::abs(way), way < 0 ? West : East, {}});
    begins[sources[flow]] = starts[flow];
  }
  std::vector<int64_t> done = shareLinks(list, begins, ticks);
  std::copy(done.begin(), done.end(), ends);
  return 0;
} catch (const std::exception &error) {
  return twmesh::fail(error.what());
}
