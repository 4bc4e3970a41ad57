"""Units, errors, visible text and the closed sets of words in reports; importing them is cheap."""
