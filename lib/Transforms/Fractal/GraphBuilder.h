//===- GraphBuilder.h - a program as nested loops ---------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_FRACTAL_GRAPHBUILDER_H
#define TILEWRIGHT_TRANSFORMS_FRACTAL_GRAPHBUILDER_H

#include "lib/Transforms/Fractal/Elements.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright::fractal {

/// A dimension of blocks.
struct Loop {
  llvm::StringRef kind;
  mlir::AffineExpr length;
};

/// What can be read: a value of the function that stands in no loop, a result
/// of a block, or a state, which is read while nobody knows yet what it is.
struct Buffer {
  enum Kind { Given, Written, State } kind = Given;
  /// Given: the value. State: its block argument.
  mlir::Value value;
  /// Written: block and result.
  unsigned block = 0, result = 0;
  /// State: its loops, and the value that is yielded for it in these.
  llvm::SmallVector<Loop> loops;
  mlir::Value state;
  std::optional<Element> yielded;
  /// State: the buffer of a block that copies it, where it needs one.
  std::optional<unsigned> copy;
};

/// A block before it is an op.
struct Draft {
  llvm::SmallVector<Loop> loops;
  /// Ops of the body, in order, among them such as only make operands.
  llvm::SetVector<mlir::Operation *> ops;
  /// Values from outside, each a block argument, and what they are.
  llvm::SetVector<mlir::Value> arguments;
  llvm::SmallVector<Element> elements;
  /// What it yields.
  llvm::SmallVector<mlir::Value> results;
};

/// Walks a function and collects its blocks and buffers.
class GraphBuilder {
public:
  explicit GraphBuilder(mlir::func::FuncOp function) : function(function) {}

  /// Fails with a remark on the op that has no place in a graph.
  llvm::LogicalResult build();
  /// Replaces states by what they are, and orders blocks; fails with a remark
  /// where there is no order.
  llvm::LogicalResult resolveStates();
  Constraints domainOf(const Draft &draft);
  std::string nameOf(mlir::Value value);

  mlir::func::FuncOp function;
  std::vector<Buffer> buffers;
  std::vector<Draft> drafts;
  /// Numbers of the drafts: none before what it reads.
  llvm::SmallVector<unsigned> order;
  llvm::SmallVector<std::string> symbols;
  /// What the function returns.
  llvm::SmallVector<Element> outputs;

private:
  // GraphBuilder.cpp: regions and compute ops.
  llvm::LogicalResult walk(mlir::Block &body);
  llvm::LogicalResult visitBody(mlir::Block &body);
  llvm::LogicalResult visitCompute(mlir::Operation *op);
  llvm::LogicalResult visitMap(MapOp op);
  llvm::LogicalResult visitStates(mlir::Operation *op, mlir::ValueRange inits,
                                  mlir::ValueRange arrays, bool right);
  /// One loop more; block arguments are elements of arrays in it.
  bool enter(llvm::StringRef kind, mlir::ValueRange arrays,
             mlir::ValueRange arguments);
  std::optional<llvm::SmallVector<Element>> yieldedBy(mlir::Block &body);
  /// What a state is at each iteration: the init, then what was yielded last.
  Element addState(Element init, mlir::Value argument, bool right);
  Element lastState(const Element &yielded, const Element &init,
                    const Loop &loop, bool right);

  // GraphAccess.cpp: ops that only say where something stands.
  llvm::LogicalResult visitAccess(mlir::Operation &op);
  void visitAffine(AccessOpInterface op, const Element &source);
  void visitProduct(ProductOp op, const Element &lhs, const Element &rhs);
  void visitJoin(JoinOp op, llvm::ArrayRef<Element> sources);
  Element filled(AccessOpInterface op, const Element &source, Element result,
                 mlir::AffineExpr place);
  /// Lengths of the first levels of a result, from those of the source.
  Exprs lengthsOf(mlir::Operation *op, llvm::ArrayRef<mlir::AffineExpr> source,
                  unsigned loops);
  /// Replaces lengths by those that the type knows.
  void define(mlir::Value value, Element element);

  // GraphBlocks.cpp: blocks and their reads.
  llvm::LogicalResult addLeaves(llvm::ArrayRef<mlir::Operation *> ops);
  llvm::LogicalResult addBlock(llvm::ArrayRef<mlir::Operation *> ops,
                               mlir::ValueRange results);
  /// An op of the body, after those that it needs; values are arguments.
  llvm::LogicalResult collect(Draft &draft, mlir::Operation *op);
  llvm::LogicalResult addArgument(Draft &draft, mlir::Value value);
  /// Levels that a body takes whole are dimensions of the read.
  Element withLevels(Element element);
  /// What a value is, within the loops of now; none, with a remark, where a
  /// graph cannot say it.
  std::optional<Element> find(mlir::Value value);
  /// A value that stands in no loop.
  Element given(mlir::Value value);
  Exprs lengthsOf(mlir::Type type, const llvm::Twine &name);
  mlir::AffineExpr index(mlir::Value value);
  mlir::AffineExpr symbol(const llvm::Twine &name);
  mlir::AffineExpr constant(int64_t value);
  mlir::AffineExpr dim(unsigned number);

  // GraphStates.cpp: what states are.
  llvm::SmallVector<Piece> resolved(const Piece &piece, unsigned dims,
                                    llvm::ArrayRef<Constraint> domain);
  void resolve(Element &element, llvm::ArrayRef<Constraint> domain);
  unsigned materialize(unsigned state);
  bool place(unsigned number, llvm::SmallVector<bool> &begun);

  llvm::SmallVector<Loop> loops;
  llvm::DenseMap<mlir::Value, Element> elements;
  llvm::DenseMap<mlir::Value, mlir::AffineExpr> indices;
  llvm::DenseMap<mlir::Value, unsigned> givens;
  llvm::SmallVector<unsigned> resolving;
};

/// Whether an op only says where elements stand, however it is nested.
bool isAccess(mlir::Operation *op);
/// Whether it is repeated where its results are read: constants, views, and
/// what is no element.
bool isInlined(mlir::Operation *op);
/// Whether it computes leaves, itself or in its region.
bool computes(mlir::Operation *op);

/// The op beside the function.
void emitGraph(GraphBuilder &built);

} // namespace tilewright::fractal

#endif // TILEWRIGHT_TRANSFORMS_FRACTAL_GRAPHBUILDER_H
