//===- TileAccess.cpp - what tile.load and tile.store share ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace tilewright::tile;

//===----------------------------------------------------------------------===//
// Defaults
//===----------------------------------------------------------------------===//

/// The trailing dimensions of a memref.
static SmallVector<int64_t> trailingDims(int64_t tileRank, int64_t memrefRank) {
  return llvm::to_vector(llvm::seq<int64_t>(memrefRank - tileRank, memrefRank));
}

template <typename Access> static SmallVector<int64_t> tileDims(Access op) {
  if (std::optional<ArrayRef<int64_t>> dims = op.getDims())
    return llvm::to_vector(*dims);
  return trailingDims(op.getTileType().getRank(), op.getMemRefType().getRank());
}

template <typename Access> static SmallVector<int64_t> tileSteps(Access op) {
  if (std::optional<ArrayRef<int64_t>> steps = op.getSteps())
    return llvm::to_vector(*steps);
  return SmallVector<int64_t>(op.getTileType().getRank(), 1);
}

SmallVector<int64_t> LoadOp::getTileDims() { return tileDims(*this); }
SmallVector<int64_t> LoadOp::getTileSteps() { return tileSteps(*this); }
SmallVector<int64_t> StoreOp::getTileDims() { return tileDims(*this); }
SmallVector<int64_t> StoreOp::getTileSteps() { return tileSteps(*this); }

//===----------------------------------------------------------------------===//
// Builders
//===----------------------------------------------------------------------===//

/// Attributes that are absent where they say the default.
static void addAccessAttributes(OpBuilder &builder, OperationState &state,
                                StringAttr dimsName, ArrayRef<int64_t> dims,
                                StringAttr stepsName, ArrayRef<int64_t> steps,
                                StringAttr alongName, Value indices,
                                int64_t along) {
  if (!dims.empty())
    state.addAttribute(dimsName, builder.getDenseI64ArrayAttr(dims));
  if (!llvm::all_of(steps, [](int64_t step) { return step == 1; }))
    state.addAttribute(stepsName, builder.getDenseI64ArrayAttr(steps));
  if (indices)
    state.addAttribute(alongName, builder.getI64IntegerAttr(along));
}

void LoadOp::build(OpBuilder &builder, OperationState &state, Type result,
                   Value memref, ValueRange offsets, ArrayRef<int64_t> dims,
                   ArrayRef<int64_t> steps, Value indices, int64_t along,
                   ValueRange valid, Value pad) {
  state.addOperands(memref);
  state.addOperands(offsets);
  if (indices)
    state.addOperands(indices);
  state.addOperands(valid);
  if (pad)
    state.addOperands(pad);
  auto count = [](size_t size) { return static_cast<int32_t>(size); };
  llvm::copy(
      ArrayRef<int32_t>({1, count(offsets.size()), indices ? 1 : 0,
                         count(valid.size()), pad ? 1 : 0}),
      state.getOrAddProperties<Properties>().operandSegmentSizes.begin());
  addAccessAttributes(builder, state, getDimsAttrName(state.name), dims,
                      getStepsAttrName(state.name), steps,
                      getAlongAttrName(state.name), indices, along);
  state.addTypes(result);
}

