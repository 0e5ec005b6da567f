//===- Device.h - what the module says of its machine -----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_ANALYSIS_DEVICE_H
#define TILEWRIGHT_ANALYSIS_DEVICE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tilewright {

/// The machine that the module around an operation is compiled for, and how:
/// `tile.device` and `tile.options` of the module, which the front of the
/// compiler or `tile-set-target` wrote. Read only, so that passes on several
/// threads may ask. Where the module names no device, every question has the
/// answer "not known": options of passes then have their own defaults.
class Device {
public:
  explicit Device(mlir::Operation *op);

  bool isKnown() const { return static_cast<bool>(entries); }
  bool isCPU() const { return hasKind("cpu"); }
  bool isGPU() const { return hasKind("gpu"); }

  /// Whether it is known that code for Hopper (TMA, wgmma, clusters) does not
  /// run there.
  bool lacksHopper() const;

  /// LLVM's name of the CPU, a GPU's architecture; empty where not known.
  llvm::StringRef getName() const;
  /// Ten times the compute capability of an NVIDIA GPU: 90 for sm_90a.
  std::optional<int64_t> getCapability() const;
  /// Bits of a vector register of a CPU.
  std::optional<int64_t> getVectorBits() const;
  /// Bytes of the registers that code can name, of a thread of a GPU.
  std::optional<int64_t> getRegisterBytes() const;
  /// Whether it is known to be a CPU that does not convert f16: one whose
  /// vectors have less than 256 bits.
  bool lacksHalf() const;
  /// Whether a CPU adds products in groups of that element type (bf16, i8) in
  /// one instruction, as `dot_products` of devices/x86.py has it.
  bool addsProductsOf(llvm::StringRef element) const;
  /// Bytes of a level of memory.
  std::optional<int64_t> getLevelBytes(llvm::StringRef level) const;
  /// Bytes that all units of a GPU read from memory while a kernel starts.
  std::optional<int64_t> getBytesPerLaunch() const;
  /// A number among the device's limits.
  int64_t getLimit(llvm::StringRef name, int64_t otherwise) const;

  /// What `tile.options` say of `name` in text; empty where they do not.
  llvm::StringRef getOption(llvm::StringRef name) const;

private:
  bool hasKind(llvm::StringRef kind) const;
  bool hasFeature(llvm::StringRef feature) const;

  mlir::DictionaryAttr entries;
  mlir::DictionaryAttr options;
};

} // namespace tilewright

#endif // TILEWRIGHT_ANALYSIS_DEVICE_H
