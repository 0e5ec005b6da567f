//===- WgmmaPatterns.cpp - products on Hopper's matrix units -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/AsyncToGPU/Wgmma.h"
#include "lib/Conversion/TileToGPU/DistributedTiles.h"
#include "lib/Conversion/TileToGPU/Fragments.h"
#include "lib/Conversion/TileToGPU/MmaMeta.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace tilewright {

namespace {

constexpr int64_t kWarpgroup = 128, kRows = 64;

/// Registers of 32 bits with the elements of neighbouring values.
SmallVector<Value> packOperand(OpBuilder &b, Location loc, ValueRange values) {
  int64_t perRegister = 32 / values.front().getType().getIntOrFloatBitWidth();
  auto type = VectorType::get({perRegister}, values.front().getType());
  SmallVector<Value> packed;
  for (size_t first = 0; first < values.size(); first += perRegister) {
    Value vector = vector::FromElementsOp::create(
        b, loc, type, values.slice(first, perRegister));
    packed.push_back(LLVM::BitcastOp::create(b, loc, b.getI32Type(), vector));
  }
  return packed;
}

bool isZero(Value tile) {
  auto constant = tile.getDefiningOp<arith::ConstantOp>();
  auto elements =
      constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : nullptr;
  if (!elements)
    return false;
  Attribute value = elements.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValue().isZero();
  return isa<IntegerAttr>(value) &&
         cast<IntegerAttr>(value).getValue().isZero();
}

/// Emits the instructions of one tile.mma.
class Product {
public:
  Product(ConversionPatternRewriter &b, tile::MmaOp op)
      : b(b), op(op), loc(op.getLoc()) {
    ArrayRef<int64_t> a = op.getA().getType().getShape();
    depth = a[1];
    instruction.columns = op.getC().getType().getShape()[1];
    instruction.depth = wgmmaDepth(op.getA().getType().getElementType());
    instruction.types = wgmmaTypes(op);
  }

  LogicalResult findOperands(ValueRange registers) {
    std::string reason;
    if (right = findWgmmaOperand(b, op.getB(), 0, reason); !right)
      return op.emitOpError("has tile.unit = \"wgmma\", but its right operand ")
             << reason;
    auto level =
        dyn_cast_or_null<tile::LevelAttr>(op.getA().getType().getLayout());
    if (!level) {
      leftRegisters = packOperand(b, loc, registers);
      return success();
    }
    if (left = findWgmmaOperand(b, op.getA(), 1, reason); !left)
      return op.emitOpError("has tile.unit = \"wgmma\", but its left operand ")
             << reason;
    instruction.aKMajor = left->kMajor;
    return success();
  }

  /// Makes the words of metadata, where there are some, of registers of these
  /// values.
  void findMeta(ValueRange values) {
    setBlocks();
    if (!op.getMeta())
      return;
    MetaWords words(b, op, values);
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t k = 0; k < depth; k += kMetaColumns)
        meta.push_back(words.at(block * groups * kRows, k));
    meta = settle(b, loc, meta);
  }

  /// Registers that are read until the product is done: the left operand, where
  /// it does not lie in shared memory, and metadata.
  SmallVector<Value> operands() const {
    SmallVector<Value> all(leftRegisters);
    llvm::append_range(all, meta);
    return all;
  }