void StoreOp::build(OpBuilder &builder, OperationState &state, Value tile,
                    Value memref, ValueRange offsets, ArrayRef<int64_t> dims,
                    ArrayRef<int64_t> steps, Value indices, int64_t along,
                    ValueRange valid, std::optional<ReduceKind> reduce,
                    bool atomic) {
  state.addOperands({tile, memref});
  state.addOperands(offsets);
  if (indices)
    state.addOperands(indices);
  state.addOperands(valid);
  auto count = [](size_t size) { return static_cast<int32_t>(size); };
  llvm::copy(
      ArrayRef<int32_t>(
          {1, 1, count(offsets.size()), indices ? 1 : 0, count(valid.size())}),
      state.getOrAddProperties<Properties>().operandSegmentSizes.begin());
  addAccessAttributes(builder, state, getDimsAttrName(state.name), dims,
                      getStepsAttrName(state.name), steps,
                      getAlongAttrName(state.name), indices, along);
  if (reduce)
    state.addAttribute(getReduceAttrName(state.name),
                       ReduceKindAttr::get(builder.getContext(), *reduce));
  if (atomic)
    state.addAttribute(getAtomicAttrName(state.name), builder.getUnitAttr());
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// load_c2, store_c2
template <typename Access> static LogicalResult verifyDims(Access op) {
  int64_t rank = op.getTileType().getRank();
  int64_t memrefRank = op.getMemRefType().getRank();
  std::optional<ArrayRef<int64_t>> dims = op.getDims();
  if (!dims) {
    if (rank > memrefRank)
      return op.emitOpError("a tile of rank ")
             << rank << " needs dims to lie in a memref of rank " << memrefRank;
    return success();
  }
  if (static_cast<int64_t>(dims->size()) != rank)
    return op.emitOpError("dims has ")
           << dims->size() << " entries for a tile of rank " << rank;
  llvm::SmallSet<int64_t, 4> seen;
  for (int64_t dim : *dims)
    if (dim < 0 || dim >= memrefRank || !seen.insert(dim).second)
      return op.emitOpError("dims names ")
             << dim << ", which is out of range or given twice";
  return success();
}

/// load_c5, store_c5
template <typename Access> static LogicalResult verifyIndices(Access op) {
  std::optional<int64_t> along = op.getAlong();
  Value indices = op.getIndices();
  if (!indices && !along)
    return success();
  if (!indices || !along)
    return op.emitOpError("needs indices and along together");
  TileType tile = op.getTileType();
  if (*along < 0 || *along >= tile.getRank())
    return op.emitOpError("along names dimension ")
           << *along << " of a tile of rank " << tile.getRank();
  auto type = cast<TileType>(indices.getType());
  if (type.getRank() != 1 || type.getDimSize(0) != tile.getDimSize(*along))
    return op.emitOpError("indices must be a tile of rank 1 and size ")
           << tile.getDimSize(*along) << ", got " << type;
  return success();
}

template <typename Access> static LogicalResult verifyAccess(Access op) {
  TileType tile = op.getTileType();
  MemRefType memref = op.getMemRefType();
  // load_c1, store_c1
  if (static_cast<int64_t>(op.getOffsets().size()) != memref.getRank())
    return op.emitOpError("gives ")
           << op.getOffsets().size() << " offsets for a memref of rank "
           << memref.getRank();
  if (failed(verifyDims(op)))
    return failure();
  // load_c3, store_c3
  if (op.getSteps() &&
      static_cast<int64_t>(op.getSteps()->size()) != tile.getRank())
    return op.emitOpError("steps has ")
           << op.getSteps()->size() << " entries for a tile of rank "
           << tile.getRank();
  // load_c4, store_c4
  if (memref.getElementType() != tile.getElementType())
    return op.emitOpError("memref and tile must have the same element type, "
                          "got ")
           << memref.getElementType() << " and " << tile.getElementType();
  if (failed(verifyIndices(op)))
    return failure();
  // load_c6, store_c6
  if (!op.getValid().empty() &&
      static_cast<int64_t>(op.getValid().size()) != tile.getRank())
    return op.emitOpError("valid has ")
           << op.getValid().size() << " bounds for a tile of rank "
           << tile.getRank();
  return success();
}

/// load_c8
static LogicalResult verifyInterleaved(LoadOp op) {
  int64_t group = op.getType().getInterleave();
  if (!group)
    return success();
  MemRefType memref = op.getMemRefType();
  int64_t last = memref.getRank() - 1;
  if (op.getType().getRank() != 2 || !op.getDims() || op.getSteps() ||
      op.getIndices() || !op.getValid().empty())
    return op.emitOpError("of an interleaved tile takes a tile of rank 2 and "
                          "dims, and neither steps, indices nor valid");
  if (last < 2 || memref.getDimSize(last) != group ||
      (*op.getDims())[1] != last - 1 || (*op.getDims())[0] == last)
    return op.emitOpError("of rows that alternate in groups of ")
           << group << " needs a memref whose last dimension has that size, "
           << "and dims that name the one before it for the columns";
  return success();
}

LogicalResult LoadOp::verify() {
  if (failed(verifyAccess(*this)) || failed(verifyInterleaved(*this)))
    return failure();
  // load_c7
  if (getPad() && getValid().empty())
    return emitOpError("pad is read nowhere without valid");
  // load_c9
  if (getBounded() && (getIndices() || getPad()))
    return emitOpError("reads zeros outside of its buffer (bounded), so that "
                       "it has neither indices nor a pad");
  return shared::verifyBounded(*this, getBounded(), getMemRefType());
}

LogicalResult StoreOp::verify() {
  if (failed(verifyAccess(*this)))
    return failure();
  // store_c3
  if (llvm::is_contained(getTileSteps(), 0))
    return emitOpError("a step of 0 writes several elements to one place");
  // store_c7
  std::optional<ReduceKind> kind = getReduce();
  if (getAtomic() && !kind)
    return emitOpError("atomic goes with reduce only");
  if (kind && *kind != ReduceKind::add && *kind != ReduceKind::max &&
      *kind != ReduceKind::min)
    return emitOpError("reduce must be add, max or min, got ")
           << stringifyReduceKind(*kind);
  return success();
}

//===----------------------------------------------------------------------===//
// Effects and simplification
//===----------------------------------------------------------------------===//

void StoreOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  auto *resource = SideEffects::DefaultResource::get();
  OpOperand *memref = &getMemrefMutable();
  if (getReduce())
    effects.emplace_back(MemoryEffects::Read::get(), memref, resource);
  effects.emplace_back(MemoryEffects::Write::get(), memref, resource);
}

