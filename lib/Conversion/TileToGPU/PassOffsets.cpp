//===- PassOffsets.cpp - buffers as a base and an offset ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"

namespace tilewright {
#define GEN_PASS_DEF_PASSOFFSETS
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// A pointer as another one and bytes behind it.
struct Place {
  Value base;
  int64_t bytes = 0;
};

/// The element of an aggregate that was put together of its elements.
Value elementOf(Value aggregate, ArrayRef<int64_t> position) {
  while (auto insert = aggregate.getDefiningOp<LLVM::InsertValueOp>()) {
    if (insert.getPosition() == position)
      return insert.getValue();
    aggregate = insert.getContainer();
  }
  return {};
}

Place placeOf(Value pointer) {
  Place place{pointer};
  while (Operation *op = place.base.getDefiningOp()) {
    Value behind;
    if (auto extract = dyn_cast<LLVM::ExtractValueOp>(op))
      behind = elementOf(extract.getContainer(), extract.getPosition());
    APInt number;
    if (auto step = dyn_cast<LLVM::GEPOp>(op);
        step && step.getElemType().isInteger(8) &&
        step.getDynamicIndices().size() == 1 && step.getIndices().size() == 1 &&
        matchPattern(step.getDynamicIndices()[0], m_ConstantInt(&number))) {
      place.bytes += number.getSExtValue();
      behind = step.getBase();
    }
    if (!behind || behind.getType() != pointer.getType())
      return place;
    place.base = behind;
  }
  return place;
}

/// The calls of a function, where it has no other uses.
FailureOr<SmallVector<LLVM::CallOp>> callsOf(LLVM::LLVMFuncOp function,
                                             Operation *scope) {
  auto uses = SymbolTable::getSymbolUses(function, scope);
  if (!uses)
    return failure();
  SmallVector<LLVM::CallOp> calls;
  for (SymbolTable::SymbolUse use : *uses) {
    auto call = dyn_cast<LLVM::CallOp>(use.getUser());
    if (!call || call.getCallee() != function.getSymName())
      return failure();
    calls.push_back(call);
  }
  return calls;
}

/// Lets the function add the offset of a pointer that it takes.
void addOffset(LLVM::LLVMFuncOp function, unsigned number,
               ArrayRef<LLVM::CallOp> calls, ArrayRef<Place> places) {
  Location loc = function.getLoc();
  OpBuilder b(function.getBody());
  Type type = b.getI64Type();
  BlockArgument base = function.getArgument(number);
  Value bytes = function.getBody().front().addArgument(type, loc);
  SmallVector<Type> types(function.getArgumentTypes());
  types.push_back(type);
  LLVM::LLVMFunctionType old = function.getFunctionType();
  auto now = LLVM::LLVMFunctionType::get(old.getReturnType(), types);
  function.setFunctionType(now);
  if (ArrayAttr attributes = function.getArgAttrsAttr()) {
    SmallVector<Attribute> all(attributes.getValue());
    all.push_back(b.getDictionaryAttr({}));
    function.setArgAttrsAttr(b.getArrayAttr(all));
  }
  auto sum = LLVM::GEPOp::create(b, loc, base.getType(), b.getI8Type(), base,
                                 ArrayRef<LLVM::GEPArg>{bytes});
  base.replaceAllUsesExcept(sum, sum);
  for (auto [index, place] : llvm::enumerate(places)) {
    LLVM::CallOp call = calls[index];
    OpBuilder at(call);
    Value offset =
        LLVM::ConstantOp::create(at, call.getLoc(), type, place.bytes);
    call.getCalleeOperandsMutable()[number].set(place.base);
    call.getCalleeOperandsMutable().append(offset);
  }
}

struct PassOffsets : public tilewright::impl::PassOffsetsBase<PassOffsets> {
  void runOnOperation() override {
    SmallVector<LLVM::LLVMFuncOp> functions;
    getOperation().walk([&](LLVM::LLVMFuncOp function) {
      if (function.isPrivate() ||
          function.getLinkage() == LLVM::Linkage::Internal)
        if (!function.isExternal() && !function.isVarArg())
          functions.push_back(function);
    });
    for (LLVM::LLVMFuncOp function : functions)
      split(function);
  }

  void split(LLVM::LLVMFuncOp function) {
    FailureOr<SmallVector<LLVM::CallOp>> calls =
        callsOf(function, getOperation());
    if (failed(calls))
      return;
    for (unsigned number : llvm::seq(function.getNumArguments())) {
      if (!isa<LLVM::LLVMPointerType>(function.getArgument(number).getType()))
        continue;
      SmallVector<Place> places;
      for (LLVM::CallOp call : *calls)
        places.push_back(placeOf(call.getCalleeOperands()[number]));
      if (llvm::any_of(places, [](Place place) { return place.bytes != 0; }))
        addOffset(function, number, *calls, places);
    }
  }
};

} // namespace
