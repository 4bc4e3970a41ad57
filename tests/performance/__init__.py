"""How long things take; measured by hand, never in the tests."""
