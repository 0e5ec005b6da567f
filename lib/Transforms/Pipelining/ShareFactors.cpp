//===- ShareFactors.cpp - factors that shared memory holds for long -------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Pipelining/Passes.h"
#include "lib/Transforms/Pipelining/RingLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SHAREFACTORS
#include "lib/Transforms/Pipelining/Passes.h.inc"

namespace {

/// Whether only products read the tile, as factors.
bool isFactor(tile::LoadOp load) {
  return !load->use_empty() &&
         llvm::all_of(load->getUses(), [](OpOperand &use) {
           return isa<tile::MmaOp>(use.getOwner()) &&
                  use.getOperandNumber() < 2;
         });
}

/// Whether the load runs at most once.
bool runsOnce(tile::LoadOp load) {
  Operation *parent = load->getParentOp();
  while (isa<scf::IfOp>(parent))
    parent = parent->getParentOp();
  return isa<tile::KernelOp>(parent);
}

/// One load that becomes a copy into a buffer of its own.
class SharedFactor {
public:
  explicit SharedFactor(const RingLoad &slot)
      : slot(slot), load(slot.load), b(load), loc(load.getLoc()) {}

  void run() {
    Value buffer = makeBuffer();
    Value source = viewSource(), target = viewBuffer(buffer);
    auto async = tile::AsyncOp::create(b, loc);
    OpBuilder inside(async.getBody().front().getTerminator());
    auto copy = tile::CopyOp::create(inside, loc, source, target, ValueRange());
    copy.setFill(cast<MemRefType>(source.getType()).getShape() !=
                 cast<MemRefType>(target.getType()).getShape());
    tile::AwaitOp::create(b, loc, ValueRange{async.getToken()});
    for (OpOperand &use : llvm::make_early_inc_range(load->getUses()))
      use.set(loadBeside(use.getOwner(), buffer));
    load.erase();
  }

private:
  Value makeBuffer() {
    auto kernel = load->getParentOfType<tile::KernelOp>();
    OpBuilder start = OpBuilder::atBlockBegin(&kernel.getBody().front());
    auto buffer =
        tile::AllocOp::create(start, loc, slot.ringType(1), slot.alignment());
    if (tile::LayoutAttr layout = slot.ringLayout(); !layout.isIdentity())
      buffer->setAttr("tile.layouts", b.getArrayAttr({layout}));
    return buffer;
  }

  Value constant(OpBuilder &at, int64_t value) {
    return arith::ConstantIndexOp::create(at, loc, value);
  }

  /// How much of tile dimension `dim` is there, at most its size.
  OpFoldResult boundOf(int64_t dim) {
    int64_t size = load.getType().getShape()[dim];
    if (load.getValid().empty())
      return b.getIndexAttr(size);
    Value valid = load.getValid()[dim];
    if (std::optional<int64_t> known = getConstantIntValue(valid))
      return b.getIndexAttr(std::clamp<int64_t>(*known, 0, size));
    Value below = arith::MinSIOp::create(b, loc, valid, constant(b, size));
    return arith::MaxSIOp::create(b, loc, below, constant(b, 0)).getResult();
  }

  /// What the load reads, in the order of memory.
  Value viewSource() {
    SmallVector<OpFoldResult> offsets = getAsOpFoldResult(load.getOffsets()),
                              sizes(offsets.size(), b.getIndexAttr(1)),
                              strides(sizes);
    for (auto [dim, place] : llvm::enumerate(load.getTileDims()))
      sizes[place] = boundOf(static_cast<int64_t>(dim));
    SmallVector<int64_t> shape;
    for (int64_t dim : slot.dims)
      shape.push_back(
          getConstantIntValue(sizes[dim]).value_or(ShapedType::kDynamic));
    MemRefType type = memref::SubViewOp::inferRankReducedResultType(
        shape, load.getMemRefType(), offsets, sizes, strides);
    return memref::SubViewOp::create(b, loc, type, load.getMemref(), offsets,
                                     sizes, strides);
  }

  Value viewBuffer(Value buffer) {
    SmallVector<OpFoldResult> offsets(slot.shape.size() + 1, b.getIndexAttr(0)),
        sizes{b.getIndexAttr(1)},
        strides(slot.shape.size() + 1, b.getIndexAttr(1));
    for (int64_t size : slot.shape)
      sizes.push_back(b.getIndexAttr(size));
    MemRefType type = memref::SubViewOp::inferRankReducedResultType(
        slot.shape, cast<MemRefType>(buffer.getType()), offsets, sizes,
        strides);
    return memref::SubViewOp::create(b, loc, type, buffer, offsets, sizes,
                                     strides);
  }

  /// Matrix units read shared memory themselves: the load stands beside them.
  Value loadBeside(Operation *product, Value buffer) {
    OpBuilder at(product);
    SmallVector<Value> offsets(slot.shape.size() + 1, constant(at, 0));
    SmallVector<int64_t> dims;
    for (int64_t dim = 0; dim < load.getType().getRank(); ++dim)
      dims.push_back(1 + slot.slotDim(dim));
    if (llvm::is_sorted(dims))
      dims.clear();
    return tile::LoadOp::create(at, loc, load.getType(), buffer, offsets, dims);
  }

  RingLoad slot;
  tile::LoadOp load;
  OpBuilder b;
  Location loc;
};

struct ShareFactors : public tilewright::impl::ShareFactorsBase<ShareFactors> {
  void runOnOperation() override {
    getOperation()->walk([](tile::KernelOp kernel) {
      if (kernel->hasAttr("tile.specialized"))
        share(kernel);
    });
  }

private:
  static void share(tile::KernelOp kernel) {
    SmallVector<tile::LoadOp> loads;
    kernel.walk([&](tile::LoadOp load) {
      if (isFactor(load) && runsOnce(load))
        loads.push_back(load);
    });
    for (tile::LoadOp load : loads) {
      std::string reason;
      std::optional<RingLoad> slot = analyzeSlotLoad(load, reason);
      if (slot && isWritten(kernel, load.getMemref())) {
        reason = "reads what the kernel writes";
        slot = std::nullopt;
      }
      if (slot)
        SharedFactor(*slot).run();
      else
        load.emitRemark("is not read by matrix units from shared memory, "
                        "since it ")
            << reason;
    }
  }
};

} // namespace
} // namespace tilewright
