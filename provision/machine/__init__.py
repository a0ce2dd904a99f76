"""The only folder that touches the machine: processes, files, clock, environment, network, templates and the terminal."""
