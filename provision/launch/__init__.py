"""How programs are started at a site: its modules loaded, its launcher, the threads of each rank. Pure: text and argv."""
