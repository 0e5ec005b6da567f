//===- RingLoads.cpp - loads that may go through a ring -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Pipelining/RingLoads.h"
#include "dialects/Tile/Elements.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Divisors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <numeric>

using namespace mlir;

namespace tilewright {

namespace {

/// What one element of a copy in the background moves.
constexpr int64_t kChunk = 16;
/// What slots are multiples of: where copies in the background may begin.
constexpr int64_t kSlot = 128;

/// Whether `part` holds a store or a copy to the buffer.
bool isWritten(Operation *part, Value memref) {
  return part
      ->walk([&](Operation *op) {
        auto store = dyn_cast<tile::StoreOp>(op);
        auto copy = dyn_cast<tile::CopyOp>(op);
        bool writes = (store && store.getMemref() == memref) ||
                      (copy && copy.getDst() == memref);
        return writes ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether it reads a number that the loop leaves as it is: an entry of a list
/// of blocks, say, which can be read ahead of time, too.
bool readsList(scf::ForOp loop, Operation *op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  return load && loop.isDefinedOutsideOfLoop(load.getMemref()) &&
         !isWritten(loop, load.getMemref());
}

/// Whether `value` follows from the loop's variable, from what is known outside
/// and from lists that do not change.
bool isAddress(scf::ForOp loop, Value value) {
  if (loop.isDefinedOutsideOfLoop(value) || value == loop.getInductionVar())
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == loop.getBody() &&
         (isPure(op) || readsList(loop, op)) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isAddress(loop, operand); });
}

/// Why the way that `load` reads memory fits no copy, empty where it does.
StringRef checkKind(tile::LoadOp load) {
  if (load.getIndices())
    return "gathers";
  if (llvm::any_of(load.getTileSteps(), [](int64_t step) { return step < 1; }))
    return "reads backwards, or one place several times";
  if (load.getPad() && !matchPattern(load.getPad(), m_AnyZeroFloat()) &&
      !matchPattern(load.getPad(), m_Zero()))
    return "pads with another value than zero";
  if (load.getType().getLayout())
    return "makes a tile with a layout";
  auto level =
      dyn_cast_or_null<tile::LevelAttr>(load.getMemRefType().getMemorySpace());
  if (load.getMemRefType().getMemorySpace() &&
      (!level || level.getName() != "memory"))
    return "reads no memory outside of the processor";
  if (!hasWholeBytes(load.getType().getElementType()))
    return "reads elements that are no whole bytes";
  return "";
}

/// Memref dimensions along which the load may reach out of its buffer.
ArrayRef<int64_t> boundedDims(tile::LoadOp load) {
  return load.getBounded().value_or(ArrayRef<int64_t>());
}

/// Why rows of the memory behind `load` cannot be copied chunk by chunk.
StringRef checkRows(const RingLoad &ring) {
  tile::LoadOp load = ring.load;
  MemRefType type = load.getMemRefType();
  int64_t bytes = ring.elementBytes();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.empty() ||
      strides.back() != 1 || ring.dims.back() != type.getRank() - 1)
    return "reads no rows that are contiguous in memory";
  ArrayRef<int64_t> bounded = boundedDims(load);
  if (llvm::is_contained(bounded, ring.dims.back()))
    return "reaches out of rows";
  for (auto [dim, bound, size] : llvm::zip(load.getTileDims(), load.getValid(),
                                           load.getType().getShape()))
    if (llvm::is_contained(bounded, dim) &&
        getConstantIntValue(bound).value_or(0) < size)
      return "has a bound where it reaches out of its buffer";
  for (auto [dim, step] :
       llvm::zip_equal(load.getTileDims(), load.getTileSteps()))
    if (step != 1 && dim == ring.dims.back())
      return "reads every so manieth element of a row";
  if (ring.shape.back() * bytes % kChunk != 0)
    return "reads rows that are no multiple of 16 bytes";
  for (int64_t factor : ArrayRef(getStrideFactors(type)).drop_back())
    if (factor * bytes % kChunk != 0)
      return "reads rows that are not known to start at multiples of 16 bytes";
  if (getDivisor(load.getOffsets().back()) * bytes % kChunk != 0)
    return "starts within rows where no multiple of 16 bytes is known";
  int64_t size = std::accumulate(ring.shape.begin(), ring.shape.end(), bytes,
                                 std::multiplies<int64_t>());
  if (size % kSlot != 0)
    return "reads no multiple of 128 bytes";
  return "";
}

/// How much of tile dimension `dim` is there, at most its size.
OpFoldResult boundOf(OpBuilder &b, tile::LoadOp load, int64_t dim,
                     llvm::function_ref<Value(Value)> here) {
  Location loc = load.getLoc();
  int64_t size = load.getType().getShape()[dim];
  if (load.getValid().empty())
    return b.getIndexAttr(size);
  Value valid = here(load.getValid()[dim]);
  if (std::optional<int64_t> known = getConstantIntValue(valid))
    return b.getIndexAttr(std::clamp<int64_t>(*known, 0, size));
  Value whole = arith::ConstantIndexOp::create(b, loc, size);
  Value below = arith::MinSIOp::create(b, loc, valid, whole);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  return arith::MaxSIOp::create(b, loc, below, zero).getResult();
}

StringRef checkAddress(scf::ForOp loop, tile::LoadOp load) {
  if (!loop.isDefinedOutsideOfLoop(load.getMemref()))
    return "reads a buffer that is made in the loop";
  auto known = [&](Value value) { return isAddress(loop, value); };
  if (!llvm::all_of(load.getOffsets(), known) ||
      !llvm::all_of(load.getValid(), known))
    return "reads at a place that depends on more than the loop's variable";
  if (isWritten(loop, load.getMemref()))
    return "reads what the loop writes";
  return "";
}

/// The span that the plan asks for, else the largest that divides a row. Slots
/// in which the pattern of its 8 rows is not whole have none: all must look the
/// same, and they are too small for banks to matter.
int64_t swizzleOf(tile::LoadOp load, int64_t rowBytes, int64_t rows) {
  if (auto attr = tile::decisions::kSwizzle.get(load))
    return attr.getInt();
  for (int64_t span : {128, 64, 32})
    if (rowBytes % span == 0)
      return rows % 8 == 0 ? span : 0;
  return 0;
}

/// The reshape that joins all dimensions of a tile but the last to rows, where
/// nothing else reads the tile.
tile::ReshapeOp rowsOf(tile::LoadOp load) {
  if (load.getType().getRank() < 3 || !load->hasOneUse() ||
      !llvm::is_sorted(load.getTileDims()))
    return {};
  auto reshape = dyn_cast<tile::ReshapeOp>(*load->user_begin());
  if (!reshape || reshape->getBlock() != load->getBlock())
    return {};
  auto shape = cast<tile::TileType>(reshape->getResult(0).getType()).getShape();
  bool isRows =
      shape.size() == 2 && shape.back() == load.getType().getShape().back();
  return isRows ? reshape : tile::ReshapeOp();
}

} // namespace

int64_t RingLoad::elementBytes() const {
  return bytesOfElement(tile::LoadOp(load).getType().getElementType());
}

SmallVector<int64_t> RingLoad::slotShape() const {
  if (!rows)
    return shape;
  return {llvm::product_of(ArrayRef(shape).drop_back()), shape.back()};
}

tile::TileType RingLoad::tileType() const {
  if (!rows)
    return tile::LoadOp(load).getType();
  return cast<tile::TileType>(tile::ReshapeOp(rows)->getResult(0).getType());
}

MemRefType RingLoad::ringType(int64_t stages) const {
  tile::LoadOp op = load;
  SmallVector<int64_t> sizes{stages};
  llvm::append_range(sizes, slotShape());
  return MemRefType::get(sizes, op.getType().getElementType(),
                         MemRefLayoutAttrInterface(),
                         tile::LevelAttr::get(op.getContext(), "shared"));
}

tile::LayoutAttr RingLoad::ringLayout() const {
  MLIRContext *context = tile::LoadOp(load).getContext();
  int64_t rank = slotShape().size() + 1, span = swizzle / elementBytes();
  if (!swizzle || shape.back() == span)
    return tile::LayoutAttr::get(context, {}, {}, {}, swizzle, 0, Type());
  // Panels of columns lie one after the other, each with all rows of a slot.
  SmallVector<int64_t> perm{0, rank - 1};
  for (int64_t dim = 1; dim < rank - 1; ++dim)
    perm.push_back(dim);
  return tile::LayoutAttr::get(context, perm, {rank - 1}, {span}, swizzle, 0,
                               Type());
}

int64_t RingLoad::alignment() const {
  return std::max(kSlot, swizzle * 8); // the pattern repeats after 8 rows
}

int64_t RingLoad::slotDim(int64_t dim) const {
  int64_t memrefDim = tile::LoadOp(load).getTileDims()[dim];
  return llvm::find(dims, memrefDim) - dims.begin();
}

/// How `load` would fill a slot, wherever it stands; else why it cannot, in
/// `reason`.
static std::optional<RingLoad> analyzeSlotLoad(tile::LoadOp load,
                                               std::string &reason) {
  RingLoad ring{load, load.getTileDims(), {}, {}, 0};
  reason = checkKind(load).str();
  if (!reason.empty())
    return std::nullopt;
  llvm::sort(ring.dims);
  ring.shape.resize(ring.dims.size());
  for (auto [dim, size] : llvm::enumerate(load.getType().getShape()))
    ring.shape[ring.slotDim(dim)] = size;
  reason = ring.dims.empty() ? "reads a scalar" : checkRows(ring).str();
  if (!reason.empty())
    return std::nullopt;
  int64_t rowBytes = ring.shape.back() * ring.elementBytes();
  int64_t rows = llvm::product_of(ArrayRef(ring.shape).drop_back());
  ring.swizzle = swizzleOf(load, rowBytes, rows);
  if (!llvm::is_contained({0, 32, 64, 128}, ring.swizzle) ||
      (ring.swizzle && rowBytes % ring.swizzle != 0)) {
    reason = "asks for a swizzle of " + std::to_string(ring.swizzle) +
             " bytes, which does not fit rows of " + std::to_string(rowBytes);
    return std::nullopt;
  }
  return ring;
}

std::optional<RingLoad> analyzeOnceLoad(tile::LoadOp load,
                                        std::string &reason) {
  std::optional<RingLoad> slot = analyzeSlotLoad(load, reason);
  if (!slot)
    return std::nullopt;
  if (!isWritten(load->getParentOfType<tile::KernelOp>(), load.getMemref()))
    return slot;
  reason = "reads what the kernel writes";
  return std::nullopt;
}

std::optional<RingLoad> analyzeRingLoad(scf::ForOp loop, tile::LoadOp load,
                                        std::string &reason) {
  std::optional<RingLoad> ring = analyzeSlotLoad(load, reason);
  if (!ring)
    return std::nullopt;
  reason = checkAddress(loop, load).str();
  if (!reason.empty())
    return std::nullopt;
  ring->rows = rowsOf(load);
  return ring;
}

Value cloneAddress(OpBuilder &b, scf::ForOp loop, Value value, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  if (loop.isDefinedOutsideOfLoop(value))
    return value;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    map.map(operand, cloneAddress(b, loop, operand, map));
  return b.clone(*op, map)->getResult(cast<OpResult>(value).getResultNumber());
}

Value createRing(const RingLoad &ring, int64_t stages) {
  tile::LoadOp load = ring.load;
  auto kernel = load->getParentOfType<tile::KernelOp>();
  OpBuilder start = OpBuilder::atBlockBegin(&kernel.getBody().front());
  auto buffer = tile::AllocOp::create(start, load.getLoc(),
                                      ring.ringType(stages), ring.alignment());
  if (tile::LayoutAttr layout = ring.ringLayout(); !layout.isIdentity())
    buffer->setAttr(tile::decisions::kLayouts, start.getArrayAttr({layout}));
  return buffer;
}

Value viewSlot(OpBuilder &b, const RingLoad &ring, Value buffer,
               OpFoldResult slot) {
  Location loc = tile::LoadOp(ring.load).getLoc();
  SmallVector<int64_t> shape = ring.slotShape();
  SmallVector<OpFoldResult> offsets{slot}, sizes{b.getIndexAttr(1)},
      strides(shape.size() + 1, b.getIndexAttr(1));
  for (int64_t size : shape) {
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(size));
  }
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(
      shape, cast<MemRefType>(buffer.getType()), offsets, sizes, strides);
  Value view =
      memref::SubViewOp::create(b, loc, type, buffer, offsets, sizes, strides);
  if (!ring.rows)
    return view;
  auto last = static_cast<int64_t>(ring.shape.size()) - 1;
  SmallVector<ReassociationIndices> groups(2);
  llvm::append_range(groups.front(), llvm::seq<int64_t>(0, last));
  groups.back().push_back(last);
  return memref::ExpandShapeOp::create(b, loc, ring.shape, view, groups);
}

