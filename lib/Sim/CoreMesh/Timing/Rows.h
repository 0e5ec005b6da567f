//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Clocks of rows of cores, computed once where rows are alike.
//
// What happens to a row of clocks is a function of the clocks that go in, and
// adding the same to all of those adds it to what comes out. So a row is kept
// as a base and what its cores differ by from that, equal differences are kept
// once, and each operation is remembered by what went in: rows of cores that
// behave alike cost one computation. Nothing is assumed about which rows those
// are.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_TIMING_ROWS_H
#define TILEWRIGHT_LIB_SIM_COREMESH_TIMING_ROWS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace twmesh::timing {

/// A time, and what the way that led to it, the longest, was made of:
/// computing, overhead, and messages on the move; the rest is idle. In ticks.
struct Cell {
  int64_t time = 0, compute = 0, overhead = 0, moving = 0;

  bool operator==(const Cell &other) const {
    return time == other.time && compute == other.compute &&
           overhead == other.overhead && moving == other.moving;
  }
  Cell operator+(const Cell &other) const {
    return {time + other.time, compute + other.compute,
            overhead + other.overhead, moving + other.moving};
  }
  Cell operator-(const Cell &other) const {
    return {time - other.time, compute - other.compute,
            overhead - other.overhead, moving - other.moving};
  }
};

/// The time of what does not happen.
constexpr int64_t never = INT64_MIN / 4;

inline bool happens(const Cell &cell) { return cell.time > never / 2; }
inline Cell nothing() { return {never, 0, 0, 0}; }
/// The later of two; of equals the first.
inline const Cell &later(const Cell &a, const Cell &b) {
  return b.time > a.time ? b : a;
}
/// Later by so many ticks, in which nothing is done.
inline Cell after(Cell cell, int64_t ticks) {
  cell.time += ticks;
  return cell;
}
/// Later by so many ticks, in which a message moves.
inline Cell moved(Cell cell, int64_t ticks) {
  cell.time += ticks;
  cell.moving += ticks;
  return cell;
}

class Rows;

/// What the cores of a row differ by; counted references, one thread.
struct Shape {
  std::vector<Cell> cells;
  uint64_t hash = 0;
  /// Of the cells that happen, the earliest; and whether all do.
  int64_t earliest = 0;
  bool whole = false;
  int64_t users = 0;
  Rows *owner = nullptr;
};

class ShapeRef {
public:
  ShapeRef() = default;
  explicit ShapeRef(Shape *shape) : shape(shape) { keep(); }
  ShapeRef(const ShapeRef &other) : shape(other.shape) { keep(); }
  ShapeRef(ShapeRef &&other) noexcept
      : shape(std::exchange(other.shape, nullptr)) {}
  ShapeRef &operator=(const ShapeRef &other) {
    if (shape != other.shape)
      *this = ShapeRef(other);
    return *this;
  }
  ShapeRef &operator=(ShapeRef &&other) noexcept {
    std::swap(shape, other.shape);
    return *this;
  }
  ~ShapeRef();
  const Shape *get() const { return shape; }
  explicit operator bool() const { return shape; }

private:
  void keep() const {
    if (shape)
      ++shape->users;
  }
  Shape *shape = nullptr;
};

/// Clocks of the cores of a row; without a shape: of nothing that happens.
struct Row {
  ShapeRef shape;
  Cell base;

  bool none() const { return !shape; }
  /// Whether all cores have a clock.
  bool whole() const { return shape && shape.get()->whole; }
  /// Whether each clock of this is later than all of another. Such another
  /// does not change the later of both, and is then left out: rows that differ
  /// in nothing else are alike.
  bool behind(const Row &other) const {
    return other.none() ||
           (shape && base.time + shape.get()->earliest > other.base.time);
  }
  /// Whether each clock of another is no later than this one's.
  bool covers(const Row &other) const;
  Cell operator[](size_t x) const;
  /// The same, later by as much.
  Row shifted(const Cell &by) const {
    Row row = *this;
    if (!none())
      row.base = base + by;
    return row;
  }
  bool operator==(const Row &other) const {
    return shape.get() == other.shape.get() && (none() || base == other.base);
  }
};

/// The clocks of a row that go into an operation, relative to what all its rows
/// are relative to. Of cores without a clock they are so far in the past that
/// `happens` is false.
struct Cells {
  const Cell *cells;
  Cell apart;
  Cell operator[](size_t x) const { return cells[x] + apart; }
};

