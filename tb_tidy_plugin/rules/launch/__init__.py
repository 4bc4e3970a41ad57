"""The launches of device work and the pace at which the host makes them."""
