"""Jobs that share nodes: how much each loses beside the others, fair prices, and accounts.

``read_records`` reads a log of the shutter, ``groups_of`` collects the windows of a job, and ``estimate`` gives its
performance beside others. ``overhead`` has the cost of the shutter, and ``model`` simulates jobs with phases, whose
true performance is known. ``prices`` has the rules of payment, ``accounts`` a ledger of projects, and ``reports`` its
tables.
"""
