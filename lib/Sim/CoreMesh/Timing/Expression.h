//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Quasi-affine expressions of a core's place and the loops around, by rows.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_TIMING_EXPRESSION_H
#define TILEWRIGHT_LIB_SIM_COREMESH_TIMING_EXPRESSION_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace twmesh::timing {

using Ints = std::vector<int64_t>;

/// An expression; its first two dimensions are places, the others loops.
/// Along a row of cores one of the places changes; what depends on the rest is
/// folded first, so that rows with equal rests share one result.
class Expression {
public:
  /// Reads it from words, and moves behind it. `along`: the dimension, 0 or 1,
  /// that changes along a row.
  Expression(const int64_t *&words, int along);

  /// Values along a row. `places`: of the cores of the row; `fixed`: of the
  /// row itself; `loops`: of the loops around.
  const Ints &along(const Ints &places, int64_t fixed, const Ints &loops) const;

  /// Whether all values along a row are one, which `value` becomes.
  bool one(int64_t fixed, const Ints &loops, int64_t &value) const;

  /// One more than the highest dimension.
  int depth() const { return dims; }
  bool uses(int dim) const;

private:
  struct Node {
    int64_t op, value;
    int left, right;
    bool changes;
    /// Does not change, and is not part of what does not.
    bool whole;
  };
  int read(const int64_t *&words, int along);
  static int64_t compute(int64_t op, int64_t left, int64_t right);
  int64_t evaluate(size_t index, int64_t fixed, const Ints &loops) const;
  void column(size_t index, const Ints &places) const;

  std::vector<Node> nodes;
  int dims = 0;
  mutable std::map<Ints, Ints> known;
  mutable Ints folded, values;
  mutable std::vector<Ints> columns;
};

} // namespace twmesh::timing

#endif // TILEWRIGHT_LIB_SIM_COREMESH_TIMING_EXPRESSION_H
