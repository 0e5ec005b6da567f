//===- CoreMeshProductOps.cpp - what a grid computes ---------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CoreMesh/CoreMeshDetail.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tilewright::coremesh;
using namespace tilewright::coremesh::shared;

//===----------------------------------------------------------------------===//
// What products have in common
//===----------------------------------------------------------------------===//

/// gemm_c1, gemm_t_c1, gemv_c1: shapes and element types.
template <typename Op>
static LogicalResult verifyShapes(Op op, ArrayRef<int64_t> left,
                                  ArrayRef<int64_t> right,
                                  ArrayRef<int64_t> result) {
  RankedTensorType a = op.getLeft().getType(), b = op.getRight().getType(),
                   c = op.getResult().getType();
  if (a.getShape() != left || b.getShape() != right || c.getShape() != result)
    return op.emitOpError("cannot make ")
           << c.dropEncoding() << " of " << a.dropEncoding() << " and "
           << b.dropEncoding();
  Type from = a.getElementType(), to = c.getElementType();
  bool isWider =
      from.isIntOrFloat() && to.isIntOrFloat() &&
      isa<FloatType>(from) == isa<FloatType>(to) &&
      (from == to || from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth());
  if (from == b.getElementType() && isWider)
    return success();
  return op.emitOpError("multiplies ")
         << from << " by " << b.getElementType() << " to " << to
         << ": operands have one type, and the result this one or a wider one";
}

/// Whether each dimension is split along its axis (none: not at all) in equal
/// blocks in their places, and nothing lies at one position only.
static bool isSplit(LayoutAttr layout, ArrayRef<std::optional<Axis>> axes) {
  if (layout.getAtY() >= 0 || layout.getAtX() >= 0)
    return false;
  for (auto [dim, axis] : llvm::enumerate(axes)) {
    SplitAttr split = layout.getSplit(dim);
    if (split ? split.getAxis() != axis : axis.has_value())
      return false;
    if (split && (split.isUneven() || split.getRotate() != 0 ||
                  split.getDeal() != Deal::block))
      return false;
  }
  return true;
}

/// gemm_c2, gemm_t_c2, gemv_c2: of one operand or result.
static LogicalResult verifySplit(Operation *op, StringRef what, Value value,
                                 LayoutAttr grid,
                                 ArrayRef<std::optional<Axis>> axes) {
  LayoutAttr layout = layoutOf(value);
  if (!layout.hasGridOf(grid))
    return op->emitOpError("has its ")
           << what << " on " << layout.getHeight() << " x " << layout.getWidth()
           << " cores, another operand on " << grid.getHeight() << " x "
           << grid.getWidth();
  if (isSplit(layout, axes))
    return success();
  InFlightDiagnostic error = op->emitOpError("needs its ") << what << " as [";
  llvm::interleaveComma(axes, error, [&](std::optional<Axis> axis) {
    error << (axis ? stringifyAxis(*axis) : StringRef("*"));
  });
  return error << "], in equal blocks in their places, not " << layout;
}

/// The dimension of a value that is skewed, `skewed` apart; -1: none.
static bool isSkewedOnlyAt(Value value, int64_t skewed) {
  LayoutAttr layout = layoutOf(value);
  for (int64_t dim : llvm::seq<int64_t>(layout.getSplits().size()))
    if (SplitAttr split = layout.getSplit(dim);
        split && split.getSkewed() && dim != skewed)
      return false;
  return true;
}

static bool isAlong(Value value, Order order) {
  return llvm::all_of(layoutOf(value).getSplits(), [&](Attribute split) {
    return !isa<SplitAttr>(split) || cast<SplitAttr>(split).getOrder() == order;
  });
}

//===----------------------------------------------------------------------===//
// GemmOp, GemmTOp
//===----------------------------------------------------------------------===//

static constexpr std::optional<Axis> kTiles[] = {Axis::y, Axis::x};

/// gemm_c2, gemm_t_c2: both operands and the result are tiled.
template <typename Op> static LogicalResult verifyTiles(Op op) {
  LayoutAttr grid = layoutOf(op.getLeft());
  if (failed(verifySplit(op, "left operand", op.getLeft(), grid, kTiles)) ||
      failed(verifySplit(op, "right operand", op.getRight(), grid, kTiles)))
    return failure();
  return verifySplit(op, "result", op.getResult(), grid, kTiles);
}

/// Each of the three is a matrix; part of gemm_c1, gemm_t_c1.
template <typename Op> static LogicalResult verifyMatrices(Op op) {
  for (Value value : {op.getLeft(), op.getRight(), op.getResult()})
    if (cast<RankedTensorType>(value.getType()).getRank() != 2)
      return op.emitOpError("multiplies matrices, not ") << value.getType();
  return success();
}

