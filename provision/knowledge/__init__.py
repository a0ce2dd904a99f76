"""Facts about the world outside, as data and pure look-ups: CPU targets, CUDA versions, images, known failures."""
