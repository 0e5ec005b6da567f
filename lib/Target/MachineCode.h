//===- MachineCode.h - LLVM dialect to machine code -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TARGET_MACHINECODE_H
#define TILEWRIGHT_TARGET_MACHINECODE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace tilewright {

/// What code is made for.
struct MachineOptions {
  std::string triple;   // empty: this machine's
  std::string cpu;      // LLVM's name, such as "sapphirerapids" or "sm_90a"
  std::string features; // "+avx512f,-amx-tile,..."
  unsigned optLevel = 3;
};

/// Every function takes a module of the LLVM dialect, as text or bytecode, and
/// gives an error with the diagnostics of the step that failed. A `gpu.module`
/// in it, if there is one, is what is compiled.

/// An ELF relocatable: position independent, one section per function.
llvm::Expected<std::string> emitObject(llvm::StringRef module,
                                       const MachineOptions &options);

/// LLVM IR as text, after the optimizer ran.
llvm::Expected<std::string> emitLLVMIR(llvm::StringRef module,
                                       const MachineOptions &options);

/// Assembly text: x86 assembly, or PTX where the triple is NVPTX's.
llvm::Expected<std::string> emitAssembly(llvm::StringRef module,
                                         const MachineOptions &options);

} // namespace tilewright

#endif // TILEWRIGHT_TARGET_MACHINECODE_H
