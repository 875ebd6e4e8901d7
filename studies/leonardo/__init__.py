"""Real jobs of CINECA's Leonardo on a fabric of its cells and leaf switches: who shares links, and what would help."""
