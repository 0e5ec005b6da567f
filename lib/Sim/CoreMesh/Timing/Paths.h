//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who takes part in an instruction, and the paths of the messages it starts.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_TIMING_PATHS_H
#define TILEWRIGHT_LIB_SIM_COREMESH_TIMING_PATHS_H

#include "lib/Sim/CoreMesh/Timing/Model.h"

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace twmesh::timing {

/// Cores of a row; equal ones are one object.
struct Mask {
  std::vector<char> on;
  int64_t count = 0;
  bool all() const { return count == static_cast<int64_t>(on.size()); }
};

/// Cores of all rows.
using Masks = std::vector<const Mask *>;

/// Flows of one source in one direction of a line of cores: how many links
/// they take, and where they end.
struct Flow {
  int64_t source, reach;
  int direction;
  std::vector<int64_t> takers;
};
using Flows = std::vector<Flow>;

/// The paths that end at the cores of a row; rows may share one.
struct Line {
  const Mask *valid;
  /// Where on the axis the source stands; -1: no path. Where all sources stand
  /// in one other row, that is left to `Paths::from`.
  Ints source;
  Ints hops, ticks;
  /// What all paths take that end here; -1: they differ.
  int64_t even = -1;
};

/// The paths of all messages that one execution of an instruction starts.
struct Paths {
  bool alongX;
  /// By row in which paths end.
  std::vector<const Line *> lines;
  /// The one row of all sources, of a route along y; -1 where there is none.
  Ints from;
  /// Sources as the route says, by row.
  std::vector<const Ints *> sources;
  /// Flows of each row, or each column of a route along y.
  std::vector<const Flows *> flows;
  /// Several flows share a link somewhere.
  bool shared = false;
  /// Executions times wavelets.
  int64_t traffic = 0;
};

/// Names a core in messages.
std::string nameOf(int64_t y, int64_t x);

class Layout {
public:
  Layout(const Config &config, const Program &program);

  /// Who takes part at these loop indices.
  const Masks &masks(const Instruction &instruction, const Ints &loops);
  /// Paths of what `instruction` sends at these loop indices.
  Paths &paths(const Instruction &instruction, const Ints &loops);
  /// Where the sources of cores stand on their axis at these loop indices, -1
  /// for none; by row.
  const std::vector<const Ints *> &sources(int route, const Ints &loops);
  const Mask *intern(std::vector<char> on);
  const Mask *both(const Mask *a, const Mask *b);
  const Mask *either(const Mask *a, const Mask *b);
  /// Adds wavelets over each link, by direction, row and column.
  void addLoads(int64_t *loads) const;
  /// All paths so far, in the order in which they were made.
  const std::vector<Paths *> &all() const { return inOrder; }

private:
  const Mask *maskOf(const CoreSet &cores, int64_t y, const Ints &loops);
  Masks receivers(const Instruction &instruction, const Ints &loops);
  static size_t common(const Instruction &a, const Instruction &b);
  void checkDead(const Instruction &instruction, const Masks &masks);
  void addLine(Paths &paths, const Route &route, int64_t y,
               const Masks &senders, const Mask *takers);
  Line alikeLine(int64_t y, int64_t from, const Mask *valid);
  Line makeLine(const Route &route, int64_t y, const Masks &senders,
                const Mask *takers, const Ints &sources);
  int64_t oneSource(const Ints *sources);
  void addFlows(Paths &paths);
  const Flows *flowsOf(bool alongX, const Ints &sources);
  int64_t turn(bool alongX, int64_t from, int64_t to) const;
  int64_t broken(bool alongX, int64_t across, int64_t from, int64_t to) const;
  static Ints loopsOf(int depth, const Ints &loops);

  const Ints *constant(int64_t value);

  const Config &config;
  const Program &program;
  const Mask *everyone, *nobody;
  std::map<int64_t, std::unique_ptr<Ints>> constants;
  /// Positions of places, and places of positions, on the folded ring.
  Ints plainX, plainY, ringX, ringY, placeX, placeY;
  /// By their cores, which stand in the mask itself.
  std::unordered_map<std::string_view, std::unique_ptr<Mask>> pool;
  std::map<std::pair<const Mask *, const Mask *>, const Mask *> joint, joined;
  std::map<const Ints *, const Mask *> maskMemory;
  std::map<std::pair<int, Ints>, Masks> masksMemory;
  std::map<std::pair<int, Ints>, std::vector<const Ints *>> sourcesMemory;
  std::map<std::pair<const Ints *, const Ints *>, std::unique_ptr<Ints>> placed;
  std::map<std::tuple<int, int, Ints>, std::unique_ptr<Paths>> pathsMemory;
  std::map<const Ints *, int64_t> oneSourceMemory;
  std::map<std::array<int64_t, 5>, std::unique_ptr<Line>> lineMemory;
  std::vector<std::unique_ptr<Line>> otherLines;
  std::map<std::pair<bool, Ints>, std::unique_ptr<Flows>> flowMemory;
  std::map<const Line *, const Flows *> flowsOfLine;
  std::set<const Flows *> crowded;
  std::vector<Paths *> inOrder;
  std::set<std::array<int64_t, 3>> dead;
};

} // namespace twmesh::timing

#endif // TILEWRIGHT_LIB_SIM_COREMESH_TIMING_PATHS_H
