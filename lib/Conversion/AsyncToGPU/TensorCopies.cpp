//===- TensorCopies.cpp - copies by the tensor memory accelerator -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/TensorCopies.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Divisors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace tilewright {

namespace {

/// Limits of a descriptor (CUDA driver API, cuTensorMapEncodeTiled).
constexpr int64_t kMaxRank = 5, kMaxBox = 256, kUnit = 16, kMaxStep = 8;

/// A value below its limits: `min` and `max` with constants taken off.
Value withoutLimits(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::MinSIOp, arith::MaxSIOp>(op))
      break;
    if (getConstantIntValue(op->getOperand(1)))
      value = op->getOperand(0);
    else if (getConstantIntValue(op->getOperand(0)))
      value = op->getOperand(1);
    else
      break;
  }
  return value;
}

/// Size `dim` of a kernel's argument.
ValueBoundsConstraintSet::Variable sizeOf(Value source, int64_t dim) {
  if (auto cast = source.getDefiningOp<memref::ReinterpretCastOp>())
    return cast.getMixedSizes()[dim];
  return {source, dim};
}

/// Where a view begins in an argument of the kernel, and what it covers of it.
struct SourcePart {
  Value source;
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<int64_t> steps;
  llvm::SmallBitVector dropped;
};

std::optional<SourcePart> findSource(Value memref) {
  auto view = memref.getDefiningOp<memref::SubViewOp>();
  if (!view || view.getSource().getDefiningOp<memref::SubViewOp>())
    return std::nullopt;
  SmallVector<int64_t> steps;
  for (OpFoldResult stride : view.getMixedStrides())
    steps.push_back(getConstantIntValue(stride).value_or(0));
  if (steps.empty() || steps.back() != 1 ||
      llvm::any_of(steps,
                   [](int64_t step) { return step < 1 || step > kMaxStep; }))
    return std::nullopt;
  return SourcePart{view.getSource(), view.getMixedOffsets(),
                    view.getMixedSizes(), steps, view.getDroppedDims()};
}

} // namespace

BlockArgument argumentOf(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    if (op->getNumOperands() == 0 ||
        !isa<ViewLikeOpInterface, CastOpInterface>(op))
      return {};
    memref = op->getOperand(0);
  }
  return cast<BlockArgument>(memref);
}

bool endsWithTensor(Value source, int64_t dim, OpFoldResult offset,
                    OpFoldResult size, int64_t full) {
  if (getConstantIntValue(size) == full)
    return true;
  MLIRContext *context = source.getContext();
  Builder b(context);
  OpFoldResult bound = size;
  if (auto value = dyn_cast<Value>(size))
    bound = withoutLimits(value);
  AffineMap sum =
      AffineMap::get(2, 0, b.getAffineDimExpr(0) + b.getAffineDimExpr(1));
  FailureOr<bool> equal = ValueBoundsConstraintSet::areEqual(
      ValueBoundsConstraintSet::Variable(
          sum, ArrayRef<ValueBoundsConstraintSet::Variable>{bound, offset}),
      sizeOf(source, dim));
  return succeeded(equal) && *equal;
}

StringRef checkTensor(Value memref, int64_t bytes) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (type.getRank() > kMaxRank)
    return "has a source of more than 5 dimensions";
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return "has a source without contiguous rows";
  for (int64_t factor : ArrayRef(getStrideFactors(type)).drop_back())
    if (factor * bytes % kUnit != 0)
      return "has a source whose rows are not known to start at multiples of "
             "16 bytes";
  BlockArgument argument = argumentOf(memref);
  if (!argument ||
      !isa<FunctionOpInterface>(argument.getOwner()->getParentOp()))
    return "has a source that is no argument of the kernel";
  return "";
}

namespace {

StringRef fillBox(TensorCopy &copy, const SourcePart &part, MemRefType slot) {
  int64_t next = 0;
  for (auto [dim, size] : llvm::enumerate(part.sizes)) {
    int64_t full = part.dropped[dim] ? 1 : slot.getShape()[next++];
    if (!endsWithTensor(part.source, dim, part.offsets[dim], size, full))
      return "has bounds that are not known to be the end of its source";
    // A bound counts elements, the end of the source what they are taken of.
    int64_t step = full == 1 ? 1 : part.steps[dim];
    if (step != 1 && getConstantIntValue(size) != full)
      return "takes every so manieth element up to a bound";
    copy.box.push_back(full * step);
    copy.steps.push_back(step);
  }
  copy.box.back() = copy.target.getSpan() / copy.target.getElementBytes();
  if (llvm::any_of(copy.box, [](int64_t size) { return size > kMaxBox; }))
    return "copies a box of more than 256 elements along a dimension";
  return "";
}

} // namespace

std::optional<TensorCopy> analyzeTensorCopy(OpBuilder &b, tile::CopyOp copy,
                                            std::string &reason) {
  std::optional<SharedPlace> target = findSharedPlace(b, copy.getDst());
  auto slot = cast<MemRefType>(copy.getDst().getType());
  std::optional<SourcePart> part = findSource(copy.getSrc());
  if (!target || !target->isSlot(slot) || target->getSlotBytes() % 128 != 0)
    reason = "has a destination that is no slot of a buffer in shared memory";
  else if (!part)
    reason = "has a source that is no box of a buffer";
  else
    reason = checkTensor(part->source, target->getElementBytes()).str();
  if (!reason.empty())
    return std::nullopt;
  TensorCopy found{copy, part->source, part->offsets, {}, {}, *target};
  reason = fillBox(found, *part, slot).str();
  if (!reason.empty())
    return std::nullopt;
  return found;
}

