//===- SoftmaxFold.cpp - folds that are a softmax, block by block ---------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/SoftmaxFold.h"

#include <cmath>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

namespace {
/// Compares the updates of a fold's states with those of a softmax.
class Matcher {
public:
  explicit Matcher(FoldOp fold) : fold(fold), forms(fold) {}

  /// Finds the state that is a running maximum.
  bool findMaximum();
  /// What another state is.
  std::optional<SoftmaxState> match(unsigned number);

  SoftmaxFold result;
  unsigned maximum = 0;

private:
  std::optional<Form> next(unsigned number, const Indices &at) {
    return forms.at(fold.getYield().getValues()[number], at);
  }
  std::optional<unsigned> stateOf(AtomId id);
  bool rescales(const Monomial &term, AtomId &larger, SoftmaxState &state);
  bool isRow(const Monomial &term, AtomId larger, SoftmaxState &state) const;
  std::optional<SoftmaxState> asSum(AtomId own, const Form &form);
  std::optional<SoftmaxState> asQuotient(unsigned number, AtomId own,
                                         const Form &form);

  FoldOp fold;
  BodyForms forms;
  Indices maximumAt, scoresAt; ///< in the update of the maximum
  bool hasScale = false;
};
} // namespace

std::optional<unsigned> Matcher::stateOf(AtomId id) {
  const Atom &atom = forms.atoms[id];
  auto argument = dyn_cast_if_present<BlockArgument>(atom.tensor);
  if (atom.kind != Atom::Element || !argument ||
      argument.getOwner() != &fold.getBodyBlock() ||
      argument.getArgNumber() >= fold.getStates().size())
    return std::nullopt;
  return argument.getArgNumber();
}

bool Matcher::findMaximum() {
  for (auto [number, value] : llvm::enumerate(fold.getYield().getValues())) {
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    std::optional<Form> form = next(number, BodyForms::ownIndices(value));
    std::optional<AtomId> id = form ? form->asAtom() : std::nullopt;
    if (!id || forms.atoms[*id].kind != Atom::Larger)
      continue;
    ArrayRef<AtomId> parts = forms.atoms[*id].parts;
    if (parts.size() != 2)
      continue;
    bool isFirst = stateOf(parts[0]) == number;
    const Atom &state = forms.atoms[parts[isFirst ? 0 : 1]];
    const Atom &row = forms.atoms[parts[isFirst ? 1 : 0]];
    if (stateOf(parts[isFirst ? 0 : 1]) != number ||
        row.kind != Atom::RowMaximum ||
        state.at != BodyForms::ownIndices(fold.getStates()[number]))
      continue;
    maximum = number;
    maximumAt = state.at;
    scoresAt = row.at;
    result.scores = row.tensor;
    return true;
  }
  return false;
}

/// Whether a term's exponential takes a sum from the old maximum to the larger
/// one, at the rows of the state.
bool Matcher::rescales(const Monomial &term, AtomId &larger,
                       SoftmaxState &state) {
  if (term.factor != 1 || term.exponent.size() != 2)
    return false;
  auto first = *term.exponent.begin(), second = *term.exponent.rbegin();
  auto [old, scale] = stateOf(first.first) == maximum ? first : second;
  auto [now, down] = stateOf(first.first) == maximum ? second : first;
  if (stateOf(old) != maximum || scale != -down || scale <= 0 ||
      (hasScale && scale != result.scale))
    return false;
  // The rows that the maximum stands for there.
  state.scores = scoresAt;
  const Indices &at = forms.atoms[old].at;
  for (int64_t &index : state.scores)
    if (auto *place = llvm::find(maximumAt, index);
        index >= 0 && place != maximumAt.end())
      index = at[place - maximumAt.begin()];
  Atom row;
  row.kind = Atom::RowMaximum;
  row.tensor = result.scores;
  row.at = state.scores;
  if (forms.atoms.larger(old, forms.atoms.intern(row)) != now)
    return false;
  larger = now;
  result.scale = scale;
  hasScale = true;
  return true;
}

