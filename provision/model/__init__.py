"""The nouns: frozen dataclasses, and the readers that turn text into them with every fault listed. No I/O here."""
