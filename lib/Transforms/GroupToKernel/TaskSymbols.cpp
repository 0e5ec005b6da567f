//===- TaskSymbols.cpp - values of a task's symbols -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/GroupToKernel/TaskEmitter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tilewright {

/// Dimensions of buffers that are of one size in any run (`tile.equal_sizes`,
/// argument and dimension of each): loops over several tensors say so, and
/// nothing in the kernel could tell.
void TaskEmitter::setEqualSizes(tile::KernelOp kernel,
                                ArrayRef<unsigned> operands) {
  Operation *yield = group.getBody().front().getTerminator();
  unsigned results = operands.size() + passed.size();
  auto argumentOf = [&](Value tensor) -> std::optional<int64_t> {
    if (TaskSizes::isArgument(tensor)) {
      const auto *at =
          llvm::find(operands, cast<BlockArgument>(tensor).getArgNumber());
      return at == operands.end()
                 ? std::nullopt
                 : std::optional<int64_t>(at - operands.begin());
    }
    auto made = llvm::find(yield->getOperands(), tensor);
    return made == yield->operand_end()
               ? std::nullopt
               : std::optional<int64_t>(
                     results + std::distance(yield->operand_begin(), made));
  };
  Builder b(group.getContext());
  SmallVector<Attribute> classes;
  for (const SmallVector<TaskSizes::Source> &same : sizes.equalSizes()) {
    SmallVector<int64_t> places;
    for (auto [tensor, dim] : same)
      if (auto argument = argumentOf(tensor))
        places.append({*argument, static_cast<int64_t>(dim)});
    if (places.size() > 2)
      classes.push_back(b.getDenseI64ArrayAttr(places));
  }
  if (!classes.empty())
    kernel->setAttr(tile::decisions::kEqualSizes, b.getArrayAttr(classes));
}

/// A number that the task computes, in the kernel.
Value TaskEmitter::makeNumber(OpBuilder &builder, Value number) {
  Value &known = numbers[number];
  if (known)
    return known;
  Operation *op = number.getDefiningOp();
  if (auto size = dyn_cast<tensor::DimOp>(op))
    return known = memref::DimOp::create(builder, op->getLoc(),
                                         storage.at(size.getSource()).memref,
                                         *size.getConstantIndex());
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, makeNumber(builder, operand));
  Value made = builder.clone(*op, mapping)
                   ->getResult(cast<OpResult>(number).getResultNumber());
  storage[number] = {made, {}}; // bodies may count from it
  return numbers[number] = made;
}

/// Values of the symbols after the grid's ids.
void TaskEmitter::makeSymbols(OpBuilder &builder, ValueRange passedSizes) {
  Location loc = group.getLoc();
  auto next = passedSizes.begin();
  for (auto source : sources)
    if (source.second == TaskSizes::kNumber)
      symbols.push_back(makeNumber(builder, source.first));
    else
      symbols.push_back(llvm::is_contained(passed, source)
                            ? *next++
                            : memref::DimOp::create(
                                  builder, loc, storage.at(source.first).memref,
                                  source.second)
                                  .getResult());
  for (auto [number, dim] : llvm::enumerate(grid)) {
    Value size = symbols[number];
    if (dim.dynamic()) {
      AffineExpr rest = sizes.extentOf(nests.back(), dim.dim) -
                        builder.getAffineSymbolExpr(number) * dim.tile;
      auto map = AffineMap::get(0, symbols.size(),
                                {rest, builder.getAffineConstantExpr(dim.tile)},
                                builder.getContext());
      size = affine::AffineMinOp::create(builder, loc, map, symbols);
    }
    symbols.push_back(size); // of a fixed size: no one asks
  }
}

} // namespace tilewright
