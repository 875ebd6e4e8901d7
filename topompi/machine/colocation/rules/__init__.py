"""Rules that predict from two profiles whether a program gains or loses beside another: kinds of programs, labels."""
