"""A fuzzer for the files that Hookline reads: seeds, mutations, targets, and the loop."""
