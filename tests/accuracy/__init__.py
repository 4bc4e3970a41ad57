"""The accuracy corpus: per rule a slow program, its fix and near misses; and clean programs that must stay quiet."""