LogicalResult GemmOp::verify() {
  // gemm_c1
  if (failed(verifyMatrices(*this)))
    return failure();
  ArrayRef<int64_t> a = getLeft().getType().getShape(),
                    b = getRight().getType().getShape();
  if (failed(verifyShapes(*this, a, {a[1], b[1]}, {a[0], b[1]})))
    return failure();
  if (failed(verifyTiles(*this))) // gemm_c2
    return failure();
  bool isMesh = getAlgorithm() == Gemm::meshgemm;
  Order order = isMesh ? Order::ring : Order::linear;
  for (Value value : {getLeft(), getRight(), getResult()})
    if (!isAlong(value, order)) // gemm_c3
      return emitOpError("counts cores ")
             << (isMesh ? "along the ring" : "as they stand") << " by "
             << stringifyGemm(getAlgorithm()) << ", not as " << layoutOf(value);
  bool mayBeSkewed = isMesh || getAlgorithm() == Gemm::cannon;
  if (isSkewedOnlyAt(getLeft(), mayBeSkewed ? 1 : -1) &&
      isSkewedOnlyAt(getRight(), mayBeSkewed ? 0 : -1) &&
      isSkewedOnlyAt(getResult(), -1)) // gemm_c4
    return success();
  return emitOpError("can have ")
         << (mayBeSkewed ? "only its summed dimension skewed" : "no skew")
         << " by " << stringifyGemm(getAlgorithm());
}

LogicalResult GemmTOp::verify() {
  // gemm_t_c1
  if (failed(verifyMatrices(*this)))
    return failure();
  ArrayRef<int64_t> a = getLeft().getType().getShape(),
                    b = getRight().getType().getShape();
  if (failed(verifyShapes(*this, a, {b[0], a[1]}, {a[0], b[0]})))
    return failure();
  if (failed(verifyTiles(*this))) // gemm_t_c2
    return failure();
  for (Value value : {getLeft(), getRight(), getResult()})
    if (!isAlong(value, Order::ring) || !isSkewedOnlyAt(value, -1)) // gemm_t_c2
      return emitOpError("counts cores along the ring, without skew, not as ")
             << layoutOf(value);
  return success();
}

//===----------------------------------------------------------------------===//
// GemvOp
//===----------------------------------------------------------------------===//

LogicalResult GemvOp::verify() {
  ArrayRef<int64_t> a = getRight().getType().getShape();
  if (a.size() != 2) // gemv_c1
    return emitOpError("multiplies by a matrix, not ") << getRight().getType();
  ArrayRef<int64_t> x = getLeft().getType().getShape();
  if (x.empty() || x.size() > 2) // gemv_c1
    return emitOpError("multiplies a vector, or several as rows, not ")
           << getLeft().getType();
  SmallVector<int64_t> vectors(x.drop_back()), results(x.drop_back());
  vectors.push_back(a[0]);
  results.push_back(a[1]);
  if (failed(verifyShapes(*this, vectors, a, results))) // gemv_c1
    return failure();
  LayoutAttr grid = layoutOf(getRight());
  SplitAttr summed = grid.getSplit(0), kept = grid.getSplit(1);
  // gemv_c2
  if (!summed || !kept)
    return emitOpError("needs a matrix that both axes split, not ") << grid;
  SmallVector<std::optional<Axis>> ofVectors(x.size() - 1),
      ofResults = ofVectors;
  ofVectors.push_back(summed.getAxis());
  ofResults.push_back(kept.getAxis());
  if (failed(verifySplit(*this, "matrix", getRight(), grid,
                         {summed.getAxis(), kept.getAxis()})) ||
      failed(verifySplit(*this, "vector", getLeft(), grid, ofVectors)) ||
      failed(verifySplit(*this, "result", getResult(), grid, ofResults)))
    return failure();
  for (Value value : {getLeft(), getRight(), getResult()})
    if (!isSkewedOnlyAt(value, -1)) // gemv_c2
      return emitOpError("can have no skew, as in ") << layoutOf(value);
  int64_t last = x.size() - 1;
  if (layoutOf(getLeft()).getSplit(last).getOrder() != summed.getOrder() ||
      layoutOf(getResult()).getSplit(last).getOrder() != kept.getOrder())
    return emitOpError("counts the cores of its matrix, ") // gemv_c2
           << grid << ", in another order than those of its vector or result";
  return verifyLevels(*this, getAlgorithm(), getK(), getGroups()); // gemv_c3
}

//===----------------------------------------------------------------------===//
// KvAppendOp
//===----------------------------------------------------------------------===//

