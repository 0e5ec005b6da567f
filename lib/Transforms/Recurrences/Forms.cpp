//===- Forms.cpp - sums of products of exponentials -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/Forms.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

template <typename Number>
static void addTo(std::map<AtomId, Number> &sums,
                  const std::map<AtomId, Number> &more, Number sign) {
  for (auto [id, number] : more)
    if ((sums[id] += sign * number) == 0)
      sums.erase(id);
}

static Monomial product(const Monomial &left, const Monomial &right) {
  Monomial result = left;
  result.factor *= right.factor;
  addTo(result.powers, right.powers, 1);
  addTo(result.exponent, right.exponent, 1.0);
  return result;
}

Polynomial tilewright::collected(Polynomial terms) {
  Polynomial sum;
  for (Monomial &term : terms) {
    auto like = llvm::find_if(
        sum, [&](const Monomial &other) { return other.isLike(term); });
    if (like == sum.end())
      sum.push_back(std::move(term));
    else
      like->factor += term.factor;
  }
  llvm::erase_if(sum, [](const Monomial &term) { return term.factor == 0; });
  llvm::sort(sum, [](const Monomial &left, const Monomial &right) {
    return std::tie(left.powers, left.exponent) <
           std::tie(right.powers, right.exponent);
  });
  return sum;
}

static Polynomial product(const Polynomial &left, const Polynomial &right) {
  Polynomial terms;
  for (const Monomial &one : left)
    for (const Monomial &other : right)
      terms.push_back(product(one, other));
  return collected(std::move(terms));
}

Form Form::constant(double value) {
  return {collected({Monomial{value, {}, {}}}), {}};
}

Form Form::atom(AtomId id) { return {{Monomial{1, {{id, 1}}, {}}}, {}}; }

std::optional<AtomId> Form::asAtom() const {
  if (over.size() != 1 || !under.empty())
    return std::nullopt;
  const Monomial &only = over.front();
  if (only.powers.size() != 1 || !(*this).over.front().exponent.empty())
    return std::nullopt;
  auto [id, power] = *only.powers.begin();
  return only.factor == 1 && power == 1 ? std::optional(id) : std::nullopt;
}

/// Takes one factor equal to `wanted` away; whether there was one.
static bool take(std::vector<Polynomial> &factors, const Polynomial &wanted) {
  auto found = std::find(factors.begin(), factors.end(), wanted);
  if (found == factors.end())
    return false;
  factors.erase(found);
  return true;
}

Form tilewright::add(const Form &left, const Form &right) {
  std::vector<Polynomial> missing = right.under; // on the left
  std::vector<Polynomial> all = left.under;
  Polynomial theirs = right.over, ours = left.over;
  for (const Polynomial &factor : left.under)
    if (!take(missing, factor))
      theirs = product(theirs, factor);
  for (const Polynomial &factor : missing) {
    ours = product(ours, factor);
    all.push_back(factor);
  }
  llvm::append_range(ours, theirs);
  return {collected(std::move(ours)), all};
}

Form tilewright::multiply(const Form &left, const Form &right) {
  Form one = left, other = right;
  Polynomial unit = Form::constant(1).over;
  if (take(one.under, other.over))
    other.over = unit;
  if (take(other.under, one.over))
    one.over = unit;
  llvm::append_range(one.under, other.under);
  return {product(one.over, other.over), one.under};
}

Form tilewright::negate(const Form &form) {
  return multiply(Form::constant(-1), form);
}

std::optional<Form> tilewright::divide(const Form &left, const Form &right) {
  if (right.over.empty())
    return std::nullopt;
  Form inverse = Form::constant(1);
  for (const Polynomial &factor : right.under)
    inverse.over = product(inverse.over, factor);
  if (right.over.size() > 1) {
    inverse.under.push_back(right.over);
    return multiply(left, inverse);
  }
  Monomial reciprocal{1 / right.over.front().factor, {}, {}};
  addTo(reciprocal.powers, right.over.front().powers, -1);
  addTo(reciprocal.exponent, right.over.front().exponent, -1.0);
  inverse.over = product(inverse.over, Polynomial{reciprocal});
  return multiply(left, inverse);
}

std::optional<Form> tilewright::exponential(const Form &form, double scale) {
  if (!form.under.empty())
    return std::nullopt;
  Monomial power;
  for (const Monomial &term : form.over) {
    bool isMultiple = term.exponent.empty() && term.powers.size() == 1 &&
                      term.powers.begin()->second == 1;
    if (!isMultiple)
      return std::nullopt;
    power.exponent[term.powers.begin()->first] = scale * term.factor;
  }
  return Form{{power}, {}};
}

//===----------------------------------------------------------------------===//
// Atoms
//===----------------------------------------------------------------------===//

AtomId Atoms::intern(Atom atom) {
  auto found = std::find(known.begin(), known.end(), atom);
  AtomId id = found - known.begin();
  if (found == known.end())
    known.push_back(std::move(atom));
  return id;
}

AtomId Atoms::larger(AtomId left, AtomId right) {
  Atom both;
  both.kind = Atom::Larger;
  for (AtomId id : {left, right}) {
    if (known[id].kind == Atom::Larger)
      llvm::append_range(both.parts, known[id].parts);
    else
      both.parts.push_back(id);
  }
  llvm::sort(both.parts);
  both.parts.erase(std::unique(both.parts.begin(), both.parts.end()),
                   both.parts.end());
  return both.parts.size() == 1 ? both.parts.front() : intern(both);
}

bool Atoms::any(AtomId id, function_ref<bool(const Atom &)> holds) const {
  const Atom &atom = known[id];
  return holds(atom) || any(atom.term, holds) ||
         llvm::any_of(atom.parts,
                      [&](AtomId part) { return any(part, holds); });
}

bool Atoms::any(const Monomial &term,
                function_ref<bool(const Atom &)> holds) const {
  auto inside = [&](const auto &entry) { return any(entry.first, holds); };
  return llvm::any_of(term.powers, inside) ||
         llvm::any_of(term.exponent, inside);
}

bool Atoms::varies(AtomId id, int64_t index) const {
  return any(
      id, [&](const Atom &atom) { return llvm::is_contained(atom.at, index); });
}

AtomId Atoms::replaced(AtomId id, int64_t index, int64_t by) {
  Atom atom = known[id];
  llvm::replace(atom.at, index, by);
  for (AtomId &part : atom.parts)
    part = replaced(part, index, by);
  Monomial term = atom.term;
  term.powers.clear();
  term.exponent.clear();
  for (auto [inner, power] : atom.term.powers)
    term.powers[replaced(inner, index, by)] = power;
  for (auto [inner, factor] : atom.term.exponent)
    term.exponent[replaced(inner, index, by)] = factor;
  atom.term = term;
  llvm::sort(atom.parts);
  return intern(atom);
}
