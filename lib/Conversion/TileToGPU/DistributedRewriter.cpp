//===- DistributedRewriter.cpp - layouts into the types of tiles ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/DistributedRewriter.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToGPU/DerivedLayouts.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

static tile::TileType typeOf(Value value) {
  return cast<tile::TileType>(value.getType());
}

static tile::TileType withLayout(tile::TileType type, Attribute layout) {
  return tile::TileType::get(type.getShape(), type.getElementType(), layout);
}

LinearLayout tilewright::getAccessLayout(const AccessShape &access,
                                         tile::TileType type, int64_t threads) {
  int64_t contiguous = access.getContiguousDim();
  SmallVector<int64_t> order;
  if (contiguous >= 0)
    order.push_back(contiguous);
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim)
    if (dim != contiguous)
      order.push_back(dim);
  // Rather all threads at work than wide accesses.
  int64_t each = std::max<int64_t>(1, type.getNumElements() / threads);
  int64_t vector = std::min<int64_t>(access.getVectorSize(),
                                     llvm::bit_floor<uint64_t>(each));
  return LinearLayout::blocked(type.getShape(), order, vector, threads);
}

LinearLayout tilewright::getOperandLayout(tile::MmaOp op, Value operand,
                                          const LinearLayout &result,
                                          int64_t arch) {
  ArrayRef<int64_t> shape = typeOf(operand).getShape();
  if (*getUnit(op, arch) == MmaUnit::mfma)
    return mfmaOperandLayout(result, operand == op.getB(), shape,
                             *MfmaShape::of(op));
  if (*getUnit(op, arch) == MmaUnit::wgmma)
    return wgmmaOperandLayout(result, shape,
                              bytesOfElement(typeOf(operand).getElementType()));
  return mmaOperandLayout(result, operand == op.getB(), shape,
                          *MmaShape::of(op, arch));
}

/// Whether a warp's accesses in `layout` are pieces of less than a sector (32
/// bytes) where memory has more in a row.
static bool isPoor(const AccessShape &access, const LinearLayout &layout) {
  int64_t dim = access.getContiguousDim();
  if (dim < 0)
    return false;
  int64_t bytes = bytesOfElement(access.getType().getElementType());
  int64_t run = std::min(access.getVectorSize(), layout.getRun(dim));
  for (int64_t bit = llvm::Log2_64(run);; ++bit) {
    auto thread = layout.findThread({dim, bit});
    if (!thread || *thread >= LinearLayout::laneBits)
      break;
    run *= 2;
  }
  return run * bytes < 32 && run < access.tileShape[dim];
}

DistributedRewriter::DistributedRewriter(gpu::GPUFuncOp function, int64_t arch,
                                         DistributedClasses &classes)
    : function(function), arch(arch), classes(classes),
      threads(tile::decisions::kThreads.get(function).getInt()) {}

LinearLayout DistributedRewriter::layoutOf(Value value) const {
  return *LinearLayout::of(value.getType());
}

void DistributedRewriter::setTypes() {
  for (Value value : classes.getValues()) {
    tile::TileType type = typeOf(value);
    if (type.isInShared())
      continue;
    Attribute layout = classes.getLayout(value)->toAttr(function.getContext());
    value.setType(withLayout(type, layout));
    if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
      auto dense = cast<DenseElementsAttr>(constant.getValue());
      constant.setValueAttr(dense.reshape(cast<ShapedType>(value.getType())));
    }
  }
}

LogicalResult DistributedRewriter::run() {
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  setTypes();
  for (Operation *op : ops) {
    if (auto product = dyn_cast<tile::MmaOp>(op)) {
      if (failed(fixProduct(product)))
        return failure();
      continue;
    }
    fix(op);
  }
  return success();
}

/// The operand in this layout.
void DistributedRewriter::require(OpOperand &operand,
                                  const LinearLayout &layout) {
  if (layoutOf(operand.get()) == layout)
    return;
  OpBuilder b(operand.getOwner());
  tile::TileType type =
      withLayout(typeOf(operand.get()), layout.toAttr(function.getContext()));
  operand.set(tile::ConvertOp::create(b, operand.getOwner()->getLoc(), type,
                                      operand.get(), /*is_unsigned=*/false));
}

/// The op makes its result in this layout; users go on to see the one it has.
void DistributedRewriter::produce(Value result, const LinearLayout &layout) {
  if (layoutOf(result) == layout)
    return;
  tile::TileType wanted = typeOf(result);
  result.setType(withLayout(wanted, layout.toAttr(function.getContext())));
  OpBuilder b(function.getContext());
  b.setInsertionPointAfterValue(result);
  auto convert = tile::ConvertOp::create(b, result.getLoc(), wanted, result,
                                         /*is_unsigned=*/false);
  result.replaceAllUsesExcept(convert.getResult(), convert);
}

void DistributedRewriter::fixLoad(tile::LoadOp op) {
  AccessShape access = AccessShape::of(op);
  bool shared =
      gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(op.getMemRefType());
  if (!shared && isPoor(access, layoutOf(op.getResult())))
    produce(op.getResult(), getAccessLayout(access, op.getType(), threads));
  if (op.getIndices())
    require(op.getIndicesMutable()[0],
            getIndexLayout(layoutOf(op.getResult()),
                           static_cast<int64_t>(*op.getAlong())));
}

