"""What needs the network, and the settings with which it is reached."""
