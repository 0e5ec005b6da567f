//===- RoleRegisters.cpp - registers of warps by what they do -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/RoleRegisters.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace tilewright {

namespace {

constexpr int64_t kRegisters = 64 * 1024;

/// Registers of a consuming thread: what producers leave of what a block has,
/// in steps of 8. The assembler gives each thread the same part to begin with.
int64_t consumerRegisters(int64_t groups, int64_t producer, int64_t blocks) {
  int64_t each = kRegisters / (blocks * kWarpgroup * (groups + 1)) / 8 * 8;
  int64_t left = (each * (groups + 1) - producer) / groups;
  return std::min<int64_t>(240, left / 8 * 8);
}

/// Registers of a producing thread (addresses and counters): as few as can be
/// where three warpgroups need the others.
int64_t producerRegisters(int64_t groups) { return groups == 3 ? 24 : 40; }

/// Blocks that a processor is to hold at a time.
int64_t blocksOf(gpu::GPUFuncOp kernel) {
  auto blocks = tile::decisions::kOccupancy.get(kernel);
  return blocks ? blocks.getInt() : 1;
}

} // namespace

void dropRegisters(OpBuilder &b, Location loc, int64_t groups) {
  NVVM::SetMaxRegisterOp::create(b, loc, producerRegisters(groups),
                                 NVVM::SetMaxRegisterAction::decrease);
}

void takeRegisters(OpBuilder &b, Location loc, int64_t groups,
                   gpu::GPUFuncOp kernel) {
  int64_t count =
      consumerRegisters(groups, producerRegisters(groups), blocksOf(kernel));
  NVVM::SetMaxRegisterOp::create(b, loc, count,
                                 NVVM::SetMaxRegisterAction::increase);
}

} // namespace tilewright
