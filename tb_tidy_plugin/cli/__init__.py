"""The command `tb-tidy`: one command per file."""
