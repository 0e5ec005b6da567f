//===- ProgramLowering.h - programs as functions ----------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETORUNTIME_PROGRAMLOWERING_H
#define TILEWRIGHT_CONVERSION_TILETORUNTIME_PROGRAMLOWERING_H

#include "lib/Conversion/TileToRuntime/RawMemory.h"

namespace tilewright {

/// Makes a function of each program of a module whose kernels are functions
/// already: it runs the steps of a range of units. Fails with an error where a
/// program cannot be run by one thread in the order of its text.
mlir::LogicalResult lowerPrograms(mlir::ModuleOp module,
                                  const mlir::LLVMTypeConverter &converter);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETORUNTIME_PROGRAMLOWERING_H