LogicalResult KvAppendOp::verify() {
  RankedTensorType cache = getCache().getType(), row = getRow().getType();
  // kv_append_c1
  if (cache.getRank() == 0 || row.getShape() != cache.getShape().drop_front() ||
      row.getElementType() != cache.getElementType())
    return emitOpError("cannot append ")
           << row.dropEncoding() << " to " << cache.dropEncoding();
  LayoutAttr whole = layoutOf(getCache()), one = layoutOf(getRow());
  SplitAttr tokens = whole.getSplit(0);
  static constexpr Deal deals[] = {Deal::block, Deal::balanced, Deal::cyclic};
  Deal deal = deals[static_cast<int>(getPolicy())];
  if (!tokens || tokens.getAxis() != Axis::y || tokens.getDeal() != deal ||
      tokens.getSkewed() || tokens.getRotate() != 0) // kv_append_c2
    return emitOpError("by ")
           << stringifyPolicy(getPolicy()) << " needs tokens split along y ("
           << stringifyDeal(deal) << "), not " << whole;
  if (one.hasGridOf(whole) &&
      one.getSplits() == whole.getSplits().drop_front() &&
      one.getAtX() == whole.getAtX()) // kv_append_c3
    return success();
  return emitOpError("needs a row that lies as the cache's dimensions behind "
                     "the first, not ")
         << one;
}

//===----------------------------------------------------------------------===//
// What ops with a body have in common
//===----------------------------------------------------------------------===//

/// What one core has of a tensor, as a tensor; null of a value without layout.
static RankedTensorType blockOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto layout = tensor ? dyn_cast_if_present<LayoutAttr>(tensor.getEncoding())
                       : LayoutAttr();
  if (!layout)
    return {};
  return RankedTensorType::get(layout.getBlockShape(tensor.getShape()),
                               tensor.getElementType());
}

static SmallVector<Type> blocksOf(TypeRange types) {
  return llvm::map_to_vector(types,
                             [](Type type) -> Type { return blockOf(type); });
}

/// What both parse: operands by the names of their blocks.
struct Bound {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
};

/// The types, operands and body behind the bindings; arguments are blocks of
/// the operands, then of `sums` results.
static ParseResult parseBody(OpAsmParser &parser, OperationState &result,
                             Bound &bound, SMLoc where, bool sums) {
  FunctionType type;
  if (parser.parseColonType(type) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(bound.operands, type.getInputs(), where,
                             result.operands))
    return failure();
  result.addTypes(type.getResults());
  SmallVector<Type> blocks = blocksOf(type.getInputs());
  if (sums)
    llvm::append_range(blocks, blocksOf(type.getResults()));
  if (blocks.size() != bound.arguments.size())
    return parser.emitError(where, "has ")
           << bound.arguments.size() << " names for " << blocks.size()
           << " blocks";
  for (auto [argument, block] : llvm::zip_equal(bound.arguments, blocks)) {
    if (!block)
      return parser.emitError(argument.ssaName.location,
                              "needs an operand with a #coremesh.layout");
    argument.type = block;
  }
  return parser.parseRegion(*result.addRegion(), bound.arguments);
}

static void printBody(OpAsmPrinter &p, Operation *op) {
  p << " : ";
  p.printFunctionalType(op);
  p.printOptionalAttrDictWithKeyword(op->getAttrs());
  p << ' ';
  p.printRegion(op->getRegion(0), /*printEntryBlockArgs=*/false);
}

/// local_c2, block_gemm_c5: what the body gets and yields.
static LogicalResult verifyBody(Operation *op, TypeRange reads,
                                TypeRange writes) {
  Block &body = op->getRegion(0).front();
  Operation *last = body.empty() ? nullptr : &body.back();
  if (!isa_and_present<YieldOp>(last))
    return op->emitOpError("must end in coremesh.yield");
  if (body.getArgumentTypes() != reads)
    return op->emitOpError("has block arguments (")
           << body.getArgumentTypes() << "), needs the blocks of its operands ("
           << reads << ')';
  if (last->getOperandTypes() != writes)
    return op->emitOpError("yields (")
           << last->getOperandTypes() << "), needs the blocks of its results ("
           << writes << ')';
  return success();
}

//===----------------------------------------------------------------------===//
// LocalOp
//===----------------------------------------------------------------------===//

ParseResult LocalOp::parse(OpAsmParser &parser, OperationState &result) {
  Bound bound;
  SMLoc where = parser.getCurrentLocation();
  if (parseBindings(parser, bound.arguments, bound.operands))
    return failure();
  return parseBody(parser, result, bound, where, /*sums=*/false);
}

void LocalOp::print(OpAsmPrinter &p) {
  p << ' ';
  printBindings(p, getBody().getArguments(), getInputs());
  printBody(p, *this);
}

