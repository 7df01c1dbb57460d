"""A small English-like language, its German-like translation and the links between their words, from a grammar."""
