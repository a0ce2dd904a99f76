"""How a site starts programs: the modules to load, the launcher, the threads of each rank. Pure: text and argv."""
