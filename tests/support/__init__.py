"""What tests share: profiles drawn as text, and where recordings are."""
