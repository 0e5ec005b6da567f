//===- TaskSkips.cpp - blocks that a mask of this run leaves out ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/GroupToKernel/TaskEmitter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace tilewright {

namespace {

/// The flags of a block, all of which lie in one box of a tensor: a row of them
/// at a time, as many as the block has steps.
class BlockFlags {
public:
  BlockFlags(OpBuilder &builder, Location loc, Value memref)
      : builder(builder), loc(loc), memref(memref) {}

  void addDim(Value offset, int64_t size) {
    offsets.push_back(offset);
    sizes.push_back(size);
  }

  /// Whether one of them is not zero. Steps lie along the last dimension.
  Value any() {
    Type element = cast<MemRefType>(memref.getType()).getElementType();
    rowType = tile::TileType::get({sizes.back()}, element);
    Value zero =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
    Value none = tile::SplatOp::create(builder, loc, rowType, zero);
    Value all = gather(0, none);
    Value one = tile::ReduceOp::create(builder, loc, tile::ReduceKind::or_, all,
                                       ArrayRef<int64_t>{0});
    Value bits = tile::ExtractOp::create(builder, loc, element, one,
                                         ArrayRef<int64_t>{0});
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, bits,
                                 zero);
  }

private:
  /// All rows of the dimensions from `dim` on, combined with `seen`.
  Value gather(unsigned dim, Value seen) {
    if (dim + 1 == sizes.size()) {
      Value row = tile::LoadOp::create(builder, loc, rowType, memref, offsets,
                                       ArrayRef<int64_t>{int64_t(dim)},
                                       ArrayRef<int64_t>{1});
      return arith::OrIOp::create(builder, loc, seen, row);
    }
    if (sizes[dim] == 1)
      return gather(dim + 1, seen);
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    auto loop = scf::ForOp::create(builder, loc, number(0), number(sizes[dim]),
                                   number(1), seen);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value first = offsets[dim];
    offsets[dim] =
        arith::AddIOp::create(builder, loc, first, loop.getInductionVar());
    scf::YieldOp::create(builder, loc,
                         gather(dim + 1, loop.getRegionIterArgs().front()));
    offsets[dim] = first;
    return loop.getResult(0);
  }

  OpBuilder &builder;
  Location loc;
  Value memref;
  tile::TileType rowType;
  SmallVector<Value> offsets;
  SmallVector<int64_t> sizes;
};

} // namespace

/// In a loop over blocks, whether a mask of this run leaves something of the
/// block (`tile.skip`); null where no operation of the loop has flags.
FailureOr<Value> TaskEmitter::emitLiveTest(OpBuilder &builder,
                                           const TaskLoops::Loop &loop,
                                           ArrayRef<Box> boxes,
                                           ValueRange ids) const {
  ArrayRef<NestAnalysis> inside =
      ArrayRef(nests).slice(loop.begin, loop.end - loop.begin);
  auto [op, number] = findWith(inside, tile::decisions::kSkip);
  OpOperand *flags = op ? skipFlags(op) : nullptr;
  if (!flags)
    return Value();
  const NestAnalysis &nest = inside[number];
  auto argument = dyn_cast<BlockArgument>(flags->get());
  auto place = argument ? storage.find(nest.outer(argument)) : storage.end();
  Access access =
      compose(op.getMatchingIndexingMap(flags), nest.bindings.lookup(op));
  if (place == storage.end() || access.empty())
    return op.emitError("has a tile.skip that names no tensor from outside of "
                        "its task");
  BlockFlags block(builder, op.getLoc(), place->second.memref);
  SmallVector<OpFoldResult> symbols(ids.begin(), ids.end());
  for (auto [dim, expr] : llvm::enumerate(access)) {
    auto [offset, size] = regionOf(expr, boxes[loop.begin + number]);
    std::optional<int64_t> known = offset ? staticSize(size) : std::nullopt;
    if (!known)
      return op.emitError("has a tile.skip that names a tensor of which a "
                          "block reads a part of no fixed size");
    if (const Access &origin = place->second.origin; !origin.empty())
      offset = offset - origin[dim];
    AffineMap map = AffineMap::get(0, symbols.size(), offset);
    auto at =
        affine::makeComposedAffineApply(builder, op.getLoc(), map, symbols);
    block.addDim(at.getResult(), *known);
  }
  return block.any();
}

} // namespace tilewright
