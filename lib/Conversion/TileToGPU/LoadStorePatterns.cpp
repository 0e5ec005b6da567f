//===- LoadStorePatterns.cpp - tiles from and to memory -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/Ldmatrix.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"
#include "lib/Conversion/TileToVector/Combine.h"

using namespace mlir;
using namespace tilewright;

namespace {

SmallVector<Value> firstValues(ArrayRef<ValueRange> operands) {
  return llvm::map_to_vector(operands,
                             [](ValueRange range) { return range.front(); });
}

/// The index tile's register for each register of the tile: they differ in
/// the bits of the gathered dimension only.
SmallVector<Value> indicesByRegister(const AccessShape &access,
                                     const LinearLayout &layout,
                                     ValueRange indices) {
  SmallVector<Value> result;
  if (access.along < 0)
    return result;
  for (int64_t number = 0; number < layout.getNumRegisters(); ++number) {
    int64_t index = 0, position = 0;
    for (auto [i, bit] : llvm::enumerate(layout.getRegisterBits()))
      if (bit.dim == access.along)
        index |= (number >> i & 1) << position++;
    result.push_back(indices[index]);
  }
  return result;
}

/// How one thread moves its elements: in groups, each with a condition.
class ThreadAccess {
public:
  ThreadAccess(OpBuilder &b, Location loc, const AccessShape &access,
               tile::TileType type, ArrayRef<int64_t> bounded = {})
      : b(b), loc(loc), access(access), view(b, loc, type), bounded(bounded) {
    int64_t contiguous = access.getContiguousDim();
    bool outside =
        contiguous >= 0 && llvm::is_contained(bounded, access.dims[contiguous]);
    vector = contiguous < 0 || outside // of a vector, a part may be outside
                 ? 1
                 : std::min(access.getVectorSize(),
                            view.getLayout().getRun(contiguous));
    groups =
        groupRegisters(view.getLayout(), vector > 1 ? contiguous : -1, vector);
  }

  ThreadView &getView() { return view; }
  ArrayRef<SmallVector<int64_t>> getGroups() const { return groups; }
  int64_t getVector() const { return vector; }

  /// Whether the elements of a group are there and valid; null where always.
  /// They are side by side, and the sizes are multiples of a group's.
  Value getCondition(ArrayRef<int64_t> group, ValueRange valid) {
    Value condition = view.exists(group.front());
    for (int64_t dim : bounded)
      condition = bothHold(b, loc, condition, isInside(group.front(), dim));
    for (auto [dim, bound] : llvm::enumerate(valid)) {
      Value at = view.getCoordinate(group.front(), static_cast<int64_t>(dim));
      Value place = arith::IndexCastOp::create(b, loc, b.getIndexType(), at);
      Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                           place, bound);
      condition = bothHold(b, loc, condition, inside);
    }
    return condition;
  }

  /// Where the tile begins, per dimension of the memref: needed where it may
  /// reach out of it.
  void setPlaces(ArrayRef<Value> offsets) { places = offsets; }

private:
  /// Whether the entry of an element in a dimension of the memref is there. One
  /// comparison does: what lies before the start is large without its sign.
  Value isInside(int64_t number, int64_t dim) {
    Value at = places[dim];
    if (const auto *found = llvm::find(access.dims, dim);
        found != access.dims.end()) {
      int64_t own = found - access.dims.begin();
      Value along = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                               view.getCoordinate(number, own));
      if (access.steps[own] != 1)
        along = arith::MulIOp::create(b, loc, along,
                                      constantIndex(b, loc, access.steps[own]));
      at = arith::AddIOp::create(b, loc, at, along);
    }
    int64_t size = access.getType().getShape()[dim];
    Value end =
        ShapedType::isDynamic(size)
            ? memref::DimOp::create(b, loc, access.memref, dim).getResult()
            : constantIndex(b, loc, size);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, end);
  }

  OpBuilder &b;
  Location loc;
  const AccessShape &access;
  ThreadView view;
  ArrayRef<int64_t> bounded;
  ArrayRef<Value> places;
  int64_t vector = 1;
  SmallVector<SmallVector<int64_t>> groups;
};

/// What a thread reads where there is nothing to read.
Value makePad(OpBuilder &b, Location loc, Type element, ValueRange pad,
              int64_t count) {
  Value scalar =
      pad.empty()
          ? Value(arith::ConstantOp::create(b, loc, b.getZeroAttr(element)))
          : pad.front();
  return packRaw(b, loc, SmallVector<Value>(count, scalar));
}

struct LoadPattern : DistributedPattern<tile::LoadOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::LoadOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getType().getInterleave())
      return op.emitOpError("of an interleaved tile has no GPU lowering");
    Location loc = op.getLoc();
    AccessShape access = AccessShape::of(op);
    Value memref = adaptor.getMemref().front();
    if (op.getType().isInShared()) {
      rewriter.replaceOpWithMultiple(op, {SmallVector<Value>()});
      return success();
    }
    if (std::optional<SmallVector<Value>> fragments =
            loadFragments(rewriter, op, access)) {
      rewriter.replaceOpWithMultiple(op, {*fragments});
      return success();
    }
    ThreadAccess thread(rewriter, loc, access, op.getType(),
                        op.getBounded().value_or(ArrayRef<int64_t>()));
    const LinearLayout &layout = thread.getView().getLayout();
    SmallVector<Value> offsets = firstValues(adaptor.getOffsets());
    thread.setPlaces(offsets);
    TileAddress address(
        rewriter, loc, access, memref, thread.getView(), offsets,
        indicesByRegister(access, layout, adaptor.getIndices()));
    Type element = op.getType().getElementType();
    SmallVector<Value> valid = firstValues(adaptor.getValid());
    SmallVector<Value> results(layout.getNumRegisters());
    Value pad =
        makePad(rewriter, loc, element, adaptor.getPad(), thread.getVector());
    for (ArrayRef<int64_t> group : thread.getGroups()) {
      Value raw = pad;
      if (!thread.getView().neverExists(group.front())) {
        Value when = thread.getCondition(group, valid);
        Value pointer = address.getPointer(group.front());
        raw = guarded(rewriter, loc, when, ValueRange{pad}, [&](OpBuilder &b) {
                return SmallVector<Value>{
                    loadRaw(b, loc, pointer, element, thread.getVector())};
              }).front();
      }
      for (auto [number, value] :
           llvm::zip_equal(group, unpackRaw(rewriter, loc, raw, element)))
        results[number] = value;
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  std::optional<SmallVector<Value>>
  loadFragments(OpBuilder &b, tile::LoadOp op, const AccessShape &access) const;
};

