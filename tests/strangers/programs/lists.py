"""Words counted with mpi-list: the program knows nothing of topompi."""

from mpi_list import Context

context = Context()
numbers = context.iterates(100)
squares = numbers.map(lambda number: number * number).filter(lambda number: number % 3)
total, count = squares.reduce(lambda one, other: one + other, 0), squares.len()
sums = numbers.scan(lambda one, other: one + other).collect()
some = squares.head(7)
everything = squares.collect()
if context.rank == 0:
    print(total, count, sums[-1], some, len(everything))
