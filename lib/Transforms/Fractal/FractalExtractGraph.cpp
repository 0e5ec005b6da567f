//===- FractalExtractGraph.cpp - the task dependence graph of a function --===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/Passes.h"

#include "lib/Transforms/Fractal/Dependences.h"
#include "lib/Transforms/Fractal/GraphBuilder.h"

namespace tilewright {
#define GEN_PASS_DEF_FRACTALEXTRACTGRAPH
#include "lib/Transforms/Fractal/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright::fractal;

/// Writes what iterations of a block wait for.
static void setDistances(BlockOp block) {
  llvm::SetVector<SmallVector<int64_t>> distances;
  for (const Dependence &dependence : findDependences(block)) {
    if (dependence.distance)
      distances.insert(*dependence.distance);
    else
      block.setNonuniform(true);
  }
  Builder b(block);
  SmallVector<Attribute> listed;
  for (ArrayRef<int64_t> distance : distances)
    listed.push_back(b.getDenseI64ArrayAttr(distance));
  if (!listed.empty())
    block.setDistancesAttr(b.getArrayAttr(listed));
}

static bool usesFractal(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return isa_and_present<FractalDialect>(op->getDialect())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {
struct ExtractGraph : tilewright::impl::FractalExtractGraphBase<ExtractGraph> {
  void runOnOperation() override {
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      if (function.isExternal() || !function.getBody().hasOneBlock() ||
          !usesFractal(function))
        continue;
      GraphBuilder builder(function);
      // A program has a meaning without a graph: a remark has said why.
      if (failed(builder.build()) || failed(builder.resolveStates()))
        continue;
      emitGraph(builder);
    }
    getOperation().walk(setDistances);
  }
};
} // namespace
