//===- LaunchRoles.cpp - warps that move data for launches ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/LaunchRoles.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/AsyncToGPU/HandedBuffers.h"
#include "lib/Conversion/AsyncToGPU/RoleRegisters.h"
#include "lib/Conversion/AsyncToGPU/ScopeBarriers.h"
#include "lib/Conversion/AsyncToGPU/TensorCopies.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;

/// Where the warps of a function part, null where they do not.
static scf::IfOp findParts(gpu::GPUFuncOp function) {
  for (auto branch : function.getBody().front().getOps<scf::IfOp>())
    if (branch->hasAttr(tile::decisions::kRoles))
      return branch;
  return {};
}

void LaunchRoles::split(Operation *first) {
  OpBuilder b(first);
  Location loc = function.getLoc();
  function.walk([&](tile::LaunchOp launch) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(
        launch, launch.getKernelAttr());
    scf::IfOp parts = callee ? findParts(callee) : scf::IfOp();
    if (parts && !has(callee))
      setUp(b, callee, parts);
  });
  if (!any())
    return;
  State &state = states.front().second;
  Value producing = state.made.lookup(state.parts.getCondition());
  roles = scf::IfOp::create(b, loc, producing, /*withElseRegion=*/true);
  roles->setAttr(tile::decisions::kRoles, b.getUnitAttr());
  Block &entry = function.getBody().front(), &consumer = *roles.elseBlock();
  consumer.getOperations().splice(consumer.getTerminator()->getIterator(),
                                  entry.getOperations(), first->getIterator(),
                                  entry.getTerminator()->getIterator());
  b.setInsertionPointToStart(roles.thenBlock());
  dropRegisters(b, loc, threads / kWarpgroup);
  IRMapping mapping;
  for (Operation &op : consumer.without_terminator())
    b.clone(op, mapping);
  b.setInsertionPointToStart(&consumer);
  takeRegisters(b, loc, threads / kWarpgroup, function);
}

void LaunchRoles::setUp(OpBuilder &b, gpu::GPUFuncOp callee, scf::IfOp parts) {
  State state{parts, {}};
  for (Operation &op : callee.getBody().front()) {
    if (&op == parts)
      break;
    bool known = llvm::all_of(op.getOperands(), [&](Value operand) {
      return state.made.contains(operand);
    });
    if (!known)
      continue; // follows from an argument: each task makes it
    Operation *made = b.clone(op, state.made);
    if (auto view = dyn_cast<memref::ViewOp>(made))
      barriers.push_back(view);
  }
  states.insert({callee, state});
}

bool LaunchRoles::isProducer(Operation *op) const {
  return any() &&
         scf::IfOp(roles).getThenRegion().isAncestor(op->getParentRegion());
}

void LaunchRoles::begin(OpBuilder &b, Location loc, bool producer) const {
  NVVM::BarrierOp::create(b, loc);
  // What threads have written, here or in other blocks that they have met
  // since, and read, comes before what the asynchronous proxy does.
  if (producer)
    NVVM::FenceProxyOp::create(b, loc, NVVM::ProxyKind::async,
                               NVVM::SharedSpaceAttr());
}

void LaunchRoles::doTask(OpBuilder &b, gpu::GPUFuncOp callee,
                         ValueRange arguments, bool producer) const {
  const State &state = states.find(callee)->second;
  IRMapping mapping = state.made;
  mapping.map(callee.getArguments(), arguments);
  scf::IfOp parts = state.parts;
  for (Operation &op : callee.getBody().front()) {
    if (&op == parts)
      break;
    if (op.getNumResults() == 0 || !state.made.contains(op.getResult(0)))
      if (isPure(&op))
        b.clone(op, mapping);
  }
  Block *part = producer ? parts.thenBlock() : parts.elseBlock();
  for (Operation &op : part->without_terminator())
    b.clone(op, mapping);
}

FailureOr<Value> LaunchRoles::mapOf(OpBuilder &b, tile::LaunchOp launch,
                                    DictionaryAttr entry) {
  Location loc = launch.getLoc();
  Value operand =
      launch.getKernelOperands()[entry.getAs<IntegerAttr>("arg").getInt()];
  std::string reason;
  SmallVector<HandedBuffer> buffers = findHandedBuffers(operand, reason);
  if (!reason.empty())
    return launch.emitOpError("of a kernel with warps that only move data ")
           << reason;
  Value found, address;
  for (const HandedBuffer &buffer : buffers) {
    NamedAttrList wanted(entry);
    for (NamedAttribute attribute : placeOf(function, operand, buffer))
      wanted.set(attribute.getName(), attribute.getValue());
    auto params = tile::decisions::kParams.get(function);
    auto pointer =
        cast<DictionaryAttr>(params[buffer.parameter.getArgNumber()]);
    wanted.set("arg", pointer.get("arg"));
    FailureOr<unsigned> number =
        parameterOf(function, wanted.getDictionary(b.getContext()));
    if (failed(number))
      return failure();
    Value map = function.getArgument(*number);
    if (!found) {
      found = map;
      continue;
    }
    if (!address)
      address = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, operand);
    Value start = memref::ExtractAlignedPointerAsIndexOp::create(
        b, loc, buffer.parameter);
    start = arith::AddIOp::create(b, loc, start,
                                  constantIndex(b, loc, buffer.shift));
    Value isIt =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, address, start);
    found = arith::SelectOp::create(b, loc, isIt, map, found);
  }
  return found;
}

void LaunchRoles::meetConsumers(OpBuilder &b, Location loc) const {
  tilewright::meetConsumers(b, loc, threads);
}

void LaunchRoles::scope(Operation *op) const {
  for (Region &region : op->getRegions())
    for (Block &block : region)
      scopeBarriers(block, threads);
}

int64_t LaunchRoles::finish(int64_t shared) {
  if (!any())
    return shared;
  for (memref::ViewOp view : barriers) {
    shared = llvm::alignTo(shared, 8);
    OpBuilder b(view);
    view.getByteShiftMutable().assign(constantIndex(b, view.getLoc(), shared));
    shared += 8 * view.getType().getNumElements();
  }
  Builder b(function);
  int64_t all = threads + kWarpgroup;
  function->setAttr(tile::decisions::kSpecialized, b.getUnitAttr());
  function->setAttr(tile::decisions::kThreads, b.getI64IntegerAttr(all));
  function.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({static_cast<int32_t>(all), 1, 1}));
  return shared;
}
