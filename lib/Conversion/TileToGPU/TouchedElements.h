//===- TouchedElements.h - which elements an access touches -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_TOUCHEDELEMENTS_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_TOUCHEDELEMENTS_H

#include "lib/Analysis/SharedArguments.h"

namespace tilewright {

/// The elements of a buffer that an op reads or writes, and who does which.
class TouchedElements {
public:
  /// None where they are not known.
  static std::optional<TouchedElements> of(mlir::Operation *op,
                                           mlir::Value memref);

  /// Whether no thread touches what another one touches in `later`, an access
  /// after this one. `loop`: one in which both stand, this access in an earlier
  /// iteration than `later`; null where they are in the same iteration of all.
  bool areApart(const TouchedElements &later, mlir::Operation *loop,
                const SharedArguments &arguments) const;

private:
  bool isSameInEachIteration(mlir::Operation *loop) const;
  bool isDisjointByIteration(const TouchedElements &later,
                             mlir::Operation *loop) const;

  mlir::Operation *op;
  mlir::Value memref;
  /// By dimension of the buffer: the first element, and how many the access
  /// spans from there; -1: any.
  mlir::SmallVector<mlir::Value> offsets;
  mlir::SmallVector<int64_t> spans;
  /// Of a tile.
  mlir::SmallVector<int64_t> dims, steps;
  /// Who holds which element; null where only the op itself deals them out.
  mlir::Type tile;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_TOUCHEDELEMENTS_H
