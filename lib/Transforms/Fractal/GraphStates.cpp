//===- GraphStates.cpp - what states are ----------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/Dependences.h"
#include "lib/Transforms/Fractal/GraphBuilder.h"

using namespace mlir;
using namespace tilewright::fractal;

/// Reads of a state are reads of what was yielded for it: the pieces of one
/// put into those of the other. A state that is yielded as a state, with no
/// computation on the way round, would go on for ever: it is copied.
SmallVector<Piece> GraphBuilder::resolved(const Piece &piece, unsigned dims,
                                          ArrayRef<Constraint> domain) {
  Constraints where(domain);
  llvm::append_range(where, piece.where);
  // A list that is walked over has elements: its last state is no init.
  if (isEmpty({dims, unsigned(symbols.size())}, where))
    return {};
  if (buffers[piece.buffer].kind != Buffer::State)
    return {piece};
  unsigned state = piece.buffer;
  if (buffers[state].copy || llvm::is_contained(resolving, state)) {
    Piece copied = piece;
    copied.buffer = materialize(state);
    return {copied};
  }
  resolving.push_back(state);
  SmallVector<Piece> all;
  Element yielded = *buffers[state].yielded;
  for (const Piece &inner : yielded.pieces) {
    Piece now = {inner.buffer, replaced(inner.place, piece.place), piece.where,
                 piece.indirect || inner.indirect};
    llvm::append_range(now.where, replaced(inner.where, piece.place));
    llvm::append_range(all, resolved(now, dims, domain));
  }
  resolving.pop_back();
  return all;
}

unsigned GraphBuilder::materialize(unsigned state) {
  if (buffers[state].copy)
    return *buffers[state].copy;
  unsigned number = buffers.size();
  buffers[state].copy = number;
  Draft draft;
  draft.loops = buffers[state].loops;
  draft.arguments.insert(buffers[state].state);
  draft.elements.push_back(withLevels(*buffers[state].yielded));
  draft.results.push_back(buffers[state].state);
  Buffer &buffer = buffers.emplace_back();
  buffer.kind = Buffer::Written;
  buffer.block = drafts.size();
  drafts.push_back(std::move(draft));
  return number;
}

void GraphBuilder::resolve(Element &element, ArrayRef<Constraint> domain) {
  SmallVector<Piece> pieces;
  for (const Piece &piece : element.pieces)
    llvm::append_range(pieces, resolved(piece, element.rank(), domain));
  element.pieces = std::move(pieces);
}

Constraints GraphBuilder::domainOf(const Draft &draft) {
  Constraints domain;
  for (auto [number, loop] : llvm::enumerate(draft.loops)) {
    domain.push_back({dim(number)});
    domain.push_back({loop.length - 1 - dim(number)});
  }
  return domain;
}

/// A block after all that it reads, but for its own result.
bool GraphBuilder::place(unsigned number, SmallVector<bool> &begun) {
  if (llvm::is_contained(order, number))
    return true;
  if (begun[number])
    return false;
  begun[number] = true;
  for (const Element &element : drafts[number].elements)
    for (const Piece &piece : element.pieces) {
      const Buffer &buffer = buffers[piece.buffer];
      if (buffer.kind == Buffer::Written && buffer.block != number &&
          !place(buffer.block, begun))
        return false;
    }
  order.push_back(number);
  return true;
}

LogicalResult GraphBuilder::resolveStates() {
  auto resolveFrom = [&](size_t first) {
    for (size_t i = first; i < drafts.size(); ++i)
      for (size_t k = 0; k < drafts[i].elements.size(); ++k) {
        Element element = drafts[i].elements[k];
        resolve(element, domainOf(drafts[i]));
        drafts[i].elements[k] = std::move(element);
      }
    return drafts.size();
  };
  // What computes comes first: it needs fewer copies than the outputs, which
  // say what a list without an element gives. Copies are blocks too.
  size_t done = resolveFrom(0);
  for (Element &output : outputs)
    resolve(output, {});
  resolveFrom(done);
  SmallVector<bool> begun(drafts.size(), false);
  for (unsigned number : llvm::seq<unsigned>(drafts.size()))
    if (!place(number, begun)) {
      function.emitRemark("no graph of this function: a state goes through a "
                          "loop that may have no iteration, and back");
      return failure();
    }
  return success();
}
