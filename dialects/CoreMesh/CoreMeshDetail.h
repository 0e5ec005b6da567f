//===- CoreMeshDetail.h - what the dialect's files share --------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_DIALECTS_COREMESH_COREMESHDETAIL_H
#define TILEWRIGHT_DIALECTS_COREMESH_COREMESHDETAIL_H

#include "dialects/CoreMesh/CoreMesh.h"

namespace tilewright::coremesh::shared {

/// Loops that may stand in each other.
constexpr int64_t kMostLoops = 4;

//===----------------------------------------------------------------------===//
// CoreMeshDomain.cpp: values of affine expressions
//===----------------------------------------------------------------------===//

/// How many values each dimension has, from 0 on.
using Domain = llvm::SmallVector<int64_t>;

/// (y, x, loops around the op); `op` stands in a program.
Domain domainOf(mlir::Operation *op);

/// Calls `visit` with the value of each expression at each point of the domain
/// at which the constraints of `where` hold, until it returns false; a value is
/// none where it has no meaning (a division by 0). Dimensions that nothing
/// depends on stay 0. Visits nothing where there are too many points to look
/// at: a check that needs them is then the simulator's.
void forEachPoint(
    llvm::ArrayRef<int64_t> domain, llvm::ArrayRef<mlir::AffineExpr> exprs,
    std::optional<mlir::IntegerSet> where,
    llvm::function_ref<bool(llvm::ArrayRef<int64_t> point,
                            llvm::ArrayRef<std::optional<int64_t>> values)>
        visit);

/// `y = 1, x = 0, i = 3`: a point of a domain, for messages.
std::string describe(llvm::ArrayRef<int64_t> point);

/// Whether all dimensions of the expressions are among the first `dims`, and
/// there are no symbols.
bool areOf(llvm::ArrayRef<mlir::AffineExpr> exprs, unsigned dims);

/// Whether `mod`, `floordiv` and `ceildiv` have positive numbers behind them:
/// all others have no meaning.
bool divideByPositive(llvm::ArrayRef<mlir::AffineExpr> exprs);

//===----------------------------------------------------------------------===//
// CoreMeshProgramOps.cpp
//===----------------------------------------------------------------------===//

/// The program that an op stands in, at any depth.
ProgramOp programOf(mlir::Operation *op);

/// The buffer or route of that name in the program around; an error on `op`
/// where there is none.
template <typename Op>
Op findIn(mlir::Operation *op, mlir::FlatSymbolRefAttr name) {
  auto found = mlir::dyn_cast_if_present<Op>(
      mlir::SymbolTable::lookupSymbolIn(programOf(op), name));
  if (!found)
    op->emitOpError("uses ")
        << name << ", but the program has no such "
        << mlir::OperationName(Op::getOperationName(), op->getContext())
               .stripDialect();
  return found;
}

/// That the slot is one of the buffer at each point of the domain of `op` at
/// which `where` holds.
llvm::LogicalResult verifySlot(mlir::Operation *op, BufferOp buffer,
                               mlir::AffineMap index,
                               std::optional<mlir::IntegerSet> where);

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// The layout of a value that must have one.
inline LayoutAttr layoutOf(mlir::Value value) {
  return mlir::cast<LayoutAttr>(
      mlir::cast<mlir::RankedTensorType>(value.getType()).getEncoding());
}

/// reduce_c3, allreduce_c3, gemv_c3: levels are those of a k_tree.
llvm::LogicalResult verifyLevels(mlir::Operation *op, Algorithm algorithm,
                                 std::optional<uint64_t> k,
                                 std::optional<llvm::ArrayRef<int64_t>> groups);

//===----------------------------------------------------------------------===//
// CoreMeshSyntax.cpp: custom directives
//===----------------------------------------------------------------------===//

mlir::ParseResult parseOrder(mlir::OpAsmParser &parser, OrderAttr &order);
void printOrder(mlir::OpAsmPrinter &p, mlir::Operation *op, OrderAttr order);

mlir::ParseResult parseOverhead(mlir::OpAsmParser &parser,
                                OverheadAttr &overhead);
void printOverhead(mlir::OpAsmPrinter &p, mlir::Operation *op,
                   OverheadAttr overhead);

/// An expression of (p, q, loops...).
mlir::ParseResult parseRouteExpr(mlir::OpAsmParser &parser,
                                 mlir::AffineMapAttr &expr);
void printRouteExpr(mlir::OpAsmPrinter &p, mlir::Operation *op,
                    mlir::AffineMapAttr expr);

/// `(y, x)`: expressions of (y, x), one per dimension of a tensor.
mlir::ParseResult parseBlock(mlir::OpAsmParser &parser,
                             mlir::AffineMapAttr &block);
void printBlock(mlir::OpAsmPrinter &p, mlir::Operation *op,
                mlir::AffineMapAttr block);

/// `@A[i mod 2]`; `@A` is `@A[0]`.
mlir::ParseResult parseSlot(mlir::OpAsmParser &parser,
                            mlir::FlatSymbolRefAttr &buffer,
                            mlir::AffineMapAttr &index);
void printSlot(mlir::OpAsmPrinter &p, mlir::Operation *op,
               mlir::FlatSymbolRefAttr buffer, mlir::AffineMapAttr index);

/// `@A block(y, x), @B[1] block(y, x + 1)`.
mlir::ParseResult parsePieces(mlir::OpAsmParser &parser,
                              mlir::ArrayAttr &buffers,
                              mlir::ArrayAttr &indices,
                              mlir::ArrayAttr &blocks);
void printPieces(mlir::OpAsmPrinter &p, mlir::Operation *op,
                 mlir::ArrayAttr buffers, mlir::ArrayAttr indices,
                 mlir::ArrayAttr blocks);

/// `where ring (y == 0, x >= 1)`; nothing where all cores count as they stand.
mlir::ParseResult parseCores(mlir::OpAsmParser &parser, OrderAttr &order,
                             mlir::IntegerSetAttr &cores);
void printCores(mlir::OpAsmPrinter &p, mlir::Operation *op, OrderAttr order,
                mlir::IntegerSetAttr cores);

/// `(%x = %a, %y = %b)`: block arguments and operands.
mlir::ParseResult parseBindings(
    mlir::OpAsmParser &parser,
    llvm::SmallVectorImpl<mlir::OpAsmParser::Argument> &arguments,
    llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &operands);
void printBindings(mlir::OpAsmPrinter &p, mlir::ValueRange arguments,
                   mlir::ValueRange operands);

/// `k 3 groups [9, 3]`
mlir::ParseResult parseLevels(mlir::OpAsmParser &parser, mlir::IntegerAttr &k,
                              mlir::DenseI64ArrayAttr &groups);
void printLevels(mlir::OpAsmPrinter &p, mlir::Operation *op,
                 mlir::IntegerAttr k, mlir::DenseI64ArrayAttr groups);

} // namespace tilewright::coremesh::shared

#endif // TILEWRIGHT_DIALECTS_COREMESH_COREMESHDETAIL_H