FailureOr<unsigned> tensorMapOf(gpu::GPUFuncOp kernel, Value memref,
                                ArrayRef<int64_t> box, int64_t swizzle,
                                ArrayRef<int64_t> steps) {
  auto params = tile::decisions::kParams.get(kernel);
  BlockArgument argument = argumentOf(memref);
  if (!params || params.size() != kernel.getNumArguments())
    return kernel.emitError("has no tile.params that tell its parameters");
  Builder b(kernel.getContext());
  auto pointer = cast<DictionaryAttr>(params[argument.getArgNumber()]);
  NamedAttrList entry;
  entry.set("kind", b.getStringAttr("tensor_map"));
  entry.set("arg", pointer.get("arg"));
  entry.set("box", b.getI64ArrayAttr(box));
  entry.set("swizzle", b.getI64IntegerAttr(swizzle));
  entry.set("fill", b.getStringAttr("zero"));
  if (llvm::any_of(steps, [](int64_t step) { return step != 1; }))
    entry.set("steps", b.getI64ArrayAttr(steps));
  return parameterOf(kernel, entry.getDictionary(kernel.getContext()));
}

FailureOr<unsigned> parameterOf(gpu::GPUFuncOp kernel, DictionaryAttr wanted) {
  ArrayAttr params = tile::decisions::kParams.get(kernel);
  auto known = llvm::find(params, wanted);
  if (known != params.end())
    return static_cast<unsigned>(known - params.begin());
  unsigned number = params.size();
  auto type = LLVM::LLVMPointerType::get(kernel.getContext());
  if (failed(kernel.insertArgument(number, type, DictionaryAttr(),
                                   kernel.getLoc())))
    return failure();
  SmallVector<Attribute> entries(params.getValue());
  entries.push_back(wanted);
  kernel->setAttr(tile::decisions::kParams,
                  ArrayAttr::get(kernel.getContext(), entries));
  return number;
}

FailureOr<Value> tensorMapOf(gpu::GPUFuncOp kernel, const TensorCopy &copy) {
  FailureOr<unsigned> number = tensorMapOf(
      kernel, copy.source, copy.box, copy.target.getSwizzle(), copy.steps);
  if (failed(number))
    return failure();
  return Value(kernel.getArgument(*number));
}

bool cutForCluster(TensorCopy &copy, int64_t parts) {
  /// Rows that the widest swizzle exchanges, and what TMA's places in shared
  /// memory are multiples of.
  constexpr int64_t kSwizzledRows = 8, kPlace = 128;
  if (copy.getPanels() % parts == 0) {
    copy.parts = parts;
    return true;
  }
  ArrayRef<int64_t> rows = ArrayRef(copy.box).drop_back();
  const int64_t *outermost =
      llvm::find_if(rows, [](int64_t size) { return size > 1; });
  int64_t share = copy.target.getSlotRows() / parts;
  if (outermost == rows.end() || *outermost % parts != 0 ||
      copy.steps[outermost - rows.begin()] != 1 || share % kSwizzledRows != 0 ||
      share * copy.target.getSpan() % kPlace != 0)
    return false;
  copy.parts = parts;
  copy.cutDim = outermost - rows.begin();
  copy.box[*copy.cutDim] /= parts;
  return true;
}

namespace {

/// What one block loads of a copy, from which panel's place on.
struct Part {
  int64_t panels;
  Value place;
  SmallVector<Value> coordinates; // innermost first
};

Part partOf(OpBuilder &b, Location loc, const TensorCopy &copy, Value rank,
            Part whole) {
  int64_t bytes = copy.getBytes() / whole.panels / copy.parts, step;
  size_t cut = 0;
  if (copy.cutDim) {
    step = copy.box[*copy.cutDim];
    cut = copy.box.size() - 1 - *copy.cutDim;
  } else {
    whole.panels /= copy.parts;
    bytes = copy.target.getPanelBytes() * whole.panels;
    step = copy.box.back() * whole.panels;
  }
  auto times = [&](int64_t number) -> Value {
    return arith::MulIOp::create(b, loc, rank, makeI32(b, loc, number));
  };
  whole.place = offsetPointer(b, loc, whole.place, times(bytes));
  Value &coordinate = whole.coordinates[cut];
  coordinate = arith::AddIOp::create(b, loc, coordinate, times(step));
  return whole;
}

} // namespace

void emitTensorCopy(OpBuilder &b, const TensorCopy &copy, Value map, Value slot,
                    Value barrier,
                    llvm::function_ref<Value(OpFoldResult)> valueOf,
                    Value rank) {
  Location loc = tile::CopyOp(copy.copy).getLoc();
  Part part{copy.getPanels(), slot, {}};
  for (OpFoldResult offset : llvm::reverse(copy.origin))
    part.coordinates.push_back(
        arith::IndexCastOp::create(b, loc, b.getI32Type(), valueOf(offset)));
  Value blocks;
  if (copy.parts > 1) {
    part = partOf(b, loc, copy, rank, part);
    auto all = static_cast<int16_t>((1 << copy.parts) - 1);
    blocks = arith::ConstantOp::create(b, loc, b.getI16IntegerAttr(all));
  }
  auto cluster = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  Value first = part.coordinates.front();
  for (int64_t panel = 0; panel < part.panels; ++panel) {
    Value to =
        offsetPointer(b, loc, part.place, panel * copy.target.getPanelBytes());
    Value wide = LLVM::AddrSpaceCastOp::create(b, loc, cluster, to);
    if (panel)
      part.coordinates.front() = arith::AddIOp::create(
          b, loc, first, makeI32(b, loc, panel * copy.box.back()));
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, loc, wide, map, part.coordinates, barrier, ValueRange(), blocks,
        Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
        NVVM::CTAGroupKindAttr(), Value());
  }
}

} // namespace tilewright
