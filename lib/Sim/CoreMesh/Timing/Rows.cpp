//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Rows.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

using namespace twmesh::timing;

/// Bytes of cells above which all is forgotten: where most was remembered since
/// the last time, and where it was not, as what is remembered in vain leaves
/// the processor's caches to nothing else.
static constexpr size_t mostBytes = size_t(384) << 20;
static constexpr size_t mostInVain = size_t(16) << 20;
/// One remembered operation of so many is computed again and compared.
static constexpr int64_t sampleEvery = 4096;

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

ShapeRef::~ShapeRef() {
  if (shape && --shape->users == 0)
    shape->owner->release(shape);
}

size_t Rows::Hash::operator()(const Key &key) const {
  uint64_t hash = key.words.size();
  for (uint64_t word : key.words)
    hash = mix(hash, word);
  return hash;
}

Rows::~Rows() {
  held.clear();
  memory.clear();
}

void Rows::release(Shape *shape) {
  if (share) {
    auto [first, last] = shapes.equal_range(shape->hash);
    for (auto it = first; it != last; ++it)
      if (it->second == shape) {
        shapes.erase(it);
        break;
      }
  }
  delete shape;
}

Row Rows::constant(const Cell &cell) {
  return make(std::vector<Cell>(width, cell), Cell());
}

/// Cells that happen are kept relative to the latest, the first of those.
Row Rows::make(const std::vector<Cell> &cells, const Cell &base) {
  const Cell *latest = nullptr;
  for (const Cell &cell : cells)
    if (happens(cell) && (!latest || cell.time > latest->time))
      latest = &cell;
  if (!latest)
    return {};
  Cell origin = *latest;
  Shape made;
  made.owner = this;
  made.whole = true;
  made.cells.swap(spare);
  made.cells.resize(width);
  for (size_t x = 0; x < width; ++x) {
    bool here = happens(cells[x]);
    Cell cell = here ? cells[x] - origin : nothing();
    made.whole &= here;
    made.earliest = std::min(made.earliest, here ? cell.time : 0);
    made.cells[x] = cell;
    made.hash = made.hash * 0x9E3779B97F4A7C15u + cell.time +
                cell.compute * 0xC2B2AE3D27D4EB4Fu +
                cell.overhead * 0x165667B19E3779F9u +
                cell.moving * 0x27D4EB2F165667C5u;
  }
  made.hash = mix(0, made.hash);
  if (share) {
    auto [first, last] = shapes.equal_range(made.hash);
    for (auto it = first; it != last; ++it)
      if (std::memcmp(it->second->cells.data(), made.cells.data(),
                      width * sizeof(Cell)) == 0) {
        spare.swap(made.cells);
        return {ShapeRef(it->second), base + origin};
      }
  }
  auto *shape = new Shape(std::move(made));
  if (share)
    shapes.emplace(shape->hash, shape);
  return {ShapeRef(shape), base + origin};
}

bool Row::covers(const Row &other) const {
  if (none() || other.none())
    return other.none();
  int64_t ahead = base.time - other.base.time;
  if (ahead < 0 || shape.get() == other.shape.get())
    return ahead >= 0;
  if (whole() && behind(other))
    return true;
  const std::vector<Cell> &ours = shape.get()->cells;
  const std::vector<Cell> &theirs = other.shape.get()->cells;
  size_t x = 0;
  while (x < ours.size() &&
         (theirs[x].time <= ours[x].time + ahead || !happens(theirs[x])))
    ++x;
  return x == ours.size();
}

Cell Rows::reference(RowList in) {
  for (const Row *row : in)
    if (!row->none())
      return row->base;
  return {};
}

/// A row that the others, as far as there are any, differ from in their bases
/// only; null: they have nothing in common, or some cores have no clock.
const Row *Rows::common(RowList in) {
  const Row *like = nullptr;
  for (const Row *row : in) {
    if (row->none())
      continue;
    if (like && like->shape.get() != row->shape.get())
      return nullptr;
    like = row;
  }
  return like && like->whole() ? like : nullptr;
}

void Rows::Column::read(RowList in, size_t outs) {
  from.resize(in.size());
  to.resize(outs);
  cells.resize(std::max(cells.size(), in.size() + outs));
  Cell *cell = cells.data();
  Cells *input = from.data();
  for (const Row *row : in) {
    *cell = row->none() ? nothing() : row->base;
    *input++ = {cell++, Cell()};
  }
  for (Cell *&output : to) {
    *cell = nothing();
    output = cell++;
  }
}

