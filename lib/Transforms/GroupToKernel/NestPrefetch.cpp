//===- NestPrefetch.cpp - the next tile of an operand, ahead of time ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operand of a reduction that stays where it is while the loops inside of
// it run (a panel of packed weights under all rows, rows under all panels) is
// new to the caches whenever its own loop advances, and all of it at once.
// `tile.prefetch` names such operands: while one tile of an operand is in use,
// the rounds of the reduction's loop fetch the next one, a line or a few each.
// Tiles that follow each other in memory are what the hardware would prefetch
// too, were it not for the other streams and the borders of pages.
//
// Where a run brings the extent of a loop inside, its tiles may be many or few.
// Each of the first eight fetches an eighth. Where there are up to four, the
// first two fetch the rest by halves; where a single one is sure to be whole,
// it fetches all of it. Many lines in a round wait for each other: a core has
// no more than 16 under way.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Transforms/GroupToKernel/MemoryAccess.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace tilewright {

/// Into the L2 cache, in the terms of memref.prefetch: the panel in use needs
/// the L1 cache.
constexpr unsigned kLocality = 2;

/// Elements that `expr` walks over when the dims run over `sizes`, each from 0.
/// A modulo is what is inside a block of a packed operand: the whole block.
static std::optional<int64_t> spanOf(AffineExpr expr, ArrayRef<int64_t> sizes) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && binary.getKind() == AffineExprKind::Mod)
    if (auto block = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      return block.getValue();
  if (binary && binary.getKind() == AffineExprKind::FloorDiv) {
    auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
    auto block = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (dim && block) // a register tile stays inside a block
      return llvm::divideCeil(sizes[dim.getPosition()], block.getValue());
  }
  if (isa<AffineConstantExpr>(expr))
    return 1;
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return sizes[dim.getPosition()];
  return std::nullopt;
}

/// Elements of the part of a buffer that `access` touches while the dims run
/// over `sizes`, where they are one range without holes.
static std::optional<int64_t> rangeOf(MemRefType type, const Access &access,
                                      ArrayRef<int64_t> sizes) {
  int64_t range = 1;
  bool cut = false;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    auto span = spanOf(access[dim], sizes);
    if (!span || (cut && *span != 1))
      return std::nullopt;
    cut |= *span != type.getDimSize(dim);
    range *= *span;
  }
  return range;
}

/// Position of the element at `access` in a buffer without gaps, over loops
/// and symbols.
AffineExpr MemoryAccess::flatOffset(MemRefType type, const Access &access) {
  AffineExpr offset = getAffineConstantExpr(0, builder.getContext());
  for (auto [expr, size] : llvm::zip_equal(access, type.getShape()))
    offset = offset * size + expr.replaceDims(point.position);
  return simplifyAffineExpr(offset, point.loops.size(), point.symbols.size());
}

/// Prefetches of one round of the innermost reduction loop, over `inner`, that
/// takes `body` points.
void MemoryAccess::prefetch(unsigned inner, int64_t body) {
  linalg::GenericOp root = nest.root();
  auto numbers = tile::decisions::kPrefetch.get(root);
  if (!numbers)
    return;
  for (int64_t number : numbers.asArrayRef())
    if (number >= 0 && number < root.getNumDpsInputs())
      prefetch(*root.getDpsInputOperand(number), inner, body);
}

