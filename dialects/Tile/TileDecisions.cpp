//===- TileDecisions.cpp - checks of attributes that carry decisions ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decisions are checked where they are written, so that a hand edit with a typo
// fails at once.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tilewright::tile;

namespace {

bool isInteger(Attribute attr) {
  auto number = dyn_cast<IntegerAttr>(attr);
  return number && number.getType().isSignlessInteger(64);
}

/// Terms of a sum in whole instructions of 8-bit elements.
bool isTerms(Attribute attr) {
  return isInteger(attr) && cast<IntegerAttr>(attr).getInt() >= 0 &&
         cast<IntegerAttr>(attr).getInt() % 32 == 0;
}

template <typename... Kinds> bool isArrayOf(Attribute attr) {
  auto array = dyn_cast<ArrayAttr>(attr);
  return array && llvm::all_of(array, llvm::IsaPred<Kinds...>);
}

bool hasIntegers(Attribute attr, ArrayRef<StringRef> names) {
  auto dictionary = dyn_cast<DictionaryAttr>(attr);
  return dictionary && dictionary.size() == names.size() &&
         llvm::all_of(names, [&](StringRef name) {
           Attribute number = dictionary.get(name);
           return number && isInteger(number);
         });
}

bool isParameters(Attribute attr) {
  auto array = dyn_cast<ArrayAttr>(attr);
  return array && llvm::all_of(array, [](Attribute one) {
           auto entry = dyn_cast<DictionaryAttr>(one);
           return entry && entry.getAs<StringAttr>("kind");
         });
}

/// A declaration: what the attribute may be, what it must be in words, and what
/// it may stand on, with a space around each.
struct Declared {
  llvm::StringLiteral name;
  bool (*check)(Attribute);
  llvm::StringLiteral must;
  llvm::StringLiteral carriers;

  bool mayStandOn(StringRef carrier) const {
    auto has = [&](const Twine &name) {
      return carriers.contains((" " + name + " ").str());
    };
    return has("*") || has(carrier) || has(carrier.split('.').first + ".");
  }
};

const Declared kDeclared[] = {
#include "dialects/Tile/TileDecisions.cpp.inc"
};

const Declared *lookUp(StringRef name) {
  static const llvm::StringMap<const Declared *> known = [] {
    llvm::StringMap<const Declared *> map;
    for (const Declared &one : kDeclared)
      map[one.name] = &one;
    return map;
  }();
  return known.lookup(name);
}

StringRef nearest(StringRef name) {
  const Declared *best = llvm::min_element(
      kDeclared, [&](const Declared &one, const Declared &other) {
        return name.edit_distance(one.name) < name.edit_distance(other.name);
      });
  return best->name;
}

/// `"linalg operations, tile.mma"`, from the table's text.
std::string inWords(StringRef carriers) {
  std::string text;
  for (StringRef one : llvm::split(carriers.trim(), ' ')) {
    text += text.empty() ? "" : ", ";
    if (one == "argument" || one == "result")
      text += (one + "s of functions").str();
    else
      text += one.ends_with(".") ? (one.drop_back() + " operations").str()
                                 : one.str();
  }
  return text;
}

LogicalResult verifyDecision(Operation *op, NamedAttribute attr,
                             StringRef carrier) {
  StringRef name = attr.getName().strref();
  const Declared *known = lookUp(name);
  if (!known)
    return op->emitError("has an attribute ")
           << name << ", which is not known; did you mean " << nearest(name)
           << "?";
  if (!known->check(attr.getValue()))
    return op->emitError("attribute ")
           << name << " must be " << known->must << ", got " << attr.getValue();
  if (!known->mayStandOn(carrier))
    return op->emitError("attribute ")
           << name << " does not belong on " << carrier
           << "; it stands on: " << inWords(known->carriers);
  return success();
}

} // namespace

LogicalResult TileDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attr) {
  return verifyDecision(op, attr, op->getName().getStringRef());
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned,
                                                    NamedAttribute attr) {
  return verifyDecision(op, attr, "argument");
}

LogicalResult TileDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                       unsigned,
                                                       NamedAttribute attr) {
  return verifyDecision(op, attr, "result");
}
