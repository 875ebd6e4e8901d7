"""The cost model beside measured collectives of Fugaku, Leonardo, LUMI and MareNostrum 5 (PICO, arXiv 2508.16809)."""
