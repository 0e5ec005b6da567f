// RUN: tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{an array has at least one level: write a leaf alone as 'tensor<4xf32>'}}
func.func private @array_c1(!fractal.array<[] of tensor<4xf32>>)

// -----

// expected-error@+1 {{a length is a number from 0 on, '?' or 'ragged', not -1}}
func.func private @array_c2(!fractal.array<[4, -1] of tensor<4xf32>>)

// -----

// expected-error@+1 {{the first level is one list, which cannot be 'ragged': write '?' where its length is not known}}
func.func private @array_c3(!fractal.array<[ragged, 4] of tensor<4xf32>>)

// -----

// expected-error@+1 {{a leaf is a tensor of static shape, not 'tensor<?xf32>'}}
func.func private @array_c4(!fractal.array<[4] of tensor<?xf32>>)

// -----

// expected-error@+1 {{invalid kind of type specified: expected builtin.tensor}}
func.func private @no_tensor(!fractal.array<[4] of f32>)

// -----

// expected-error@+1 {{expected a length: a number, '?' or 'ragged'}}
func.func private @no_length(!fractal.array<[4, regular] of tensor<4xf32>>)
