"""Questions of programs and assistants about recordings, and compact answers to them."""
