"""A. Jokanovic, PhD thesis, UPC 2014: virtual network blocks on fat trees, and other policies."""