void DistributedRewriter::fixStore(tile::StoreOp op) {
  AccessShape access = AccessShape::of(op);
  bool shared =
      gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(op.getMemRefType());
  if (!shared && isPoor(access, layoutOf(op.getTile())))
    require(op.getTileMutable(),
            getAccessLayout(access, op.getTileType(), threads));
  if (op.getIndices())
    require(op.getIndicesMutable()[0],
            getIndexLayout(layoutOf(op.getTile()),
                           static_cast<int64_t>(*op.getAlong())));
}

void DistributedRewriter::fixReduce(tile::ReduceOp op) {
  produce(op.getResult(), layoutOf(op.getSource()).slice(op.getDims()));
}

template <typename RenameOp> void DistributedRewriter::fixRename(RenameOp op) {
  if (auto result = getResultLayout(op, layoutOf(op.getSource())))
    produce(op.getResult(), *result);
}

void DistributedRewriter::fixExtract(tile::ExtractOp op) {
  if (!isa<tile::TileType>(op.getResult().getType()))
    return;
  if (auto result = getExtractLayout(op, layoutOf(op.getSource())))
    produce(op.getResult(), *result);
}

void DistributedRewriter::fix(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::LoadOp load) { fixLoad(load); })
      .Case([&](tile::StoreOp store) { fixStore(store); })
      .Case([&](tile::ReduceOp reduce) { fixReduce(reduce); })
      .Case([&](tile::BroadcastOp broadcast) {
        require(broadcast.getSourceMutable(),
                getBroadcastSource(broadcast, layoutOf(broadcast.getResult())));
      })
      .Case<tile::TransposeOp, tile::ReshapeOp>([&](auto rename) {
        if (!typeOf(rename.getResult()).isInShared())
          fixRename(rename);
      })
      .Case([&](tile::ExtractOp extract) { fixExtract(extract); });
}

/// Leaves an operand in shared memory: a load from there is none any more,
/// anything else is stored, where it may be.
LogicalResult DistributedRewriter::keepShared(tile::MmaOp op,
                                              OpOperand &operand,
                                              bool mayStore) {
  Attribute shared = tile::LevelAttr::get(function.getContext(), "shared");
  SmallVector<Value> chain;
  Value value = operand.get();
  while (auto reshape = value.getDefiningOp<tile::ReshapeOp>()) {
    chain.push_back(value);
    value = reshape.getSource();
  }
  auto load = value.getDefiningOp<tile::LoadOp>();
  bool isPlain =
      load && load->getBlock() == op->getBlock() && !load.getIndices() &&
      load.getValid().empty() && (chain.empty() || !mayStore) &&
      gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(load.getMemRefType()) &&
      llvm::all_of(typeOf(value).getShape(),
                   [](int64_t size) { return llvm::isPowerOf2_64(size); });
  chain.push_back(value);
  isPlain = isPlain &&
            llvm::all_of(chain, [](Value link) { return link.hasOneUse(); });
  if (isPlain) {
    for (Value link : chain)
      link.setType(withLayout(typeOf(link), shared));
    return success();
  }
  if (!mayStore)
    return op.emitOpError("of the unit wgmma reads its operand ")
           << operand.getOperandNumber()
           << " from shared memory, but that is not a tile.load of a shared "
              "buffer beside it; leave out `tile.unit`, or load it there";
  OpBuilder b(op);
  operand.set(tile::ConvertOp::create(
      b, op.getLoc(), withLayout(typeOf(operand.get()), shared), operand.get(),
      /*is_unsigned=*/false));
  return success();
}

LogicalResult DistributedRewriter::fixProduct(tile::MmaOp op) {
  MmaUnit unit = *getUnit(op, arch);
  LinearLayout result = layoutOf(op.getResult());
  if (unit == MmaUnit::mma && !isMmaResult(result)) {
    // Its sums are another product's too, or the kernel says otherwise.
    ArrayRef<int64_t> shape = typeOf(op.getC()).getShape();
    result = mmaResultLayout(
        shape, chooseWarps(shape, threads / 32, /*rowsOnly=*/false));
    require(op.getCMutable(), result);
    produce(op.getResult(), result);
  }
  OpOperand &a = op.getAMutable(), &b = op.getBMutable();
  if (op.getMeta())
    require(op.getMetaMutable()[0], mmaMetaLayout(op, result));
  if (unit == MmaUnit::fma)
    return success(succeeded(keepShared(op, a, /*mayStore=*/true)) &&
                   succeeded(keepShared(op, b, /*mayStore=*/true)));
  if (unit == MmaUnit::wgmma) {
    auto load = a.get().getDefiningOp<tile::LoadOp>();
    bool fromShared = load && gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
                                  load.getMemRefType());
    if (fromShared && failed(keepShared(op, a, /*mayStore=*/false)))
      return failure();
    if (!fromShared)
      require(a, getOperandLayout(op, a.get(), result, arch));
    return keepShared(op, b, /*mayStore=*/false);
  }
  require(a, getOperandLayout(op, a.get(), result, arch));
  require(b, getOperandLayout(op, b.get(), result, arch));
  return success();
}
