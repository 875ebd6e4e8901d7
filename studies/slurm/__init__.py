"""H. Subramoni, PhD thesis, Ohio State 2013, chapter 8, on a real Slurm over an emulated network."""
