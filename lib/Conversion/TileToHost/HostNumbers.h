//===- HostNumbers.h - a launch as operations on numbers --------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOHOST_HOSTNUMBERS_H
#define TILEWRIGHT_CONVERSION_TILETOHOST_HOSTNUMBERS_H

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include <map>
#include <string>
#include <vector>

namespace tilewright {

/// Makes what a launch does of operations on single numbers.
class HostNumbers {
public:
  /// Elements of a buffer, and operations, at most: what is more is no small
  /// launch.
  static constexpr int64_t kMostElements = 64, kMostOperations = 512;

  HostNumbers(mlir::OpBuilder &b, tile::LaunchOp launch, tile::KernelOp kernel)
      : b(b), loc(launch.getLoc()), launch(launch), kernel(kernel) {}

  /// Makes them where the builder stands. Fails where there is no such form;
  /// what was made until then is left.
  mlir::LogicalResult make();

  /// How many there are, constants left out.
  int64_t operations() const { return count; }
  /// Why there is no such form.
  const std::string &obstacle() const { return reason; }

private:
  /// The elements of a tile in row-major order.
  using Numbers = llvm::SmallVector<mlir::Value>;

  mlir::LogicalResult fail(const llvm::Twine &why);
  mlir::LogicalResult checkBuffers();
  mlir::LogicalResult run(mlir::Block &block);
  mlir::LogicalResult visit(mlir::Operation *op);
  mlir::LogicalResult visitTile(mlir::Operation *op);
  mlir::LogicalResult visitNumber(mlir::Operation *op);
  mlir::LogicalResult addConstant(mlir::Operation *op);
  mlir::LogicalResult addElementwise(mlir::Operation *op);
  mlir::LogicalResult add(mlir::scf::ForOp loop);
  mlir::LogicalResult add(tile::LoadOp load);
  mlir::LogicalResult add(tile::StoreOp store);
  mlir::LogicalResult add(tile::ReduceOp reduce);
  mlir::LogicalResult add(tile::BroadcastOp broadcast);
  mlir::LogicalResult add(tile::TransposeOp transpose);
  mlir::LogicalResult add(tile::ExtractOp extract);
  mlir::LogicalResult add(tile::IotaOp iota);

  /// Whether the host knows how a load or store reaches its elements.
  template <typename Op> mlir::LogicalResult checkAccess(Op op);
  /// Whether a position is within the bounds, if there are any.
  template <typename Op> bool isValid(Op op, llvm::ArrayRef<int64_t> position);
  /// Indices of an element of a load or store.
  template <typename Op>
  Numbers indicesOf(Op op, llvm::ArrayRef<int64_t> position);

  mlir::Value number(mlir::Value value) { return scalars.lookup(value); }
  mlir::Value made(mlir::Operation *op);
  mlir::Value read(mlir::Value memref, mlir::ValueRange indices);
  void set(mlir::Value from, mlir::Value to);

  mlir::OpBuilder &b;
  mlir::Location loc;
  tile::LaunchOp launch;
  tile::KernelOp kernel;
  mlir::IRMapping scalars;
  llvm::DenseMap<mlir::Value, Numbers> tiles;
  /// What was read and not written since, by buffer and indices.
  std::map<std::pair<void *, std::vector<void *>>, mlir::Value> known;
  int64_t count = 0;
  std::string reason;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOHOST_HOSTNUMBERS_H
