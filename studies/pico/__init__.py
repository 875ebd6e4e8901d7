"""The cost model beside measured collectives of Fugaku, Leonardo, LUMI and MareNostrum 5 (PICO, De Sensi et al. 2025)."""
