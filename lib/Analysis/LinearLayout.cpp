//===- LinearLayout.cpp - where the elements of a tile lie ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/LinearLayout.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

static CoordinateBit decode(int64_t code) {
  return code < 0 ? CoordinateBit() : CoordinateBit{code / 64, code % 64};
}

static int64_t encode(CoordinateBit bit) {
  return bit.isNone() ? -1 : bit.dim * 64 + bit.bit;
}

LinearLayout::LinearLayout(tile::DistributedAttr distributed)
    : rank(distributed.getRank()) {
  registers = llvm::map_to_vector(distributed.getRegisters(), decode);
  threads = llvm::map_to_vector(distributed.getLanes(), decode);
  llvm::append_range(threads, llvm::map_range(distributed.getWarps(), decode));
}

std::optional<LinearLayout> LinearLayout::of(Type type) {
  auto tile = dyn_cast<tile::TileType>(type);
  if (!tile || !tile.getDistributed())
    return std::nullopt;
  return LinearLayout(tile.getDistributed());
}

tile::DistributedAttr LinearLayout::toAttr(MLIRContext *context) const {
  auto codes = [](ArrayRef<CoordinateBit> bits) {
    return llvm::map_to_vector(bits, encode);
  };
  return tile::DistributedAttr::get(
      context, rank, codes(registers),
      codes(getThreadBits().take_front(laneBits)),
      codes(getThreadBits().drop_front(laneBits)));
}

LinearLayout LinearLayout::blocked(ArrayRef<int64_t> shape,
                                   ArrayRef<int64_t> order, int64_t vector,
                                   int64_t threads) {
  LinearLayout result(static_cast<int64_t>(shape.size()));
  SmallVector<CoordinateBit> bits;
  for (int64_t dim : order)
    for (int64_t bit = 0; bit < llvm::Log2_64_Ceil(shape[dim]); ++bit)
      bits.push_back({dim, bit});
  auto rest = ArrayRef(bits);
  for (; vector > 1 && !rest.empty() && rest.front().dim == order.front();
       vector /= 2) {
    result.registers.push_back(rest.front());
    rest = rest.drop_front();
  }
  for (; threads > 1; threads /= 2) {
    result.threads.push_back(rest.empty() ? CoordinateBit() : rest.front());
    rest = rest.empty() ? rest : rest.drop_front();
  }
  llvm::append_range(result.registers, rest);
  return result;
}

SmallVector<int64_t> LinearLayout::getSizes() const {
  SmallVector<int64_t> sizes(rank, 1);
  for (ArrayRef<CoordinateBit> bits : {getRegisterBits(), getThreadBits()})
    for (CoordinateBit bit : bits)
      if (!bit.isNone())
        sizes[bit.dim] *= 2;
  return sizes;
}

static SmallVector<int64_t> coordinatesOf(ArrayRef<CoordinateBit> bits,
                                          int64_t number, int64_t rank) {
  SmallVector<int64_t> result(rank);
  for (auto [index, bit] : llvm::enumerate(bits))
    if (!bit.isNone() && (number >> index & 1) != 0)
      result[bit.dim] += bit.getValue();
  return result;
}

SmallVector<int64_t> LinearLayout::getRegister(int64_t number) const {
  return coordinatesOf(registers, number, rank);
}

SmallVector<int64_t> LinearLayout::getThread(int64_t number) const {
  return coordinatesOf(threads, number, rank);
}

static std::optional<int64_t> findBit(ArrayRef<CoordinateBit> bits,
                                      CoordinateBit bit) {
  const auto *place = llvm::find(bits, bit);
  if (bit.isNone() || place == bits.end())
    return std::nullopt;
  return place - bits.begin();
}

std::optional<int64_t> LinearLayout::findRegister(CoordinateBit bit) const {
  return findBit(registers, bit);
}

std::optional<int64_t> LinearLayout::findThread(CoordinateBit bit) const {
  return findBit(threads, bit);
}

uint64_t LinearLayout::getReplicas() const {
  uint64_t mask = 0;
  for (auto [index, bit] : llvm::enumerate(threads))
    if (bit.isNone())
      mask |= uint64_t(1) << index;
  return mask;
}

int64_t LinearLayout::getRun(int64_t dim) const {
  int64_t bit = 0;
  while (findRegister({dim, bit}))
    ++bit;
  return int64_t(1) << bit;
}

LinearLayout LinearLayout::slice(ArrayRef<int64_t> dims) const {
  LinearLayout result(rank);
  for (CoordinateBit bit : registers)
    if (!llvm::is_contained(dims, bit.dim))
      result.registers.push_back(bit);
  for (CoordinateBit bit : threads)
    result.threads.push_back(llvm::is_contained(dims, bit.dim) ? CoordinateBit()
                                                               : bit);
  return result;
}

