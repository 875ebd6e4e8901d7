"""Collectives of compiled programs: a library that is loaded before the MPI library, and the Python code that it calls.

``_preload.c`` takes the program's blocking collectives, ``launching`` starts a program with it, and ``elf`` reads the
headers of executables. In the program ``program`` imports topompi, ``calls`` runs calls, ``messages`` turns addresses
into messages, and ``communicators`` has all that ``calls`` needs of topompi's communicators.
"""