/// A list in braces, or a vector, that outlives the call.
template <typename T> struct ListOf {
  const T *first;
  size_t count;
  ListOf(std::initializer_list<T> list)
      : first(list.begin()), count(list.size()) {}
  ListOf(const std::vector<T> &list) : first(list.data()), count(list.size()) {}
  const T *begin() const { return first; }
  const T *end() const { return first + count; }
  size_t size() const { return count; }
};
using WordList = ListOf<uint64_t>;
/// Rows that go into an operation, and those that come out.
using RowList = ListOf<const Row *>;
using OutList = ListOf<Row *>;

/// Operations on rows of one width.
class Rows {
public:
  /// Without `share` everything is computed, and nothing remembered.
  Rows(size_t width, bool share) : width(width), share(share) {}
  ~Rows();
  Rows(const Rows &) = delete;
  Rows &operator=(const Rows &) = delete;

  size_t width;

  /// All cores at one time.
  Row constant(const Cell &cell);
  /// Any cells; relative to `base`.
  Row make(const std::vector<Cell> &cells, const Cell &base);

  /// Runs `kernel(in, out)` on `Cells` and arrays of cells, or returns what it
  /// gave for the same. `what`: everything besides the inputs that it depends
  /// on.
  template <typename Kernel>
  void apply(WordList what, RowList in, OutList out, const Kernel &kernel) {
    Cell base = reference(in);
    if (const std::vector<Row> *known = find(what, in, base)) {
      if (!sampled()) {
        take(*known, base, out);
        return;
      }
    }
    prepare(in, base, out.size());
    kernel(inputs.data(), outputs.data());
    finish(base, out);
  }

  /// The same for a kernel that does one core, `kernel(in, out, x)`. `alike`:
  /// it does the same on all cores. Rows that differ in nothing but their bases
  /// then need one core: the others are as much apart afterwards as before.
  template <typename Kernel>
  void each(bool alike, WordList what, RowList in, OutList out,
            const Kernel &kernel) {
    auto all = [&](const Cells *from, Cell *const *to) {
      for (size_t x = 0; x < width; ++x)
        kernel(from, to, x);
    };
    const Row *like = alike && share ? common(in) : nullptr;
    if (!like) {
      apply(what, in, out, all);
      return;
    }
    ShapeRef shape = like->shape;
    column.read(in, out.size());
    kernel(column.from.data(), column.to.data(), 0);
    ++remembered;
    if (sampled()) {
      apply(what, in, out, all);
      column.check(shape, out);
    } else {
      column.store(shape, out);
    }
  }

  /// Operations that were computed, and those that were remembered or done on
  /// one core.
  int64_t computed = 0, remembered = 0;

private:
  /// The same when all was last forgotten.
  int64_t computedBefore = 0, rememberedBefore = 0;

  friend class ShapeRef;
  struct Key {
    std::vector<uint64_t> words;
    bool operator==(const Key &other) const { return words == other.words; }
  };
  struct Hash {
    size_t operator()(const Key &key) const;
  };

  /// One core of the rows of an operation.
  struct Column {
    void read(RowList in, size_t outs);
    void store(const ShapeRef &shape, OutList out) const;
    void check(const ShapeRef &shape, OutList out) const;

    std::vector<Cell> cells;
    std::vector<Cells> from;
    std::vector<Cell *> to;
  };

  static const Row *common(RowList in);
  static bool matches(const std::vector<uint64_t> &words, WordList what,
                      RowList in, const Cell &base);
  static Cell reference(RowList in);
  const std::vector<Row> *find(WordList what, RowList in, const Cell &base);
  bool sampled();
  void take(const std::vector<Row> &known, const Cell &base, OutList out);
  void prepare(RowList in, const Cell &base, size_t outs);
  void finish(const Cell &base, OutList out);
  void release(Shape *shape);

  bool share;
  Key key;
  const std::vector<Row> *check = nullptr;
  std::vector<std::vector<Cell>> buffers;
  std::vector<Cell> blank, spare;
  std::vector<Cells> inputs;
  std::vector<Cell *> outputs;
  std::vector<Row> held;
  Column column;
  std::unordered_multimap<uint64_t, Shape *> shapes;
  /// What went out, then what went in.
  std::unordered_map<Key, std::vector<Row>, Hash> memory;
  using Entry = std::pair<const Key, std::vector<Row>>;
  std::array<const Entry *, 32> lastOf = {};
};

inline Cell Row::operator[](size_t x) const {
  if (none() || !happens(shape.get()->cells[x]))
    return nothing();
  return shape.get()->cells[x] + base;
}

} // namespace twmesh::timing

#endif // TILEWRIGHT_LIB_SIM_COREMESH_TIMING_ROWS_H
