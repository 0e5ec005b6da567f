//===- GatheredAddresses.h - registers for addresses from lists -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TARGET_GATHEREDADDRESSES_H
#define TILEWRIGHT_TARGET_GATHEREDADDRESSES_H

namespace llvm {
class Module;
} // namespace llvm

namespace tilewright {

/// For x86, after the optimizer: a row of several vectors whose place was read
/// from memory (the position of a kept element of a sparse matrix) is read
/// relative to one register. A multiply-add that reads memory at base plus
/// index is two operations from its issue on, one that reads relative to a
/// register stays a single one, and LLVM always takes the former.
void holdGatheredAddresses(llvm::Module &module);

} // namespace tilewright

#endif // TILEWRIGHT_TARGET_GATHEREDADDRESSES_H
