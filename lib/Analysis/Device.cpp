//===- Device.cpp - what the module says of its machine -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Device.h"

#include "dialects/Tile/Tile.h"
#include "dialects/Tile/TileDecisions.h"
#include "mlir/IR/Operation.h"

using namespace mlir;

namespace tilewright {

/// Seconds that starting a kernel takes, where the description does not say.
static constexpr double kLaunchSeconds = 2.5e-6;

/// TOML has integers and floating-point numbers; both are numbers here.
static std::optional<double> toNumber(Attribute attribute) {
  if (auto number = dyn_cast_or_null<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto number = dyn_cast_or_null<IntegerAttr>(attribute))
    return static_cast<double>(number.getInt());
  return std::nullopt;
}

static std::optional<double> numberIn(DictionaryAttr entries, StringRef part,
                                      StringRef name) {
  auto inner = entries ? entries.getAs<DictionaryAttr>(part) : nullptr;
  return inner ? toNumber(inner.get(name)) : std::nullopt;
}

static DictionaryAttr levelOf(DictionaryAttr entries, StringRef name) {
  auto levels = entries ? entries.getAs<ArrayAttr>("levels") : nullptr;
  if (!levels)
    return {};
  for (auto level : levels.getAsRange<DictionaryAttr>())
    if (auto known = level.getAs<StringAttr>("name"); known.strref() == name)
      return level;
  return {};
}

Device::Device(Operation *op) {
  for (; op && !entries; op = op->getParentOp()) {
    if (auto device = tile::decisions::kDevice.get(op))
      entries = device.getEntries();
    if (!options)
      options = tile::decisions::kOptions.get(op);
  }
}

bool Device::hasKind(StringRef kind) const {
  auto known = entries ? entries.getAs<StringAttr>("kind") : nullptr;
  return known && known.strref() == kind;
}

bool Device::hasFeature(StringRef feature) const {
  auto known = entries ? entries.getAs<ArrayAttr>("features") : nullptr;
  return known && llvm::any_of(known, [&](Attribute one) {
           auto text = dyn_cast<StringAttr>(one);
           return text && text.strref() == feature;
         });
}

bool Device::lacksHopper() const { return isKnown() && getName() != "sm_90a"; }

StringRef Device::getName() const {
  auto name = entries ? entries.getAs<StringAttr>("cpu") : nullptr;
  return name ? name.strref() : StringRef();
}

std::optional<int64_t> Device::getCapability() const {
  int64_t number = 0;
  StringRef name = getName();
  if (!isGPU() || !name.consume_front("sm_") || name.consumeInteger(10, number))
    return std::nullopt;
  return number;
}

std::optional<int64_t> Device::getVectorBits() const {
  std::optional<double> bits = numberIn(entries, "units", "vector_bits");
  return isCPU() && bits ? std::optional<int64_t>(*bits) : std::nullopt;
}

std::optional<int64_t> Device::getRegisterBytes() const {
  std::optional<double> count = numberIn(entries, "units", "registers"),
                        bits = numberIn(entries, "units", "vector_bits");
  return count && bits ? std::optional<int64_t>(*count * *bits / 8)
                       : std::nullopt;
}

bool Device::lacksHalf() const { return getVectorBits().value_or(256) < 256; }

bool Device::addsProductsOf(StringRef element) const {
  if (!isCPU())
    return false;
  if (element == "bf16") // where that is faster than multiplying in f32
    return hasFeature("avx512bf16") && hasFeature("avx512vl") &&
           hasFeature("clzero");
  return element == "i8" &&
         (hasFeature("avxvnni") ||
          (hasFeature("avx512vnni") && hasFeature("avx512vl")));
}

std::optional<int64_t> Device::getLevelBytes(StringRef level) const {
  DictionaryAttr found = levelOf(entries, level);
  std::optional<double> bytes =
      found ? toNumber(found.get("bytes")) : std::nullopt;
  return bytes ? std::optional<int64_t>(*bytes) : std::nullopt;
}

std::optional<int64_t> Device::getBytesPerLaunch() const {
  DictionaryAttr memory = isGPU() ? levelOf(entries, "memory") : nullptr;
  std::optional<double> rate =
      memory ? toNumber(memory.get("bandwidth")) : std::nullopt;
  if (!rate)
    return std::nullopt;
  double launch = numberIn(entries, "rates", "launch").value_or(kLaunchSeconds);
  return static_cast<int64_t>(*rate * launch);
}

int64_t Device::getLimit(StringRef name, int64_t otherwise) const {
  std::optional<double> known = numberIn(entries, "limits", name);
  return known ? static_cast<int64_t>(*known) : otherwise;
}

StringRef Device::getOption(StringRef name) const {
  auto text = options ? options.getAs<StringAttr>(name) : nullptr;
  return text ? text.strref() : StringRef();
}

} // namespace tilewright