/// Whether a term is the block's sum of exp(x - larger) times weights.
bool Matcher::isRow(const Monomial &term, AtomId larger,
                    SoftmaxState &state) const {
  using Exponent = std::map<AtomId, double>;
  if (term.factor != 1 || term.powers.size() != 1 ||
      term.powers.begin()->second != 1 ||
      term.exponent != Exponent{{larger, -result.scale}})
    return false;
  const Atom &row = forms.atoms[term.powers.begin()->first];
  if (row.kind != Atom::RowSum || row.term.exponent.size() != 1 ||
      row.term.powers.size() > 1)
    return false;
  auto [id, scale] = *row.term.exponent.begin();
  const Atom &scores = forms.atoms[id];
  if (scores.kind != Atom::Element || scores.tensor != result.scores ||
      scores.at != state.scores || scale != result.scale)
    return false;
  if (row.term.powers.empty())
    return true;
  auto [weights, power] = *row.term.powers.begin();
  const Atom &atom = forms.atoms[weights];
  state.weights = atom.tensor;
  state.weighted = atom.at;
  return power == 1 && atom.kind == Atom::Element &&
         forms.variesWithElements(atom.tensor) &&
         llvm::count(atom.at, kBound) == 1;
}

/// The two terms of a sum, the one with a state's atom first.
static std::optional<std::pair<Monomial, Monomial>>
twoTerms(const Polynomial &sum, AtomId own) {
  if (sum.size() != 2)
    return std::nullopt;
  bool isFirst = sum[0].powers.count(own);
  return std::pair(sum[isFirst ? 0 : 1], sum[isFirst ? 1 : 0]);
}

std::optional<SoftmaxState> Matcher::asSum(AtomId own, const Form &form) {
  using Powers = std::map<AtomId, int>;
  SoftmaxState state;
  state.kind = SoftmaxState::Sum;
  AtomId larger;
  auto terms = twoTerms(form.over, own);
  bool matches = form.under.empty() && terms &&
                 terms->first.powers == Powers{{own, 1}} &&
                 rescales(terms->first, larger, state) &&
                 isRow(terms->second, larger, state);
  return matches ? std::optional(state) : std::nullopt;
}

std::optional<SoftmaxState> Matcher::asQuotient(unsigned number, AtomId own,
                                                const Form &form) {
  SoftmaxState state;
  state.kind = SoftmaxState::Quotient;
  AtomId larger;
  auto terms = twoTerms(form.over, own);
  if (form.under.size() != 1 || !terms || terms->first.powers.size() != 2 ||
      llvm::any_of(terms->first.powers,
                   [](auto &entry) { return entry.second != 1; }))
    return std::nullopt;
  auto one = terms->first.powers.begin()->first,
       other = terms->first.powers.rbegin()->first;
  AtomId divisor = one == own ? other : one;
  state.under = stateOf(divisor);
  if (!state.under || *state.under == number || *state.under == maximum)
    return std::nullopt;
  state.divisor = forms.atoms[divisor].at;
  std::optional<Form> sum = next(*state.under, state.divisor);
  std::optional<SoftmaxState> below = sum ? asSum(divisor, *sum) : std::nullopt;
  // The divisor is the sum of the same rows.
  bool matches = below && sum->under.empty() && sum->over == form.under[0] &&
                 rescales(terms->first, larger, state) &&
                 below->scores == state.scores &&
                 isRow(terms->second, larger, state);
  return matches ? std::optional(state) : std::nullopt;
}

std::optional<SoftmaxState> Matcher::match(unsigned number) {
  Value value = fold.getStates()[number];
  if (!isa<RankedTensorType>(value.getType()))
    return std::nullopt;
  Indices at = BodyForms::ownIndices(value);
  SoftmaxState state;
  state.scores = scoresAt;
  if (number == maximum)
    return state;
  std::optional<Form> own = forms.at(value, at), form = next(number, at);
  if (!form)
    return std::nullopt;
  AtomId atom = *own->asAtom();
  std::optional<SoftmaxState> sum = asSum(atom, *form);
  return sum ? sum : asQuotient(number, atom, *form);
}

std::optional<SoftmaxFold> tilewright::asSoftmax(FoldOp fold,
                                                 std::string &why) {
  Matcher matcher(fold);
  if (!matcher.findMaximum())
    return std::nullopt;
  auto state = [](unsigned number) {
    return "state " + std::to_string(number) + " ";
  };
  for (auto [number, init] : llvm::enumerate(fold.getInits())) {
    std::optional<SoftmaxState> found = matcher.match(number);
    if (!found) {
      why = state(number) +
            "is neither the running maximum of scores nor a sum "
            "of their exponentials relative to it";
      return std::nullopt;
    }
    std::optional<double> start = numberOf(init);
    bool isLow = start && std::isinf(*start) && *start < 0;
    if (number == matcher.maximum ? !isLow : start != 0.0) {
      why = state(number) + "does not start at " +
            (number == matcher.maximum ? "minus infinity" : "zero");
      return std::nullopt;
    }
    matcher.result.states.push_back(*found);
  }
  return matcher.result;
}