/// A fragment of a product from rows of shared memory.
std::optional<SmallVector<Value>>
LoadPattern::loadFragments(OpBuilder &b, tile::LoadOp op,
                           const AccessShape &access) const {
  Type element = op.getType().getElementType();
  bool isShared =
      gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(op.getMemRefType());
  bool isPlain = op.getValid().empty() && !op.getIndices();
  if (distributed.getArch() < 80 || !isShared || !isPlain ||
      access.getVectorSize() * bytesOfElement(element) != 16)
    return std::nullopt;
  LinearLayout layout = *LinearLayout::of(op.getType());
  if (!llvm::equal(layout.getSizes(), op.getType().getShape()))
    return std::nullopt; // rows of padding are not there
  auto matrix = Ldmatrix::plan(layout, access.getContiguousDim(), element);
  if (!matrix)
    return std::nullopt;
  Location loc = op.getLoc();
  ThreadView view(b, loc, matrix->getRows(), op.getType().getShape());
  TileAddress address(b, loc, access, op.getMemref(), view, op.getOffsets(),
                      {});
  return matrix->load(b, loc, element, [&](int64_t number) {
    return address.getPointer(number);
  });
}

struct StorePattern : DistributedPattern<tile::StoreOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    AccessShape access = AccessShape::of(op);
    ThreadAccess thread(rewriter, loc, access, op.getTileType());
    ThreadView &view = thread.getView();
    TileAddress address(
        rewriter, loc, access, adaptor.getMemref().front(), view,
        firstValues(adaptor.getOffsets()),
        indicesByRegister(access, view.getLayout(), adaptor.getIndices()));
    SmallVector<Value> valid = firstValues(adaptor.getValid());
    Value owner = view.isFirstReplica();
    for (ArrayRef<int64_t> group : thread.getGroups()) {
      if (view.neverExists(group.front()))
        continue;
      Value when =
          bothHold(rewriter, loc, owner, thread.getCondition(group, valid));
      Value pointer = address.getPointer(group.front());
      SmallVector<Value> values;
      for (int64_t number : group)
        values.push_back(adaptor.getTile()[number]);
      guarded(rewriter, loc, when,
              [&](OpBuilder &b) { write(b, op, pointer, values); });
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void write(OpBuilder &b, tile::StoreOp op, Value pointer,
                    SmallVector<Value> values) {
    Location loc = op.getLoc();
    if (!op.getReduce()) {
      storeRaw(b, loc, pointer, packRaw(b, loc, values));
      return;
    }
    // Indices may repeat: threads of one task then meet at one place.
    if (op.getAtomic() || op.getIndices()) {
      auto bytes = bytesOfElement(values.front().getType());
      for (auto [i, value] : llvm::enumerate(values))
        reduceAtomically(
            b, op,
            movePointer(b, loc, pointer, static_cast<int64_t>(i) * bytes),
            value);
      return;
    }
    Type element = values.front().getType();
    Value raw =
        loadRaw(b, loc, pointer, element, static_cast<int64_t>(values.size()));
    SmallVector<Value> old = unpackRaw(b, loc, raw, element);
    for (auto [value, before] : llvm::zip_equal(values, old))
      value = combine(b, loc, *op.getReduce(), before, value);
    storeRaw(b, loc, pointer, packRaw(b, loc, values));
  }

  static void reduceAtomically(OpBuilder &b, tile::StoreOp op, Value pointer,
                               Value value);
};

LLVM::AtomicBinOp atomicOf(tile::ReduceKind kind, bool isFloat) {
  switch (kind) {
  case tile::ReduceKind::max:
    return isFloat ? LLVM::AtomicBinOp::fmaximum : LLVM::AtomicBinOp::max;
  case tile::ReduceKind::min:
    return isFloat ? LLVM::AtomicBinOp::fminimum : LLVM::AtomicBinOp::min;
  default:
    return isFloat ? LLVM::AtomicBinOp::fadd : LLVM::AtomicBinOp::add;
  }
}

void StorePattern::reduceAtomically(OpBuilder &b, tile::StoreOp op,
                                    Value pointer, Value value) {
  bool isFloat = isa<FloatType>(value.getType());
  LLVM::AtomicRMWOp::create(b, op.getLoc(), atomicOf(*op.getReduce(), isFloat),
                            pointer, toMemory(b, op.getLoc(), value),
                            LLVM::AtomicOrdering::monotonic, "device");
}

} // namespace

void tilewright::populateDistributedMemoryPatterns(
    const DistributedConverter &converter, RewritePatternSet &patterns) {
  patterns.add<LoadPattern, StorePattern>(converter, patterns.getContext());
}
