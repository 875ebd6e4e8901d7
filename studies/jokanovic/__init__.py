"""A. Jokanovic, PhD thesis, UPC 2014: virtual network blocks on fat trees, other policies, jobs that share links."""