void MemoryAccess::prefetch(OpOperand &operand, unsigned inner, int64_t body) {
  linalg::GenericOp root = nest.root();
  auto arg = dyn_cast<BlockArgument>(operand.get());
  if (!arg)
    return; // made by the group itself
  const Storage &place = point.storage.at(nest.outer(arg));
  auto type = cast<MemRefType>(place.memref.getType());
  if (!place.origin.empty() || !type.getLayout().isIdentity() ||
      !type.hasStaticShape())
    return; // near, with gaps, or of unknown size
  Access access = compose(root.getMatchingIndexingMap(&operand),
                          nest.bindings.lookup(root));
  // What the operand's own loops cover now, and the loops inside of them.
  SmallVector<int64_t> now(nest.extents.size(), 1);
  SmallVector<unsigned> inside;
  std::optional<unsigned> own;
  for (unsigned dim : point.parallelOrder) {
    inside.push_back(dim);
    if (llvm::none_of(
            access, [&](AffineExpr expr) { return expr.isFunctionOfDim(dim); }))
      continue;
    inside.clear();
    now[dim] = point.sizes[dim];
    own = dim;
  }
  for (unsigned dim : point.reductionOrder) {
    std::optional<int64_t> size = staticSize(point.box.sizes[dim]);
    if (!size)
      return;
    now[dim] = *size;
  }
  auto range = rangeOf(type, access, now);
  if (!range || !own)
    return;

  // Tiles of a loop of run-time extent that share the fetching, and how many
  // are so few that the first two do most of it.
  Device device(root);
  int64_t tiles = device.getLimit("prefetch_tiles", 8);
  int64_t fewTiles = device.getLimit("prefetch_few_tiles", 4);
  // The number of this round since the operand's loop advanced last.
  MLIRContext *context = builder.getContext();
  auto task = tile::GroupOp(nest.group)->getParentOfType<tile::GroupOp>();
  AffineExpr round = getAffineConstantExpr(0, context), tile;
  std::optional<unsigned> open;
  int64_t rounds = 1, most = 1;
  llvm::append_range(inside, ArrayRef(point.reductionOrder).drop_back());
  for (unsigned dim : inside) {
    auto size = staticSize(point.box.sizes[dim]);
    // A size known at run time only counts as that of a whole task.
    int64_t whole = size ? *size : nest.taskTile(dim, task.getLevel());
    if (ShapedType::isDynamic(whole))
      return;
    int64_t trips = llvm::divideCeil(whole, point.stepOf(dim));
    AffineExpr at =
        simplifyAffineExpr(point.position[dim] - point.box.offsets[dim],
                           point.loops.size(), point.symbols.size());
    // Of shared rows, tiles are no multiples of each other apart.
    round =
        round * trips + (point.isShared(dim) ? (at * trips).floorDiv(*size)
                                             : at.floorDiv(point.stepOf(dim)));
    if (!size && dim == inside.front()) {
      most = std::min(trips, tiles);
      tile = at;
      open = dim;
    } else {
      rounds *= trips;
    }
  }
  int64_t trips = now[inner] / body;
  rounds *= trips;
  int64_t line =
      device.getLimit("line_bytes", 64) * 8 / type.getElementTypeBitWidth();
  int64_t all = llvm::divideCeil(*range, line);
  // The innermost loop's variable is a multiple of `body`.
  AffineExpr step = point.position[inner] - point.box.offsets[inner];
  auto ahead = [&](int64_t lines) {
    AffineExpr inRound = lines * line % body == 0
                             ? step * (lines * line / body)
                             : step.floorDiv(body) * (lines * line);
    return inRound + round * (trips * lines * line);
  };

  Access start = access;
  AffineExpr ownDim = getAffineDimExpr(*own, context);
  for (AffineExpr &expr : start) {
    expr = expr.replace(ownDim, ownDim + point.sizes[*own]);
    for (unsigned dim : point.reductionOrder)
      expr =
          expr.replace(getAffineDimExpr(dim, context), point.box.offsets[dim]);
  }
  AffineExpr next = flatOffset(type, start);
  Location loc = root.getLoc();
  Value flat = place.memref;
  if (type.getRank() > 1) {
    ReassociationIndices dims =
        llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    flat = memref::CollapseShapeOp::create(
        builder, loc, flat, ArrayRef<ReassociationIndices>(dims));
  }
  SmallVector<OpFoldResult> operands(point.loops.begin(), point.loops.end());
  llvm::append_range(operands, point.symbols);
  auto valueOf = [&](AffineExpr expr) {
    AffineExpr simple =
        simplifyAffineExpr(expr, point.loops.size(), point.symbols.size());
    return getValueOrCreateConstantIndexOp(
        builder, loc,
        affine::makeComposedFoldedAffineApply(
            builder, loc,
            AffineMap::get(point.loops.size(), point.symbols.size(), simple,
                           context),
            operands));
  };
  auto emit = [&](AffineExpr from, int64_t lines) {
    for (int64_t number = 0; number < lines; ++number)
      memref::PrefetchOp::create(builder, loc, flat,
                                 valueOf(from + number * line),
                                 /*isWrite=*/false, kLocality,
                                 /*isDataCache=*/true);
  };
  int64_t lines = llvm::divideCeil(all, rounds * most);
  emit(next + ahead(lines), lines);
  if (most == 1)
    return;
  // What is left where few tiles are whole: for the first two, or for one. What
  // is left over of tiles is first only where none is whole.
  int64_t tall = point.stepOf(*open), fetched = lines * rounds;
  bool isWhole = point.sizes[*open] == tall;
  Value at = valueOf(tile), size = valueOf(point.box.sizes[*open]);
  auto is = [&](arith::CmpIPredicate predicate, Value value, int64_t bound) {
    return arith::CmpIOp::create(
        builder, loc, predicate, value,
        arith::ConstantIndexOp::create(builder, loc, bound));
  };
  auto emitIf = [&](Value condition, int64_t begin, int64_t share) {
    auto only = scf::IfOp::create(builder, loc, condition, /*withElse=*/true);
    builder.setInsertionPointToStart(only.thenBlock());
    int64_t each = llvm::divideCeil(all - begin, share * rounds);
    emit(next + ahead(each) + begin * line, each);
    return only;
  };
  using arith::CmpIPredicate;
  OpBuilder::InsertionGuard guard(builder);
  if (fetched >= all)
    return;
  Value first = is(CmpIPredicate::eq, at, 0);
  if (!isWhole || 2 * fetched >= all) {
    emitIf(first, fetched, 1);
    return;
  }
  auto both = [&](Value one, Value other) {
    return arith::AndIOp::create(builder, loc, one, other);
  };
  Value single = both(first, is(CmpIPredicate::slt, size, 2 * tall + tall / 2));
  Value few = both(is(CmpIPredicate::sle, size, fewTiles * tall),
                   is(CmpIPredicate::slt, at, 2 * tall));
  scf::IfOp alone = emitIf(single, fetched, 1);
  builder.setInsertionPointToStart(alone.elseBlock());
  emitIf(few, 2 * fetched, 2);
}

} // namespace tilewright
