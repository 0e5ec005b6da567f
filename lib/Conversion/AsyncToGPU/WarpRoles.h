//===- WarpRoles.h - what producers and consumers share -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_WARPROLES_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_WARPROLES_H

#include "lib/Conversion/AsyncToGPU/Rings.h"
#include "lib/Conversion/AsyncToGPU/TensorCopies.h"

#include <vector>

namespace tilewright {

/// The slot that comes next, and its phase (both i32).
using SlotState = std::pair<mlir::Value, mlir::Value>;

/// A ring between warps that fill its slots and warps that empty them: two
/// mbarriers per slot tell the others that it is full, and that it is empty.
struct RoleRing {
  Ring ring;
  std::vector<TensorCopy> copies;
  /// Where its mbarriers lie: those of full slots, then those of empty ones.
  mlir::Value barriers;
  /// Products that may be in flight while the next step begins, so that a slot
  /// is given back a step later; 0: they are waited for at once.
  int64_t pending = 0;
  /// Whether slots are read by products in the background alone: one thread per
  /// warpgroup gives them back, else one per warp.
  bool byWarpgroup = false;
  /// Blocks that fill each other's slots: a slot is empty once the warps of all
  /// of them have given it back. 1: each fills its own.
  int64_t blocks = 1;
  /// What a thread keeps of the ring from one launch to the next, in a kernel
  /// that another one launches (see `rememberRings`); null in others.
  mlir::Value memory;

  int64_t getBytes() const;
  mlir::Value fullBarrier(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value slot) const;
  /// Of the running block, or of that whose mbarriers lie at `base`.
  mlir::Value emptyBarrier(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value slot, mlir::Value base = {}) const;
};

/// Copies that are started once, and waited for outside of loops: one mbarrier
/// counts their bytes. Or once in each of a block's tasks: a second mbarrier,
/// behind it, then tells that all warps have read what they brought.
struct RoleLoad {
  tile::AsyncOp async;
  llvm::SmallVector<tile::AwaitOp> awaits;
  std::vector<TensorCopy> copies;
  mlir::Value barrier;
  /// The last of the loads that read what comes in each task; null where it
  /// comes once.
  tile::LoadOp last;

  bool repeats() const { return last != nullptr; }
  int64_t getBytes() const;
  mlir::Value emptyBarrier(mlir::OpBuilder &b, mlir::Location loc) const;
};

/// Bytes that copies move.
int64_t bytesOf(llvm::ArrayRef<TensorCopy> copies);

/// The copies of `async`; else why TMA cannot do one of them, in `reason`.
std::optional<std::vector<TensorCopy>> findTensorCopies(tile::AsyncOp async,
                                                        std::string &reason);

/// Finds copies that run at most once, or once in each task, and whose token is
/// only waited for; the reason why they are no such copies otherwise.
std::optional<RoleLoad> matchLoad(tile::AsyncOp async, std::string &reason);

/// Computing warps wait for the mbarrier where they waited for the token, and
/// tell when they have read what comes again. `parity` is that of the number of
/// the block's task, `thread` the number of the thread.
void rewriteLoad(const RoleLoad &load, mlir::Value parity, mlir::Value thread);

/// Whether some copies are started in each task.
bool anyRepeats(llvm::ArrayRef<RoleLoad> loads);

/// Waits until the phase of parity `phase` of an mbarrier is over, and sees
/// what those who arrived there did before: of the block, or of its `cluster`.
void waitBarrier(mlir::OpBuilder &b, mlir::Location loc, mlir::Value barrier,
                 mlir::Value phase, bool cluster = false);

/// The slot after `slot`, and its phase.
SlotState nextSlot(mlir::OpBuilder &b, mlir::Location loc, mlir::Value slot,
                   mlir::Value phase, int64_t stages);

/// The loop over tasks around an op (`tile.tasks`), in which rings go on; null
/// where a block runs one task.
mlir::scf::ForOp tasksAround(mlir::Operation *op);

/// Whether an op is of a kernel that another one launches, again and again
/// (`tile.code`): its mbarriers are that one's, and rings go on.
bool isLaunched(mlir::Operation *op);

/// Why the kernel that launches `kernel` cannot have a descriptor of what
/// `copy` reads; empty where it can, and where nobody launches it.
std::string checkLaunches(mlir::gpu::GPUFuncOp kernel, const TensorCopy &copy);

/// Makes the memory of rings, and of the parity of the launch for copies that
/// are started once in each, which it gives: a thread's own, with the state
/// before the first launch. `producing` tells those that fill slots.
mlir::Value rememberRings(mlir::OpBuilder &b, mlir::Location loc,
                          llvm::MutableArrayRef<RoleRing> rings,
                          mlir::Value producing);

/// The state of a ring as it was remembered, from where it goes on.
SlotState recallRing(mlir::OpBuilder &b, mlir::Location loc,
                     mlir::Value memory);
void rememberRing(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memory,
                  SlotState state);

/// The parity of the launch; behind its end it is the other one.
mlir::Value recallParity(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value memory);
void turnParity(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memory,
                mlir::Value parity);

/// Finds how the ring's slots are read, and marks products that may be in
/// flight.
void analyzeReaders(RoleRing &ring);

/// Writes what producers do: `source`, a block of the kernel, without all that
/// has nothing to do with the copies of rings and loads. `rank` is the number
/// of the block in its cluster, null where it has none; `parities` that of the
/// parity of launches, null where no copies are started once in each.
mlir::LogicalResult emitProducer(mlir::OpBuilder &b, mlir::Block &source,
                                 llvm::ArrayRef<RoleRing> rings,
                                 llvm::ArrayRef<RoleLoad> loads,
                                 mlir::gpu::GPUFuncOp kernel, mlir::Value rank,
                                 mlir::Value parities);

/// Turns the ring's loop into one that waits for slots and gives them back,
/// from `start` on; gives the state behind the loop. `thread` is the number of
/// the consumer's thread.
SlotState rewriteConsumer(const RoleRing &ring, mlir::Value thread,
                          SlotState start);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_WARPROLES_H
