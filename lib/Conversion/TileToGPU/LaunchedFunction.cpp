//===- LaunchedFunction.cpp - kernels that are launched often -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/LaunchedFunction.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// What a type of a buffer leaves open: its offset, sizes, strides.
struct OpenNumbers {
  explicit OpenNumbers(MemRefType type) : shape(type.getShape()) {
    // Arguments of kernels are strided: tile-kernels-to-gpu saw to that.
    (void)type.getStridesAndOffset(strides, offset);
  }

  /// Visits those that are open, in order.
  void visit(function_ref<void()> ofOffset, function_ref<void(size_t)> ofSize,
             function_ref<void(size_t)> ofStride) {
    if (ShapedType::isDynamic(offset))
      ofOffset();
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (ShapedType::isDynamic(shape[dim]))
        ofSize(dim);
    for (size_t dim = 0; dim < strides.size(); ++dim)
      if (ShapedType::isDynamic(strides[dim]))
        ofStride(dim);
  }

  ArrayRef<int64_t> shape;
  SmallVector<int64_t> strides;
  int64_t offset = 0;
};

MemRefType startOf(MemRefType type) {
  return MemRefType::get({}, type.getElementType(), MemRefLayoutAttrInterface(),
                         type.getMemorySpace());
}

void addTypes(MemRefType type, SmallVectorImpl<Type> &types) {
  auto index = IndexType::get(type.getContext());
  types.push_back(startOf(type));
  auto add = [&](size_t) { types.push_back(index); };
  OpenNumbers(type).visit([&] { types.push_back(index); }, add, add);
}

/// The buffer of a type from the arguments that `next` begins with.
Value takeBuffer(OpBuilder &b, Location loc, MemRefType type, Block &entry,
                 unsigned &next) {
  Value start = entry.getArgument(next++);
  OpenNumbers open(type);
  OpFoldResult offset = b.getIndexAttr(open.offset);
  SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(b.getContext(),
                                                           open.shape),
                            strides = getAsIndexOpFoldResult(b.getContext(),
                                                             open.strides);
  auto take = [&]() -> Value { return entry.getArgument(next++); };
  open.visit([&] { offset = take(); }, [&](size_t dim) { sizes[dim] = take(); },
             [&](size_t dim) { strides[dim] = take(); });
  Value made = memref::ReinterpretCastOp::create(
      b, loc,
      MemRefType::get(
          type.getShape(), type.getElementType(),
          StridedLayoutAttr::get(b.getContext(), open.offset, open.strides),
          type.getMemorySpace()),
      start, offset, sizes, strides);
  return made.getType() == type
             ? made
             : memref::CastOp::create(b, loc, type, made).getResult();
}

} // namespace

/// Copies the code of a task to where the builder stands.
static void cloneTask(OpBuilder &b, gpu::GPUFuncOp body, IRMapping &mapping) {
  for (Operation &op : body.getBody().front().without_terminator())
    b.clone(op, mapping);
}

func::FuncOp tilewright::makeCalled(gpu::GPUFuncOp body, int64_t threads,
                                    const std::optional<TaskLoop> &tasks) {
  OpBuilder b(body);
  Location loc = body.getLoc();
  SmallVector<Type> types;
  for (Type type : body.getArgumentTypes()) {
    if (auto buffer = dyn_cast<MemRefType>(type))
      addTypes(buffer, types);
    else
      types.push_back(type);
  }
  if (tasks)
    types.append(2, b.getIndexType());
  auto function = func::FuncOp::create(
      b, loc, (body.getName() + (tasks ? "_tasks" : "_task")).str(),
      b.getFunctionType(types, {}));
  function.setPrivate();
  function->setAttr(
      "llvm.linkage",
      LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
  function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  Block &entry = *function.addEntryBlock();
  b.setInsertionPointToStart(&entry);
  IRMapping mapping;
  unsigned next = 0;
  for (BlockArgument argument : body.getArguments()) {
    auto buffer = dyn_cast<MemRefType>(argument.getType());
    mapping.map(argument, buffer ? takeBuffer(b, loc, buffer, entry, next)
                                 : Value(entry.getArgument(next++)));
  }
  if (tasks) {
    BlockArgument task = body.getArgument(tasks->argument);
    auto loop = scf::ForOp::create(b, loc, mapping.lookup(task),
                                   entry.getArgument(next),
                                   entry.getArgument(next + 1));
    b.setInsertionPointToStart(loop.getBody());
    mapping.map(task, loop.getInductionVar());
    cloneTask(b, body, mapping);
    tasks->behind(b, loc);
    b.setInsertionPointToEnd(&entry);
  } else {
    cloneTask(b, body, mapping);
  }
  func::ReturnOp::create(b, loc);
  // A kernel says how many threads it has, what it calls does not.
  function.walk([&](gpu::ThreadIdOp id) {
    if (id.getDimension() == gpu::Dimension::x)
      id.setUpperBoundAttr(OpBuilder(id).getIndexAttr(threads));
  });
  return function;
}

void tilewright::callWith(OpBuilder &b, Location loc, func::FuncOp function,
                          ValueRange arguments) {
  SmallVector<Value> passed;
  for (Value argument : arguments) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type) {
      passed.push_back(argument);
      continue;
    }
    auto parts = memref::ExtractStridedMetadataOp::create(b, loc, argument);
    passed.push_back(parts.getBaseBuffer());
    OpenNumbers(type).visit(
        [&] { passed.push_back(parts.getOffset()); },
        [&](size_t dim) { passed.push_back(parts.getSizes()[dim]); },
        [&](size_t dim) { passed.push_back(parts.getStrides()[dim]); });
  }
  func::CallOp::create(b, loc, function, passed);
}
