//===- OnceCopies.cpp - copies that are started once ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/WarpRoles.h"

using namespace mlir;

namespace tilewright {

int64_t bytesOf(ArrayRef<TensorCopy> copies) {
  int64_t bytes = 0;
  for (const TensorCopy &copy : copies)
    bytes += copy.getBytes();
  return bytes;
}

int64_t RoleRing::getBytes() const { return bytesOf(copies); }

int64_t RoleLoad::getBytes() const { return bytesOf(copies); }

std::optional<std::vector<TensorCopy>> findTensorCopies(tile::AsyncOp async,
                                                        std::string &reason) {
  std::vector<TensorCopy> copies;
  for (auto copy : async.getBody().getOps<tile::CopyOp>()) {
    OpBuilder before(copy);
    auto found = analyzeTensorCopy(before, copy, reason);
    if (!found) {
      reason = "has a copy that " + reason;
      return std::nullopt;
    }
    copies.push_back(*found);
  }
  return copies;
}

std::optional<RoleLoad> matchLoad(tile::AsyncOp async, std::string &reason) {
  RoleLoad load{async, {}, {}, {}};
  for (Operation *user : async->getUsers()) {
    auto await = dyn_cast<tile::AwaitOp>(user);
    if (!await || await.getTokens().size() != 1) {
      reason = "starts copies outside of loops that it waits for together with "
               "others";
      return std::nullopt;
    }
    load.awaits.push_back(await);
  }
  Operation *parent = async->getParentOp();
  while (isa<scf::IfOp>(parent))
    parent = parent->getParentOp();
  if (!isa<FunctionOpInterface>(parent)) {
    reason = "starts copies again and again that go through no ring";
    return std::nullopt;
  }
  auto copies = findTensorCopies(async, reason);
  if (!copies)
    return std::nullopt;
  load.copies = *copies;
  return load;
}

void rewriteLoad(const RoleLoad &load) {
  for (tile::AwaitOp await : load.awaits) {
    OpBuilder b(await);
    waitBarrier(b, await.getLoc(), load.barrier, makeI32(b, await.getLoc(), 0));
    await->erase();
  }
  tile::AsyncOp(load.async)->erase();
}

} // namespace tilewright
