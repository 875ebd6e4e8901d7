"""Tuning (``topompi tune``): measurements of every algorithm of a call, their record, and a rules file from them."""
