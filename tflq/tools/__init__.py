"""Products built on the conversion. Nothing below imports them."""
