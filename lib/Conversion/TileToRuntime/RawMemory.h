//===- RawMemory.h - pointers and memref descriptors -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETORUNTIME_RAWMEMORY_H
#define TILEWRIGHT_CONVERSION_TILETORUNTIME_RAWMEMORY_H

#include "lib/Conversion/TileToRuntime/Passes.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"

namespace tilewright {

/// Builds loads, stores and descriptors of the run-time's ABI.
class RawMemory {
public:
  RawMemory(mlir::OpBuilder &b, mlir::Location loc,
            const mlir::LLVMTypeConverter &converter)
      : b(b), loc(loc), converter(converter) {}

  /// Pointer to `index` words of 8 bytes behind `base`.
  mlir::Value word(mlir::Value base, int64_t index);
  mlir::Value loadPointer(mlir::Value base, int64_t index);
  mlir::Value loadIndex(mlir::Value base, int64_t index);
  void storeWord(mlir::Value value, mlir::Value base, int64_t index);
  mlir::Value constantI64(int64_t value);
  mlir::Value toI64(mlir::Value index);

  /// A memref of static shape and layout at a raw pointer.
  mlir::Value makeStatic(mlir::MemRefType type, mlir::Value pointer);
  /// A memref read from a descriptor in memory; what the type fixes is a
  /// constant.
  mlir::Value readDescriptor(mlir::MemRefType type, mlir::Value descriptor);
  /// Words of 8 bytes of a descriptor.
  static int64_t descriptorWords(mlir::MemRefType type) {
    return 3 + 2 * type.getRank();
  }
  /// Words of 8 bytes of a kernel's argument: a descriptor, or a number.
  static int64_t argumentWords(mlir::Type type) {
    auto memref = mlir::dyn_cast<mlir::MemRefType>(type);
    return memref ? descriptorWords(memref) : 1;
  }
  /// Writes what a kernel is called with to `target`: its arguments, then the
  /// bounds of its grid; and where each of them lies to `argv`. Returns how
  /// many there are.
  int64_t writeArguments(mlir::ValueRange arguments, mlir::ValueRange grid,
                         mlir::Value target, mlir::Value argv);
  /// Writes a memref's descriptor.
  void writeDescriptor(mlir::Value memref, mlir::Value target);

private:
  mlir::Value cast(mlir::Type type, mlir::Value value);

  mlir::OpBuilder &b;
  mlir::Location loc;
  const mlir::LLVMTypeConverter &converter;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETORUNTIME_RAWMEMORY_H
