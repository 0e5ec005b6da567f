//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Max-min fair, work-conserving sharing of the links of a line.
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Engine.h"

#include <algorithm>
#include <cmath>

using namespace twmesh::timing;

namespace {
/// Flows on links, as time goes on.
class Fluid {
public:
  Fluid(const Flows &flows, const std::vector<int64_t> &starts, int64_t ticks)
      : flows(flows), length(starts.size()), left(flows.size(), ticks),
        rate(flows.size(), 0.0), ends(flows.size(), never) {
    for (size_t flow = 0; flow < flows.size(); ++flow)
      if (starts[flows[flow].source] > never / 2)
        waiting.push_back({starts[flows[flow].source], flow});
    std::sort(waiting.rbegin(), waiting.rend());
  }

  std::vector<int64_t> run() {
    while (!waiting.empty() || !active.empty()) {
      if (active.empty())
        now = waiting.back().first;
      while (!waiting.empty() && waiting.back().first <= now) {
        active.push_back(waiting.back().second);
        waiting.pop_back();
      }
      assignRates();
      advance();
    }
    return ends;
  }

private:
  size_t link(const Flow &flow, int64_t step) const {
    bool up = flow.direction == East || flow.direction == South;
    int64_t at = flow.source + (up ? step : -step);
    return 4 * ((at % length + length) % length) + flow.direction;
  }

  /// Fills all links evenly; who meets a full one keeps what it has.
  void assignRates() {
    std::vector<double> room(4 * length, 1.0);
    std::vector<int64_t> users(4 * length, 0);
    std::vector<size_t> open = active;
    for (size_t flow : open)
      for (int64_t step = 0; step < flows[flow].reach; ++step)
        ++users[link(flows[flow], step)];
    while (!open.empty()) {
      double least = 1.0;
      for (size_t one = 0; one < users.size(); ++one)
        if (users[one])
          least = std::min(least, room[one] / users[one]);
      auto full = [&](size_t flow) {
        for (int64_t step = 0; step < flows[flow].reach; ++step) {
          size_t one = link(flows[flow], step);
          if (room[one] / users[one] <= least * (1 + 1e-9))
            return true;
        }
        return flows[flow].reach == 0 || least >= 1.0;
      };
      std::vector<size_t> fixed, rest;
      for (size_t flow : open)
        (full(flow) ? fixed : rest).push_back(flow);
      for (size_t flow : fixed) {
        rate[flow] = least;
        for (int64_t step = 0; step < flows[flow].reach; ++step) {
          room[link(flows[flow], step)] -= least;
          --users[link(flows[flow], step)];
        }
      }
      open.swap(rest);
    }
  }

  /// To the next start or end.
  void advance() {
    double step = waiting.empty() ? HUGE_VAL : waiting.back().first - now;
    for (size_t flow : active)
      step = std::min(step, left[flow] / rate[flow]);
    now += step;
    std::vector<size_t> going;
    for (size_t flow : active) {
      left[flow] -= step * rate[flow];
      if (left[flow] > 1e-6)
        going.push_back(flow);
      else
        ends[flow] = static_cast<int64_t>(std::ceil(now - 1e-6));
    }
    active.swap(going);
  }

  const Flows &flows;
  int64_t length;
  std::vector<double> left, rate;
  std::vector<int64_t> ends;
  std::vector<std::pair<int64_t, size_t>> waiting;
  std::vector<size_t> active;
  double now = 0;
};
} // namespace

std::vector<int64_t>
twmesh::timing::shareLinks(const Flows &flows,
                           const std::vector<int64_t> &starts, int64_t ticks) {
  return Fluid(flows, starts, ticks).run();
}
