"""From a path to answers: traces read, checked and described, here or by workers, or found in the cache."""