Value viewSource(OpBuilder &b, const RingLoad &ring,
                 llvm::function_ref<Value(Value)> here) {
  tile::LoadOp load = ring.load;
  ArrayRef<int64_t> bounded = boundedDims(load);
  SmallVector<OpFoldResult> offsets,
      sizes(load.getOffsets().size(), b.getIndexAttr(1)), strides(sizes);
  for (auto [place, offset] : llvm::enumerate(load.getOffsets())) {
    Value at = here(offset);
    offsets.push_back(llvm::is_contained(bounded, place)
                          ? OpFoldResult(at) // constants may be outside
                          : getAsOpFoldResult(at));
  }
  for (auto [dim, place] : llvm::enumerate(load.getTileDims())) {
    sizes[place] =
        llvm::is_contained(bounded, place)
            ? OpFoldResult(b.getIndexAttr(load.getType().getShape()[dim]))
            : boundOf(b, load, dim, here);
    strides[place] = b.getIndexAttr(load.getTileSteps()[dim]);
  }
  SmallVector<int64_t> shape;
  for (int64_t dim : ring.dims)
    shape.push_back(
        getConstantIntValue(sizes[dim]).value_or(ShapedType::kDynamic));
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(
      shape, load.getMemRefType(), offsets, sizes, strides);
  return memref::SubViewOp::create(b, load.getLoc(), type, load.getMemref(),
                                   offsets, sizes, strides);
}

