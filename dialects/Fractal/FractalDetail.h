//===- FractalDetail.h - what the dialect's files share ----------*- C++
//-*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_DIALECTS_FRACTAL_FRACTALDETAIL_H
#define TILEWRIGHT_DIALECTS_FRACTAL_FRACTALDETAIL_H

#include "dialects/Fractal/Fractal.h"

#include "mlir/IR/OpImplementation.h"

namespace tilewright::fractal::shared {

/// Fails with an error on `op` unless a value of type `actual` (a result, a
/// fill: `what`) may be one of type `expected`.
llvm::LogicalResult verifyFits(mlir::Operation *op, llvm::StringRef what,
                               mlir::Type expected, mlir::Type actual);

/// `a + b * c`, at most what 64 bits hold.
int64_t multiplyAdd(int64_t a, int64_t b, int64_t c);

/// The array without its first two levels, in one list. It has two or more.
ArrayType merged(ArrayType type);

/// A list of `outer` lists of `inner` elements of the array; `inner` may be
/// ragged.
ArrayType nested(int64_t outer, int64_t inner, ArrayType type);

/// `(%x for 0 at map where set : type, ...)`
llvm::ParseResult
parseReads(mlir::OpAsmParser &parser,
           llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &sources,
           llvm::SmallVectorImpl<mlir::Type> &types,
           mlir::DenseI64ArrayAttr &targets, mlir::ArrayAttr &maps,
           mlir::ArrayAttr &conditions, mlir::DenseBoolArrayAttr &indirect);
void printReads(mlir::OpAsmPrinter &p, mlir::Operation *op,
                mlir::OperandRange sources, mlir::TypeRange types,
                mlir::DenseI64ArrayAttr targets, mlir::ArrayAttr maps,
                mlir::ArrayAttr conditions, mlir::DenseBoolArrayAttr indirect);

} // namespace tilewright::fractal::shared

#endif // TILEWRIGHT_DIALECTS_FRACTAL_FRACTALDETAIL_H
