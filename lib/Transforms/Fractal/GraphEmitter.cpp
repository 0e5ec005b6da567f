//===- GraphEmitter.cpp - the graph as an op ------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/Dependences.h"
#include "lib/Transforms/Fractal/GraphBuilder.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace tilewright::fractal;

namespace {
/// Reads of an op, in the lists that it has them in.
struct Reads {
  SmallVector<Value> sources;
  SmallVector<int64_t> targets;
  SmallVector<Attribute> maps, conditions;
  SmallVector<bool> indirect;
  /// Buffers among the sources that are results of the op itself.
  SmallVector<std::pair<unsigned, unsigned>> own;
};

class GraphEmitter {
public:
  explicit GraphEmitter(GraphBuilder &built)
      : built(built), b(built.function.getLoc(), built.function) {}

  void emit();

private:
  void emitBlock(unsigned number);
  void emitBody(const Draft &draft, BlockOp block);
  void emitOutputs();
  void addReads(Reads &reads, int64_t target, const Element &element,
                ArrayRef<Constraint> domain, std::optional<unsigned> self);
  Value valueOf(unsigned buffer);
  Value emitConstant(Value value);
  Type typeOf(const Draft &draft, Value result);

  GraphBuilder &built;
  ImplicitLocOpBuilder b;
  GraphOp graph;
  IRMapping constants;
  SmallVector<SmallVector<Value>> written;
};
} // namespace

void tilewright::fractal::emitGraph(GraphBuilder &built) {
  GraphEmitter(built).emit();
}

void GraphEmitter::emit() {
  func::FuncOp function = built.function;
  b.setInsertionPointAfter(function);
  SmallVector<std::string> inputs;
  for (Value argument : function.getArguments())
    inputs.push_back(built.nameOf(argument));
  graph = GraphOp::create(
      b, (function.getName() + "_graph").str(),
      b.getStrArrayAttr(SmallVector<StringRef>(inputs.begin(), inputs.end())),
      b.getStrArrayAttr(
          SmallVector<StringRef>(built.symbols.begin(), built.symbols.end())),
      nullptr, nullptr, nullptr);
  Block &body = graph.getBody().emplaceBlock();
  for (BlockArgument argument : function.getArguments())
    constants.map(argument,
                  body.addArgument(argument.getType(), argument.getLoc()));
  written.resize(built.drafts.size());
  b.setInsertionPointToEnd(&body);
  for (unsigned number : built.order)
    emitBlock(number);
  emitOutputs();
}

Value GraphEmitter::emitConstant(Value value) {
  if (Value known = constants.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    emitConstant(operand);
  b.clone(*op, constants);
  return constants.lookup(value);
}

Value GraphEmitter::valueOf(unsigned buffer) {
  const Buffer &found = built.buffers[buffer];
  return found.kind == Buffer::Given ? emitConstant(found.value)
                                     : written[found.block][found.result];
}

void GraphEmitter::addReads(Reads &reads, int64_t target,
                            const Element &element, ArrayRef<Constraint> domain,
                            std::optional<unsigned> self) {
  unsigned symbols = built.symbols.size();
  Space space = {element.rank(), symbols};
  for (const Piece &piece : element.pieces) {
    Constraints all(domain);
    llvm::append_range(all, piece.where);
    if (isEmpty(space, all))
      continue;
    const Buffer &buffer = built.buffers[piece.buffer];
    bool isOwn = buffer.kind == Buffer::Written && buffer.block == self;
    if (isOwn)
      reads.own.push_back({reads.sources.size(), buffer.result});
    reads.sources.push_back(isOwn ? Value() : valueOf(piece.buffer));
    reads.targets.push_back(target);
    reads.maps.push_back(AffineMapAttr::get(
        AffineMap::get(space.dims, symbols, piece.place, b.getContext())));
    Constraints where = simplified(space, piece.where, domain);
    reads.conditions.push_back(
        where.empty()
            ? Attribute(b.getUnitAttr())
            : IntegerSetAttr::get(setOf(b.getContext(), space, where)));
    reads.indirect.push_back(piece.indirect);
  }
}

Type GraphEmitter::typeOf(const Draft &draft, Value result) {
  Type type = result.getType();
  for (unsigned level = draft.loops.size(); level-- > 0;) {
    AffineExpr length = draft.loops[level].length;
    auto known = dyn_cast<AffineConstantExpr>(length);
    bool varies = false;
    for (unsigned outer : llvm::seq(level))
      varies |= length.isFunctionOfDim(outer);
    int64_t other = varies ? ArrayType::kRagged : ShapedType::kDynamic;
    type = ArrayType::listOf(known ? known.getValue() : other, type);
  }
  return type;
}

void GraphEmitter::emitBlock(unsigned number) {
  const Draft &draft = built.drafts[number];
  Space space = {unsigned(draft.loops.size()), unsigned(built.symbols.size())};
  MLIRContext *context = b.getContext();
  Constraints domain = built.domainOf(draft);
  Reads reads;
  for (auto [target, element] : llvm::enumerate(draft.elements))
    addReads(reads, target, element, domain, number);
  SmallVector<Type> types;
  SmallVector<AffineMap> writes;
  for (Value result : draft.results) {
    types.push_back(typeOf(draft, result));
    auto array = dyn_cast<ArrayType>(result.getType());
    unsigned rank = space.dims + (array ? array.getDepth() : 0);
    writes.push_back(AffineMap::get(rank, space.symbols,
                                    dimRange(context, 0, rank), context));
  }
  auto lengths = llvm::map_to_vector(
      draft.loops, [](const Loop &loop) { return loop.length; });
  auto kinds = llvm::map_to_vector(draft.loops,
                                   [](const Loop &loop) { return loop.kind; });
  // Its own results are not there before it is: sources come last.
  b.setLoc(draft.results.front().getLoc());
  BlockOp block = BlockOp::create(
      b, types, b.getStrArrayAttr(kinds),
      AffineMap::get(space.dims, space.symbols, lengths, context),
      setOf(context, space, domain), ValueRange(), reads.targets,
      b.getArrayAttr(reads.maps), b.getArrayAttr(reads.conditions),
      reads.indirect, b.getAffineMapArrayAttr(writes));
  for (auto [read, result] : reads.own)
    reads.sources[read] = block.getResult(result);
  block->setOperands(reads.sources);
  written[number] = llvm::to_vector_of<Value>(block.getResults());
  emitBody(draft, block);
}

void GraphEmitter::emitBody(const Draft &draft, BlockOp block) {
  OpBuilder::InsertionGuard guard(b);
  Block &body = block.getBody().emplaceBlock();
  b.setInsertionPointToEnd(&body);
  IRMapping now;
  for (Value argument : draft.arguments)
    now.map(argument, body.addArgument(argument.getType(), argument.getLoc()));
  for (Operation *op : draft.ops)
    b.clone(*op, now);
  YieldOp::create(b, llvm::map_to_vector(draft.results, [&](Value result) {
                    return now.lookup(result);
                  }));
}

void GraphEmitter::emitOutputs() {
  Reads reads;
  for (auto [target, element] : llvm::enumerate(built.outputs)) {
    Constraints levels;
    for (auto [level, length] : llvm::enumerate(element.lengths)) {
      AffineExpr place = b.getAffineDimExpr(level);
      levels.push_back({place});
      levels.push_back({length - 1 - place});
    }
    addReads(reads, target, element, levels, std::nullopt);
  }
  OutputsOp::create(b, reads.sources, reads.targets, b.getArrayAttr(reads.maps),
                    b.getArrayAttr(reads.conditions), reads.indirect);
}
