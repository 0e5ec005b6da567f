//===- HandedBuffers.cpp - the buffers that a launch may be given ---------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/HandedBuffers.h"
#include "dialects/Tile/Elements.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/SharedArguments.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace tilewright {

namespace {

/// What TMA's addresses are multiples of.
constexpr int64_t kUnit = 16;

/// Follows a buffer to what it may be.
class Tracer {
public:
  /// Whether all is known.
  bool trace(Value memref) {
    Value root = getRoot(memref);
    if (!seen.insert(root).second)
      return true;
    if (isParameter(root))
      return add(cast<BlockArgument>(root), 0);
    if (auto view = root.getDefiningOp<memref::ViewOp>())
      return traceView(view);
    auto argument = dyn_cast<BlockArgument>(root);
    Operation *op =
        argument ? argument.getOwner()->getParentOp() : root.getDefiningOp();
    if (auto branch = dyn_cast_or_null<scf::IfOp>(op))
      return traceBranch(branch, cast<OpResult>(root).getResultNumber());
    if (auto loop = dyn_cast_or_null<LoopLikeOpInterface>(op))
      return traceLoop(loop, root, argument);
    return false;
  }

  SmallVector<HandedBuffer> found;

private:
  bool add(BlockArgument parameter, int64_t shift) {
    HandedBuffer buffer{parameter, shift};
    if (!llvm::is_contained(found, buffer))
      found.push_back(buffer);
    return true;
  }

  bool traceView(memref::ViewOp view) {
    std::optional<int64_t> shift = getConstantIntValue(view.getByteShift());
    Value root = getRoot(view.getSource());
    return shift && isParameter(root) && add(cast<BlockArgument>(root), *shift);
  }

  bool traceBranch(scf::IfOp branch, unsigned number) {
    return trace(branch.thenYield().getOperand(number)) &&
           trace(branch.elseYield().getOperand(number));
  }

  bool traceLoop(LoopLikeOpInterface loop, Value root, BlockArgument argument) {
    if (auto repeat = dyn_cast<scf::WhileOp>(loop.getOperation()))
      return traceWhile(repeat, root, argument);
    OpOperand *init = argument ? loop.getTiedLoopInit(argument)
                               : loop.getTiedLoopInit(cast<OpResult>(root));
    if (!init)
      return false;
    OpOperand *yielded =
        loop.getTiedLoopYieldedValue(loop.getTiedLoopRegionIterArg(init));
    return yielded && trace(init->get()) && trace(yielded->get());
  }

  /// What comes before the condition is as it was handed to the loop, or as an
  /// iteration left it; what comes behind is what the condition hands on.
  bool traceWhile(scf::WhileOp loop, Value root, BlockArgument argument) {
    if (argument && argument.getOwner() == loop.getBeforeBody()) {
      unsigned number = argument.getArgNumber();
      return trace(loop.getInits()[number]) &&
             trace(loop.getYieldOp().getOperand(number));
    }
    unsigned number = argument ? argument.getArgNumber()
                               : cast<OpResult>(root).getResultNumber();
    return trace(loop.getConditionOp().getArgs()[number]);
  }

  llvm::SmallPtrSet<Value, 8> seen;
};

/// Elements from where a buffer begins to the first that its type counts.
std::optional<int64_t> knownOffset(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, offset)) ||
      ShapedType::isDynamic(offset) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return std::nullopt;
  return offset;
}

} // namespace

SmallVector<HandedBuffer> findHandedBuffers(Value memref, std::string &reason) {
  auto type = cast<MemRefType>(memref.getType());
  Tracer tracer;
  if (!tracer.trace(memref)) {
    reason = "is launched on a buffer that only a run chooses";
    return {};
  }
  std::optional<int64_t> offset = knownOffset(type);
  int64_t bytes = bytesOfElement(type.getElementType());
  if (!offset)
    reason = "is launched on a part of a buffer whose place or sizes only a "
             "run knows";
  else if (llvm::any_of(tracer.found, [&](const HandedBuffer &buffer) {
             return (buffer.shift + *offset * bytes) % kUnit != 0;
           }))
    reason = "is launched on a part of a buffer that begins at no multiple of "
             "16 bytes";
  return reason.empty() ? tracer.found : SmallVector<HandedBuffer>();
}

/// Bytes from where a parameter points to, to the argument's first element.
static int64_t offsetOf(gpu::GPUFuncOp kernel, BlockArgument parameter) {
  auto params = tile::decisions::kParams.get(kernel);
  auto entry = cast<DictionaryAttr>(params[parameter.getArgNumber()]);
  auto offset = entry.getAs<IntegerAttr>("offset");
  auto type = cast<MemRefType>(parameter.getType());
  return offset ? offset.getInt() * bytesOfElement(type.getElementType()) : 0;
}

NamedAttrList placeOf(gpu::GPUFuncOp kernel, Value memref,
                      const HandedBuffer &buffer) {
  NamedAttrList place;
  Builder b(kernel.getContext());
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  (void)type.getStridesAndOffset(strides, offset);
  int64_t bytes = bytesOfElement(type.getElementType());
  std::string element;
  llvm::raw_string_ostream(element) << type.getElementType();
  place.set("element", b.getStringAttr(element));
  place.set("shift", b.getI64IntegerAttr(buffer.shift + offset * bytes -
                                         offsetOf(kernel, buffer.parameter)));
  place.set("sizes", b.getI64ArrayAttr(type.getShape()));
  place.set("strides", b.getI64ArrayAttr(strides));
  return place;
}

} // namespace tilewright
