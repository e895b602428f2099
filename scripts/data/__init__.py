"""What goes into tflq as data, a module each: `scripts/make_data.py`."""
