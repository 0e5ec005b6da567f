//===- RegisterPasses.h - every pass the compiler knows ---------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_REGISTERPASSES_H
#define TILEWRIGHT_REGISTERPASSES_H

namespace tilewright {

/// Registers all upstream passes and pipelines and the project's own C++
/// passes by name, once per process however often it is called.
void registerAllPasses();

} // namespace tilewright

#endif // TILEWRIGHT_REGISTERPASSES_H