  SmallVector<Value> run(ValueRange sums) {
    SmallVector<Value> begin(sums);
    Value add = makeI32(b, loc, 1);
    if (isZero(op.getC())) { // what is not read needs no value
      add = makeI32(b, loc, 0);
      begin.assign(sums.size(),
                   LLVM::UndefOp::create(b, loc, sums.front().getType()));
    } else if (op->hasAttr(tile::decisions::kStarts)) {
      add = isLaterStep();
    }
    instruction.bKMajor = right->kMajor;
    int64_t perBlock = registersOfBlock();
    makeDescriptors();
    // Sums in flight are nobody's to touch. Others LLVM would set up behind the
    // fence, too.
    bool mayTouch =
        !leftRegisters.empty() || !op->hasAttr(tile::decisions::kPending);
    if (!leftRegisters.empty())
      leftRegisters = settle(b, loc, leftRegisters);
    if (mayTouch && !isZero(op.getC()))
      begin = settle(b, loc, begin);
    NVVM::WgmmaFenceAlignedOp::create(b, loc);
    SmallVector<Value> results;
    for (int64_t block = 0; block < blocks; ++block)
      llvm::append_range(
          results, runBlock(ArrayRef(begin).slice(block * perBlock, perBlock),
                            block, add));
    NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
    auto pending = tile::decisions::kPending.get(op);
    if (!pending)
      return waitForProducts(b, loc, results);
    NVVM::WgmmaWaitGroupSyncOp::create(b, loc, pending.getInt());
    return results;
  }

private:
  /// Sums of a thread in 64 rows.
  int64_t registersOfBlock() const {
    return kRows * instruction.columns / kWarpgroup;
  }

  /// Blocks of 64 rows of a warpgroup, and warpgroups.
  void setBlocks() {
    LinearLayout layout = *LinearLayout::of(op.getC().getType());
    blocks = layout.getNumRegisters() / registersOfBlock();
    groups = op.getC().getType().getShape()[0] / (kRows * blocks);
  }

  Value slotOf(const WgmmaOperand &operand) {
    if (auto value = dyn_cast<Value>(operand.slot))
      return b.getRemappedValue(value);
    return arith::ConstantIndexOp::create(b, loc,
                                          *getConstantIntValue(operand.slot));
  }

  void makeDescriptors() {
    rightDescriptor = makeDescriptor(b, loc, *right, slotOf(*right), Value());
    if (left)
      leftDescriptor = makeDescriptor(b, loc, *left, slotOf(*left),
                                      groups > 1 ? groupNumber() : Value());
  }

  /// The warpgroup's number, one value for a whole warp; made where the kernel
  /// begins, since nothing moves a shuffle out of a loop.
  Value groupNumber() {
    OpBuilder::InsertionGuard guard(b);
    auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
    b.setInsertionPointToStart(&kernel.getBody().front());
    Value number = arith::ShRUIOp::create(b, loc, getThreadNumber(b, loc),
                                          makeI32(b, loc, 7));
    return NVVM::ShflOp::create(b, loc, b.getI32Type(), makeI32(b, loc, -1),
                                number, makeI32(b, loc, 0), makeI32(b, loc, 31),
                                NVVM::ShflKind::idx, UnitAttr());
  }

  /// Whether the loop around is past its first step, of all or of each so many,
  /// i32.
  Value isLaterStep() {
    auto loop = op->getParentOfType<scf::ForOp>();
    Value step = b.getRemappedValue(loop.getInductionVar());
    Value first = loop.getLowerBound();
    if (auto steps = dyn_cast<IntegerAttr>(tile::decisions::kStarts.get(op))) {
      Value zero = arith::ConstantIndexOp::create(b, loc, 0);
      Value count = arith::ConstantIndexOp::create(b, loc, steps.getInt());
      step = arith::SubIOp::create(b, loc, step, first);
      step = arith::DivUIOp::create(b, loc, step, loop.getStep());
      step = arith::RemUIOp::create(b, loc, step, count);
      first = zero;
    }
    Value later =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, step, first);
    return arith::ExtUIOp::create(b, loc, b.getI32Type(), later);
  }

  SmallVector<Value> runBlock(ValueRange sums, int64_t block, Value add) {
    SmallVector<Value> values(sums);
    for (int64_t k = 0; k < depth; k += instruction.depth) {
      int64_t step = k / instruction.depth;
      SmallVector<Value> a;
      if (left)
        a.push_back(moveDescriptor(b, loc, leftDescriptor,
                                   left->offsetOf(block * groups * kRows, k)));
      else
        a.assign(
            ArrayRef(leftRegisters)
                .slice((block * (depth / instruction.depth) + step) * 4, 4));
      int64_t row = op.getMeta() ? 2 * k : k;
      Value to =
          moveDescriptor(b, loc, rightDescriptor, right->offsetOf(0, row));
      values =
          instruction.emit(b, loc, values, a, to,
                           k > 0 ? makeI32(b, loc, 1) : add, metaOf(block, k));
    }
    return values;
  }

  SparseMeta metaOf(int64_t block, int64_t k) const {
    if (meta.empty())
      return {};
    int64_t perBlock = static_cast<int64_t>(meta.size()) / blocks;
    return {meta[block * perBlock + k / kMetaColumns],
            k % kMetaColumns / instruction.depth};
  }

  ConversionPatternRewriter &b;
  tile::MmaOp op;
  Location loc;
  WgmmaInstruction instruction;
  int64_t depth, blocks = 1, groups = 1;
  std::optional<WgmmaOperand> left, right;
  SmallVector<Value> leftRegisters, meta;
  Value leftDescriptor, rightDescriptor;
};

