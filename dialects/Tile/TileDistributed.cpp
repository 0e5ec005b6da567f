//===- TileDistributed.cpp - tiles in the registers of many threads ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright::tile;

SmallVector<int64_t> DistributedAttr::getSizes() const {
  SmallVector<int64_t> sizes(getRank(), 1);
  for (ArrayRef<int64_t> codes : {getRegisters(), getLanes(), getWarps()})
    for (int64_t code : codes)
      if (code >= 0)
        sizes[code / 64] *= 2;
  return sizes;
}

LogicalResult
DistributedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        int64_t rank, ArrayRef<int64_t> registers,
                        ArrayRef<int64_t> lanes, ArrayRef<int64_t> warps) {
  // distributed_c5
  if (lanes.size() != 5 || warps.size() > 5)
    return emitError()
           << "a distributed layout has 5 vectors for the lane and at most 5 "
              "for the warp, got "
           << lanes.size() << " and " << warps.size();
  llvm::SmallSet<int64_t, 16> seen;
  SmallVector<int64_t> bits(rank), highest(rank, -1);
  // distributed_c3
  if (llvm::any_of(registers, [](int64_t code) { return code < 0; }))
    return emitError() << "the vector of a register's bit must not be zero";
  for (ArrayRef<int64_t> codes : {registers, lanes, warps})
    for (int64_t code : codes) {
      if (code < 0)
        continue;
      // distributed_c1
      if (code / 64 >= rank)
        return emitError() << "a vector has an entry in dimension " << code / 64
                           << ", but the rank is " << rank;
      // distributed_c3
      if (!seen.insert(code).second)
        return emitError() << "the entry " << (int64_t(1) << (code % 64))
                           << " of dimension " << code / 64
                           << " occurs in two vectors";
      ++bits[code / 64];
      highest[code / 64] = std::max(highest[code / 64], code % 64);
    }
  // distributed_c4
  for (int64_t dim = 0; dim < rank; ++dim)
    if (highest[dim] + 1 != bits[dim])
      return emitError() << "entries of dimension " << dim
                         << " must be 1, 2, 4, ... without a gap";
  return success();
}

/// `[0, 4, 0]` as a code.
static ParseResult parseVector(AsmParser &parser, std::optional<int64_t> &rank,
                               int64_t &code) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> entries;
  auto parseEntry = [&] { return parser.parseInteger(entries.emplace_back()); };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseEntry))
    return failure();
  auto size = static_cast<int64_t>(entries.size());
  // distributed_c1
  if (rank && *rank != size)
    return parser.emitError(loc)
           << "a vector has " << size << " entries where another has " << *rank;
  rank = size;
  code = -1;
  for (auto [dim, entry] : llvm::enumerate(entries)) {
    if (entry == 0)
      continue;
    // distributed_c2
    if (code >= 0 || entry < 0 || !llvm::isPowerOf2_64(entry))
      return parser.emitError(loc)
             << "a vector is zero or has one entry, a power of two";
    code = 64 * static_cast<int64_t>(dim) + llvm::Log2_64(entry);
  }
  return success();
}

Attribute DistributedAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::optional<int64_t> rank;
  SmallVector<int64_t> codes[3];
  auto parseVectors = [&](StringRef name,
                          SmallVectorImpl<int64_t> &list) -> ParseResult {
    if (parser.parseKeyword(name) || parser.parseEqual())
      return failure();
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parseVector(parser, rank, list.emplace_back());
    });
  };
  if (parser.parseLess() || parseVectors("register", codes[0]) ||
      parser.parseComma() || parseVectors("lane", codes[1]) ||
      parser.parseComma() || parseVectors("warp", codes[2]) ||
      parser.parseGreater())
    return {};
  return shared::getCheckedDistributed(parser, loc, rank.value_or(0), codes[0],
                                       codes[1], codes[2]);
}

void DistributedAttr::print(AsmPrinter &printer) const {
  auto printVector = [&](int64_t code) {
    SmallVector<int64_t> entries(getRank());
    if (code >= 0)
      entries[code / 64] = int64_t(1) << (code % 64);
    printer << '[';
    llvm::interleaveComma(entries, printer);
    printer << ']';
  };
  auto printVectors = [&](StringRef name, ArrayRef<int64_t> codes) {
    printer << name << " = [";
    llvm::interleaveComma(codes, printer, printVector);
    printer << ']';
  };
  printer << '<';
  printVectors("register", getRegisters());
  printVectors(", lane", getLanes());
  printVectors(", warp", getWarps());
  printer << '>';
}