OpFoldResult LoadOp::fold(FoldAdaptor) {
  return succeeded(memref::foldMemRefCast(*this)) ? getResult() : Value();
}

LogicalResult StoreOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &) {
  return memref::foldMemRefCast(*this);
}

namespace {

/// Options that say the default, and bounds that exclude nothing, are dropped.
template <typename Access> struct DropDefaults : OpRewritePattern<Access> {
  using OpRewritePattern<Access>::OpRewritePattern;

  LogicalResult matchAndRewrite(Access op,
                                PatternRewriter &rewriter) const override {
    TileType tile = op.getTileType();
    bool dims =
        op.getDims() && tile.getRank() <= op.getMemRefType().getRank() &&
        *op.getDims() == ArrayRef(trailingDims(tile.getRank(),
                                               op.getMemRefType().getRank()));
    bool steps =
        op.getSteps() &&
        llvm::all_of(*op.getSteps(), [](int64_t step) { return step == 1; });
    bool valid = !op.getValid().empty() && boundsExcludeNothing(op);
    if (!dims && !steps && !valid)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      if (dims)
        op.removeDimsAttr();
      if (steps)
        op.removeStepsAttr();
      if (valid)
        dropBounds(op);
    });
    return success();
  }

  static bool boundsExcludeNothing(Access op) {
    for (auto [bound, size] :
         llvm::zip_equal(op.getValid(), op.getTileType().getShape())) {
      APInt value;
      if (!matchPattern(bound, m_ConstantInt(&value)) ||
          value.getSExtValue() < size)
        return false;
    }
    return true;
  }

  static void dropBounds(LoadOp op) {
    op.getValidMutable().clear();
    op.getPadMutable().clear();
  }
  static void dropBounds(StoreOp op) { op.getValidMutable().clear(); }
};

} // namespace

void LoadOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<DropDefaults<LoadOp>>(context);
}

void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<DropDefaults<StoreOp>>(context);
}