/// Registers that products in flight read: they must stay what they are until
/// the wait, of which LLVM's register coalescing knows nothing.
using OperandMap = llvm::DenseMap<Operation *, SmallVector<Value>>;

struct ConvertWgmma : DistributedPattern<tile::MmaOp> {
  ConvertWgmma(const DistributedConverter &converter, MLIRContext *context,
               PatternBenefit benefit, std::shared_ptr<OperandMap> operands)
      : Base(converter, context, benefit), operands(std::move(operands)) {}

  LogicalResult
  matchAndRewrite(tile::MmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto unit = tile::decisions::kUnit.get(op);
    if (!unit || unit.getValue() != "wgmma")
      return failure();
    Product product(rewriter, op);
    if (failed(product.findOperands(adaptor.getA())))
      return failure();
    product.findMeta(adaptor.getMeta());
    (*operands)[op] = product.operands();
    SmallVector<Value> results = product.run(adaptor.getC());
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  std::shared_ptr<OperandMap> operands;
};

struct ConvertMmaWait : DistributedPattern<tile::MmaWaitOp> {
  ConvertMmaWait(const DistributedConverter &converter, MLIRContext *context,
                 PatternBenefit benefit, std::shared_ptr<OperandMap> operands)
      : Base(converter, context, benefit), operands(std::move(operands)) {}

  LogicalResult
  matchAndRewrite(tile::MmaWaitOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto pending = tile::decisions::kPending.get(op);
    auto read = operands->find(op.getSource().getDefiningOp());
    SmallVector<Value> results = waitForProducts(
        rewriter, op.getLoc(), adaptor.getSource(),
        pending ? pending.getInt() : 0,
        read == operands->end() ? ValueRange() : ValueRange(read->second));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  std::shared_ptr<OperandMap> operands;
};

/// A tile of which nobody reads anything.
struct ConvertPoison : DistributedPattern<ub::PoisonOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(ub::PoisonOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (!isa<tile::TileType>(op.getType()) ||
        failed(distributed.convertType(op.getType(), types)))
      return failure();
    SmallVector<Value> values;
    for (Type type : types)
      values.push_back(LLVM::UndefOp::create(rewriter, op.getLoc(), type));
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

} // namespace

void populateWgmmaPatterns(const DistributedConverter &converter,
                           RewritePatternSet &patterns) {
  auto operands = std::make_shared<OperandMap>();
  patterns.add<ConvertWgmma, ConvertMmaWait>(converter, patterns.getContext(),
                                             /*benefit=*/10, operands);
  patterns.add<ConvertPoison>(converter, patterns.getContext(),
                              /*benefit=*/10);
}

} // namespace tilewright