void createCopy(OpBuilder &b, const RingLoad &ring, Value source,
                Value target) {
  tile::LoadOp load = ring.load;
  auto copy =
      tile::CopyOp::create(b, load.getLoc(), source, target, ValueRange());
  copy.setFill(cast<MemRefType>(source.getType()).getShape() !=
               cast<MemRefType>(target.getType()).getShape());
  copy.setBoundedAttr(load.getBoundedAttr());
}

Value loadSlot(OpBuilder &b, const RingLoad &ring, Value buffer, Value slot) {
  tile::LoadOp load = ring.load;
  bool isFirst = matchPattern(slot, m_Zero());
  Value zero = isFirst
                   ? slot
                   : Value(arith::ConstantIndexOp::create(b, load.getLoc(), 0));
  SmallVector<Value> offsets(ring.slotShape().size() + 1, zero);
  offsets.front() = slot;
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < load.getType().getRank() && !ring.rows; ++dim)
    dims.push_back(1 + ring.slotDim(dim));
  if (llvm::is_sorted(dims))
    dims.clear();
  return tile::LoadOp::create(b, load.getLoc(), ring.tileType(), buffer,
                              offsets, dims);
}

Value copyOnce(const RingLoad &ring) {
  tile::LoadOp load = ring.load;
  OpBuilder b(load);
  Location loc = load.getLoc();
  Value buffer = createRing(ring, 1);
  Value source = viewSource(b, ring, [](Value value) { return value; }),
        target = viewSlot(b, ring, buffer, b.getIndexAttr(0));
  auto async = tile::AsyncOp::create(b, loc);
  OpBuilder inside(async.getBody().front().getTerminator());
  createCopy(inside, ring, source, target);
  tile::AwaitOp::create(b, loc, ValueRange{async.getToken()});
  return buffer;
}

} // namespace tilewright
