"""How often the line is right: programs recorded with a marker before each instruction, unseen by the aligner."""
