//===- ConvertFractalToLinalg.cpp - nested lists as tensors ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Lifter.h"
#include "lib/Conversion/FractalToLinalg/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {
#define GEN_PASS_DEF_CONVERTFRACTALTOLINALG
#include "lib/Conversion/FractalToLinalg/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

/// The tensor that holds an array; null for a ragged one.
static Type tensorOf(Type type) {
  auto array = dyn_cast<ArrayType>(type);
  if (!array)
    return type;
  if (array.isRagged())
    return {};
  SmallVector<int64_t> shape(array.getLengths());
  llvm::append_range(shape, array.getLeaf().getShape());
  return RankedTensorType::get(shape, array.getLeaf().getElementType(),
                               array.getLeaf().getEncoding());
}

static bool usesFractal(func::FuncOp function) {
  auto isArray = [](Type type) { return isa<ArrayType>(type); };
  return llvm::any_of(function.getArgumentTypes(), isArray) ||
         llvm::any_of(function.getResultTypes(), isArray) ||
         function
             .walk([](Operation *op) {
               return isa_and_present<FractalDialect>(op->getDialect())
                          ? WalkResult::interrupt()
                          : WalkResult::advance();
             })
             .wasInterrupted();
}

static FailureOr<FunctionType> convertedType(func::FuncOp function) {
  SmallVector<Type> inputs, results;
  auto convert = [&](TypeRange types, SmallVector<Type> &now) -> LogicalResult {
    for (Type type : types)
      if (Type tensor = tensorOf(type))
        now.push_back(tensor);
      else
        return unsupported(function)
               << "has an argument or result that is a ragged list, " << type
               << ": pass the flat list and the offsets, which "
                  "fractal.from_ragged takes";
    return success();
  };
  if (failed(convert(function.getArgumentTypes(), inputs)) ||
      failed(convert(function.getResultTypes(), results)))
    return failure();
  return FunctionType::get(function.getContext(), inputs, results);
}

/// An argument, whose leading dimensions are levels.
static void defineArgument(Lifter &l, Value before, Value now) {
  Lifted lifted = {now, {}, {}};
  if (!isa<RankedTensorType>(now.getType()))
    return l.defineScalar(before, now);
  if (auto array = dyn_cast<ArrayType>(before.getType()))
    for (int64_t level : llvm::seq(array.getDepth())) {
      lifted.axes.push_back(levelAxis(level));
      lifted.lengths.push_back(
          tensor::getMixedSize(l.b, l.b.getLoc(), now, level));
    }
  l.define(before, lifted);
}

/// Divisions of integers, which end the process where they have no result, have
/// one for elements that are not there, whatever stands in their place.
static void guardDivisions(Block &block) {
  block.walk([](Operation *op) {
    if (!isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
             arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op))
      return;
    Type type = op->getResult(0).getType();
    std::optional<int64_t> known = getConstantIntValue(op->getOperand(1));
    if (!type.isIntOrIndex() || (known && *known != 0 && *known != -1))
      return;
    ImplicitLocOpBuilder b(op->getLoc(), op);
    auto number = [&](const APInt &value) {
      return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
    };
    auto is = [&](Value value, const APInt &other) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value,
                                   number(other));
    };
    unsigned width = type.isIndex() ? IndexType::kInternalStorageBitWidth
                                    : type.getIntOrFloatBitWidth();
    Value by = op->getOperand(1), bad = is(by, APInt::getZero(width));
    if (isa<arith::DivSIOp, arith::RemSIOp, arith::CeilDivSIOp,
            arith::FloorDivSIOp>(op)) {
      Value least = is(op->getOperand(0), APInt::getSignedMinValue(width));
      Value minus = is(by, APInt::getAllOnes(width));
      Value overflow = arith::AndIOp::create(b, least, minus);
      bad = arith::OrIOp::create(b, bad, overflow);
    }
    op->setOperand(
        1, arith::SelectOp::create(b, bad, number(APInt(width, 1)), by));
  });
}

static LogicalResult convert(func::FuncOp function, int64_t chunk) {
  FailureOr<FunctionType> type = convertedType(function);
  if (failed(type))
    return failure();
  if (function.isExternal()) {
    function.setType(*type);
    return success();
  }
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("has several blocks; control flow of a program "
                                "of lists is structured");
  Block *before = &function.getBody().front();
  Block *now = new Block();
  function.getBody().push_back(now);
  OpBuilder builder = OpBuilder::atBlockEnd(now);
  Lifter l(builder, function.getLoc(), chunk);
  l.b.setInsertionPointToEnd(now);
  for (auto [argument, input] :
       llvm::zip_equal(before->getArguments(), type->getInputs()))
    defineArgument(l, argument, now->addArgument(input, argument.getLoc()));
  if (failed(l.lift(*before)))
    return failure();
  if (l.computesMore)
    guardDivisions(*now);
  Operation *end = before->getTerminator();
  l.b.setLoc(end->getLoc());
  SmallVector<Value> results;
  for (auto [operand, result] :
       llvm::zip_equal(end->getOperands(), type->getResults())) {
    if (!l.isLifted(operand)) {
      results.push_back(l.scalar(operand));
      continue;
    }
    const Lifted &lifted = l.lookup(operand);
    if (!lifted.isComplete())
      return unsupported(end) << "gives a list whose length only a run knows, "
                              << operand.getType()
                              << ": give the flat list and the offsets, which "
                                 "fractal.to_ragged makes";
    Value tensor = l.aligned(lifted, levelsOf(lifted));
    if (tensor.getType() != result)
      tensor = tensor::CastOp::create(l.b, result, tensor);
    results.push_back(tensor);
  }
  func::ReturnOp::create(l.b, results);
  before->dropAllReferences();
  before->dropAllUses();
  before->erase();
  function.setType(*type);
  return success();
}

namespace {
struct ConvertFractalToLinalg
    : tilewright::impl::ConvertFractalToLinalgBase<ConvertFractalToLinalg> {
  using Base::Base;
  void runOnOperation() override {
    if (chunk < 1) {
      getOperation().emitError("chunk=") << chunk << " is no number of nodes";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (usesFractal(function) && failed(convert(function, chunk)))
        return signalPassFailure();
  }
};
} // namespace
