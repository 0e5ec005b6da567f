//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who takes part in an instruction, and where sources stand.
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Paths.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

using namespace twmesh::timing;

std::string twmesh::timing::nameOf(int64_t y, int64_t x) {
  return "core (" + std::to_string(y) + ", " + std::to_string(x) + ")";
}

/// Positions along the folded ring of WaferLLM (OSDI 2025, section 5): even
/// places upwards, then odd ones back down.
static Ints ringOf(int64_t length) {
  Ints ring(length);
  for (int64_t place = 0; place < length; ++place)
    ring[place] = place % 2 == 0 ? place / 2 : length - (place + 1) / 2;
  return ring;
}

static Ints plainOf(int64_t length) {
  Ints plain(length);
  std::iota(plain.begin(), plain.end(), 0);
  return plain;
}

static Ints inverse(const Ints &ring) {
  Ints places(ring.size());
  for (size_t place = 0; place < ring.size(); ++place)
    places[ring[place]] = place;
  return places;
}

Layout::Layout(const Config &config, const Program &program)
    : config(config), program(program), plainX(plainOf(config.width)),
      plainY(plainOf(config.height)), ringX(ringOf(config.width)),
      ringY(ringOf(config.height)), placeX(inverse(ringX)),
      placeY(inverse(ringY)),
      dead(config.deadLinks.begin(), config.deadLinks.end()) {
  everyone = intern(std::vector<char>(config.width, 1));
  nobody = intern(std::vector<char>(config.width, 0));
}

const Mask *Layout::intern(std::vector<char> on) {
  auto found = pool.find({on.data(), on.size()});
  if (found != pool.end())
    return found->second.get();
  auto kept = std::make_unique<Mask>();
  kept->count = std::count(on.begin(), on.end(), 1);
  kept->on = std::move(on);
  const Mask *mask = kept.get();
  pool.emplace(std::string_view(mask->on.data(), mask->on.size()),
               std::move(kept));
  return mask;
}

const Mask *Layout::both(const Mask *a, const Mask *b) {
  if (a == b || a->all() || !b->count)
    return b;
  if (b->all() || !a->count)
    return a;
  const Mask *&known = joint[{a, b}];
  if (!known) {
    std::vector<char> on(a->on);
    for (size_t x = 0; x < on.size(); ++x)
      on[x] = on[x] && b->on[x];
    known = intern(std::move(on));
  }
  return known;
}

const Mask *Layout::either(const Mask *a, const Mask *b) {
  if (a == b || a->all() || !b->count)
    return a;
  if (b->all() || !a->count)
    return b;
  const Mask *&known = joined[{a, b}];
  if (!known) {
    std::vector<char> on(a->on);
    for (size_t x = 0; x < on.size(); ++x)
      on[x] = on[x] || b->on[x];
    known = intern(std::move(on));
  }
  return known;
}

const Mask *Layout::maskOf(const CoreSet &cores, int64_t y, const Ints &loops) {
  const Ints &places = cores.ring ? ringX : plainX;
  int64_t fixed = cores.ring ? ringY[y] : y;
  const Mask *mask = everyone;
  for (const auto *list : {&cores.atLeastZero, &cores.zero})
    for (const Expression &condition : *list) {
      if (int64_t value; condition.one(fixed, loops, value)) {
        if (list == &cores.zero ? value != 0 : value < 0)
          return nobody;
        continue;
      }
      const Ints &values = condition.along(places, fixed, loops);
      const Mask *&known = maskMemory[&values];
      if (!known) {
        std::vector<char> on(values.size());
        for (size_t x = 0; x < on.size(); ++x)
          on[x] = list == &cores.zero ? values[x] == 0 : values[x] >= 0;
        known = intern(std::move(on));
      }
      mask = both(mask, known);
    }
  return mask;
}