void Rows::Column::store(const ShapeRef &shape, OutList out) const {
  const Cell *const *cell = to.data();
  for (Row *row : out) {
    row->base = **cell;
    row->shape = happens(**cell++) ? shape : ShapeRef();
  }
}

void Rows::Column::check(const ShapeRef &shape, OutList out) const {
  const Cell *const *cell = to.data();
  for (const Row *row : out) {
    bool here = happens(**cell);
    if (here ? !(*row == Row{shape, **cell}) : !row->none())
      throw std::logic_error("cores that were alike have come apart");
    ++cell;
  }
}

/// Whether these are the words of a key, without writing it.
bool Rows::matches(const std::vector<uint64_t> &words, WordList what,
                   RowList in, const Cell &base) {
  const uint64_t *word = words.data(), *end = word + words.size();
  // Each row has one word at least, and one without a shape no more.
  if (words.size() < what.size() + in.size() ||
      !std::equal(what.begin(), what.end(), word))
    return false;
  word += what.size();
  for (const Row *row : in) {
    if (word == end || *word++ != reinterpret_cast<uintptr_t>(row->shape.get()))
      return false;
    if (row->none())
      continue;
    Cell apart = row->base - base;
    if (end - word < 4 || word[0] != uint64_t(apart.time) ||
        word[1] != uint64_t(apart.compute) ||
        word[2] != uint64_t(apart.overhead) ||
        word[3] != uint64_t(apart.moving))
      return false;
    word += 4;
  }
  return word == end;
}

const std::vector<Row> *Rows::find(WordList what, RowList in,
                                   const Cell &base) {
  check = nullptr;
  if (!share)
    return nullptr;
  // Rows beside each other mostly do the same.
  const Entry *&last = lastOf[*what.begin()];
  if (last && matches(last->first.words, what, in, base)) {
    ++remembered;
    return check = &last->second;
  }
  key.words.resize(what.size() + 5 * in.size());
  uint64_t *end = std::copy(what.begin(), what.end(), key.words.data());
  for (const Row *row : in) {
    *end++ = reinterpret_cast<uintptr_t>(row->shape.get());
    if (row->none())
      continue;
    Cell apart = row->base - base;
    *end++ = apart.time;
    *end++ = apart.compute;
    *end++ = apart.overhead;
    *end++ = apart.moving;
  }
  key.words.resize(end - key.words.data());
  auto found = memory.find(key);
  if (found == memory.end())
    return nullptr;
  last = &*found;
  ++remembered;
  return check = &last->second;
}

bool Rows::sampled() { return remembered % sampleEvery == 0; }

void Rows::take(const std::vector<Row> &known, const Cell &base, OutList out) {
  size_t index = 0;
  for (Row *row : out) {
    const Row &one = known[index++];
    row->shape = one.shape;
    row->base = one.base + base;
  }
}

void Rows::prepare(RowList in, const Cell &base, size_t outs) {
  ++computed;
  while (buffers.size() < outs)
    buffers.emplace_back(width);
  inputs.clear();
  outputs.clear();
  held.clear();
  blank.resize(width, nothing());
  for (const Row *row : in) {
    held.push_back(*row);
    if (row->none())
      inputs.push_back({blank.data(), Cell()});
    else
      inputs.push_back({row->shape.get()->cells.data(), row->base - base});
  }
  for (size_t one = 0; one < outs; ++one) {
    std::vector<Cell> &buffer = buffers[one];
    std::fill(buffer.begin(), buffer.end(), nothing());
    outputs.push_back(buffer.data());
  }
}

void Rows::finish(const Cell &base, OutList out) {
  std::vector<Row> made;
  for (size_t one = 0; one < out.size(); ++one)
    made.push_back(make(buffers[one], Cell()));
  if (check && !std::equal(made.begin(), made.end(), check->begin()))
    throw std::logic_error("rows that were alike have come apart");
  take(made, base, out);
  if (!share || check)
    return;
  // Keys hold the addresses of shapes: those live as long.
  made.insert(made.end(), held.begin(), held.end());
  bool inVain = remembered - rememberedBefore < computed - computedBefore;
  size_t most = inVain ? mostInVain : mostBytes;
  if (shapes.size() * width * sizeof(Cell) > most) {
    lastOf.fill(nullptr);
    memory.clear();
    rememberedBefore = remembered;
    computedBefore = computed;
  }
  memory.emplace(key, std::move(made));
}
