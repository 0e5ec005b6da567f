//===- Forms.h - sums of products of exponentials ---------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_FORMS_H
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_FORMS_H

#include "mlir/IR/Value.h"

#include <map>
#include <optional>
#include <vector>

namespace tilewright {

/// A number that is known by its name only; an index into `Atoms`.
using AtomId = unsigned;

/// A number times powers of atoms times an exponential of their sum.
struct Monomial {
  double factor = 1;
  std::map<AtomId, int> powers;
  std::map<AtomId, double> exponent;

  bool isLike(const Monomial &other) const {
    return powers == other.powers && exponent == other.exponent;
  }
  bool operator==(const Monomial &other) const {
    return factor == other.factor && isLike(other);
  }
};

/// A sum of monomials that are unlike each other, in a fixed order.
using Polynomial = std::vector<Monomial>;

/// A quotient: one polynomial over a product of several.
struct Form {
  Polynomial over;
  std::vector<Polynomial> under;

  static Form constant(double value);
  static Form atom(AtomId id);
  /// The atom that it is, and nothing else.
  std::optional<AtomId> asAtom() const;
};

Form add(const Form &left, const Form &right);
Form multiply(const Form &left, const Form &right);
Form negate(const Form &form);
/// Nothing where the divisor is zero.
std::optional<Form> divide(const Form &left, const Form &right);
/// exp(scale * form), where the form is a sum of multiples of atoms.
std::optional<Form> exponential(const Form &form, double scale);
/// The sum of terms as a polynomial.
Polynomial collected(Polynomial terms);

/// What an index stands for besides a dimension of the state that a form is of.
enum Index : int64_t {
  kUnit = -1,  ///< the only element of a dimension of size one
  kBound = -2, ///< what a maximum or a sum runs over
};

/// What an atom is: an element of a tensor, the larger of several atoms, or a
/// row's maximum or sum of what is below the bound index.
struct Atom {
  enum Kind { Element, Larger, RowMaximum, RowSum } kind = Element;
  mlir::Value tensor;
  llvm::SmallVector<int64_t> at;
  std::vector<AtomId> parts; ///< of a `Larger`, ascending
  Monomial term;             ///< of a `RowSum`

  bool operator==(const Atom &other) const {
    return kind == other.kind && tensor == other.tensor && at == other.at &&
           parts == other.parts && term == other.term;
  }
};

/// All atoms of an analysis; equal ones have one number.
class Atoms {
public:
  AtomId intern(Atom atom);
  const Atom &operator[](AtomId id) const { return known[id]; }
  /// The larger of two, each of which may be such an atom itself.
  AtomId larger(AtomId left, AtomId right);
  /// Whether any atom that it is made of meets a condition.
  bool any(AtomId id, llvm::function_ref<bool(const Atom &)> holds) const;
  bool any(const Monomial &term,
           llvm::function_ref<bool(const Atom &)> holds) const;
  bool varies(AtomId id, int64_t index) const;
  /// An atom with an index replaced.
  AtomId replaced(AtomId id, int64_t index, int64_t by);

private:
  std::vector<Atom> known;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_FORMS_H
