//===- FractalFindMerges.cpp - blocks that may become one -----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/Passes.h"

#include "lib/Transforms/Fractal/Dependences.h"

namespace tilewright {
#define GEN_PASS_DEF_FRACTALFINDMERGES
#include "lib/Transforms/Fractal/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright::fractal;

namespace {
/// What is found out about a graph.
struct Merges {
  SmallVector<Attribute> wide, deep;
  SmallVector<std::string> refused;
};
} // namespace

static StringRef kindOf(BlockOp block, unsigned dim) {
  return cast<StringAttr>(block.getKinds()[dim]).getValue();
}

/// Blocks whose results a block reads, however far back.
static DenseSet<Operation *> sourcesOf(BlockOp block) {
  DenseSet<Operation *> found;
  SmallVector<Operation *> next = {block};
  while (!next.empty())
    for (Value source : next.pop_back_val()->getOperands())
      if (auto maker = source.getDefiningOp<BlockOp>();
          maker && maker != block && found.insert(maker).second)
        next.push_back(maker);
  return found;
}

//===----------------------------------------------------------------------===//
// Beside each other
//===----------------------------------------------------------------------===//

/// Why two blocks that do not wait for each other cannot share their loops.
static std::string whyNotWide(BlockOp one, BlockOp other) {
  if (one.getKinds() != other.getKinds())
    return "their dimensions are of other kinds";
  if (one.getDomain() != other.getDomain())
    return "their domains differ";
  return {};
}

//===----------------------------------------------------------------------===//
// One after the other
//===----------------------------------------------------------------------===//

/// How many outer dimensions have the same length in both.
static unsigned commonDims(BlockOp producer, BlockOp consumer) {
  unsigned most = std::min(producer.getNumLoops(), consumer.getNumLoops());
  unsigned common = 0;
  while (common < most && producer.getExtents().getResult(common) ==
                              consumer.getExtents().getResult(common))
    ++common;
  return common;
}

/// Why two dimensions cannot be one: a map takes any other kind, but nobody may
/// read a reduction that is not done.
static std::string whyNotKind(BlockOp producer, BlockOp consumer,
                              unsigned dim) {
  StringRef first = kindOf(producer, dim), second = kindOf(consumer, dim);
  bool isDone = second == "map" && first != "reduce";
  if (first == second || first == "map" || isDone)
    return {};
  return ("dimension " + Twine(dim) + " is " + first + " in one and " + second +
          " in the other")
      .str();
}

/// Whether some iteration reads what the producer writes in a later one.
static bool readsAhead(BlockOp consumer, int64_t read, unsigned common) {
  AffineMap map = consumer.getMap(read);
  Space space = {map.getNumDims(), map.getNumSymbols()};
  Constraints where = whereRead(consumer, read);
  for (unsigned dim : llvm::seq(common)) {
    AffineExpr distance =
        getAffineDimExpr(dim, consumer.getContext()) - map.getResult(dim);
    if (kindOf(consumer, dim).ends_with("right"))
      distance = -distance;
    where.push_back({-distance - 1});
    if (!isEmpty(space, where))
      return true;
    where.back() = {distance, true};
  }
  return false;
}

/// Why a consumer cannot run inside the outer dimensions of what it reads.
static std::string whyNotDeep(BlockOp producer, BlockOp consumer,
                              unsigned common) {
  if (common == 0)
    return "they have no dimension in common";
  for (unsigned dim : llvm::seq(common))
    if (std::string why = whyNotKind(producer, consumer, dim); !why.empty())
      return why;
  for (Value source : consumer.getSources())
    if (auto between = source.getDefiningOp<BlockOp>();
        between && between != consumer && sourcesOf(between).contains(producer))
      return "another block stands between them";
  for (int64_t read : llvm::seq<int64_t>(consumer.getSources().size()))
    if (consumer.getSources()[read].getDefiningOp() == producer &&
        readsAhead(consumer, read, common))
      return ("read " + Twine(read) + " is of a later iteration").str();
  return {};
}

/// Judges two blocks, the first of which stands before the second.
static void judge(Merges &merges, ArrayRef<BlockOp> blocks, unsigned first,
                  unsigned second) {
  Builder b(blocks[first]);
  BlockOp one = blocks[first], other = blocks[second];
  bool reads = llvm::any_of(other.getSources(), [&](Value source) {
    return source.getDefiningOp() == one;
  });
  std::string why;
  if (reads) {
    unsigned common = commonDims(one, other);
    why = whyNotDeep(one, other, common);
    if (why.empty())
      merges.deep.push_back(b.getDenseI64ArrayAttr({first, second, common}));
  } else if (!sourcesOf(other).contains(one)) {
    why = whyNotWide(one, other);
    if (why.empty())
      merges.wide.push_back(b.getDenseI64ArrayAttr({first, second}));
  }
  if (!why.empty())
    merges.refused.push_back(
        (Twine(first) + " and " + Twine(second) + ": " + why).str());
}

static void findMerges(GraphOp graph) {
  auto blocks = llvm::to_vector(graph.getBody().getOps<BlockOp>());
  Merges merges;
  for (unsigned second : llvm::seq<unsigned>(blocks.size()))
    for (unsigned first : llvm::seq(second))
      judge(merges, blocks, first, second);
  Builder b(graph);
  if (!merges.wide.empty())
    graph.setWideAttr(b.getArrayAttr(merges.wide));
  if (!merges.deep.empty())
    graph.setDeepAttr(b.getArrayAttr(merges.deep));
  if (!merges.refused.empty())
    graph.setRefusedAttr(b.getStrArrayAttr(
        SmallVector<StringRef>(merges.refused.begin(), merges.refused.end())));
}

namespace {
struct FindMerges : tilewright::impl::FractalFindMergesBase<FindMerges> {
  void runOnOperation() override { getOperation()->walk(findMerges); }
};
} // namespace
