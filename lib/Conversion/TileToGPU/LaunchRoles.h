//===- LaunchRoles.h - warps that move data for launches --------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_LAUNCHROLES_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_LAUNCHROLES_H

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// The roles of warps in a kernel that launches others, of which some have
/// warps that only move data (`tile.roles`): such warps and those that compute
/// each run what stands around the launches, the loops and branches. What the
/// launched kernels set up, their mbarriers among it, is set up once, before.
class LaunchRoles {
public:
  LaunchRoles(mlir::gpu::GPUFuncOp function, int64_t threads)
      : function(function), threads(threads) {}

  /// Parts what stands from `first` on in the function's entry block, if it
  /// launches kernels whose warps have roles.
  void split(mlir::Operation *first);

  /// Whether warps have roles.
  bool any() const { return !states.empty(); }
  /// Whether an operation is of the warps that move data.
  bool isProducer(mlir::Operation *op) const;
  /// Whether a launched function has warps that only move data.
  bool has(mlir::gpu::GPUFuncOp callee) const {
    return states.contains(callee);
  }

  /// Before a launch of a kernel whose warps have roles: its copies may fill
  /// shared memory that the one before used, and read what others wrote.
  void begin(mlir::OpBuilder &b, mlir::Location loc, bool producer) const;
  /// One task of a kernel whose warps have roles: the part of one of them.
  void doTask(mlir::OpBuilder &b, mlir::gpu::GPUFuncOp callee,
              mlir::ValueRange arguments, bool producer) const;
  /// The descriptor of what a launch is given as the argument of a `tensor_map`
  /// entry: that of the buffer which its operand is then.
  mlir::FailureOr<mlir::Value> mapOf(mlir::OpBuilder &b, tile::LaunchOp launch,
                                     mlir::DictionaryAttr entry);
  /// The computing threads of the block meet.
  void meetConsumers(mlir::OpBuilder &b, mlir::Location loc) const;
  /// Barriers of what other kernels do become those of the computing threads.
  void scope(mlir::Operation *op) const;
  /// Places the mbarriers behind `shared` bytes, and says how large blocks are;
  /// gives the bytes of all.
  int64_t finish(int64_t shared);

private:
  /// What a launched function set up, as the function has it.
  void setUp(mlir::OpBuilder &b, mlir::gpu::GPUFuncOp callee,
             mlir::scf::IfOp parts);

  mlir::gpu::GPUFuncOp function;
  int64_t threads;
  mlir::scf::IfOp roles;
  struct State {
    mlir::scf::IfOp parts;
    mlir::IRMapping made;
  };
  llvm::MapVector<mlir::Operation *, State> states;
  llvm::SmallVector<mlir::memref::ViewOp> barriers;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_LAUNCHROLES_H
