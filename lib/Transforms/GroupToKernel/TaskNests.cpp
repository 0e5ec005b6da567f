//===- TaskNests.cpp - the nests of loops of a task -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/TaskNests.h"

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tilewright;

std::optional<Nest> tilewright::nestOf(scf::ForOp loop) {
  Nest nest;
  while (loop) {
    nest.push_back(loop);
    auto inner = loop.getBody()->getOps<scf::ForOp>();
    if (llvm::range_size(inner) > 1)
      return std::nullopt;
    loop = inner.empty() ? scf::ForOp() : *inner.begin();
  }
  return nest;
}

bool tilewright::walkAlike(Nest a, Nest b) {
  if (a.size() != b.size())
    return false;
  auto same = [](Value x, Value y) {
    return x == y || (getConstantIntValue(x) &&
                      getConstantIntValue(x) == getConstantIntValue(y));
  };
  for (auto [number, x, y] : llvm::enumerate(a, b)) {
    bool inner = number + 1 == a.size();
    if (!same(x.getLowerBound(), y.getLowerBound()) ||
        (!inner && (!same(x.getUpperBound(), y.getUpperBound()) ||
                    !same(x.getStep(), y.getStep()))))
      return false;
  }
  return getConstantIntValue(a.back().getStep()) &&
         getConstantIntValue(b.back().getStep());
}

bool tilewright::multiplies(Nest nest) {
  bool found = false;
  nest.front().walk([&](tile::MmaOp) { found = true; });
  return found;
}

double tilewright::workOf(Nest nest, const Device &device) {
  // What a function costs, in additions of the same tile.
  int64_t functionWork = device.getLimit("function_work", 16);
  int64_t step = *getConstantIntValue(nest.back().getStep()), work = step;
  for (Operation &op : *nest.back().getBody())
    if (isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) &&
        !isa<arith::ConstantOp>(op))
      for (Type type : op.getResultTypes())
        if (auto tile = dyn_cast<tile::TileType>(type))
          work += tile.getNumElements() *
                  (isa<math::MathDialect>(op.getDialect()) ? functionWork : 1);
  return static_cast<double>(work) / step;
}

bool tilewright::computesMuchMore(Nest nest, Nest other, const Device &device) {
  return workOf(nest, device) >
         device.getLimit("hiding_work", 2) * workOf(other, device);
}
