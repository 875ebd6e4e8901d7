! Makes 3 broadcasts, 4 reductions for all, 2 gathers, 1 alltoall and 1 barrier, and prints sums; by mpi_f08 or mpif.h.
program calls
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: half
#else
  implicit none
  include 'mpif.h'
  integer :: half
#endif
  integer :: rank, ranks, error, i
  double precision :: given(40), got(640), sums(4)

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  got = 0
  do i = 1, 40
    given(i) = rank + i
  end do
  call MPI_Bcast(given, 10, MPI_DOUBLE_PRECISION, ranks - 1, MPI_COMM_WORLD, error)
  call MPI_Allreduce(given, got, 40, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  call MPI_Allreduce(MPI_IN_PLACE, given, 40, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
  sums(1) = sum(got(1:40)) + sum(given)
  call MPI_Gather(given, 40, MPI_DOUBLE_PRECISION, got, 40, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, error)
  sums(2) = sum(got)
  call MPI_Alltoall(given, 2, MPI_DOUBLE_PRECISION, got, 2, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, error)
  sums(3) = sum(got(1:2 * ranks))
  do i = 1, 2
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, error)
    call MPI_Bcast(given, 40, MPI_DOUBLE_PRECISION, 0, half, error)
    call MPI_Allreduce(given, got, 40, MPI_DOUBLE_PRECISION, MPI_SUM, half, error)
    call MPI_Comm_free(half, error)
  end do
  sums(4) = sum(got(1:40))
  call MPI_Gather(sums, 4, MPI_DOUBLE_PRECISION, got, 4, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (rank == 0) print '(16F14.2)', got(1:4 * ranks)
  call MPI_Finalize(error)
end program calls