LogicalResult LocalOp::verifyRegions() {
  LayoutAttr grid;
  SmallVector<Value> values(getInputs());
  llvm::append_range(values, getOutputs());
  for (Value value : values) {
    LayoutAttr layout = layoutOf(value);
    if (grid && !grid.hasGridOf(layout)) // local_c1
      return emitOpError("has operands and results on several grids");
    grid = layout;
    for (Attribute split : layout.getSplits())
      if (auto part = dyn_cast<SplitAttr>(split);
          part && part.getDeal() == Deal::balanced) // local_c3
        return emitOpError("cannot take a balanced tensor: which part a core "
                           "has depends on the run");
  }
  return verifyBody(*this, blocksOf(getInputs().getTypes()), // local_c2
                    blocksOf(getOutputs().getTypes()));
}

//===----------------------------------------------------------------------===//
// BlockGemmOp
//===----------------------------------------------------------------------===//

ParseResult BlockGemmOp::parse(OpAsmParser &parser, OperationState &result) {
  Bound bound;
  SMLoc where = parser.getCurrentLocation();
  if (parseBindings(parser, bound.arguments, bound.operands) ||
      parser.parseKeyword("sums") ||
      parser.parseArgument(bound.arguments.emplace_back()))
    return failure();
  return parseBody(parser, result, bound, where, /*sums=*/true);
}

void BlockGemmOp::print(OpAsmPrinter &p) {
  p << ' ';
  printBindings(p, getBody().getArguments().drop_back(), getInputs());
  p << " sums " << getBody().getArguments().back();
  printBody(p, *this);
}

/// block_gemm_c2: equal blocks in their places, along rings of a square grid.
static LogicalResult verifyPlain(BlockGemmOp op, Value value) {
  LayoutAttr layout = layoutOf(value), grid = layoutOf(op.getResult());
  if (!layout.hasGridOf(grid) || layout.getHeight() != layout.getWidth())
    return op.emitOpError("needs all tensors on one square grid, not on ")
           << layout.getHeight() << " x " << layout.getWidth() << " and "
           << grid.getHeight() << " x " << grid.getWidth() << " cores";
  SmallVector<std::optional<Axis>> axes;
  for (int64_t dim : llvm::seq<int64_t>(layout.getSplits().size())) {
    SplitAttr split = layout.getSplit(dim);
    axes.push_back(split ? std::optional(split.getAxis()) : std::nullopt);
  }
  if (isSplit(layout, axes) && isAlong(value, Order::ring))
    return success();
  return op.emitOpError("needs equal blocks in their places, along rings, not ")
         << layout;
}

/// The dimension of a value that an axis splits; -1: none.
static int64_t dimAlong(Value value, Axis axis) {
  LayoutAttr layout = layoutOf(value);
  for (int64_t dim : llvm::seq<int64_t>(layout.getSplits().size()))
    if (SplitAttr split = layout.getSplit(dim);
        split && split.getAxis() == axis)
      return dim;
  return -1;
}

LogicalResult BlockGemmOp::verify() {
  if (getInputs().empty()) // block_gemm_c1
    return emitOpError("needs a left operand");
  SmallVector<Value> values(getInputs());
  values.push_back(getResult());
  for (Value value : values)
    if (failed(verifyPlain(*this, value))) // block_gemm_c2
      return failure();
  Value left = getInputs().front();
  auto a = cast<RankedTensorType>(left.getType());
  RankedTensorType c = getResult().getType();
  // block_gemm_c1
  if (a.getRank() != 2 || c.getRank() != 2 ||
      a.getDimSize(0) != c.getDimSize(0))
    return emitOpError("cannot make ")
           << c.dropEncoding() << " of the rows of " << a.dropEncoding();
  for (Value value : {left, Value(getResult())})
    if (!isSplit(layoutOf(value), kTiles)) // block_gemm_c1
      return emitOpError(
                 "needs its left operand and its result as [y, x], not ")
             << layoutOf(value);
  if (!isSkewedOnlyAt(left, 1) || !isSkewedOnlyAt(getResult(), -1))
    return emitOpError("can have only its summed dimension skewed"); // c4
  bool goesRound = false;
  for (Value value : getInputs().drop_front()) {
    int64_t summed = dimAlong(value, Axis::y);
    goesRound |= summed >= 0;
    if (!isSkewedOnlyAt(value, summed)) // block_gemm_c4
      return emitOpError("can have only its summed dimension skewed");
  }
  if (goesRound) // block_gemm_c3
    return success();
  return emitOpError("needs an operand behind the first that y splits: its "
                     "blocks go around columns");
}

LogicalResult BlockGemmOp::verifyRegions() {
  SmallVector<Type> reads = blocksOf(getInputs().getTypes());
  Type block = blockOf(getResult().getType());
  reads.push_back(block);
  return verifyBody(*this, reads, block); // block_gemm_c5
}