std::optional<LinearLayout> LinearLayout::rename(
    int64_t newRank,
    llvm::function_ref<std::optional<CoordinateBit>(CoordinateBit)> rename)
    const {
  LinearLayout result(newRank);
  auto add = [&](ArrayRef<CoordinateBit> from,
                 SmallVectorImpl<CoordinateBit> &to) {
    for (CoordinateBit bit : from) {
      auto renamed = bit.isNone() ? bit : rename(bit);
      if (!renamed)
        return false;
      to.push_back(*renamed);
    }
    return true;
  };
  if (!add(registers, result.registers) || !add(threads, result.threads))
    return std::nullopt;
  return result;
}

LinearLayout LinearLayout::permute(ArrayRef<int64_t> permutation) const {
  return *rename(rank, [&](CoordinateBit bit) -> std::optional<CoordinateBit> {
    return CoordinateBit{
        std::distance(permutation.begin(), llvm::find(permutation, bit.dim)),
        bit.bit};
  });
}

LinearLayout LinearLayout::dropLeading(int64_t first) const {
  return *rename(rank - first,
                 [&](CoordinateBit bit) -> std::optional<CoordinateBit> {
                   return CoordinateBit{bit.dim - first, bit.bit};
                 });
}

namespace {
/// Dimensions of two shapes, `[first, last)` each, that hold the same elements.
struct ReshapeGroup {
  int64_t fromFirst, fromLast, toFirst, toLast;
};
} // namespace

/// Cuts two shapes into the smallest groups of equal products.
static SmallVector<ReshapeGroup> groupDims(ArrayRef<int64_t> from,
                                           ArrayRef<int64_t> to) {
  SmallVector<ReshapeGroup> groups;
  auto fromSize = static_cast<int64_t>(from.size());
  auto toSize = static_cast<int64_t>(to.size());
  int64_t i = 0, j = 0;
  while (i < fromSize || j < toSize) {
    ReshapeGroup group{i, i, j, j};
    int64_t left = i < fromSize ? from[i++] : 1;
    int64_t right = j < toSize ? to[j++] : 1;
    while (left != right)
      if (left < right)
        left *= from[i++];
      else
        right *= to[j++];
    group.fromLast = i;
    group.toLast = j;
    groups.push_back(group);
  }
  return groups;
}

/// The dimensions of a group that are not 1.
static SmallVector<int64_t> realDims(ArrayRef<int64_t> shape, int64_t first,
                                     int64_t last) {
  SmallVector<int64_t> dims;
  for (int64_t dim = first; dim < last; ++dim)
    if (shape[dim] != 1)
      dims.push_back(dim);
  return dims;
}

/// A bit's position in the row-major number of the group, or back.
static int64_t flatBit(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims,
                       CoordinateBit bit) {
  int64_t position = bit.bit;
  for (int64_t dim : dims)
    if (dim > bit.dim)
      position += llvm::Log2_64(shape[dim]);
  return position;
}

static std::optional<CoordinateBit>
bitAt(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, int64_t position) {
  for (int64_t dim : llvm::reverse(dims)) {
    int64_t count = llvm::Log2_64(shape[dim]);
    if (position < count)
      return CoordinateBit{dim, position};
    position -= count;
  }
  return std::nullopt;
}

std::optional<LinearLayout>
tilewright::reshapeLayout(const LinearLayout &layout, ArrayRef<int64_t> from,
                          ArrayRef<int64_t> to) {
  SmallVector<ReshapeGroup> groups = groupDims(from, to);
  auto isPower = [](ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
    return llvm::all_of(
        dims, [&](int64_t dim) { return llvm::isPowerOf2_64(shape[dim]); });
  };
  auto renameBit = [&](CoordinateBit bit) -> std::optional<CoordinateBit> {
    const auto *group = llvm::find_if(groups, [&](const ReshapeGroup &each) {
      return each.fromFirst <= bit.dim && bit.dim < each.fromLast;
    });
    auto old = realDims(from, group->fromFirst, group->fromLast);
    auto young = realDims(to, group->toFirst, group->toLast);
    if (old.size() == 1 && young.size() == 1 && old.front() == bit.dim)
      return CoordinateBit{young.front(), bit.bit};
    // Padding of a larger number is not where that of its factors is.
    if (!llvm::is_contained(old, bit.dim) || !isPower(from, old) ||
        !isPower(to, young) || from[bit.dim] <= bit.getValue())
      return std::nullopt;
    return bitAt(to, young, flatBit(from, old, bit));
  };
  return layout.rename(static_cast<int64_t>(to.size()), renameBit);
}

Exchange tilewright::getExchange(const LinearLayout &from,
                                 const LinearLayout &to) {
  Exchange result = Exchange::none;
  for (auto [index, bits] : llvm::enumerate(
           llvm::zip_equal(from.getThreadBits(), to.getThreadBits()))) {
    auto [old, young] = bits;
    // A thread that held one half holds that half still, or picks one of two.
    bool stays = old == young || (old.isNone() && !from.findThread(young));
    if (stays)
      continue;
    if (index >= LinearLayout::laneBits)
      return Exchange::warps;
    result = Exchange::lanes;
  }
  return result;
}
