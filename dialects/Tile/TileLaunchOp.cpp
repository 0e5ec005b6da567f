//===- TileLaunchOp.cpp - tile.launch -------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "dialects/Tile/TileDetail.h"

using namespace mlir;
using namespace tilewright::tile;

/// A layout fits where every stride and offset that `to` states is `from`'s. An
/// unknown stride of a strided layout may be any; without a layout it is the
/// product of the sizes further in, which no stride of `from` is known to be.
static bool layoutFits(MemRefType from, MemRefType to) {
  if (from.getLayout() == to.getLayout())
    return true;
  SmallVector<int64_t> fromStrides, toStrides;
  int64_t fromOffset, toOffset;
  if (failed(from.getStridesAndOffset(fromStrides, fromOffset)) ||
      failed(to.getStridesAndOffset(toStrides, toOffset)))
    return false;
  bool isDense = to.getLayout().isIdentity();
  auto covers = [&](int64_t wanted, int64_t given) {
    return ShapedType::isDynamic(wanted) ? !isDense : wanted == given;
  };
  if (!covers(toOffset, fromOffset))
    return false;
  for (auto [size, wanted, given] :
       llvm::zip_equal(to.getShape(), toStrides, fromStrides))
    if (size != 1 && !covers(wanted, given))
      return false;
  return true;
}

bool shared::fitsArgument(Type from, Type to) {
  if (from == to)
    return true;
  auto source = dyn_cast<ShapedType>(from);
  auto target = dyn_cast<MemRefType>(to);
  if (!source || !target || !source.hasRank() ||
      source.getRank() != target.getRank() ||
      source.getElementType() != target.getElementType())
    return false;
  bool isTensor = isa<RankedTensorType>(from);
  for (auto [given, wanted] :
       llvm::zip_equal(source.getShape(), target.getShape()))
    if (!ShapedType::isDynamic(wanted) && given != wanted)
      return false;
  if (isTensor)
    return true; // bufferization chooses the layout
  auto memref = dyn_cast<MemRefType>(from);
  return memref && memref.getMemorySpace() == target.getMemorySpace() &&
         layoutFits(memref, target);
}

void LaunchOp::build(OpBuilder &builder, OperationState &state,
                     StringRef kernel, ValueRange grid, ValueRange inputs,
                     ValueRange outputs) {
  SmallVector<Type> results;
  for (Value output : outputs)
    if (isa<RankedTensorType>(output.getType()))
      results.push_back(output.getType());
  build(builder, state, results, kernel, grid, inputs, outputs);
}

LogicalResult LaunchOp::verify() {
  // launch_c5; the tensors' results are checked by DestinationStyleOpInterface
  bool tensors = false, memrefs = false;
  for (Value output : getOutputs())
    if (!isa<RankedTensorType, MemRefType>(output.getType()))
      return emitOpError("outs must be tensors or memrefs, got ")
             << output.getType();
  for (Value operand : getKernelOperands()) {
    tensors |= isa<TensorType>(operand.getType());
    memrefs |= isa<BaseMemRefType>(operand.getType());
  }
  // launch_c6
  if (tensors && memrefs)
    return emitOpError("mixes tensors and memrefs");
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  // launch_c1
  Operation *symbol =
      symbolTable.lookupNearestSymbolFrom(*this, getKernelAttr());
  // A kernel that is a function already has the run-time's signature, which
  // says nothing about its arguments.
  if (symbol && symbol->hasAttr(decisions::kCode))
    return success();
  if (!isa_and_nonnull<KernelOp, ProgramOp>(symbol))
    return emitOpError("@")
           << getKernel() << " is no tile.kernel or tile.program here";
  auto kernel = dyn_cast<KernelOp>(symbol);
  // kernel_c5
  if (auto caller = (*this)->getParentOfType<KernelOp>()) {
    if (caller.getGridRank() != 0)
      return emitOpError("stands in @")
             << caller.getSymName()
             << ", a kernel with coordinates: each of its tasks would launch @"
             << getKernel();
    WalkResult inside =
        symbol->walk([](LaunchOp) { return WalkResult::interrupt(); });
    if (!kernel || inside.wasInterrupted())
      return emitOpError("stands in a kernel, and @")
             << getKernel() << " is no kernel, or launches others itself";
  }
  // launch_c2
  size_t rank = kernel ? kernel.getGridRank() : 0;
  if (getGrid().size() != rank)
    return emitOpError("gives ")
           << getGrid().size() << " grid bounds, @" << getKernel() << " has "
           << rank << " coordinates";
  // launch_c3
  ArrayRef<Type> wanted = cast<FunctionOpInterface>(symbol).getArgumentTypes();
  OperandRange operands = getKernelOperands();
  if (operands.size() != wanted.size())
    return emitOpError("gives ")
           << operands.size() << " operands, @" << getKernel() << " has "
           << wanted.size() << " arguments";
  // launch_c4
  for (auto [number, operand] : llvm::enumerate(operands))
    if (!shared::fitsArgument(operand.getType(), wanted[number])) {
      InFlightDiagnostic error = emitOpError("operand ")
                                 << number << " of type " << operand.getType()
                                 << " does not fit argument " << number
                                 << " of @" << getKernel() << " of type "
                                 << wanted[number];
      error.attachNote(symbol->getLoc()) << "the kernel";
      return error;
    }
  return success();
}

/// On tensors a launch is a pure function; on memrefs it reads all operands
/// and writes the outputs.
void LaunchOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  auto *resource = SideEffects::DefaultResource::get();
  auto add = [&](OpOperand &operand, bool writes) {
    if (!isa<MemRefType>(operand.get().getType()))
      return;
    effects.emplace_back(MemoryEffects::Read::get(), &operand, resource);
    if (writes)
      effects.emplace_back(MemoryEffects::Write::get(), &operand, resource);
  };
  for (OpOperand &operand : getInputsMutable())
    add(operand, /*writes=*/false);
  for (OpOperand &operand : getOutputsMutable())
    add(operand, /*writes=*/true);
}