/// The loops that an expression of this depth depends on.
Ints Layout::loopsOf(int depth, const Ints &loops) {
  size_t count = std::max(depth - 2, 0);
  if (count > loops.size())
    throw std::runtime_error("an expression asks for the index of loop " +
                             std::to_string(count) + ", and there are " +
                             std::to_string(loops.size()) + " around it");
  return Ints(loops.begin(), loops.begin() + count);
}

const Masks &Layout::masks(const Instruction &instruction, const Ints &loops) {
  Ints used = loopsOf(instruction.cores.depth(), loops);
  auto [found, added] = masksMemory.try_emplace({instruction.set, used});
  if (added) {
    // Without an expression of the row all rows are alike.
    bool alike = !instruction.cores.uses(0);
    for (int64_t y = 0; y < config.height; ++y)
      found->second.push_back(alike && y > 0
                                  ? found->second[0]
                                  : maskOf(instruction.cores, y, used));
    checkDead(instruction, found->second);
  }
  return found->second;
}

void Layout::checkDead(const Instruction &instruction, const Masks &masks) {
  static const char *const names[] = {"computes", "sends", "receives",
                                      "relays",   "waits", "repeats"};
  for (auto [y, x] : config.deadCores)
    if (masks[y]->on[x])
      throw std::runtime_error(
          nameOf(y, x) + " is dead, and the program " +
          names[static_cast<int64_t>(instruction.op)] +
          " there: use a smaller grid, or leave that core out");
}

const std::vector<const Ints *> &Layout::sources(int number,
                                                 const Ints &loops) {
  const Route &route = program.routes[number];
  Ints used = loopsOf(route.source.depth(), loops);
  auto [found, added] = sourcesMemory.try_emplace({number, used});
  if (!added)
    return found->second;
  const Ints &places = route.ring ? ringX : plainX;
  const Ints &back = route.ring ? (route.alongX ? placeX : placeY)
                                : (route.alongX ? plainX : plainY);
  bool alike = !route.source.uses(route.alongX ? 1 : 0);
  for (int64_t y = 0; y < config.height; ++y) {
    if (alike && y > 0) {
      found->second.push_back(found->second[0]);
      continue;
    }
    int64_t fixed = route.ring ? ringY[y] : y;
    if (int64_t value; route.source.one(fixed, used, value)) {
      bool inside = value >= 0 && value < (int64_t)back.size();
      found->second.push_back(constant(inside ? back[value] : -1));
      continue;
    }
    const Ints &positions = route.source.along(places, fixed, used);
    auto &kept = placed[{&positions, &back}];
    if (!kept) {
      kept = std::make_unique<Ints>();
      for (int64_t position : positions) {
        bool inside = position >= 0 && position < (int64_t)back.size();
        kept->push_back(inside ? back[position] : -1);
      }
    }
    found->second.push_back(kept.get());
  }
  return found->second;
}

/// How many of the loops around are the same.
size_t Layout::common(const Instruction &a, const Instruction &b) {
  size_t common = 0;
  while (common < std::min(a.loops.size(), b.loops.size()) &&
         a.loops[common] == b.loops[common])
    ++common;
  return common;
}

/// As many equal values as a row has cores.
const Ints *Layout::constant(int64_t value) {
  auto &kept = constants[value];
  if (!kept) {
    kept = std::make_unique<Ints>(config.width, value);
    oneSourceMemory[kept.get()] = value;
  }
  return kept.get();
}

/// Who may receive what an instruction sends: those that do so under the same
/// loop indices; where a receiver is in other loops, all cores.
Masks Layout::receivers(const Instruction &instruction, const Ints &loops) {
  Masks found(config.height, nobody);
  for (int number : program.routes[instruction.outgoing].receivers) {
    const Instruction &receiver = program.instructions[number];
    bool known = receiver.cores.depth() - 2 <=
                 static_cast<int>(common(receiver, instruction));
    const Masks *some = known ? &masks(receiver, loops) : nullptr;
    for (int64_t y = 0; y < config.height; ++y)
      found[y] = either(found[y], some ? (*some)[y] : everyone);
  }
  return found;
}
