"""What we know of the world, as data and pure look-ups: CPU targets, known failures, data sets."""
